// A thread dies by SIGSEGV while others compute, wait in a loop, sleep at a mutex that it holds, and sleep in the kernel.

#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int never;
static volatile double sum;

static void compute(int n) { for (int i = 0; !n || i < n; i++) sum += i; }

static void *computes(void *p) { compute(0); return p; }
static void *waits(void *p) { while (!never); return p; }
static void *locks(void *p) { pthread_mutex_lock(&lock); return p; }
static void *sleeps(void *p) { pause(); return p; }

static void *dies(void *p)
{
    pthread_mutex_lock(&lock);
    compute(60000);
    return *(void *volatile *)8;
}

int main(void)
{
    void *(*all[])(void *) = {dies, computes, waits, locks, sleeps};
    pthread_t threads[5];
    for (int i = 0; i < 5; i++) if (pthread_create(&threads[i], 0, all[i], 0)) return 1;
    pthread_join(threads[0], 0);
}
