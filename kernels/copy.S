// y(i) = x1(i): eight vectors per iteration, 20 instructions (8 loads, 8 stores, 2 pointers, 1 counter, 1 branch), then
// a predicated loop for the remainder.
//
//   void copy_kernel(void *y, const void *x1, uint64_t iterations, uint64_t rest)
//
// `rest` is a number of bytes.

        .globl  copy_kernel
        .type   copy_kernel, %function
        .p2align 6
copy_kernel:
        ptrue   p0.d
        cntb    x9, all, mul #8
        cbz     x2, 2f
        .p2align 5
1:
        ld1d    {z0.d}, p0/z, [x1]
        ld1d    {z1.d}, p0/z, [x1, #1, mul vl]
        ld1d    {z2.d}, p0/z, [x1, #2, mul vl]
        ld1d    {z3.d}, p0/z, [x1, #3, mul vl]
        ld1d    {z4.d}, p0/z, [x1, #4, mul vl]
        ld1d    {z5.d}, p0/z, [x1, #5, mul vl]
        ld1d    {z6.d}, p0/z, [x1, #6, mul vl]
        ld1d    {z7.d}, p0/z, [x1, #7, mul vl]
        add     x1, x1, x9
        subs    x2, x2, #1
        st1d    {z0.d}, p0, [x0]
        st1d    {z1.d}, p0, [x0, #1, mul vl]
        st1d    {z2.d}, p0, [x0, #2, mul vl]
        st1d    {z3.d}, p0, [x0, #3, mul vl]
        st1d    {z4.d}, p0, [x0, #4, mul vl]
        st1d    {z5.d}, p0, [x0, #5, mul vl]
        st1d    {z6.d}, p0, [x0, #6, mul vl]
        st1d    {z7.d}, p0, [x0, #7, mul vl]
        add     x0, x0, x9
        b.ne    1b
2:
        mov     x4, #0
        whilelo p1.b, x4, x3
        b.none  4f
3:
        ld1b    {z0.b}, p1/z, [x1, x4]
        st1b    {z0.b}, p1, [x0, x4]
        incb    x4
        whilelo p1.b, x4, x3
        b.first 3b
4:
        ret
        .size   copy_kernel, .-copy_kernel
