/* Two threads ("threads") or two processes ("processes") pass a word to and fro in shared memory. Before that, they run the litmus
   tests of message passing and store buffering. Prints the forbidden outcomes, and the time of a round trip in ns. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 100, TRIPS = 500 };

struct shared {
    _Alignas(256) _Atomic int data;
    _Alignas(256) _Atomic int flag;
    _Alignas(256) _Atomic int arrived;
    _Alignas(256) _Atomic int word;
    _Alignas(256) int seen[2][ROUNDS][2];
};

static int file;

static struct shared *map(void)
{
    return mmap(0, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

static void meet(struct shared *s, int *meetings)
{
    atomic_fetch_add(&s->arrived, 1);
    for (++*meetings; atomic_load(&s->arrived) < 2 * *meetings;) {}
}

static double play(struct shared *s, int who)
{
    int meetings = 0;
    for (int i = 0; i < ROUNDS; i++) {
        meet(s, &meetings);
        if (who == 0) {
            atomic_store_explicit(&s->data, i + 1, memory_order_relaxed);
            atomic_store_explicit(&s->flag, i + 1, memory_order_release);
        } else {
            s->seen[0][i][0] = atomic_load_explicit(&s->flag, memory_order_acquire);
            s->seen[0][i][1] = atomic_load_explicit(&s->data, memory_order_relaxed);
        }
        meet(s, &meetings);
    }
    for (int i = 0; i < ROUNDS; i++) {
        if (who == 0) s->data = s->flag = 0;
        meet(s, &meetings);
        atomic_store(who ? &s->flag : &s->data, 1);
        s->seen[1][i][who] = atomic_load(who ? &s->data : &s->flag);
        meet(s, &meetings);
    }
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < TRIPS; i++) {
        while (atomic_load_explicit(&s->word, memory_order_acquire) != 2 * i + who) {}
        atomic_store_explicit(&s->word, 2 * i + who + 1, memory_order_release);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((end.tv_sec - start.tv_sec) * 1e9 + end.tv_nsec - start.tv_nsec) / TRIPS;
}

static void *second(void *unused)
{
    play(map(), 1);
    return unused;
}

int main(int argc, char **argv)
{
    file = memfd_create("shared", 0);
    ftruncate(file, sizeof(struct shared));
    struct shared *s = map();
    double ns;
    if (argc > 1 && !strcmp(argv[1], "threads")) {
        pthread_t thread;
        pthread_create(&thread, 0, second, 0);
        ns = play(s, 0);
        pthread_join(thread, 0);
    } else {
        if (!fork()) second(0), _exit(0);
        ns = play(s, 0);
        wait(0);
    }
    int forbidden = 0;
    for (int i = 0; i < ROUNDS; i++) {
        forbidden += s->seen[0][i][0] == i + 1 && s->seen[0][i][1] != i + 1;
        forbidden += s->seen[1][i][0] == 0 && s->seen[1][i][1] == 0;
    }
    printf("%d %.0f\n", forbidden, ns);
    return 0;
}
