/* Sectors of the caches (HPC extension 1.1): the sector of a pointer's accesses, and the ways of L2 per sector. */
#ifndef FXSCOPE_KERNELS_SECTOR_H
#define FXSCOPE_KERNELS_SECTOR_H

#include <stdint.h>

/* Ways of L2, and those of them that programs can use on a CMG with an assistant core. */
enum { WAYS = 16, USABLE_WAYS = 14 };

/* `data` as a pointer whose accesses belong to sector 1: bits 57:56 name the sector. */
static inline const double *in_sector_1(const double *data)
{
    return (const double *)((uintptr_t)data | (uintptr_t)1 << 56);
}

/* IMP_SCCR_VSCCR_L2_EL0: maximum ways of the two sectors of L2, sector 1's in bits 12:8. The cores of a CMG share it. */
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

/* Sector 1 gets `ways` of the `all` ways of L2, sector 0 the rest. */
static inline void give_sector_1(uint64_t ways, uint64_t all)
{
    write_ways(ways << 8 | (all - ways));
}

#endif
