/* Common code of the TLB programs: work on a place that stays in the L1 cache. */
#ifndef FXSCOPE_KERNELS_TLB_H
#define FXSCOPE_KERNELS_TLB_H

#include "runtime.h"

/* Bytes of a place. */
enum { PLACE = 256 };

/* Loads the 16 vectors of 16 bytes of a place, `rounds` times, and sums them. */
double tlb_work(const double *place, uint64_t rounds);

/* `bytes` of private memory, all zero. Exits if the system has none. */
unsigned char *tlb_map(size_t bytes);

#endif
