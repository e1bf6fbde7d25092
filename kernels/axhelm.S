// The operator of axhelm.c whose vectors hold the eight points of a row, for vectors of 512 bits.
//
//   void axhelm_fluxes(double *u, const double *turned, const double *derivative, const double *geometry, double *fluxes)
//   void axhelm_sums(double *fluxes, const double *derivative, double *result)
//
// fluxes: three cubes, one after the other. Per row of eight points and call 24 products: 8 of numbers of the row with columns,
// 8 of numbers of the derivative with rows of the plane, and 8 of rows of all planes with numbers. Columns, rows and the last
// numbers are loaded once per plane and stay in registers. In addition, 9 operations of the geometry, or two additions.
//
// The counts show 18 branches per element, hence a loop over planes only, and per plane and call 92 copies of a loaded number to all
// elements: 64 of rows, 8 that stay, and 20 of the 64 of the derivative. The latter are equal in all planes: 27 of them are computed
// before, by broadcast loads, and stored (54.4 stores of vectors per element), and loaded in each plane, which with 64 rows of all
// planes, 8 rows and 8 columns make the 108 counted vectors, 60 of them by LDR. The last 17 are broadcast loads, of which
// 11 are counted: six must be in registers there. Waits for operations, half of the time, show that the sums are computed one after
// the other.
//
// 88 prefetch instructions per element are counted, which load the 16 lines of the result into L1: eight planes of eleven. Here
// there is one per row of the result's next plane and one for the next plane of three cubes that are in L1; which ones these
// are, and the distance, is our choice.

        .set    STORED, 27
        .set    FRAME, STORED * 64

// Numbers of the derivative, \next bytes from row to row and \step from number to number, to all elements and to the stack.
        .macro  store_numbers number, next, step
        .altmacro
        .set    n, 0
        .rept   STORED
        store_number \number, \next, \step, %(n / 8), %(n % 8), %n
        .set    n, n + 1
        .endr
        .noaltmacro
        .endm
        .macro  store_number number, next, step, j, m, place
        ld1rd   {z3.d}, p0/z, [\number, #\j * \next + \m * \step]
        str     z3, [sp, #\place, mul vl]
        .endm

// Rows of a plane to z16 to z23, columns to z8 to z15, and eight numbers, \step numbers apart, to all elements of z24 to z31.
        .macro  stay plane, number, step, columns
        stays   \plane, \number, \step, \columns, 0, 16, 24, 8
        stays   \plane, \number, \step, \columns, 1, 17, 25, 9
        stays   \plane, \number, \step, \columns, 2, 18, 26, 10
        stays   \plane, \number, \step, \columns, 3, 19, 27, 11
        stays   \plane, \number, \step, \columns, 4, 20, 28, 12
        stays   \plane, \number, \step, \columns, 5, 21, 29, 13
        stays   \plane, \number, \step, \columns, 6, 22, 30, 14
        stays   \plane, \number, \step, \columns, 7, 23, 31, 15
        .endm
        .macro  stays plane, number, step, from, m, rows, numbers, columns
        ld1d    {z\rows\().d}, p0/z, [\plane, #\m, mul vl]
        ld1d    {z\columns\().d}, p0/z, [\from, #\m, mul vl]
        ldr     d3, [\number, #\m * 8 * \step]
        mov     z\numbers\().d, d3
        .endm

// The three sums of row \j of a plane: z0, z1, z2. Rows of all planes are at x13 to x16, every other one.
        .macro  sums j, row, number, next, step
        along_row fmul, \j, \row, 0, 8
        along_row fmla, \j, \row, 1, 9
        along_row fmla, \j, \row, 2, 10
        along_row fmla, \j, \row, 3, 11
        along_row fmla, \j, \row, 4, 12
        along_row fmla, \j, \row, 5, 13
        along_row fmla, \j, \row, 6, 14
        along_row fmla, \j, \row, 7, 15
        along_column fmul, \j, \number, \next, \step, 0, 16
        along_column fmla, \j, \number, \next, \step, 1, 17
        along_column fmla, \j, \number, \next, \step, 2, 18
        along_column fmla, \j, \number, \next, \step, 3, 19
        along_column fmla, \j, \number, \next, \step, 4, 20
        along_column fmla, \j, \number, \next, \step, 5, 21
        along_column fmla, \j, \number, \next, \step, 6, 22
        along_column fmla, \j, \number, \next, \step, 7, 23
        along_pillar fmul, \j, 24, ld1d_, x13, -8
        along_pillar fmla, \j, 25, ldr_, x13, 0
        along_pillar fmla, \j, 26, ld1d_, x14, -8
        along_pillar fmla, \j, 27, ldr_, x14, 0
        along_pillar fmla, \j, 28, ld1d_, x15, -8
        along_pillar fmla, \j, 29, ldr_, x15, 0
        along_pillar fmla, \j, 30, ld1d_, x16, -8
        along_pillar fmla, \j, 31, ldr_, x16, 0
        .endm

// One product of each sum.
        .macro  along_row op, j, row, m, columns
        ldr     d3, [\row, #\j * 64 + \m * 8]
        mov     z3.d, d3
        \op\()_ z0, z\columns, z3
        .endm
        .macro  along_column op, j, number, next, step, m, rows
        .if \j * 8 + \m < STORED
        ldr     z5, [sp, #\j * 8 + \m, mul vl]
        .elseif \j * 8 + \m < STORED + 17
        ld1rd   {z5.d}, p0/z, [\number, #\j * \next + \m * \step]
        .else
        ldr     d5, [\number, #\j * \next + \m * \step]
        mov     z5.d, d5
        .endif
        \op\()_ z1, z\rows, z5
        .endm
        .macro  along_pillar op, j, numbers, load, pillar, at
        \load   6, \pillar, \at + \j
        \op\()_ z2, z6, z\numbers
        .endm
        .macro  ld1d_ to, pillar, at
        ld1d    {z\to\().d}, p0/z, [\pillar, #\at, mul vl]
        .endm
        .macro  ldr_ to, pillar, at
        ldr     z\to, [\pillar, #\at, mul vl]
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

// One flux: z0, z1 and z2 times three factors.
        .macro  flux j, a, b, c, to
        fmul    z7.d, z0.d, \a\().d
        fmla    z7.d, p0/m, z1.d, \b\().d
        fmla    z7.d, p0/m, z2.d, \c\().d
        st1d    {z7.d}, p0, [\to, #\j, mul vl]
        .endm

// Callee-saved registers, and a frame of whole lines.
        .macro  save
        stp     x29, x30, [sp, #-96]!
        stp     d8, d9, [sp, #16]
        stp     d10, d11, [sp, #32]
        stp     d12, d13, [sp, #48]
        stp     d14, d15, [sp, #64]
        stp     x19, x20, [sp, #80]
        mov     x29, sp
        sub     x9, sp, #FRAME
        and     sp, x9, #-256
        .endm
        .macro  restore
        mov     sp, x29
        ldp     x19, x20, [sp, #80]
        ldp     d14, d15, [sp, #64]
        ldp     d12, d13, [sp, #48]
        ldp     d10, d11, [sp, #32]
        ldp     d8, d9, [sp, #16]
        ldp     x29, x30, [sp], #96
        .endm

        .globl  axhelm_fluxes
        .type   axhelm_fluxes, %function
        .p2align 6
axhelm_fluxes:
        save
        ptrue   p0.d
        store_numbers x2, 64, 8
        mov     x8, x4
        add     x9, x4, #4096
        add     x10, x9, #4096
        mov     x17, x3                 // geometry
        add     x3, x3, #4096
        add     x4, x3, #4096
        add     x5, x4, #4096
        add     x6, x5, #4096
        add     x19, x6, #4096
        mov     x11, x0                 // a row
        mov     x20, x2                 // the derivative's row of a plane
        mov     x7, #0                  // a point
        pillars x0
1:      stay    x11, x20, 1, x1
        .irp    j, 0, 1, 2, 3, 4, 5, 6, 7
        sums    \j, x11, x2, 64, 8
        ld1d    {z3.d}, p0/z, [x17, #\j, mul vl]
        ld1d    {z4.d}, p0/z, [x3, #\j, mul vl]
        ld1d    {z5.d}, p0/z, [x4, #\j, mul vl]
        flux    \j, z3, z4, z5, x8
        ld1d    {z3.d}, p0/z, [x5, #\j, mul vl]
        ld1d    {z6.d}, p0/z, [x6, #\j, mul vl]
        flux    \j, z4, z3, z6, x9
        ld1d    {z4.d}, p0/z, [x19, #\j, mul vl]
        flux    \j, z5, z6, z4, x10
        .endr
        add     x11, x11, #512
        .irp    base, x17, x3, x4, x5, x6, x19, x8, x9, x10
        add     \base, \base, #512
        .endr
        add     x20, x20, #64
        add     x7, x7, #64
        cmp     x7, #512
        b.ne    1b
        restore
        ret
        .size   axhelm_fluxes, .-axhelm_fluxes

        .globl  axhelm_sums
        .type   axhelm_sums, %function
        .p2align 6
axhelm_sums:
        save
        ptrue   p0.d
        store_numbers x1, 8, 64
        add     x3, x0, #4096           // rows of the second cube's plane
        add     x4, x3, #4096
        mov     x5, x1                  // the derivative's column of a plane
        mov     x7, #0
        pillars x4
1:      stay    x3, x5, 8, x1
        .irp    j, 0, 1, 2, 3, 4, 5, 6, 7
        sums    \j, x0, x1, 8, 64
        fadd    z0.d, z0.d, z1.d
        fadd    z0.d, z0.d, z2.d
        st1d    {z0.d}, p0, [x2, #\j, mul vl]
        prfm    pstl1keep, [x2, #512 + \j * 64]
        .endr
        prfm    pldl1keep, [x0, #512]
        prfm    pldl1keep, [x3, #512]
        prfm    pldl1keep, [x16, #512]
        add     x0, x0, #512
        add     x2, x2, #512
        add     x3, x3, #512
        add     x5, x5, #8
        add     x7, x7, #64
        cmp     x7, #512
        b.ne    1b
        restore
        ret
        .size   axhelm_sums, .-axhelm_sums
