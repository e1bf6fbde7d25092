// The operator of axhelm.c with vectors of eight points of a row, for vectors of 512 bits.
//
//   void axhelm_fluxes(double *u, const double *turned, const double *derivative, const double *geometry, double *fluxes)
//   void axhelm_sums(double *fluxes, const double *derivative, double *result)
//
// fluxes: three cubes, one after the other. Per row of eight points and call 24 products: 8 of numbers of the row with columns that
// are loaded anew, 8 of numbers of the derivative with rows of the plane, which stay in registers, and 8 of rows of all planes with
// numbers that stay in registers. That is what counted loads leave; a number is loaded and then copied to all elements. Beside
// that 9 operations of the geometry, or two additions. The order of the instructions is ours.

// Rows of a plane to z16 to z23, and eight numbers, \step numbers apart, to all elements of z24 to z31.
        .macro  stay plane, number, step
        stays   \plane, \number, \step, 0, 16, 24
        stays   \plane, \number, \step, 1, 17, 25
        stays   \plane, \number, \step, 2, 18, 26
        stays   \plane, \number, \step, 3, 19, 27
        stays   \plane, \number, \step, 4, 20, 28
        stays   \plane, \number, \step, 5, 21, 29
        stays   \plane, \number, \step, 6, 22, 30
        stays   \plane, \number, \step, 7, 23, 31
        .endm
        .macro  stays plane, number, step, m, rows, numbers
        ld1d    {z\rows\().d}, p0/z, [\plane, #\m, mul vl]
        ldr     d3, [\number, #\m * 8 * \step]
        mov     z\numbers\().d, d3
        .endm

// The three sums of a row: z0, z1, z2. Rows of all planes are at x13 to x16, every other one.
        .macro  sums row, column, number, step
        term    fmul, \row, \column, \number, \step, 0, 16, 24, x13, -8
        term    fmla, \row, \column, \number, \step, 1, 17, 25, x13, 0
        term    fmla, \row, \column, \number, \step, 2, 18, 26, x14, -8
        term    fmla, \row, \column, \number, \step, 3, 19, 27, x14, 0
        term    fmla, \row, \column, \number, \step, 4, 20, 28, x15, -8
        term    fmla, \row, \column, \number, \step, 5, 21, 29, x15, 0
        term    fmla, \row, \column, \number, \step, 6, 22, 30, x16, -8
        term    fmla, \row, \column, \number, \step, 7, 23, 31, x16, 0
        .endm
        .macro  term op, row, column, number, step, m, rows, numbers, pillar, at
        ldr     d3, [\row, #\m * 8]
        ldr     z4, [\column, #\m, mul vl]
        ldr     d5, [\number, #\m * 8 * \step]
        ld1d    {z6.d}, p0/z, [\pillar, #\at, mul vl]
        mov     z3.d, d3
        mov     z5.d, d5
        \op\()_ z0, z4, z3
        \op\()_ z1, z\rows, z5
        \op\()_ z2, z6, z\numbers
        .endm
        .macro  fmul_ d, a, b
        fmul    \d\().d, \a\().d, \b\().d
        .endm
        .macro  fmla_ d, a, b
        fmla    \d\().d, p0/m, \a\().d, \b\().d
        .endm

// Rows of all planes of the cube at \cube: x13 to x16 are those of planes 1, 3, 5 and 7.
        .macro  pillars cube
        add     x13, \cube, #512
        add     x14, x13, #1024
        add     x15, x14, #1024
        add     x16, x15, #1024
        .endm
        .macro  next_pillars op, bytes
        \op     x13, x13, #\bytes
        \op     x14, x14, #\bytes
        \op     x15, x15, #\bytes
        \op     x16, x16, #\bytes
        .endm

// One flux: z0, z1 and z2 by three factors.
        .macro  flux a, b, c, to
        fmul    z3.d, z0.d, \a\().d
        fmla    z3.d, p0/m, z1.d, \b\().d
        fmla    z3.d, p0/m, z2.d, \c\().d
        st1d    {z3.d}, p0, [\to, x7, lsl #3]
        .endm

        .globl  axhelm_fluxes
        .type   axhelm_fluxes, %function
        .p2align 6
axhelm_fluxes:
        ptrue   p0.d
        mov     x8, x4
        add     x9, x4, #4096
        add     x10, x9, #4096
        mov     x17, x3                 // geometry
        add     x3, x3, #4096
        add     x4, x3, #4096
        add     x5, x4, #4096
        add     x6, x5, #4096
        stp     x19, x20, [sp, #-32]!
        stp     x21, x22, [sp, #16]
        add     x19, x6, #4096
        mov     x11, x0                 // a row
        mov     x20, x2                 // the derivative's row of a plane
        mov     x7, #0                  // a point
        pillars x0
1:      stay    x11, x20, 1
        mov     x12, x2                 // the derivative's row of a row
        mov     x21, #8
2:      sums    x11, x1, x12, 1
        ld1d    {z7.d}, p0/z, [x17, x7, lsl #3]
        ld1d    {z8.d}, p0/z, [x3, x7, lsl #3]
        ld1d    {z9.d}, p0/z, [x4, x7, lsl #3]
        ld1d    {z10.d}, p0/z, [x5, x7, lsl #3]
        ld1d    {z11.d}, p0/z, [x6, x7, lsl #3]
        ld1d    {z12.d}, p0/z, [x19, x7, lsl #3]
        flux    z7, z8, z9, x8
        flux    z8, z10, z11, x9
        flux    z9, z11, z12, x10
        add     x11, x11, #64
        add     x12, x12, #64
        next_pillars add, 64
        add     x7, x7, #8
        subs    x21, x21, #1
        b.ne    2b
        next_pillars sub, 512
        add     x20, x20, #64
        cmp     x7, #512
        b.ne    1b
        ldp     x21, x22, [sp, #16]
        ldp     x19, x20, [sp], #32
        ret
        .size   axhelm_fluxes, .-axhelm_fluxes

        .globl  axhelm_sums
        .type   axhelm_sums, %function
        .p2align 6
axhelm_sums:
        ptrue   p0.d
        add     x3, x0, #4096           // rows of the second cube's plane
        add     x4, x3, #4096
        mov     x5, x1                  // the derivative's column of a plane
        mov     x7, #0
        pillars x4
1:      stay    x3, x5, 8
        mov     x6, x1                  // the derivative's column of a row
        mov     x8, #8
2:      sums    x0, x1, x6, 8
        fadd    z0.d, z0.d, z1.d
        fadd    z0.d, z0.d, z2.d
        st1d    {z0.d}, p0, [x2, x7, lsl #3]
        add     x0, x0, #64
        add     x6, x6, #8
        next_pillars add, 64
        add     x7, x7, #8
        subs    x8, x8, #1
        b.ne    2b
        next_pillars sub, 512
        add     x3, x3, #512
        add     x5, x5, #8
        cmp     x7, #512
        b.ne    1b
        ret
        .size   axhelm_sums, .-axhelm_sums
