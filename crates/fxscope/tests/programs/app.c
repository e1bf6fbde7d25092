/* Stands for the programs of readers in commands of documents: a region, a function that is called often, and data on the heap and not. */
#include <stdio.h>
#include <stdlib.h>

#include "fxscope.h"

/* The table is larger than two pages of 2 MiB: it fills at least one. */
enum { N = 1 << 19, STRIDE = 1 << 13, STEPS = 120 };
double table[N];

__attribute__((noinline)) static void step(double *values)
{
    for (int i = 0; i < N; i += STRIDE)
        values[i] += table[i];
}

int main(void)
{
    double *values = calloc(N, sizeof *values);
    FXSCOPE_BEGIN("solver");
    for (int i = 0; i < STEPS; i++)
        step(values);
    FXSCOPE_END("solver");
    printf("%g\n", values[0]);
    free(values);
    return 0;
}
