/* Two hundred threads at a time, a thread that ends the process, and one that never does. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 200 };
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static long total;

static void *add(void *argument)
{
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&first);
    total += (long)argument;
    pthread_mutex_unlock(&first);
    return NULL;
}

static void *leave(void *argument)
{
    printf("%s\n", (char *)argument);
    exit(3);
}

static void *cross(void *argument)
{
    pthread_mutex_lock(&second);
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&first);
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    if (argc > 1 && !strcmp(argv[1], "deadlock")) {
        pthread_barrier_init(&barrier, NULL, 2);
        pthread_create(&threads[0], NULL, cross, NULL);
        pthread_mutex_lock(&first);
        pthread_barrier_wait(&barrier);
        pthread_mutex_lock(&second);
    }
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, add, (void *)i))
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", total);
    pthread_create(&threads[0], NULL, leave, "leaving");
    for (;;)
        pause();
}
