// Loops of one vector per iteration, not unrolled: the accesses, then addition, comparison and branch.
//
//   load    4 instructions
//   copy    5: y = x1
//   triad   9: y = x1 * x2 + x3, as multiplication and addition
//
//   double NAME(double *y, const double *x1, const double *x2, const double *x3, uint64_t n)
//
// n >= 1, a multiple of the lanes. Returns the first lane of the last vector that was loaded or computed.

.macro PLAIN name, body
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        ptrue   p0.d
        mov     x9, #0
        cntd    x10
        .p2align 5
1:
        \body
        add     x9, x9, x10
        cmp     x9, x4
        b.lt    1b
        ret
        .size   \name, .-\name
.endm

.macro LOAD
        ld1d    {z0.d}, p0/z, [x1, x9, lsl #3]
.endm

.macro COPY
        ld1d    {z0.d}, p0/z, [x1, x9, lsl #3]
        st1d    {z0.d}, p0, [x0, x9, lsl #3]
.endm

.macro TRIAD
        ld1d    {z0.d}, p0/z, [x1, x9, lsl #3]
        ld1d    {z1.d}, p0/z, [x2, x9, lsl #3]
        ld1d    {z2.d}, p0/z, [x3, x9, lsl #3]
        fmul    z0.d, p0/m, z0.d, z1.d
        fadd    z0.d, p0/m, z0.d, z2.d
        st1d    {z0.d}, p0, [x0, x9, lsl #3]
.endm

        PLAIN   plain_load_kernel, LOAD
        PLAIN   plain_copy_kernel, COPY
        PLAIN   plain_triad_kernel, TRIAD
