// Gravity of all bodies on one: for each vector of bodies, differences of positions, softened squared distance, reciprocal
// square root, its cube times the mass, and three sums.
//
//   void NAME(const struct bodies *bodies, const float *at, float *sums, uint64_t iterations)
//
// bodies: addresses of x, y, z and mass of the first body; at: x, y, z and the softening; sums: x, y, z. iterations >= 1, of four
// vectors.
//
// Per vector 9 FMA and 8 other operations in addition to the estimate, as counted on the machine: with y = estimate of 1/sqrt(r) and
// e = 1 - r*y*y the root is y*(1 + e/2 + 3/8*e**2). Four vectors per iteration, each five steps behind the previous one
// (ours; docs/notes/2026-11-25-rebuilt-loops.md); with contiguous arrays 102 instructions per iteration, with gathers 114.

// Four vectors, numbered before their steps: z16 to z18 are the body's position, z19 the softening, z20 to z22 1, 1/2 and 3/8, z24 to z26 the sums.
.macro BODIES
        LOAD    z0.s, x4, 0, x4                // 0: x
        LOAD    z1.s, x5, 0, x5                // 0: y
        LOAD    z2.s, x6, 0, x6                // 0: z
        fsub    z0.s, z0.s, z16.s              // 0: dx
        fsub    z1.s, z1.s, z17.s              // 0: dy
        ADDRESSES x11, x12, x13, x14, x8
        fsub    z2.s, z2.s, z18.s              // 0: dz
        LOAD    z3.s, x4, 1, x11               // 1: x
        movprfx z4, z19
        fmla    z4.s, p0/m, z0.s, z0.s         // 0: r
        LOAD    z5.s, x5, 1, x12               // 1: y
        fmla    z4.s, p0/m, z1.s, z1.s         // 0: r
        LOAD    z6.s, x6, 1, x13               // 1: z
        fmla    z4.s, p0/m, z2.s, z2.s         // 0: r
        fsub    z3.s, z3.s, z16.s              // 1: dx
        frsqrte z7.s, z4.s                     // 0: estimate
        fsub    z5.s, z5.s, z17.s              // 1: dy
        ADDRESSES x15, x16, x17, x19, x9
        fmul    z4.s, z4.s, z7.s               // 0: r*y
        fsub    z6.s, z6.s, z18.s              // 1: dz
        LOAD    z27.s, x4, 2, x15              // 2: x
        LOAD    z28.s, x7, 0, x7               // 0: mass
        movprfx z29, z19
        fmla    z29.s, p0/m, z3.s, z3.s        // 1: r
        LOAD    z30.s, x5, 2, x16              // 2: y
        movprfx z31, z20
        fmls    z31.s, p0/m, z4.s, z7.s        // 0: e
        fmla    z29.s, p0/m, z5.s, z5.s        // 1: r
        LOAD    z8.s, x6, 2, x17               // 2: z
        fmul    z9.s, z7.s, z31.s              // 0: y*e
        fmla    z29.s, p0/m, z6.s, z6.s        // 1: r
        fsub    z27.s, z27.s, z16.s            // 2: dx
        fmad    z31.s, p0/m, z22.s, z21.s      // 0: 1/2 + 3/8*e
        frsqrte z10.s, z29.s                   // 1: estimate
        fsub    z30.s, z30.s, z17.s            // 2: dy
        ADDRESSES x20, x21, x22, x23, x10
        fmla    z7.s, p0/m, z9.s, z31.s        // 0: root
        fmul    z29.s, z29.s, z10.s            // 1: r*y
        fsub    z8.s, z8.s, z18.s              // 2: dz
        LOAD    z11.s, x4, 3, x20              // 3: x
        fmul    z28.s, z28.s, z7.s             // 0: mass*root
        LOAD    z12.s, x7, 1, x14              // 1: mass
        movprfx z13, z19
        fmla    z13.s, p0/m, z27.s, z27.s      // 2: r
        LOAD    z14.s, x5, 3, x21              // 3: y
        fmul    z7.s, z7.s, z7.s               // 0: root**2
        movprfx z15, z20
        fmls    z15.s, p0/m, z29.s, z10.s      // 1: e
        fmla    z13.s, p0/m, z30.s, z30.s      // 2: r
        LOAD    z4.s, x6, 3, x22               // 3: z
        fmul    z7.s, z28.s, z7.s              // 0: mass*root**3
        fmul    z28.s, z10.s, z15.s            // 1: y*e
        fmla    z13.s, p0/m, z8.s, z8.s        // 2: r
        fsub    z11.s, z11.s, z16.s            // 3: dx
        fmla    z24.s, p0/m, z0.s, z7.s        // 0: sum of x
        fmad    z15.s, p0/m, z22.s, z21.s      // 1: 1/2 + 3/8*e
        frsqrte z31.s, z13.s                   // 2: estimate
        fsub    z14.s, z14.s, z17.s            // 3: dy
        fmla    z25.s, p0/m, z1.s, z7.s        // 0: sum of y
        fmla    z10.s, p0/m, z28.s, z15.s      // 1: root
        fmul    z13.s, z13.s, z31.s            // 2: r*y
        fsub    z4.s, z4.s, z18.s              // 3: dz
        fmla    z26.s, p0/m, z2.s, z7.s        // 0: sum of z
        fmul    z12.s, z12.s, z10.s            // 1: mass*root
        LOAD    z9.s, x7, 2, x19               // 2: mass
        movprfx z29, z19
        fmla    z29.s, p0/m, z11.s, z11.s      // 3: r
        fmul    z10.s, z10.s, z10.s            // 1: root**2
        movprfx z0, z20
        fmls    z0.s, p0/m, z13.s, z31.s       // 2: e
        fmla    z29.s, p0/m, z14.s, z14.s      // 3: r
        fmul    z10.s, z12.s, z10.s            // 1: mass*root**3
        fmul    z12.s, z31.s, z0.s             // 2: y*e
        fmla    z29.s, p0/m, z4.s, z4.s        // 3: r
        fmla    z24.s, p0/m, z3.s, z10.s       // 1: sum of x
        fmad    z0.s, p0/m, z22.s, z21.s       // 2: 1/2 + 3/8*e
        frsqrte z1.s, z29.s                    // 3: estimate
        fmla    z25.s, p0/m, z5.s, z10.s       // 1: sum of y
        fmla    z31.s, p0/m, z12.s, z0.s       // 2: root
        fmul    z29.s, z29.s, z1.s             // 3: r*y
        fmla    z26.s, p0/m, z6.s, z10.s       // 1: sum of z
        fmul    z9.s, z9.s, z31.s              // 2: mass*root
        LOAD    z15.s, x7, 3, x23              // 3: mass
        fmul    z31.s, z31.s, z31.s            // 2: root**2
        movprfx z28, z20
        fmls    z28.s, p0/m, z29.s, z1.s       // 3: e
        fmul    z31.s, z9.s, z31.s             // 2: mass*root**3
        fmul    z9.s, z1.s, z28.s              // 3: y*e
        fmla    z24.s, p0/m, z27.s, z31.s      // 2: sum of x
        fmad    z28.s, p0/m, z22.s, z21.s      // 3: 1/2 + 3/8*e
        fmla    z25.s, p0/m, z30.s, z31.s      // 2: sum of y
        fmla    z1.s, p0/m, z9.s, z28.s        // 3: root
        fmla    z26.s, p0/m, z8.s, z31.s       // 2: sum of z
        fmul    z15.s, z15.s, z1.s             // 3: mass*root
        fmul    z1.s, z1.s, z1.s               // 3: root**2
        fmul    z1.s, z15.s, z1.s              // 3: mass*root**3
        fmla    z24.s, p0/m, z11.s, z1.s       // 3: sum of x
        fmla    z25.s, p0/m, z14.s, z1.s       // 3: sum of y
        fmla    z26.s, p0/m, z4.s, z1.s        // 3: sum of z
.endm

.macro NBODY name, gather

// The coordinates or masses of vector \k at \base; those of structures are at \at.
.macro LOAD reg, base, k, at
.if \gather
        ld1w    {\reg}, p0/z, [\at, z23.s, uxtw]
.else
        ld1w    {\reg}, p0/z, [\base, #\k, mul vl]
.endif
.endm

// Address of a vector of structures, \bytes after the first.
.macro ADDRESSES x, y, z, mass, bytes
.if \gather
        add     \x, x4, \bytes
        add     \y, x5, \bytes
        add     \z, x6, \bytes
        add     \mass, x7, \bytes
.endif
.endm

// Vectors that an iteration loads: those of one array, or of the structures.
.if \gather
        .set    VECTORS, 16
.else
        .set    VECTORS, 4
.endif

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
        addvl   x4, x4, #VECTORS
        addvl   x5, x5, #VECTORS
        addvl   x6, x6, #VECTORS
        addvl   x7, x7, #VECTORS
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
