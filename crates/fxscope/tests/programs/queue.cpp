// Eleven threads take numbers from a queue under a mutex, sleep on a condition variable while it is empty, and sum the lengths of
// their Collatz sequences.

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

static std::mutex lock;
static std::condition_variable filled;
static std::queue<long> queue;
static bool closed;
static long total, taken;

static long collatz(long n)
{
    long steps = 0;
    for (; n != 1; steps++) n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

static void work()
{
    for (;;) {
        std::unique_lock<std::mutex> guard(lock);
        filled.wait(guard, [] { return closed || !queue.empty(); });
        if (queue.empty()) return;
        long n = queue.front();
        queue.pop();
        guard.unlock();
        long steps = collatz(n);
        guard.lock();
        total += steps;
        taken++;
    }
}

int main()
{
    std::vector<std::thread> threads;
    for (int t = 0; t < 11; t++) threads.emplace_back(work);
    for (long n = 1; n <= 200; n++) {
        std::lock_guard<std::mutex> guard(lock);
        queue.push(n);
        filled.notify_one();
    }
    {
        std::lock_guard<std::mutex> guard(lock);
        closed = true;
    }
    filled.notify_all();
    for (auto &thread : threads) thread.join();
    long alone = 0;
    for (long n = 1; n <= 200; n++) alone += collatz(n);
    std::printf("%ld numbers, %s\n", taken, total == alone ? "as alone" : "not as alone");
}
