// C += A * B on register tiles: C of ROWS x (VECTORS vectors) stays in registers over all k.
//
//   void NAME(double *c, const double *a, const double *b, uint64_t iterations)
//
// Packed operands: a[k][ROWS], b[k][VECTORS vectors], c[ROWS][VECTORS vectors]. Four k per iteration, iterations >= 1.
// Each FMA group uses a broadcast of a and the vectors of b, both loaded ahead: b one k, a as many rows as there are
// registers for it. The loads of the last k therefore read one k past the end of a and b (padding).
//
// Per k, tile 5x4: 20 FMA, 5 broadcast loads, 4 loads, 1 for the loop: the mix of FMAs and loads that the real
// machine's counters show for its library's DGEMM. Tile 8x3: 24 FMA, 8 broadcast loads, 3 loads, 1 for the loop.

        .altmacro

.macro TILE_FMLA acc, b, a
        fmla    z\acc\().d, p0/m, z\b\().d, z\a\().d
.endm

.macro TILE_LD1D reg, base, k
        ld1d    {z\reg\().d}, p0/z, [\base, #\k, mul vl]
.endm

.macro TILE_ST1D reg, base, k
        st1d    {z\reg\().d}, p0, [\base, #\k, mul vl]
.endm

.macro TILE_LD1RD reg, offset
        ld1rd   {z\reg\().d}, p0/z, [x1, #\offset]
.endm

// C tile to (TILE_ST1D) or from (TILE_LD1D) memory, a row at a time through x4.
.macro TILE_C access, rows, vectors
        .set    row, 0
        mov     x4, x0
.rept \rows
        .set    v, 0
.rept \vectors
        \access %(row * \vectors + v), x4, %v
        .set    v, v + 1
.endr
        add     x4, x4, x5
        .set    row, row + 1
.endr
.endm

.macro TILE_BEGIN name
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        stp     d8, d9, [sp, #-64]!
        stp     d10, d11, [sp, #16]
        stp     d12, d13, [sp, #32]
        stp     d14, d15, [sp, #48]
        ptrue   p0.d
.endm

.macro TILE_END name
        ldp     d14, d15, [sp, #48]
        ldp     d12, d13, [sp, #32]
        ldp     d10, d11, [sp, #16]
        ldp     d8, d9, [sp], #64
        ret
        .size   \name, .-\name
.endm

// z0 .. : C; then two sets of b, then `broadcasts` registers for a. x5 and x6 become the bytes of one and of four k of b.
.macro TILE_REGISTERS rows, vectors
        cntb    x5, all, mul #\vectors
        lsl     x6, x5, #2
        .set    first_b, \rows * \vectors
        .set    first_a, first_b + 2 * \vectors
        .set    broadcasts, 32 - first_a
.endm

// The first loads of a tile. x2 points `bias` vectors into b from then on, so that all loads can use an immediate offset.
.macro TILE_FIRST vectors, bias
        .set    v, 0
.rept \vectors
        TILE_LD1D %(first_b + v), x2, %v
        .set    v, v + 1
.endr
        .set    q, 0
.rept broadcasts
        TILE_LD1RD %(first_a + q), %(8 * q)
        .set    q, q + 1
.endr
        addvl   x2, x2, #\bias
.endm

// Four k.
.macro TILE_FOUR rows, vectors, bias
        .set    q, 0
        .set    k, 0
.rept 4
        .set    b, first_b + k % 2 * \vectors
        .set    b_next, first_b + (k + 1) % 2 * \vectors
        .set    row, 0
.rept \rows
        .set    a, first_a + q % broadcasts
        .set    v, 0
.rept \vectors
        TILE_FMLA %(row * \vectors + v), %(b + v), %a
        .set    v, v + 1
.endr
        TILE_LD1RD %a, %(8 * (q + broadcasts))
.if row < \vectors
        TILE_LD1D %(b_next + row), x2, %((k + 1) * \vectors + row - \bias)
.endif
        .set    q, q + 1
        .set    row, row + 1
.endr
        .set    k, k + 1
.endr
.endm

.macro TILE_NEXT rows
        add     x1, x1, #4 * 8 * \rows
        add     x2, x2, x6
        subs    x3, x3, #1
.endm

.macro TILE name, rows, vectors, bias
        TILE_BEGIN \name
        TILE_REGISTERS \rows, \vectors
        TILE_C  TILE_LD1D, \rows, \vectors
        TILE_FIRST \vectors, \bias
        .p2align 5
1:
        TILE_FOUR \rows, \vectors, \bias
        TILE_NEXT \rows
        b.ne    1b
        TILE_C  TILE_ST1D, \rows, \vectors
        TILE_END \name
.endm

        TILE    dgemm_5x4_kernel, 5, 4, 12
        TILE    dgemm_8x3_kernel, 8, 3, 8
