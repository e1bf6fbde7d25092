// Features of OpenMP: loops by each schedule, a reduction, critical and single sections, barriers, tasks, and nested
// regions.

#include <omp.h>
#include <stdio.h>

static int a[600], done[600];

static long tree(int n)
{
    if (n < 2) return n;
    long x, y;
    #pragma omp task shared(x)
    x = tree(n - 1);
    #pragma omp task shared(y)
    y = tree(n - 2);
    #pragma omp taskwait
    return x + y;
}

int main(void)
{
    int n = 0, once = 0, inner = 0, wrong = 0;
    long sum = 0, leaves = 0, counted = 0;
    #pragma omp parallel
    {
        #pragma omp single
        n = omp_get_num_threads();
        #pragma omp for schedule(static)
        for (int i = 0; i < 600; i++) done[i]++;
        #pragma omp for schedule(dynamic, 7)
        for (int i = 0; i < 600; i++) a[i] = i, done[i]++;
        #pragma omp for schedule(guided)
        for (int i = 0; i < 600; i++) done[i]++;
        #pragma omp for reduction(+ : sum)
        for (int i = 0; i < 600; i++) sum += a[i];
        for (int i = 0; i < 3; i++) {
            #pragma omp critical
            counted++;
            #pragma omp barrier
            if (counted != (i + 1) * omp_get_num_threads()) {
                #pragma omp atomic
                wrong++;
            }
            #pragma omp barrier
        }
        #pragma omp single
        once++;
        #pragma omp single
        leaves = tree(8);
    }
    omp_set_max_active_levels(2);
    #pragma omp parallel num_threads(2) reduction(+ : inner)
    {
        #pragma omp parallel num_threads(2) reduction(+ : inner)
        {
            #pragma omp barrier
            inner++;
        }
    }
    for (int i = 0; i < 600; i++) wrong += done[i] != 3;
    printf("threads %d, sum %ld, counted %ld, single %d, tasks %ld, inner %d, wrong %d\n", n, sum, counted, once, leaves,
           inner, wrong);
}
