// Threads that compute: a chain of divisions, 43 cycles each, takes a known time with few instructions.
//   equal N     N threads of equal work after a barrier: ns from the first start to the last end
//   unequal N   thread k has k + 1 shares of the work before a barrier, each in a separate region
//   slices N    N threads compute for 8 ms each: the longest time in µs that each was without a CPU

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 64, SHARE = 2000 };
static pthread_barrier_t meeting;
static volatile double one = 1.0;
static long began[MOST], ended[MOST], longest[MOST];
static void (*work)(int);

static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

// A share is 86,000 cycles: 43 µs.
static void compute(int shares)
{
    double x = one, by = one;
    for (int i = 0; i < shares * SHARE; i++) asm volatile("fdiv %d0, %d0, %d1" : "+w"(x) : "w"(by));
}

static void equal(int k)
{
    pthread_barrier_wait(&meeting);
    began[k] = now();
    compute(4);
    ended[k] = now();
    // The cost of ending a thread comes after all work.
    pthread_barrier_wait(&meeting);
}

static void unequal(int k)
{
    pthread_barrier_wait(&meeting);
    fxscope_roi_begin("unequal");
    compute(k + 1);
    pthread_barrier_wait(&meeting);
    fxscope_roi_end();
}

static void slices(int k)
{
    pthread_barrier_wait(&meeting);
    for (long i = 0, before = now(); i < 186; i++) {
        compute(1);
        long t = now();
        if (t - before > longest[k]) longest[k] = t - before;
        before = t;
    }
}

static void *start(void *k)
{
    work((int)(long)k);
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t threads[MOST];
    int n = atoi(argv[2]);
    work = !strcmp(argv[1], "equal") ? equal : !strcmp(argv[1], "unequal") ? unequal : slices;
    pthread_barrier_init(&meeting, 0, n);
    for (long k = 0; k < n; k++) if (pthread_create(&threads[k], 0, start, (void *)k)) return 1;
    for (int k = 0; k < n; k++) pthread_join(threads[k], 0);
    for (int k = 1; k < n; k++) {
        if (began[k] < began[0]) began[0] = began[k];
        if (ended[k] > ended[0]) ended[0] = ended[k];
    }
    if (work == equal) printf("%ld\n", ended[0] - began[0]);
    for (int k = 0; k < n && work == slices; k++) printf("%ld\n", longest[k] / 1000);
}
