// OpenMP: worksharing, reductions, tasks, critical sections, ordered output.

#include <math.h>
#include <omp.h>
#include <stdio.h>

static long fibonacci(int n) {
    if (n < 12)
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    long a, b;
#pragma omp task shared(a)
    a = fibonacci(n - 1);
#pragma omp task shared(b)
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

int main(void) {
    static double x[1 << 16];
    double sum = 0;
    long inside = 0, tasks = 0, highest = 0;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < 1 << 16; i++)
        x[i] = sqrt(i);
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : inside)
    for (int i = 0; i < 1 << 16; i++)
        inside += x[i] - floor(x[i]) < 0.5;
#pragma omp parallel for ordered schedule(static, 1) reduction(+ : sum)
    for (int i = 0; i < 4; i++) {
#pragma omp ordered
        printf("turn %d\n", i);
        sum += i;
    }
#pragma omp parallel
    {
        long mine = omp_get_thread_num();
#pragma omp critical
        if (mine > highest)
            highest = mine;
#pragma omp single
        tasks = fibonacci(22);
    }
    printf("threads %d, highest %ld, inside %ld, sum %g, tasks %ld\n", omp_get_max_threads(), highest, inside, sum, tasks);
    return 0;
}
