/* Stands for the programs of readers in commands of documents: a region, a function that is called often, and data on the heap and not. */
#include <stdio.h>
#include <stdlib.h>

#include "fxscope.h"

enum { N = 4096, STEPS = 120 };
double table[N];

__attribute__((noinline)) static void step(double *values)
{
    for (int i = 0; i < N; i += 64)
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
