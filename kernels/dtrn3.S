// Both orders of the loops of dtrn3.c.
//
//   void dtrn3_channels(const struct given *given, uint64_t channels)
//   void dtrn3_levels(const struct given *given, uint64_t channels)
//
// Counts of the measured run determine the compiler's loops. Both have 14 FMA, FEXPA, two comparisons that count no operation, two
// selections and one integer operation per vector. The formula has 6 FMA; the other 8, a difference and two products compute ten to the
// power of x by FEXPA with a series of degree five, and the rest checks its range. 12 broadcast loads are its constants;
// the remaining two moves are FMOV of 0.5 and 1. A constant that an operation overwrites is copied by a packed MOVPRFX, or loaded from the
// stack or from its place again; frames are line-aligned, so that loads can forward from recent stores: waits for loads are 1 and 2 % of the cycles. The
// pairwise and the sequential form of the series have the same operations; pairwise, its waits for operations are as measured. Gas times thickness
// takes three products, as counted; the formula has two.
//
// Operands are loaded where they are needed. The remainder after each level goes through memory as a number and as a vector: waits and
// commit cycles then agree with the measured ones (docs/notes/2026-11-25-rebuilt-loops.md).
//
// Channels, for each of 54 levels: 6 vectors of the table, a gather, a scatter, 8 loads and 2 stores of numbers, 6 copies of a
// number to all elements (five are used), 4 other moves, 2 vectors stored and loaded (no MOVPRFX is counted), 10 loads of general
// registers (one of them a pair, as micro-operations show), 4 branches, 31 integer operations, six of them with a shift, as counts of
// EXA and EXB show.
//
// Levels, for each of 5 channels: 24 broadcasts, twice the 12, so the last, partial vector has separate code (predicates are
// computed twice per call, not in the loops); 7 loads, 6 gathers and a store per vector; 9 vectors stored per channel and one per call, and 61
// loaded: all ten for each of six vectors, one for the last. 20 MOVPRFX: three for each of six, two for the last. Three integer
// operations per vector: one belongs to the power, two compute the indices. For each part 11 general registers and a number are loaded,
// one for each array, and a number and a general register are copied to all elements. 11 branches per channel.

// struct given
        .set    PRESSURE, 0
        .set    SHARE, 8
        .set    WARMTH, 16              // and 24
        .set    GAS, 32
        .set    THICKNESS, 40
        .set    TABLE, 48               // and 56, 64
        .set    DEPTH, 72
        .set    CONSTANTS, 80

        .set    LEVELS, 54

// Constants: 12 numbers of the power, and two of the product of gas and thickness.
        .set    C_LN_10, 0
        .set    C_PER_LN_2, 8
        .set    C_SHIFT, 16
        .set    C_LN_2_HIGH, 24
        .set    C_LN_2_LOW, 32
        .set    C_FIFTH, 40
        .set    C_FOURTH, 48
        .set    C_THIRD, 56
        .set    C_MOST, 64
        .set    C_LEAST, 72
        .set    C_INFINITE, 80
        .set    C_BIAS, 88
        .set    C_FACTORS, 96

// Four pairs of FP registers are saved and restored per call.
        .macro  save
        stp     d8, d9, [sp, #-160]!
        stp     d10, d11, [sp, #16]
        stp     d12, d13, [sp, #32]
        stp     d14, d15, [sp, #48]
        stp     x19, x20, [sp, #64]
        stp     x21, x22, [sp, #80]
        stp     x23, x24, [sp, #96]
        stp     x25, x26, [sp, #112]
        stp     x27, x28, [sp, #128]
        stp     x29, x30, [sp, #144]
        .endm
        .macro  restore
        ldp     x29, x30, [sp, #144]
        ldp     x27, x28, [sp, #128]
        ldp     x25, x26, [sp, #112]
        ldp     x23, x24, [sp, #96]
        ldp     x21, x22, [sp, #80]
        ldp     x19, x20, [sp, #64]
        ldp     d14, d15, [sp, #48]
        ldp     d12, d13, [sp, #32]
        ldp     d10, d11, [sp, #16]
        ldp     d8, d9, [sp], #160
        .endm

// ------------------------------------------------------------------ channels
// The frame: two vectors, two numbers, and the pointers that do not stay in registers.
        .set    F_RESTS, 0              // vectors: the remainder after the level above, and a constant
        .set    F_SHIFT, 1
        .set    F_REST, 512             // numbers
        .set    F_WARMTH, 520

        .globl  dtrn3_channels
        .type   dtrn3_channels, %function
        .p2align 6
dtrn3_channels:
        save
        mov     x29, sp
        sub     x9, sp, #640
        and     sp, x9, #-256           // vectors aligned to lines, for store forwarding
        mov     x20, x1                 // channels
        whilelo p0.d, xzr, x1
        ptrue   p1.d
        mov     x21, #LEVELS
        index   z31.d, #0, x21          // address of a level's channels
        mov     z30.d, #0
        ldr     x21, [x0, #CONSTANTS]
        mov     x19, #0                 // level
1:      lsl     x26, x19, #3
        ldr     x1, [x0, #PRESSURE]
        add     x1, x1, x26
        ldr     x1, [x1]
        ldp     x3, x4, [x0, #WARMTH]
        add     x4, x4, x26
        ldr     d3, [x4]
        fmov    d28, #0.75              // the second factor
        ldr     x6, [x0, #THICKNESS]
        add     x6, x6, x26
        ldr     d5, [x6]
        ldr     x5, [x0, #GAS]
        add     x5, x5, x26
        ldr     d4, [x5]
        ldr     d7, [x21, #C_FACTORS]
        fmul    d4, d4, d7
        fmul    d4, d4, d5
        fmul    d4, d4, d28
        ldr     x2, [x0, #SHARE]
        add     x2, x2, x26
        ldr     d0, [x2]
        fmov    d1, #1.0
        fsub    d6, d1, d0
        str     d6, [sp, #F_REST]
        add     x3, x3, x26
        ldr     d2, [x3]
        str     d2, [sp, #F_WARMTH]
        cmp     x20, #0                 // any channel?
        b.le    3f
        // Rows of three tables: 5 numbers each, by pressure.
        ldr     x7, [x0, #TABLE]
        add     x10, x1, x1, lsl #2
        add     x12, x7, x10, lsl #3
        add     x11, x10, #5
        add     x13, x7, x11, lsl #3
        ldr     x8, [x0, #TABLE + 8]
        add     x14, x8, x10, lsl #3
        add     x15, x8, x11, lsl #3
        ldr     x9, [x0, #TABLE + 16]
        add     x16, x9, x10, lsl #3
        add     x17, x9, x11, lsl #3
        ldr     x1, [x0, #DEPTH]
        add     x1, x1, x26
        add     x4, x21, #0
        ld1rd   {z8.d}, p1/z, [x4, #C_LN_10]
        ld1rd   {z9.d}, p1/z, [x4, #C_PER_LN_2]
        ld1rd   {z10.d}, p1/z, [x4, #C_SHIFT]
        str     z10, [sp, #F_SHIFT, mul vl]
        ld1rd   {z12.d}, p1/z, [x4, #C_LN_2_HIGH]
        ld1rd   {z13.d}, p1/z, [x4, #C_LN_2_LOW]
        ld1rd   {z14.d}, p1/z, [x4, #C_FIFTH]
        ld1rd   {z15.d}, p1/z, [x4, #C_THIRD]
        ld1rd   {z16.d}, p1/z, [x4, #C_MOST]
        ld1rd   {z17.d}, p1/z, [x4, #C_LEAST]
        ld1rd   {z18.d}, p1/z, [x4, #C_INFINITE]
        ld1rd   {z19.d}, p1/z, [x4, #C_BIAS]
        fmov    d21, d1
        mov     z21.d, d21
        mov     z22.d, d0
        ldr     d23, [sp, #F_REST]
        mov     z23.d, d23
        str     z23, [sp, #F_RESTS, mul vl]
        ldr     d24, [sp, #F_WARMTH]
        mov     z24.d, d24
        mov     z25.d, d3
        mov     z26.d, d4
        mov     x5, #0                  // channel
        mov     x6, x20
        sub     x7, x20, #1
        cmp     x7, #0
        b.lt    3f
2:      add     x8, x1, #0
        ld1d    {z27.d}, p0/z, [x8, z31.d, lsl #3]
        ld1d    {z1.d}, p0/z, [x13, x5, lsl #3]
        ld1d    {z0.d}, p0/z, [x12, x5, lsl #3]
        ldr     z23, [sp, #F_RESTS, mul vl]
        fmul    z0.d, z0.d, z23.d
        fmla    z0.d, p0/m, z1.d, z22.d
        ld1d    {z3.d}, p0/z, [x15, x5, lsl #3]
        ld1d    {z2.d}, p0/z, [x14, x5, lsl #3]
        fmul    z2.d, z2.d, z23.d
        fmla    z2.d, p0/m, z3.d, z22.d
        fsub    z0.d, z2.d, z0.d
        ld1d    {z5.d}, p0/z, [x17, x5, lsl #3]
        ld1d    {z4.d}, p0/z, [x16, x5, lsl #3]
        fmul    z4.d, z4.d, z23.d
        fmla    z4.d, p0/m, z5.d, z22.d
        fsub    z1.d, z4.d, z2.d
        fmla    z2.d, p0/m, z1.d, z24.d
        fmla    z2.d, p0/m, z0.d, z25.d
        fcmge   p3.d, p0/z, z2.d, z17.d
        fcmgt   p2.d, p0/z, z2.d, z16.d
        fmul    z3.d, z2.d, z8.d
        ldr     z6, [sp, #F_SHIFT, mul vl]
        fmla    z6.d, p0/m, z3.d, z9.d
        fsub    z4.d, z6.d, z10.d
        fmls    z3.d, p0/m, z4.d, z12.d
        fmls    z3.d, p0/m, z4.d, z13.d
        fmul    z4.d, z3.d, z3.d
        ld1rd   {z7.d}, p1/z, [x4, #C_FOURTH]
        fmla    z7.d, p0/m, z3.d, z14.d
        fmov    z20.d, #0.5
        fmla    z20.d, p0/m, z3.d, z15.d
        fmad    z7.d, p0/m, z4.d, z20.d
        fmad    z7.d, p0/m, z4.d, z3.d
        add     z6.d, z6.d, z19.d
        fexpa   z6.d, z6.d
        fmla    z6.d, p0/m, z6.d, z7.d
        sel     z6.d, p2, z18.d, z6.d
        sel     z6.d, p3, z6.d, z30.d
        fmla    z27.d, p0/m, z6.d, z26.d
        st1d    {z27.d}, p0, [x8, z31.d, lsl #3]
        add     x5, x5, #8
        subs    x6, x6, #8
        b.gt    2b
3:      add     x19, x19, #1
        cmp     x19, #LEVELS
        b.ne    1b
        mov     sp, x29
        restore
        ret
        .size   dtrn3_channels, .-dtrn3_channels

// ------------------------------------------------------------------ levels
// The frame: ten vectors, four general registers.
        .set    V_SHIFT, 0
        .set    V_FOURTH, 1
        .set    V_LN_2_HIGH, 2
        .set    V_LN_2_LOW, 3
        .set    V_FIFTH, 4
        .set    V_THIRD, 5
        .set    V_MOST, 6
        .set    V_LEAST, 7
        .set    V_INFINITE, 8
        .set    V_FACTOR, 9
        .set    L_REGISTERS, 10 * 256
        .set    L_FRAME, 10 * 256 + 64

// The pointers of a part, from level x21, and its broadcast values.
        .macro  part
        ldr     x1, [x0, #PRESSURE]
        ldr     x2, [x0, #SHARE]
        ldr     x3, [x0, #WARMTH]
        ldr     x4, [x0, #WARMTH + 8]
        ldr     x5, [x0, #GAS]
        ldr     x6, [x0, #THICKNESS]
        ldr     x7, [x0, #TABLE]
        ldr     x8, [x0, #TABLE + 8]
        ldr     x9, [x0, #TABLE + 16]
        ldr     x10, [x0, #DEPTH]
        ldr     x11, [x0, #CONSTANTS]
        lsl     x12, x21, #3
        add     x1, x1, x12
        add     x2, x2, x12
        add     x3, x3, x12
        add     x4, x4, x12
        add     x5, x5, x12
        add     x6, x6, x12
        add     x13, x20, #0            // the channel's first level
        mov     x14, #LEVELS
        mul     x13, x13, x14
        lsl     x13, x13, #3
        add     x10, x10, x13
        add     x10, x10, x12
        mov     x14, #26 * 8            // bytes of a channel's pressures
        mul     x14, x20, x14
        mov     z30.d, x14
        ldr     d31, [x11, #C_FACTORS]
        mov     z31.d, d31
        add     x15, x7, #8
        add     x16, x8, #8
        add     x17, x9, #8
        .endm

// A vector of levels under \p: constants in z8 and up, the factor of all in z20.
        .macro  reload constant, place, fourth
        .if \fourth == 7
        ldr     z\constant, [sp, #\place, mul vl]
        .endif
        .endm
        .macro  vector p, fourth
        ld1d    {z28.d}, \p/z, [x1]
        ld1d    {z22.d}, \p/z, [x2]
        ld1d    {z24.d}, \p/z, [x3]
        ld1d    {z25.d}, \p/z, [x4]
        lsl     z28.d, z28.d, #3
        add     z28.d, z28.d, z30.d
        fmov    z23.d, #1.0
        fsub    z23.d, z23.d, z22.d
        ld1d    {z0.d}, \p/z, [x7, z28.d]
        ld1d    {z1.d}, \p/z, [x15, z28.d]
        fmul    z0.d, z0.d, z23.d
        fmla    z0.d, \p/m, z1.d, z22.d
        ld1d    {z2.d}, \p/z, [x8, z28.d]
        ld1d    {z3.d}, \p/z, [x16, z28.d]
        fmul    z2.d, z2.d, z23.d
        fmla    z2.d, \p/m, z3.d, z22.d
        ld1d    {z4.d}, \p/z, [x9, z28.d]
        ld1d    {z5.d}, \p/z, [x17, z28.d]
        fmul    z4.d, z4.d, z23.d
        fmla    z4.d, \p/m, z5.d, z22.d
        fsub    z1.d, z4.d, z2.d
        fsub    z0.d, z2.d, z0.d
        fmla    z2.d, \p/m, z1.d, z24.d
        fmla    z2.d, \p/m, z0.d, z25.d
        fmul    z3.d, z2.d, z8.d
        reload  10, V_SHIFT, \fourth
        movprfx z6, z10
        fmla    z6.d, \p/m, z3.d, z9.d
        fsub    z4.d, z6.d, z10.d
        reload  12, V_LN_2_HIGH, \fourth
        fmls    z3.d, \p/m, z4.d, z12.d
        reload  13, V_LN_2_LOW, \fourth
        fmls    z3.d, \p/m, z4.d, z13.d
        add     z6.d, z6.d, z19.d
        reload  11, V_FOURTH, \fourth
        reload  14, V_FIFTH, \fourth
        fmul    z4.d, z3.d, z3.d
        .if \fourth == 7
        movprfx z7, z11
        .endif
        fmla    z\fourth\().d, \p/m, z3.d, z14.d
        reload  15, V_THIRD, \fourth
        fmov    z23.d, #0.5
        .if \fourth == 7
        movprfx z1, z23
        .else
        movprfx z1, z23
        .endif
        fmla    z1.d, \p/m, z3.d, z15.d
        fmad    z\fourth\().d, \p/m, z4.d, z1.d
        fmad    z\fourth\().d, \p/m, z4.d, z3.d
        fexpa   z6.d, z6.d
        reload  16, V_MOST, \fourth
        fcmgt   p2.d, \p/z, z2.d, z16.d
        reload  17, V_LEAST, \fourth
        fcmge   p3.d, \p/z, z2.d, z17.d
        fmla    z6.d, \p/m, z6.d, z\fourth\().d
        reload  18, V_INFINITE, \fourth
        sel     z6.d, p2, z18.d, z6.d
        sel     z6.d, p3, z6.d, z21.d
        ld1d    {z26.d}, \p/z, [x5]
        ld1d    {z29.d}, \p/z, [x6]
        ldr     z20, [sp, #V_FACTOR, mul vl]
        fmul    z26.d, z26.d, z20.d
        fmul    z26.d, z26.d, z29.d
        fmul    z26.d, z26.d, z31.d
        ld1d    {z27.d}, \p/z, [x10]
        fmla    z27.d, \p/m, z6.d, z26.d
        st1d    {z27.d}, \p, [x10]
        .endm

// The twelve constants of the power, at x11.
        .macro  constants
        ld1rd   {z8.d}, p1/z, [x11, #C_LN_10]
        ld1rd   {z9.d}, p1/z, [x11, #C_PER_LN_2]
        ld1rd   {z10.d}, p1/z, [x11, #C_SHIFT]
        ld1rd   {z11.d}, p1/z, [x11, #C_FOURTH]
        ld1rd   {z12.d}, p1/z, [x11, #C_LN_2_HIGH]
        ld1rd   {z13.d}, p1/z, [x11, #C_LN_2_LOW]
        ld1rd   {z14.d}, p1/z, [x11, #C_FIFTH]
        ld1rd   {z15.d}, p1/z, [x11, #C_THIRD]
        ld1rd   {z16.d}, p1/z, [x11, #C_MOST]
        ld1rd   {z17.d}, p1/z, [x11, #C_LEAST]
        ld1rd   {z18.d}, p1/z, [x11, #C_INFINITE]
        ld1rd   {z19.d}, p1/z, [x11, #C_BIAS]
        .endm

// Nine of them to the stack, and back with the factor.
        .macro  spilled op
        \op     z10, [sp, #V_SHIFT, mul vl]
        \op     z11, [sp, #V_FOURTH, mul vl]
        \op     z12, [sp, #V_LN_2_HIGH, mul vl]
        \op     z13, [sp, #V_LN_2_LOW, mul vl]
        \op     z14, [sp, #V_FIFTH, mul vl]
        \op     z15, [sp, #V_THIRD, mul vl]
        \op     z16, [sp, #V_MOST, mul vl]
        \op     z17, [sp, #V_LEAST, mul vl]
        \op     z18, [sp, #V_INFINITE, mul vl]
        .endm

        .globl  dtrn3_levels
        .type   dtrn3_levels, %function
        .p2align 6
dtrn3_levels:
        save
        mov     x29, sp
        sub     x9, sp, #L_FRAME
        and     sp, x9, #-256           // vectors aligned to lines, for store forwarding
        add     x13, sp, #L_REGISTERS
        mov     x19, x1                 // channels
        cntd    x12
        mov     x22, #LEVELS
        udiv    x22, x22, x12           // whole vectors
        mul     x12, x22, x12
        mov     x14, #LEVELS
        whilelo p0.d, x12, x14
        ptrue   p1.d
        str     x12, [x13]
        str     x1, [x13, #8]
        ldr     x11, [x0, #CONSTANTS]
        ld1rd   {z20.d}, p1/z, [x11, #C_FACTORS + 8]
        str     z20, [sp, #V_FACTOR, mul vl]
        mov     z21.d, #0
        mov     x20, #0                 // channel
1:      cmp     x22, #0
        b.eq    3f
        mov     x21, #0
        part
        constants
        spilled str
        add     x18, sp, #L_REGISTERS
        str     x10, [x18, #16]
        str     x20, [x18, #24]
        subs    x14, x22, #0
        b.eq    3f
2:      vector  p1, 7
        addvl   x1, x1, #1
        addvl   x2, x2, #1
        addvl   x3, x3, #1
        addvl   x4, x4, #1
        addvl   x5, x5, #1
        addvl   x6, x6, #1
        addvl   x10, x10, #1
        subs    x14, x14, #1
        b.ne    2b
3:      add     x18, sp, #L_REGISTERS
        ldr     x21, [x18]              // the level after the whole vectors
        cmp     x21, #LEVELS
        b.hs    4f
        part
        constants
        str     x10, [x18, #32]
        str     x13, [x18, #40]
        cmp     x20, #0
        b.lt    4f
        vector  p0, 11
4:      add     x20, x20, #1
        cmp     x20, x19
        b.ne    1b
        mov     sp, x29
        restore
        ret
        .size   dtrn3_levels, .-dtrn3_levels
