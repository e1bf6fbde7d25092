// One row of a stencil of seven points over a row, its neighbours in the plane and those in the planes above and below:
//   unew(i) = ((u(i+1)+u(i-1))*h1 + (u(i+row)+u(i-row))*h2 + (u(i+plane)+u(i-plane))*h3 - rhs(i)) * scale
//
// Two vectors per iteration: 38 instructions = 14 loads, 2 stores, 16 operations, 6 others. Software-pipelined by half an
// iteration: sums of neighbours and rhs are computed for the next one.
//
//   void stencil_row(double *unew, const double *u, const double *rhs, uint64_t count, int64_t row, int64_t plane,
//                    const double factors[4])
//
// count >= 1; row and plane are distances in bytes; factors are h1, h2, h3, scale.

// Sums of neighbours and rhs of the vector at index \i, into z\a, z\b, z\c and z\r.
        .macro  sums i, p, a, b, c, r
        ld1d    {z\a\().d}, \p/z, [x7, \i, lsl #3]
        ld1d    {z20.d}, \p/z, [x8, \i, lsl #3]
        ld1d    {z\b\().d}, \p/z, [x9, \i, lsl #3]
        ld1d    {z21.d}, \p/z, [x10, \i, lsl #3]
        ld1d    {z\c\().d}, \p/z, [x11, \i, lsl #3]
        ld1d    {z22.d}, \p/z, [x12, \i, lsl #3]
        ld1d    {z\r\().d}, \p/z, [x2, \i, lsl #3]
        fadd    z\a\().d, z\a\().d, z20.d
        fadd    z\b\().d, z\b\().d, z21.d
        fadd    z\c\().d, z\c\().d, z22.d
        .endm

        .globl  stencil_row
        .type   stencil_row, %function
        .p2align 6
stencil_row:
        ptrue   p0.d
        ld1rd   {z28.d}, p0/z, [x6]
        ld1rd   {z29.d}, p0/z, [x6, #8]
        ld1rd   {z30.d}, p0/z, [x6, #16]
        ld1rd   {z31.d}, p0/z, [x6, #24]
        add     x7, x1, #8
        sub     x8, x1, #8
        add     x9, x1, x4
        sub     x10, x1, x4
        add     x11, x1, x5
        sub     x12, x1, x5
        mov     x13, #0
        cntd    x14
        whilelo p1.d, x13, x3
        whilelo p2.d, x14, x3
        sums    x13, p1, 0, 1, 2, 3
        sums    x14, p2, 4, 5, 6, 7
        .p2align 5
1:
        fmul    z16.d, z0.d, z28.d
        fmul    z17.d, z4.d, z28.d
        fmla    z16.d, p0/m, z1.d, z29.d
        fmla    z17.d, p0/m, z5.d, z29.d
        fmla    z16.d, p0/m, z2.d, z30.d
        fmla    z17.d, p0/m, z6.d, z30.d
        fsub    z16.d, z16.d, z3.d
        fsub    z17.d, z17.d, z7.d
        fmul    z16.d, z16.d, z31.d
        fmul    z17.d, z17.d, z31.d
        st1d    {z16.d}, p1, [x0]
        st1d    {z17.d}, p2, [x0, #1, mul vl]
        incb    x0, all, mul #2
        incd    x13, all, mul #2
        incd    x14, all, mul #2
        whilelo p2.d, x14, x3
        whilelo p1.d, x13, x3
        sums    x13, p1, 0, 1, 2, 3
        sums    x14, p2, 4, 5, 6, 7
        b.any   1b
        ret
        .size   stencil_row, .-stencil_row
