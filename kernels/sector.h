/* Sectors of the caches (HPC extension 1.1): which one a pointer's accesses belong to, and how many ways of L2 each has. */
#ifndef FXSCOPE_KERNELS_SECTOR_H
#define FXSCOPE_KERNELS_SECTOR_H

#include <stdint.h>

/* Ways that programs can have on a CMG with an assistant core. */
enum { USABLE_WAYS = 14 };

/* `data` as a pointer whose accesses belong to sector 1: bits 57:56 name the sector. */
static inline const double *in_sector_1(const double *data)
{
    return (const double *)((uintptr_t)data | (uintptr_t)1 << 56);
}

/* IMP_SCCR_VSCCR_L2_EL0: most ways of the two sectors of L2, sector 1's in bits 12:8. The cores of a CMG share it. */
static inline uint64_t read_ways(void)
{
    uint64_t ways;
    __asm__ volatile("mrs %0, S3_3_C15_C8_2" : "=r"(ways));
    return ways;
}

static inline void write_ways(uint64_t ways)
{
    __asm__ volatile("msr S3_3_C15_C8_2, %0" : : "r"(ways) : "memory");
}

/* Sector 1 gets so many ways of L2, sector 0 the rest. */
static inline void give_sector_1(uint64_t ways)
{
    write_ways(ways << 8 | (USABLE_WAYS - ways));
}

#endif
