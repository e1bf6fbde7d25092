/* POSIX threads: locks, condition variables, barriers, keys, cancellation, priority-inheritance and robust locks. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 200 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static pthread_key_t key;
static pthread_spinlock_t spin;
static sem_t semaphore;
static long counter, reads, spins;
static atomic_long atomic_counter;
static int initialised, destroyed, turn;
static __thread int mine = 7;

static void initialise(void) { initialised++; }
static void destroy(void *value) { __atomic_add_fetch(&destroyed, (int)(long)value, __ATOMIC_SEQ_CST); }

static void *work(void *argument)
{
    long me = (long)argument;
    pthread_once(&once, initialise);
    pthread_setspecific(key, (void *)(me + 1));
    mine += (int)me;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        long seen = counter;
        if (i % 16 == 0)
            sched_yield();
        counter = seen + 1;
        pthread_mutex_unlock(&lock);
        pthread_spin_lock(&spin);
        spins++;
        pthread_spin_unlock(&spin);
        atomic_fetch_add(&atomic_counter, 1);
        if (i % 20 == 0) {
            pthread_rwlock_wrlock(&rw);
            reads++;
        } else {
            pthread_rwlock_rdlock(&rw);
        }
        pthread_rwlock_unlock(&rw);
    }
    /* The threads pass here in the order of their numbers. */
    pthread_mutex_lock(&lock);
    while (turn != me)
        pthread_cond_wait(&changed, &lock);
    turn++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    sem_post(&semaphore);
    return (void *)(long)(mine * 10);
}

static void *tick(void *argument)
{
    pthread_cleanup_push((void (*)(void *))puts, "cleaned up");
    for (;;)
        sleep(1);
    pthread_cleanup_pop(0);
    return argument;
}

static void *die_holding(void *mutex)
{
    pthread_mutex_lock(mutex);
    return NULL;
}

static void *hold(void *mutex)
{
    pthread_mutex_lock(mutex);
    struct timespec t = { 0, 1000000 };
    nanosleep(&t, NULL);
    pthread_mutex_unlock(mutex);
    return NULL;
}

static void robust(int protocol)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutex_t mutex;
    pthread_mutex_init(&mutex, &attributes);
    pthread_t thread;
    pthread_create(&thread, NULL, die_holding, &mutex);
    pthread_join(thread, NULL);
    int first = pthread_mutex_lock(&mutex);
    pthread_mutex_consistent(&mutex);
    pthread_mutex_unlock(&mutex);
    printf("robust: %s, then %s\n", strerror(first), strerror(pthread_mutex_trylock(&mutex)));
    pthread_mutex_unlock(&mutex);
}

static void inherit(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_t mutex;
    pthread_mutex_init(&mutex, &attributes);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, hold, &mutex);
    int result = pthread_mutex_lock(&mutex);
    printf("inherit: %s, again %s\n", strerror(result), strerror(pthread_mutex_trylock(&mutex)));
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "robust")) {
        robust(PTHREAD_PRIO_NONE);
        robust(PTHREAD_PRIO_INHERIT);
        return 0;
    }
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    pthread_key_create(&key, destroy);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    sem_init(&semaphore, 0, 0);
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 1;
    for (int i = 0; i < THREADS; i++)
        sem_wait(&semaphore);
    long sum = 0;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    printf("%ld %ld %ld %ld %ld\n", counter, (long)atomic_counter, spins, reads, sum);
    printf("once %d destroyed %d mine %d\n", initialised, destroyed, mine);

    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += 2000000;
    if (limit.tv_nsec >= 1000000000)
        limit.tv_sec++, limit.tv_nsec -= 1000000000;
    pthread_mutex_lock(&lock);
    printf("timed wait: %s\n", strerror(pthread_cond_timedwait(&changed, &lock, &limit)));
    pthread_mutex_unlock(&lock);
    printf("timed semaphore: %d %s\n", sem_timedwait(&semaphore, &limit), strerror(errno));

    pthread_t ticker;
    void *result;
    pthread_create(&ticker, NULL, tick, NULL);
    sched_yield();
    pthread_cancel(ticker);
    pthread_join(ticker, &result);
    printf("cancelled %d\n", result == PTHREAD_CANCELED);
    inherit();
    fflush(stdout);
    pthread_exit(NULL);
}
