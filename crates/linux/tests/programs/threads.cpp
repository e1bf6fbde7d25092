// C++ threads: exceptions across threads, futures, condition variables, thread-local objects.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

struct Noisy {
    int value = 1;
    ~Noisy() { destroyed += value; }
    static std::atomic<int> destroyed;
};
std::atomic<int> Noisy::destroyed{0};
thread_local Noisy local;

static int fail(int n)
{
    if (n % 2)
        throw std::runtime_error("odd " + std::to_string(n));
    return n * n;
}

int main()
{
    std::vector<std::future<int>> results;
    for (int i = 0; i < 6; i++)
        results.push_back(std::async(std::launch::async, fail, i));
    for (auto &result : results) {
        try {
            std::cout << result.get() << "\n";
        } catch (const std::exception &e) {
            std::cout << "caught " << e.what() << "\n";
        }
    }

    std::mutex mutex;
    std::condition_variable changed;
    int stage = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&, i] {
            local.value = 10 + i;
            std::unique_lock<std::mutex> guard(mutex);
            changed.wait(guard, [&] { return stage == i; });
            std::cout << "stage " << i << "\n";
            stage++;
            changed.notify_all();
        });
    for (auto &thread : threads)
        thread.join();
    std::cout << "destroyed " << Noisy::destroyed << "\n";

    std::unique_lock<std::mutex> guard(mutex);
    bool timed_out = changed.wait_for(guard, std::chrono::milliseconds(2)) == std::cv_status::timeout;
    std::cout << "timed out " << timed_out << "\n";
    std::exception_ptr stored;
    std::thread([&] { try { fail(7); } catch (...) { stored = std::current_exception(); } }).join();
    try {
        std::rethrow_exception(stored);
    } catch (const std::runtime_error &e) {
        std::cout << "rethrown " << e.what() << "\n";
    }
    return 0;
}
