// A loop body with an access under a loop-invariant condition, converted to a mask: y = x1 + c*x2 over `inner` vectors in
// L1, then one access to z(row), with some or no elements active.
//
//   uint64_t masked_store_kernel(double *y, const double *x1, const double *x2, double *z,
//                                const struct shape *shape, double c)
//   masked_load_kernel, masked_gather_kernel, masked_scatter_kernel: other accesses
//   masked_branch_kernel: the condition before the loop, one loop per value
//
// struct shape { uint64_t rows, inner, step, active; }: rows and inner at least 1; step: bytes from z(row) to z(row+1);
// active: active elements of a vector. Loaded values are summed; the sum is the result.

        .text

// The inner loop: 3 accesses, an FMA and 3 others per vector.
.macro INNER
        mov     x8, #0
        mov     x9, x11
        .p2align 4
2:
        ld1d    {z1.d}, p0/z, [x1, x8, lsl #3]
        ld1d    {z2.d}, p0/z, [x2, x8, lsl #3]
        fmla    z1.d, p0/m, z2.d, z0.d
        subs    x9, x9, #1
        st1d    {z1.d}, p0, [x0, x8, lsl #3]
        incd    x8
        b.ne    2b
.endm

.macro BEGIN name
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        ldp     x10, x11, [x4]
        ldp     x12, x13, [x4, #16]
        ptrue   p0.d
        whilelo p1.d, xzr, x13
        mov     z0.d, d0
        mov     z4.d, #0
        index   z5.d, #0, #8
.endm

.macro END name
        uaddv   d4, p0, z4.d
        fmov    x0, d4
        ret
        .size   \name, .-\name
.endm

.macro MASKED name, access:vararg
        BEGIN   \name
        .p2align 4
1:
        INNER
        \access
        add     x3, x3, x12
        subs    x10, x10, #1
        b.ne    1b
        END     \name
.endm

.macro LOADED access:vararg
        \access
        add     z4.d, z4.d, z3.d
.endm

        MASKED  masked_store_kernel, st1d {z1.d}, p1, [x3]
        MASKED  masked_load_kernel, LOADED ld1d {z3.d}, p1/z, [x3]
        MASKED  masked_gather_kernel, LOADED ld1d {z3.d}, p1/z, [x3, z5.d]
        MASKED  masked_scatter_kernel, st1d {z1.d}, p1, [x3, z5.d]

        BEGIN   masked_branch_kernel
        cbz     x13, 3f
        .p2align 4
1:
        INNER
        st1d    {z1.d}, p1, [x3]
        add     x3, x3, x12
        subs    x10, x10, #1
        b.ne    1b
        b       4f
        .p2align 4
3:
        INNER
        subs    x10, x10, #1
        b.ne    3b
4:
        END     masked_branch_kernel
