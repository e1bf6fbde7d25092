// y(i) = x1(i) + c0 * x2(i).

#if TRIAD_BODY == 8

#include "stream3.inc"

        STREAM3 triad_kernel, OP_FMA

#else

// Four vectors of each array per iteration (with 512-bit vectors: one cache line each), in the order of the compiler's
// listing for the real machine:
//
//   plain         22 instructions: 8 loads, 4 FMA, 4 stores, 3 pointers, 1 offset, 1 counter, 1 branch
//   ZERO          + DC ZVA a number of lines ahead of the stores, + 1 software prefetch of y to L1 = 24. The pointer of
//                 the stores carries pf_func 6 in bits 63:60 (HPC extension): it switches hardware prefetches off
//   SOFTWARE      + prefetches of x1, x2 and y to L1, and of those arrays that are read from memory to L2; with 2
//                 instead of 1, those to L1 only
//
// uint64_t NAME(double *y, const double *x1, const double *x2, uint64_t iterations, double c0,
//               uint64_t zero_distance, uint64_t l1_distance, uint64_t l2_distance)
//
// iterations >= 1; distances in bytes. Returns the bytes of y written.

.macro TRIAD4 name, zero, software
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        ptrue   p0.d
        dup     z31.d, z0.d[0]
        cntb    x10, all, mul #4        // bytes of one array per iteration
        cntb    x12, all, mul #3
        add     x8, x0, x12             // the pointers point to the last of the four vectors
        add     x9, x1, x12
        add     x2, x2, x12
.if \zero
        add     x7, x0, x4              // runs ahead of the stores
        add     x12, x0, x4
        orr     x8, x8, #0x6000000000000000     // no hardware prefetch for the stores: it would read the zeroed lines
.else
        mov     x7, #0
        mov     x12, #0
.endif
        .p2align 5
1:
        ld1d    {z0.d}, p0/z, [x9, #-3, mul vl]
        ld1d    {z4.d}, p0/z, [x2, #-3, mul vl]
.if \zero
        dc      zva, x7
.endif
        add     x7, x7, x10
        ld1d    {z1.d}, p0/z, [x9, #-2, mul vl]
        ld1d    {z5.d}, p0/z, [x2, #-2, mul vl]
        subs    x3, x3, #1
        ld1d    {z2.d}, p0/z, [x9, #-1, mul vl]
        ld1d    {z6.d}, p0/z, [x2, #-1, mul vl]
        ld1d    {z3.d}, p0/z, [x9]
        ld1d    {z7.d}, p0/z, [x2]
.if \software
        prfm    pldl1keep, [x9, x5]
        prfm    pldl1keep, [x2, x5]
.endif
.if \software == 1
        prfm    pldl2keep, [x9, x6]
        prfm    pldl2keep, [x2, x6]
.endif
        add     x9, x9, x10
        add     x2, x2, x10
        fmad    z4.d, p0/m, z31.d, z0.d
        fmad    z5.d, p0/m, z31.d, z1.d
        fmad    z6.d, p0/m, z31.d, z2.d
        fmad    z7.d, p0/m, z31.d, z3.d
        st1d    {z4.d}, p0, [x8, #-3, mul vl]
        st1d    {z5.d}, p0, [x8, #-2, mul vl]
        st1d    {z6.d}, p0, [x8, #-1, mul vl]
        st1d    {z7.d}, p0, [x8]
.if \software
        prfm    pstl1keep, [x8, x5]
.if \zero == 0 && \software == 1
        prfm    pstl2keep, [x8, x6]
.endif
.elseif \zero
        prfm    pstl1keep, [x8, #824]
.endif
        add     x8, x8, x10
        b.ne    1b
        sub     x0, x7, x12
        ret
        .size   \name, .-\name
.endm

        TRIAD4  triad_kernel, 0, 0
#if TRIAD_ZERO
        TRIAD4  triad_zfill_kernel, 1, 0
#endif
#if TRIAD_SOFTWARE
        TRIAD4  triad_swpf_kernel, 0, 1
        TRIAD4  triad_zfill_swpf_kernel, 1, 1
#endif
#if TRIAD_SOFTWARE_L1
        TRIAD4  triad_swpf_l1_kernel, 0, 2
#endif

#endif
