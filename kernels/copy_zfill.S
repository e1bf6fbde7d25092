// y(i) = x1(i) with zero fill: a line per iteration, 14 instructions (4 loads, 4 stores, DC ZVA, a prefetch, 2 pointers, 1 counter,
// 1 branch), in the order of the compiler's listing of Triad (triad.S). The pointer of the stores carries pf_func 6 in
// bits 63:60, which switches hardware prefetches off. DC ZVA runs ahead of the stores; the lines within that distance of the
// end are copied by the second loop, without it, vector by vector: with zero fill the compiler unrolls no loop.
//
//   void copy_zfill_kernel(void *y, const void *x1, uint64_t zeroing, uint64_t other, uint64_t distance)
//
// Numbers of lines with and without DC ZVA; distance in bytes.

        .globl  copy_zfill_kernel
        .type   copy_zfill_kernel, %function
        .p2align 6
copy_zfill_kernel:
        ptrue   p0.d
        cntb    x10, all, mul #4
        add     x7, x0, x4
        orr     x8, x0, #0x6000000000000000
        cbz     x2, 2f
        .p2align 5
1:
        ld1d    {z0.d}, p0/z, [x1]
        ld1d    {z1.d}, p0/z, [x1, #1, mul vl]
        dc      zva, x7
        add     x7, x7, x10
        subs    x2, x2, #1
        ld1d    {z2.d}, p0/z, [x1, #2, mul vl]
        ld1d    {z3.d}, p0/z, [x1, #3, mul vl]
        add     x1, x1, x10
        st1d    {z0.d}, p0, [x8]
        st1d    {z1.d}, p0, [x8, #1, mul vl]
        st1d    {z2.d}, p0, [x8, #2, mul vl]
        st1d    {z3.d}, p0, [x8, #3, mul vl]
        prfm    pstl1keep, [x8, #824]
        add     x8, x8, x10
        b.ne    1b
2:
        and     x8, x8, #0x0fffffffffffffff
        cntd    x5, all, mul #4
        mul     x3, x3, x5
        mov     x4, #0
        whilelo p0.d, x4, x3
        b.pl    4f
        .p2align 5
3:
        ld1d    {z0.d}, p0/z, [x1, x4, lsl #3]
        st1d    {z0.d}, p0, [x8, x4, lsl #3]
        incd    x4
        whilelo p0.d, x4, x3
        b.mi    3b
4:
        ret
        .size   copy_zfill_kernel, .-copy_zfill_kernel
