// Loops of one vector per iteration, not unrolled: the accesses, then addition, WHILELO and branch. The predicate from
// WHILELO governs the accesses of the next iteration.
//
//   load    4 instructions
//   copy    5: y = x1
//   update  5: y = y, loaded and stored again
//   triad   8: y = x1 + x2 * x3
//   daxpy   8: y = y + 3 * x1, as multiplication and addition
//
//   double NAME(double *y, const double *x1, const double *x2, const double *x3, uint64_t n)
//
// n >= 1, a multiple of the lanes. Returns the first lane of the last vector that was loaded or computed.
//
// Each call saves and restores the callee-saved registers, 11 general and 7 vector registers: in the
// measured programs every pass over the arrays is such a call.

.macro SAVED op
        \op     x19, x20, [sp, #16]
        \op     x21, x22, [sp, #32]
        \op     x23, x24, [sp, #48]
        \op     x25, x26, [sp, #64]
        \op     d8, d9, [sp, #96]
        \op     d10, d11, [sp, #112]
        \op     d12, d13, [sp, #128]
.endm

.macro PLAIN name, body
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        stp     x29, x30, [sp, #-144]!
        mov     x29, sp
        SAVED   stp
        str     x28, [sp, #80]
        str     d14, [sp, #88]
        ptrue   p1.d
        fmov    z3.d, #3.0
        mov     x9, #0
        cntd    x10
        whilelo p0.d, x9, x4
        .p2align 5
1:
        \body
        add     x9, x9, x10
        whilelo p0.d, x9, x4
        b.ne    1b
        SAVED   ldp
        ldr     x28, [sp, #80]
        ldr     d14, [sp, #88]
        ldp     x29, x30, [sp], #144
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

.macro UPDATE
        ld1d    {z0.d}, p0/z, [x0, x9, lsl #3]
        st1d    {z0.d}, p0, [x0, x9, lsl #3]
.endm

.macro TRIAD
        ld1d    {z0.d}, p0/z, [x1, x9, lsl #3]
        ld1d    {z1.d}, p0/z, [x2, x9, lsl #3]
        ld1d    {z2.d}, p0/z, [x3, x9, lsl #3]
        fmla    z0.d, p1/m, z1.d, z2.d
        st1d    {z0.d}, p0, [x0, x9, lsl #3]
.endm

.macro DAXPY
        ld1d    {z1.d}, p0/z, [x1, x9, lsl #3]
        ld1d    {z0.d}, p0/z, [x0, x9, lsl #3]
        fmul    z1.d, p1/m, z1.d, z3.d
        fadd    z0.d, p1/m, z0.d, z1.d
        st1d    {z0.d}, p0, [x0, x9, lsl #3]
.endm

        PLAIN   plain_load_kernel, LOAD
        PLAIN   plain_copy_kernel, COPY
        PLAIN   plain_update_kernel, UPDATE
        PLAIN   plain_triad_kernel, TRIAD
        PLAIN   plain_daxpy_kernel, DAXPY
