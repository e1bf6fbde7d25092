/* Two threads take turns to add numbers, and spin while the other one adds. argv[1]: turns of each; argv[2]: additions in a turn. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_int turn;
static int turns, additions;
static double sums[2];

static void await(int number)
{
    while (atomic_load_explicit(&turn, memory_order_acquire) != number)
        __asm__ volatile("yield");
}

static void *take(void *self)
{
    int own = self == &sums[1];
    double sum = 0;
    for (int round = 0; round < turns; round++) {
        await(2 * round + own);
        for (int i = 0; i < additions; i++)
            sum += i;
        atomic_store_explicit(&turn, 2 * round + own + 1, memory_order_release);
    }
    sums[own] = sum;
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t other;
    if (argc < 3)
        return 2;
    turns = atoi(argv[1]), additions = atoi(argv[2]);
    if (pthread_create(&other, 0, take, &sums[1]))
        return 1;
    take(&sums[0]);
    pthread_join(other, 0);
    printf("%g %g\n", sums[0], sums[1]);
    return 0;
}
