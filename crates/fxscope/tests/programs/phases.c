// Threads synchronise at pthread barriers; in each round one of them writes a table that all others read, under a read-write
// lock, and all count under a mutex.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64, ROUNDS = 4 };
static pthread_barrier_t meeting;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static int table[2][8];
static int n, counted, serial, wrong;

static void write_table(int round)
{
    pthread_rwlock_wrlock(&table_lock);
    for (int i = 0; i < 8; i++) table[0][i] = table[1][i] = round * 8 + i;
    pthread_rwlock_unlock(&table_lock);
}

static void read_table(void)
{
    pthread_rwlock_rdlock(&table_lock);
    for (int i = 0; i < 8; i++)
        if (table[0][i] != table[1][i]) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    pthread_rwlock_unlock(&table_lock);
}

static void *work(void *number)
{
    for (int round = 0; round < ROUNDS; round++) {
        if (round % n == (int)(long)number) write_table(round); else read_table();
        pthread_mutex_lock(&mutex);
        counted++;
        pthread_mutex_unlock(&mutex);
        if (pthread_barrier_wait(&meeting) == PTHREAD_BARRIER_SERIAL_THREAD)
            __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED);
        if (counted != n * (round + 1) || table[0][7] != round * 8 + 7) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        pthread_barrier_wait(&meeting);
    }
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t threads[MOST];
    n = argc > 1 ? atoi(argv[1]) : 12;
    pthread_barrier_init(&meeting, 0, n);
    for (long i = 1; i < n; i++) if (pthread_create(&threads[i], 0, work, (void *)i)) return 1;
    work(0);
    for (int i = 1; i < n; i++) pthread_join(threads[i], 0);
    printf("counted %d, last to come %d times, wrong %d\n", counted, serial, wrong);
}
