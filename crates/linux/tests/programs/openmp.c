/* OpenMP: loops, reductions, critical sections, tasks, nested ordering. */
#include <omp.h>
#include <stdio.h>

enum { N = 20000 };
static double a[N], b[N];

static long fibonacci(int n)
{
    if (n < 2)
        return n;
    long x, y;
#pragma omp task shared(x) if (n > 8)
    x = fibonacci(n - 1);
    y = fibonacci(n - 2);
#pragma omp taskwait
    return x + y;
}

int main(void)
{
    double sum = 0;
    int threads = 0, inside = 0;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < N; i++)
        a[i] = i, b[i] = 2.0 * i;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 100)
    for (int i = 0; i < N; i++)
        sum += a[i] * b[i];
#pragma omp parallel
    {
#pragma omp single
        threads = omp_get_num_threads();
#pragma omp critical
        inside++;
#pragma omp barrier
    }
    long f;
#pragma omp parallel
#pragma omp single
    f = fibonacci(16);
    printf("%.0f %d %d %ld\n", sum, threads, inside, f);
#pragma omp parallel for ordered
    for (int i = 0; i < 4; i++) {
#pragma omp ordered
        printf("ordered %d\n", i);
    }
    return 0;
}
