// Gravity of all bodies on one: for each vector of bodies differences of positions, softened squared distance, reciprocal
// square root, its cube times the mass, and three sums.
//
//   void NAME(const struct bodies *bodies, const float *at, float *sums, uint64_t iterations)
//
// bodies: addresses of x, y, z and mass of the first body; at: x, y, z and the softening; sums: x, y, z. iterations >= 1, of four
// vectors.
//
// Per vector 9 FMA and 8 other operations beside the estimate, as counted on the machine: with y = estimate of 1/sqrt(r) and
// e = 1 - r*y*y the root is y*(1 + e/2 + 3/8*e**2). Four vectors an iteration, each five steps behind the one before
// (ours; DEVIATIONS.md, D216); with contiguous arrays 102 instructions an iteration, with gathers 114.

// Four vectors: z16 to z18 are the body's position, z19 the softening, z20 to z22 1, 1/2 and 3/8, z24 to z26 the sums.
.macro BODIES
        LOAD    z0.s, x4, 0, x4
        LOAD    z1.s, x5, 0, x5
        LOAD    z2.s, x6, 0, x6
        fsub    z0.s, z0.s, z16.s
        fsub    z1.s, z1.s, z17.s
        ADDRESSES x11, x12, x13, x14, x8
        fsub    z2.s, z2.s, z18.s
        LOAD    z3.s, x4, 1, x11
        movprfx z4, z19
        fmla    z4.s, p0/m, z0.s, z0.s
        LOAD    z5.s, x5, 1, x12
        fmla    z4.s, p0/m, z1.s, z1.s
        LOAD    z6.s, x6, 1, x13
        fmla    z4.s, p0/m, z2.s, z2.s
        fsub    z3.s, z3.s, z16.s
        frsqrte z7.s, z4.s
        fsub    z5.s, z5.s, z17.s
        ADDRESSES x15, x16, x17, x19, x9
        fmul    z4.s, z4.s, z7.s
        fsub    z6.s, z6.s, z18.s
        LOAD    z27.s, x4, 2, x15
        LOAD    z28.s, x7, 0, x7
        movprfx z29, z19
        fmla    z29.s, p0/m, z3.s, z3.s
        LOAD    z30.s, x5, 2, x16
        movprfx z31, z20
        fmls    z31.s, p0/m, z4.s, z7.s
        fmla    z29.s, p0/m, z5.s, z5.s
        LOAD    z8.s, x6, 2, x17
        fmul    z9.s, z7.s, z31.s
        fmla    z29.s, p0/m, z6.s, z6.s
        fsub    z27.s, z27.s, z16.s
        fmad    z31.s, p0/m, z22.s, z21.s
        frsqrte z10.s, z29.s
        fsub    z30.s, z30.s, z17.s
        ADDRESSES x20, x21, x22, x23, x10
        fmla    z7.s, p0/m, z9.s, z31.s
        fmul    z29.s, z29.s, z10.s
        fsub    z8.s, z8.s, z18.s
        LOAD    z11.s, x4, 3, x20
        fmul    z28.s, z28.s, z7.s
        LOAD    z12.s, x7, 1, x14
        movprfx z13, z19
        fmla    z13.s, p0/m, z27.s, z27.s
        LOAD    z14.s, x5, 3, x21
        fmul    z7.s, z7.s, z7.s
        movprfx z15, z20
        fmls    z15.s, p0/m, z29.s, z10.s
        fmla    z13.s, p0/m, z30.s, z30.s
        LOAD    z4.s, x6, 3, x22
        fmul    z7.s, z28.s, z7.s
        fmul    z28.s, z10.s, z15.s
        fmla    z13.s, p0/m, z8.s, z8.s
        fsub    z11.s, z11.s, z16.s
        fmla    z24.s, p0/m, z0.s, z7.s
        fmad    z15.s, p0/m, z22.s, z21.s
        frsqrte z31.s, z13.s
        fsub    z14.s, z14.s, z17.s
        fmla    z25.s, p0/m, z1.s, z7.s
        fmla    z10.s, p0/m, z28.s, z15.s
        fmul    z13.s, z13.s, z31.s
        fsub    z4.s, z4.s, z18.s
        fmla    z26.s, p0/m, z2.s, z7.s
        fmul    z12.s, z12.s, z10.s
        LOAD    z9.s, x7, 2, x19
        movprfx z29, z19
        fmla    z29.s, p0/m, z11.s, z11.s
        fmul    z10.s, z10.s, z10.s
        movprfx z0, z20
        fmls    z0.s, p0/m, z13.s, z31.s
        fmla    z29.s, p0/m, z14.s, z14.s
        fmul    z10.s, z12.s, z10.s
        fmul    z12.s, z31.s, z0.s
        fmla    z29.s, p0/m, z4.s, z4.s
        fmla    z24.s, p0/m, z3.s, z10.s
        fmad    z0.s, p0/m, z22.s, z21.s
        frsqrte z1.s, z29.s
        fmla    z25.s, p0/m, z5.s, z10.s
        fmla    z31.s, p0/m, z12.s, z0.s
        fmul    z29.s, z29.s, z1.s
        fmla    z26.s, p0/m, z6.s, z10.s
        fmul    z9.s, z9.s, z31.s
        LOAD    z15.s, x7, 3, x23
        fmul    z31.s, z31.s, z31.s
        movprfx z28, z20
        fmls    z28.s, p0/m, z29.s, z1.s
        fmul    z31.s, z9.s, z31.s
        fmul    z9.s, z1.s, z28.s
        fmla    z24.s, p0/m, z27.s, z31.s
        fmad    z28.s, p0/m, z22.s, z21.s
        fmla    z25.s, p0/m, z30.s, z31.s
        fmla    z1.s, p0/m, z9.s, z28.s
        fmla    z26.s, p0/m, z8.s, z31.s
        fmul    z15.s, z15.s, z1.s
        fmul    z1.s, z1.s, z1.s
        fmul    z1.s, z15.s, z1.s
        fmla    z24.s, p0/m, z11.s, z1.s
        fmla    z25.s, p0/m, z14.s, z1.s
        fmla    z26.s, p0/m, z4.s, z1.s
.endm

.macro NBODY name, gather

// The coordinates or masses of vector \k from \base on; those of structures are at \at.
.macro LOAD reg, base, k, at
.if \gather
        ld1w    {\reg}, p0/z, [\at, z23.s, uxtw]
.else
        ld1w    {\reg}, p0/z, [\base, #\k, mul vl]
.endif
.endm

// Where a vector of structures lies, \bytes behind the first.
.macro ADDRESSES x, y, z, mass, bytes
.if \gather
        add     \x, x4, \bytes
        add     \y, x5, \bytes
        add     \z, x6, \bytes
        add     \mass, x7, \bytes
.endif
.endm

        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        stp     d8, d9, [sp, #-112]!
        stp     d10, d11, [sp, #16]
        stp     d12, d13, [sp, #32]
        stp     d14, d15, [sp, #48]
        stp     x19, x20, [sp, #64]
        stp     x21, x22, [sp, #80]
        str     x23, [sp, #96]
        ptrue   p0.s
        ldp     x4, x5, [x0]
        ldp     x6, x7, [x0, #16]
        ld1rw   {z16.s}, p0/z, [x1]
        ld1rw   {z17.s}, p0/z, [x1, #4]
        ld1rw   {z18.s}, p0/z, [x1, #8]
        ld1rw   {z19.s}, p0/z, [x1, #12]
        fmov    z20.s, #1.0
        fmov    z21.s, #0.5
        mov     w9, #0x3ec00000         // 3/8
        dup     z22.s, w9
        cntb    x8, all, mul #4         // bytes of four vectors, or of one of structures
        lsl     x9, x8, #1
        add     x10, x8, x9
        mov     w11, #16                // bytes of a structure
        index   z23.s, #0, w11
        mov     z24.s, #0
        mov     z25.s, #0
        mov     z26.s, #0
        .p2align 5
1:
        BODIES
.if \gather
        addvl   x4, x4, #16
        addvl   x5, x5, #16
        addvl   x6, x6, #16
        addvl   x7, x7, #16
.else
        add     x4, x4, x8
        add     x5, x5, x8
        add     x6, x6, x8
        add     x7, x7, x8
.endif
        subs    x3, x3, #1
        b.ne    1b
        faddv   s24, p0, z24.s
        faddv   s25, p0, z25.s
        faddv   s26, p0, z26.s
        stp     s24, s25, [x2]
        str     s26, [x2, #8]
        ldp     d10, d11, [sp, #16]
        ldp     d12, d13, [sp, #32]
        ldp     d14, d15, [sp, #48]
        ldp     x19, x20, [sp, #64]
        ldp     x21, x22, [sp, #80]
        ldr     x23, [sp, #96]
        ldp     d8, d9, [sp], #112
        ret
        .size   \name, .-\name

        .purgem LOAD
        .purgem ADDRESSES
.endm

        NBODY   nbody_soa_kernel, 0
        NBODY   nbody_aos_kernel, 1
