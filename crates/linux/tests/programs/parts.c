/* Work in steps, each of which is a function and a region: alone, or by threads that meet at a barrier, wait in a loop, or sleep, or
 * by processes. Arguments: what to do, the number of threads or processes, the number of steps. */
#include <fxscope.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LENGTH 3000

static double numbers[64][LENGTH];
static pthread_barrier_t barrier;
static atomic_int turn;
static int threads, steps;
static const char *way;

__attribute__((noipa)) void prepare(double *a) {
    for (int i = 0; i < LENGTH; i++)
        a[i] = i % 7;
}

/* A recursion: the outermost call counts. */
__attribute__((noipa)) double step(double *a, int depth) {
    double sum = 0;
    if (depth > 0)
        sum = step(a, depth - 1);
    for (int i = 1; i < LENGTH; i++)
        sum += a[i] = a[i - 1] * 0.5 + a[i];
    return sum;
}

__attribute__((noipa)) void between(double *a) {
    for (int i = 0; i < LENGTH; i++)
        a[i] += a[(i * 17) % LENGTH] * 0.25;
}

/* Threads pass a turn on by looking at a number again and again. */
static void wait_for_turn(int number, int k) {
    int mine = k * threads + number;
    while (atomic_load_explicit(&turn, memory_order_acquire) != mine)
        ;
    atomic_store_explicit(&turn, mine + 1, memory_order_release);
}

static void *work(void *argument) {
    int number = (int)(long)argument;
    double *a = numbers[number], sum = 0;
    prepare(a);
    for (int k = 0; k < steps; k++) {
        if (!strcmp(way, "barrier"))
            pthread_barrier_wait(&barrier);
        if (!strcmp(way, "spin"))
            wait_for_turn(number, k);
        if (!strcmp(way, "sleep"))
            nanosleep(&(struct timespec){.tv_nsec = 20000 * (number + 1)}, 0);
        FXSCOPE_BEGIN("work");
        sum += step(a, 2);
        FXSCOPE_END("work");
        between(a);
    }
    double *result = malloc(sizeof *result);
    *result = sum;
    return result;
}

int main(int argc, char **argv) {
    way = argc > 1 ? argv[1] : "alone";
    threads = argc > 2 ? atoi(argv[2]) : 1;
    steps = argc > 3 ? atoi(argv[3]) : 8;
    double total = 0;
    if (!strcmp(way, "fork")) {
        for (int i = 0; i < threads; i++) {
            int ends[2];
            if (pipe(ends))
                return 1;
            if (fork() == 0) {
                double *sum = work((void *)(long)i);
                _exit(write(ends[1], sum, sizeof *sum) != sizeof *sum);
            }
            double sum;
            close(ends[1]);
            if (read(ends[0], &sum, sizeof sum) == sizeof sum)
                total += sum;
        }
        while (wait(0) > 0)
            ;
    } else {
        pthread_t all[64];
        pthread_barrier_init(&barrier, 0, threads);
        for (long i = 1; i < threads; i++)
            pthread_create(&all[i], 0, work, (void *)i);
        total = *(double *)work(0);
        for (int i = 1; i < threads; i++) {
            void *sum;
            pthread_join(all[i], &sum);
            total += *(double *)sum;
        }
    }
    printf("total %.6f\n", total);
    return 0;
}
