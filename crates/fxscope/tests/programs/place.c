// The CPUs of an OpenMP program's threads.

#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>

int main(void)
{
    int cpu[64] = {0}, n = 0;
    #pragma omp parallel
    {
        cpu[omp_get_thread_num()] = sched_getcpu();
        #pragma omp single
        n = omp_get_num_threads();
    }
    for (int i = 0; i < n; i++) printf("%d%c", cpu[i], i + 1 < n ? ' ' : '\n');
}
