// y(i,j) = y(i,j) + x1(i,j), i < X, rows of X elements: each row is one predicated vector. X is known when the program is
// compiled, so the mask is computed once. Each row is stored before the next one is loaded, as the machine's interlocks show.
//
//   void rowadd_kernel(double *y, const double *x1, uint64_t rows, uint64_t x, uint64_t pitch_bytes)
//   void rowadd_padded_kernel(…)
//
// rows >= 1; x at most the elements of a vector.

// 9 instructions per row, with one pointer per load and store; 8 with a single one for y.
.macro ROWADD name, store
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        whilelo p0.d, xzr, x3
        mov     x5, x0
        .p2align 5
1:
        ld1d    {z0.d}, p0/z, [x0]
        ld1d    {z1.d}, p0/z, [x1]
        add     x1, x1, x4
        fadd    z0.d, z0.d, z1.d
.ifc \store, x5
        add     x0, x0, x4
.endif
        subs    x2, x2, #1
        st1d    {z0.d}, p0, [\store]
        add     \store, \store, x4
        b.ne    1b
        ret
        .size   \name, .-\name
.endm

        ROWADD  rowadd_kernel, x5
        ROWADD  rowadd_padded_kernel, x0
