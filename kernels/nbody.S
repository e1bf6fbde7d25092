// Gravity of all bodies on one: for each vector of bodies differences of positions, softened squared distance, reciprocal
// square root, its cube times the mass, and three sums.
//
//   void NAME(const struct bodies *bodies, const float *at, float *sums, uint64_t iterations)
//
// bodies: addresses of x, y, z and mass of the first body; at: x, y, z and the softening; sums: x, y, z. iterations >= 1, of four
// vectors.
//
// Per vector 9 FMA and 8 other operations beside the estimate, as counted on the machine: with y = estimate of 1/sqrt(r) and
// e = 1 - r*y*y the root is y*(1 + e/2 + 3/8*e**2). One vector after the other, unrolled four times; with contiguous arrays 102
// instructions for four vectors, with gathers 114.

.macro BODY k
        BODY_LOAD z0.s, x4, \k
        BODY_LOAD z1.s, x5, \k
        BODY_LOAD z2.s, x6, \k
        BODY_LOAD z3.s, x7, \k
        fsub    z0.s, z0.s, z16.s
        fsub    z1.s, z1.s, z17.s
        fsub    z2.s, z2.s, z18.s
        movprfx z4, z19                 // r = softening + dx*dx + dy*dy + dz*dz
        fmla    z4.s, p0/m, z0.s, z0.s
        fmla    z4.s, p0/m, z1.s, z1.s
        fmla    z4.s, p0/m, z2.s, z2.s
        frsqrte z5.s, z4.s              // y
        fmul    z4.s, z4.s, z5.s
        movprfx z6, z20                 // e = 1 - r*y*y
        fmls    z6.s, p0/m, z4.s, z5.s
        fmul    z7.s, z5.s, z6.s        // y*e
        fmad    z6.s, p0/m, z22.s, z21.s // 1/2 + 3/8*e
        fmla    z5.s, p0/m, z7.s, z6.s
        fmul    z3.s, z3.s, z5.s
        fmul    z5.s, z5.s, z5.s
        fmul    z3.s, z3.s, z5.s
        fmla    z24.s, p0/m, z0.s, z3.s
        fmla    z25.s, p0/m, z1.s, z3.s
        fmla    z26.s, p0/m, z2.s, z3.s
.endm

.macro NBODY name, gather

.macro BODY_LOAD reg, base, k
.if \gather
        ld1w    {\reg}, p0/z, [\base, z23.s, uxtw]
        add     \base, \base, x9
.else
        ld1w    {\reg}, p0/z, [\base, #\k, mul vl]
.endif
.endm

        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
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
        cntb    x9, all, mul #4         // bytes of four vectors, or of one of structures
        mov     w10, #16                // bytes of a structure
        index   z23.s, #0, w10
        mov     z24.s, #0
        mov     z25.s, #0
        mov     z26.s, #0
        .p2align 5
1:
        BODY    0
        BODY    1
        BODY    2
        BODY    3
.if \gather == 0
        add     x4, x4, x9
        add     x5, x5, x9
        add     x6, x6, x9
        add     x7, x7, x9
.endif
        subs    x3, x3, #1
        b.ne    1b
        faddv   s24, p0, z24.s
        faddv   s25, p0, z25.s
        faddv   s26, p0, z26.s
        stp     s24, s25, [x2]
        str     s26, [x2, #8]
        ret
        .size   \name, .-\name

        .purgem BODY_LOAD
.endm

        NBODY   nbody_soa_kernel, 0
        NBODY   nbody_aos_kernel, 1
