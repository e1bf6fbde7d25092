// y(i,j) = y(i,j) + x1(i,j), i < X, rows of X elements: each row is one predicated vector, 9 instructions.
//
//   void rowadd_kernel(double *y, const double *x1, uint64_t rows, uint64_t x, uint64_t pitch_bytes)
//
// rows >= 1; x at most the elements of a vector.

        .globl  rowadd_kernel
        .type   rowadd_kernel, %function
        .p2align 6
rowadd_kernel:
1:
        whilelo p0.d, xzr, x3
        ld1d    {z0.d}, p0/z, [x0]
        ld1d    {z1.d}, p0/z, [x1]
        add     x1, x1, x4
        fadd    z0.d, z0.d, z1.d
        subs    x2, x2, #1
        st1d    {z0.d}, p0, [x0]
        add     x0, x0, x4
        b.ne    1b
        ret
        .size   rowadd_kernel, .-rowadd_kernel
