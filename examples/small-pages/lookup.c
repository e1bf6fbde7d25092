/* Looks up random entries of a table of 256 MiB, as hash joins and cross sections do. The cure is no change of the program: large pages. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fxscope.h"

enum { ENTRIES = 256 << 20 >> 3, STEP = 8192, LOOKUPS = 20000 };

int main(void)
{
    uint64_t *table = calloc(ENTRIES, sizeof *table), sum = 0;
    if (!table)
        return 1;
    for (uint64_t i = 0; i < ENTRIES; i += STEP)
        table[i] = i;
    uint32_t x = 1;
    FXSCOPE_BEGIN("lookup");
    for (int i = 0; i < LOOKUPS; i++) {
        x = x * 1664525 + 1013904223;
        sum += table[x >> 7];
    }
    FXSCOPE_END("lookup");
    printf("sum %lu\n", sum);
    free(table);
    return 0;
}
