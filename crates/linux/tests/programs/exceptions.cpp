// Exceptions, streams, containers, virtual calls, static construction.
#include <algorithm>
#include <complex>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

struct Trace {
    std::string name;
    explicit Trace(std::string n) : name(std::move(n)) { std::cout << "+" << name << '\n'; }
    ~Trace() { std::cout << "-" << name << '\n'; }
};

static Trace global("global");

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
struct Circle : Shape {
    double r;
    explicit Circle(double r) : r(r) {}
    double area() const override { return 3.25 * r * r; }
};

static int thrower(int n)
{
    Trace t("level " + std::to_string(n));
    if (n == 0)
        throw std::out_of_range("bottom");
    return thrower(n - 1) + 1;
}

int main()
{
    try {
        thrower(3);
    } catch (const std::logic_error &e) {
        std::cout << "caught " << e.what() << '\n';
    }
    try {
        try {
            std::vector<int>().at(5);
        } catch (...) {
            std::throw_with_nested(std::runtime_error("outer"));
        }
    } catch (const std::exception &e) {
        std::cout << e.what() << ' ' << (dynamic_cast<const std::nested_exception *>(&e) != nullptr) << '\n';
    }
    try {
        std::unique_ptr<Shape> s = std::make_unique<Circle>(2);
        std::cout << dynamic_cast<Circle &>(*s).area() << '\n';
        volatile unsigned long terabytes = 1ul << 43;
        std::cout << new char[terabytes] << '\n';
    } catch (const std::bad_alloc &e) {
        std::cout << "no memory\n";
    }
    std::map<std::string, int> words;
    std::istringstream text("the quick brown fox jumps over the lazy dog the end");
    for (std::string w; text >> w;)
        words[w]++;
    for (auto &[w, n] : words)
        std::cout << w << '=' << n << ' ';
    std::cout << '\n' << std::setprecision(12) << std::fixed << 2.0 / 3 << ' ' << std::hex << 255 << std::dec << '\n';
    std::vector<int> v(1000);
    std::iota(v.begin(), v.end(), 1);
    std::sort(v.begin(), v.end(), [](int a, int b) { return a * 7919 % 1009 < b * 7919 % 1009; });
    std::cout << v[0] << ' ' << v[500] << ' ' << std::accumulate(v.begin(), v.end(), 0L) << '\n';
    std::unordered_map<long, double> m;
    for (long i = 0; i < 5000; i++)
        m[i * i] = i * 0.5;
    std::cout << m.size() << ' ' << m[2500] << ' ' << std::abs(std::complex<double>(3, 4)) << '\n';
    std::function<int(int)> fib = [&](int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); };
    std::cout << fib(15) << std::endl;
    double x;
    while (std::cin >> x)
        std::cout << "in " << x * 2 << '\n';
    thread_local int per_thread = 5;
    throw per_thread; // nobody catches it: abort
}
