/* Functions of MPI of its own, called by threads of two processes, left by longjmp, and by the end of the process. */
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline)) int
#define THREADS 4
#define CALLS 100

static volatile int looks;
static jmp_buf out;

FUNCTION MPI_Test(void) { return ++looks; }

FUNCTION MPI_Wait(void) { longjmp(out, 1); }

FUNCTION MPI_Barrier(void)
{
    looks++;
    _exit(0);
}

static void *tests(void *arg)
{
    volatile int sum = 0;
    for (int i = 0; i < CALLS; i++)
        sum += MPI_Test();
    return arg;
}

static __attribute__((noinline)) void calls(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, tests, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (!setjmp(out))
        MPI_Wait();
}

int main(int c, char **v)
{
    calls();
    if (c > 1)
        MPI_Barrier();
    if (fork() == 0)
        return execl("/proc/self/exe", v[0], "again", NULL);
    int status;
    wait(&status);
    for (int i = 0; i < 60000; i++)
        looks++;
    return status != 0;
}
