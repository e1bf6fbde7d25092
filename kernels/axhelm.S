// The operator of axhelm.c with vectors of eight points of a row, for vectors of 512 bits.
//
//   void axhelm_fluxes(double *u, const double *turned, const double *derivative, const double *geometry, double *fluxes)
//   void axhelm_sums(double *fluxes, const double *derivative, double *result)
//
// fluxes: three cubes, one after the other. Per row of eight points and call 24 products: 8 of numbers of the row with columns that
// are loaded anew, 8 of numbers of the derivative with rows of the plane, which stay in registers, and 8 of rows of all planes with
// numbers that stay in registers. Beside that 9 operations of the geometry, or two additions. Counted are 18 branches an element,
// a loop over planes alone; 92 copies of a loaded number to all elements for each plane and call, here 96, and broadcast loads
// beside them; waits for operations, half of the time, say that the sums come one after the other.

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

// The three sums of row \j of a plane: z0, z1, z2. Rows of all planes are at x13 to x16, every other one.
        .macro  sums j, row, column, number, next, step
        along_row fmul, \j, \row, \column, 0
        along_row fmla, \j, \row, \column, 1
        along_row fmla, \j, \row, \column, 2
        along_row fmla, \j, \row, \column, 3
        along_row fmla, \j, \row, \column, 4
        along_row fmla, \j, \row, \column, 5
        along_row fmla, \j, \row, \column, 6
        along_row fmla, \j, \row, \column, 7
        along_column fmul, \j, \number, \next, \step, 0, 16
        along_column fmla, \j, \number, \next, \step, 1, 17
        along_column fmla, \j, \number, \next, \step, 2, 18
        along_column fmla, \j, \number, \next, \step, 3, 19
        along_column fmla, \j, \number, \next, \step, 4, 20
        along_column fmla, \j, \number, \next, \step, 5, 21
        along_column fmla, \j, \number, \next, \step, 6, 22
        along_column fmla, \j, \number, \next, \step, 7, 23
        along_pillar fmul, \j, 24, x13, -8
        along_pillar fmla, \j, 25, x13, 0
        along_pillar fmla, \j, 26, x14, -8
        along_pillar fmla, \j, 27, x14, 0
        along_pillar fmla, \j, 28, x15, -8
        along_pillar fmla, \j, 29, x15, 0
        along_pillar fmla, \j, 30, x16, -8
        along_pillar fmla, \j, 31, x16, 0
        .endm

// One product of each sum. Five of eight numbers of the derivative come as broadcast loads.
        .macro  along_row op, j, row, column, m
        ldr     d3, [\row, #\j * 64 + \m * 8]
        ldr     z4, [\column, #\m, mul vl]
        mov     z3.d, d3
        \op\()_ z0, z4, z3
        .endm
        .macro  along_column op, j, number, next, step, m, rows
        .if \m < 5
        ld1rd   {z5.d}, p0/z, [\number, #\j * \next + \m * 8 * \step]
        .else
        ldr     d5, [\number, #\j * \next + \m * 8 * \step]
        mov     z5.d, d5
        .endif
        \op\()_ z1, z\rows, z5
        .endm
        .macro  along_pillar op, j, numbers, pillar, at
        ld1d    {z6.d}, p0/z, [\pillar, #\at + \j, mul vl]
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
        .macro  flux j, a, b, c, to
        fmul    z3.d, z0.d, \a\().d
        fmla    z3.d, p0/m, z1.d, \b\().d
        fmla    z3.d, p0/m, z2.d, \c\().d
        st1d    {z3.d}, p0, [\to, #\j, mul vl]
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
        .irp    j, 0, 1, 2, 3, 4, 5, 6, 7
        sums    \j, x11, x1, x2, 64, 1
        ld1d    {z7.d}, p0/z, [x17, #\j, mul vl]
        ld1d    {z8.d}, p0/z, [x3, #\j, mul vl]
        ld1d    {z9.d}, p0/z, [x4, #\j, mul vl]
        ld1d    {z10.d}, p0/z, [x5, #\j, mul vl]
        ld1d    {z11.d}, p0/z, [x6, #\j, mul vl]
        ld1d    {z12.d}, p0/z, [x19, #\j, mul vl]
        flux    \j, z7, z8, z9, x8
        flux    \j, z8, z10, z11, x9
        flux    \j, z9, z11, z12, x10
        .endr
        add     x11, x11, #512
        .irp    base, x17, x3, x4, x5, x6, x19, x8, x9, x10
        add     \base, \base, #512
        .endr
        add     x20, x20, #64
        add     x7, x7, #64
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
        .irp    j, 0, 1, 2, 3, 4, 5, 6, 7
        sums    \j, x0, x1, x1, 8, 8
        fadd    z0.d, z0.d, z1.d
        fadd    z0.d, z0.d, z2.d
        st1d    {z0.d}, p0, [x2, #\j, mul vl]
        .endr
        add     x0, x0, #512
        add     x2, x2, #512
        add     x3, x3, #512
        add     x5, x5, #8
        add     x7, x7, #64
        cmp     x7, #512
        b.ne    1b
        ret
        .size   axhelm_sums, .-axhelm_sums
