// Functions that call each other in the ways that compilers and libraries use. The first argument names one.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static volatile long sink;
static jmp_buf back;

NOINLINE void spend(long n)
{
    for (long i = 0; i < n; i++)
        sink += i;
}

NOINLINE void after(long n)
{
    spend(n);
    sink++;
}

NOINLINE long fib(long n)
{
    if (n < 2)
        return n;
    long first = fib(n - 1), second = fib(n - 2);
    sink++; // The second call is no jump.
    return first + second;
}

NOINLINE long odd(long n);

NOINLINE long even(long n)
{
    spend(10);
    return n == 0 ? 0 : odd(n - 1) + sink % 2;
}

NOINLINE long odd(long n)
{
    spend(10);
    return n == 0 ? 1 : even(n - 1) + sink % 2;
}

NOINLINE void hop(long n)
{
    sink++;
    spend(n); // A jump: nothing is left to do.
}

NOINLINE void deep(long n)
{
    spend(100);
    if (n == 0)
        longjmp(back, 1);
    deep(n - 1);
    sink++;
}

NOINLINE void leaves(void)
{
    deep(3);
    sink++;
}

static void handle(int signal)
{
    spend(1000);
    sink += signal;
}

NOINLINE void interrupted(void)
{
    raise(SIGUSR1);
    after(1000);
    sink++;
}

static void *worker(void *argument)
{
    spend((long)argument);
    sink++;
    return NULL;
}

NOINLINE void child(void)
{
    spend(3000);
    sink++;
}

static inline __attribute__((always_inline)) long twice(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += sink * 2;
    return sum;
}

NOINLINE long outer(long n)
{
    for (long i = 0; i < 50; i++)
        spend(n);
    return twice(4000);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "recursion"))
        sink = fib(10);
    if (!strcmp(what, "mutual"))
        sink = even(20);
    if (!strcmp(what, "tail"))
        hop(1000);
    if (!strcmp(what, "longjmp")) {
        if (setjmp(back) == 0)
            leaves();
        after(1000);
    }
    if (!strcmp(what, "signal")) {
        signal(SIGUSR1, handle);
        interrupted();
        after(1000);
    }
    if (!strcmp(what, "threads")) {
        pthread_t threads[2];
        for (long i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, worker, (void *)(1000 * (i + 1)));
        for (long i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        if (fork() == 0) {
            child();
            _exit(0);
        }
        wait(NULL);
    }
    if (!strcmp(what, "inlined"))
        sink = outer(20);
    if (!strcmp(what, "long"))
        for (long i = 0; i < 400; i++) {
            after(2000);
            spend(6000);
        }
    return 0;
}
