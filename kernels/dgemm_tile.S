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
        .include "dgemm_operations.inc"

// C tile to (STORE) or from (LOAD) memory, a row at a time through x4.
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
        LOAD %(first_b + v), x2, %v
        .set    v, v + 1
.endr
        .set    q, 0
.rept broadcasts
        BROADCAST %(first_a + q), %(8 * q)
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
        ADD_PRODUCT %(row * \vectors + v), %(b + v), %a
        .set    v, v + 1
.endr
        BROADCAST %a, %(8 * (q + broadcasts))
.if row < \vectors
        LOAD %(b_next + row), x2, %((k + 1) * \vectors + row - \bias)
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
        TILE_C  LOAD, \rows, \vectors
        TILE_FIRST \vectors, \bias
        .p2align 5
1:
        TILE_FOUR \rows, \vectors, \bias
        TILE_NEXT \rows
        b.ne    1b
        TILE_C  STORE, \rows, \vectors
        TILE_END \name
.endm

        TILE    dgemm_5x4_kernel, 5, 4, 12
        TILE    dgemm_8x3_kernel, 8, 3, 8
