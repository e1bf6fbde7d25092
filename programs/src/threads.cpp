// Threads that throw, catch, lock and wait for each other.

#include <atomic>
#include <condition_variable>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static long collatz(long n) {
    long steps = 0;
    for (; n != 1; steps++)
        n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

int main() {
    std::atomic<long> total{0};
    std::mutex lock;
    std::map<long, std::string> caught;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            for (long n = t + 1; n < 20000; n += 4) {
                try {
                    long steps = collatz(n);
                    total += steps;
                    if (steps > 270)
                        throw std::out_of_range(std::to_string(n));
                } catch (const std::exception &e) {
                    std::lock_guard<std::mutex> guard(lock);
                    caught[n] = e.what();
                }
            }
        });
    for (auto &thread : threads)
        thread.join();
    std::cout << "steps " << total << "\n";
    for (auto &[n, what] : caught)
        std::cout << n << " " << what << "\n";

    std::condition_variable ready;
    int turn = 0;
    std::string order;
    std::vector<std::thread> players;
    for (int t = 0; t < 3; t++)
        players.emplace_back([&, t] {
            for (int round = 0; round < 5; round++) {
                std::unique_lock<std::mutex> guard(lock);
                ready.wait(guard, [&] { return turn % 3 == t; });
                order += char('a' + t);
                turn++;
                ready.notify_all();
            }
        });
    for (auto &player : players)
        player.join();
    std::cout << order << "\n";

    auto result = std::async(std::launch::async, []() -> int { throw std::runtime_error("from a task"); });
    try {
        result.get();
    } catch (const std::runtime_error &e) {
        std::cout << e.what() << "\n";
    }
}
