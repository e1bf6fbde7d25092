/* Counts the digits of numbers. Each thread has counters of its own, side by side in one array. -DCURED puts them in lines of their own. */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>

#include "fxscope.h"

enum { NUMBERS = 40000, THREADS = 12, LINE = 256 };

#ifdef CURED
static struct { _Alignas(LINE) volatile uint64_t even, odd; } counts[THREADS];
#else
static struct { volatile uint64_t even, odd; } counts[THREADS];
#endif
static uint32_t numbers[NUMBERS];

int main(void)
{
    uint32_t x = 1;
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = x = x * 1664525 + 1013904223;
    #pragma omp parallel num_threads(THREADS)
    counts[omp_get_thread_num()].even = 0;

    FXSCOPE_BEGIN("count");
    #pragma omp parallel for num_threads(THREADS)
    for (int i = 0; i < NUMBERS; i++) {
        int thread = omp_get_thread_num();
        if (numbers[i] >> 31)
            counts[thread].odd++;
        else
            counts[thread].even++;
    }
    FXSCOPE_END("count");

    uint64_t even = 0, odd = 0;
    for (int t = 0; t < THREADS; t++)
        even += counts[t].even, odd += counts[t].odd;
    printf("low %lu high %lu\n", even, odd);
    return even + odd != NUMBERS;
}
