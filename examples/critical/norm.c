/* The largest difference of two arrays, as a residual. Each thread enters a critical section for each element. -DCURED is a reduction. */
#include <math.h>
#include <stdio.h>

#include "fxscope.h"

enum { ELEMENTS = 2400 };
static double a[ELEMENTS], b[ELEMENTS];

int main(void)
{
    double largest = 0;
    #pragma omp parallel for
    for (int i = 0; i < ELEMENTS; i++)
        a[i] = i % 977, b[i] = i % 971;

    FXSCOPE_BEGIN("norm");
#ifdef CURED
    #pragma omp parallel for reduction(max : largest)
    for (int i = 0; i < ELEMENTS; i++)
        largest = fmax(largest, fabs(a[i] - b[i]));
#else
    #pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < ELEMENTS; i++) {
        #pragma omp critical
        largest = fmax(largest, fabs(a[i] - b[i]));
    }
#endif
    FXSCOPE_END("norm");
    printf("largest %.0f\n", largest);
    return largest == 0;
}
