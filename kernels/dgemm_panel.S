// C += A * B for a panel: tiles of 8 rows and 3 vectors, one below the other, with the same b.
//
//   void dgemm_8x3_panel_kernel(double *c, const double *a, const double *b, uint64_t iterations, uint64_t pitch,
//                               const double *next, uint64_t tiles)
//
// Packed operands: a[tile][k][8], b[k][3 vectors]; rows of c are `pitch` bytes apart. Four k per iteration, iterations >= 1. While a tile is
// computed, its successor is prefetched, which is at `next` for the last one. The last iteration of a tile loads the first operands of its
// successor: c, a, and one k of b. The last tile so reads c at `next`, and a beyond its end.
//
// Order. The processor decodes four instructions at a time, and an operation in the first or third place goes to FLA, in the second or
// fourth to FLB. So that neither pipe has more to do, a k is nine groups with 24 FMAs (F), 8 broadcast loads of a (a), 3 loads of b and another
// operation (e):
//
//   FFFa FFeF aFFF aFFe FaFF FaeF FFaF FFae FFFa
//
// In the last k, 24 stores of c also take FLA, and FMAs take FLB. A row is three groups with its FMAs and `a`, stores (s) of c of the row
// before, loads (l) of c of the row before that, and additions (+) to pointers. A load right after the store of its register would meet
// a store whose address has the same lower 12 bits, if eight rows of c are a multiple of 4 KiB, and come again later.
//
//   sFlF sFla s+l+

// x0 and x10: rows of c to store and to load; x1: a; x2: b, BIAS vectors ahead; x3: iterations left; x8: c to prefetch.

        .altmacro
        .include "dgemm_operations.inc"

        .set    ROWS, 8
        .set    VECTORS, 3
        .set    FIRST_B, ROWS * VECTORS // two sets of b
        .set    FIRST_A, FIRST_B + 2 * VECTORS
        .set    BROADCASTS, 32 - FIRST_A
        .set    BIAS, 2                 // vectors of b that x2 is ahead
        .set    PREFETCHES, 2 * ROWS    // of the next tile of c, one in an iteration: more would fill the buffers of misses
        .set    AHEAD, 1024             // distance of prefetches of a: four lines, each of them four k

// Operation `v` of `row` in k.
.macro F k, row, v
        .set    set, \k % 2
        .set    turn, (\k * ROWS + \row) % BROADCASTS
        ADD_PRODUCT %(\row * VECTORS + \v), %(FIRST_B + set * VECTORS + \v), %(FIRST_A + turn)
.endm

// The broadcast for the row that is BROADCASTS rows after `row`, into the register of `row`. `moved`: bytes that x1 has advanced.
.macro LA k, row, moved=0
        .set    turn, (\k * ROWS + \row) % BROADCASTS
        BROADCAST %(FIRST_A + turn), %(8 * (\k * ROWS + \row + BROADCASTS) - \moved)
.endm

// A vector of b for the next k, from `base`.
.macro LB k, v, base, at
        .set    set, (\k + 1) % 2
        LOAD    %(FIRST_B + set * VECTORS + \v), \base, \at
.endm

// A k; `at` is the place of the next b relative to x2, `instruction` the other operation.
.macro ONE k, at, moved, instruction:vararg
        F \k, 0, 0
        F \k, 0, 1
        F \k, 0, 2
        LA \k, 0

        F \k, 1, 0
        F \k, 1, 1
        LB \k, 0, x2, %(\at)
        F \k, 1, 2

        LA \k, 1
        F \k, 2, 0
        F \k, 2, 1
        F \k, 2, 2

        LA \k, 2
        F \k, 3, 0
        F \k, 3, 1
        LB \k, 1, x2, %(\at + 1)

        F \k, 3, 2
        LA \k, 3
        F \k, 4, 0
        F \k, 4, 1

        F \k, 4, 2
        LA \k, 4
        LB \k, 2, x2, %(\at + 2)
        F \k, 5, 0

        F \k, 5, 1
        F \k, 5, 2
        LA \k, 5
        F \k, 6, 0

        F \k, 6, 1
        F \k, 6, 2
        LA \k, 6
        \instruction

        F \k, 7, 0
        F \k, 7, 1
        F \k, 7, 2
        LA \k, 7, \moved
.endm

.macro THREE
        ONE 0, %(1 * VECTORS - BIAS), 0, prfm pldl1keep, [x1, #AHEAD]
        ONE 1, %(2 * VECTORS - BIAS), 0, add x2, x2, x6
        ONE 2, %(3 * VECTORS - BIAS - 4 * VECTORS), 0, subs x3, x3, #1
.endm

.macro FOUR
        THREE
        ONE 3, %(4 * VECTORS - BIAS - 4 * VECTORS), %(4 * 8 * ROWS), add x1, x1, #4 * 8 * ROWS
.endm

// A row of the last k of a tile, with stores of c of the row before, and loads of the row before that. For row 1, these are loads of b.
.macro LAST row
        STORE   %((\row - 1) * VECTORS), x0, 0
        F 3, \row, 0
        LAST_LOAD \row, 0
        F 3, \row, 1

        STORE   %((\row - 1) * VECTORS + 1), x0, 1
        F 3, \row, 2
        LAST_LOAD \row, 1
        LA 3, \row

        STORE   %((\row - 1) * VECTORS + 2), x0, 2
        add     x0, x0, x7
        LAST_LOAD \row, 2
.if \row > 1
        add     x10, x10, x7
.else
        addvl   x2, x14, #BIAS
.endif
.endm

.macro LAST_LOAD row, v
.if \row > 1
        LOAD    %((\row - 2) * VECTORS + \v), x10, \v
.else
        LB     3, \v, x14, \v
.endif
.endm

        .globl  dgemm_8x3_panel_kernel
        .type   dgemm_8x3_panel_kernel, %function
        .p2align 6
dgemm_8x3_panel_kernel:
        stp     d8, d9, [sp, #-64]!
        stp     d10, d11, [sp, #16]
        stp     d12, d13, [sp, #32]
        stp     d14, d15, [sp, #48]
        ptrue   p0.d
        mov     x7, x4                  // pitch
        mov     x12, x5                 // the tile after the last one
        mov     x13, x6                 // tiles left
        mov     x14, x2                 // b
        sub     x15, x3, #1             // iterations but the last: those that prefetch c, and the others
        mov     x11, #PREFETCHES
        cmp     x15, x11
        csel    x11, x15, x11, lo
        sub     x15, x15, x11
        cntb    x5, all, mul #VECTORS
        lsl     x6, x5, #2              // four k of b
        sub     x5, x5, #8              // from the first to the last element of a row of c

        mov     x10, x0
        .set    row, 0
.rept ROWS
        .set    v, 0
.rept VECTORS
        LOAD    %(row * VECTORS + v), x10, %v
        .set    v, v + 1
.endr
        add     x10, x10, x7
        .set    row, row + 1
.endr
        .set    v, 0
.rept VECTORS
        LOAD    %(FIRST_B + v), x14, %v
        .set    v, v + 1
.endr
        .set    q, 0
.rept BROADCASTS
        BROADCAST %(FIRST_A + q), %(8 * q)
        .set    q, q + 1
.endr
        addvl   x2, x14, #BIAS

2:
        add     x10, x0, x7, lsl #3     // the next tile
        subs    x13, x13, #1
        csel    x10, x12, x10, eq
        mov     x3, x11
        mov     x8, x10
        mov     x9, x5
        cbz     x3, 4f
        .p2align 5
1:
        FOUR
        prfm    pstl1keep, [x8]
        add     x8, x8, x9
        sub     x9, x7, x9
        b.ne    1b
        mov     x3, x15
        cbz     x3, 4f
        .p2align 5
3:
        FOUR
        b.ne    3b
        .p2align 5
4:
        THREE
        F 3, 0, 0
        F 3, 0, 1
        F 3, 0, 2
        LA 3, 0

        LAST 1
        LAST 2
        LAST 3
        LAST 4
        LAST 5
        LAST 6
        LAST 7
        STORE   %(7 * VECTORS), x0, 0
        LOAD    %(6 * VECTORS), x10, 0
        STORE   %(7 * VECTORS + 1), x0, 1
        LOAD    %(6 * VECTORS + 1), x10, 1
        STORE   %(7 * VECTORS + 2), x0, 2
        LOAD    %(6 * VECTORS + 2), x10, 2
        add     x10, x10, x7
        add     x0, x0, x7
        add     x1, x1, #4 * 8 * ROWS
        LOAD    %(7 * VECTORS), x10, 0
        LOAD    %(7 * VECTORS + 1), x10, 1
        LOAD    %(7 * VECTORS + 2), x10, 2
        cbnz    x13, 2b

        ldp     d14, d15, [sp, #48]
        ldp     d12, d13, [sp, #32]
        ldp     d10, d11, [sp, #16]
        ldp     d8, d9, [sp], #64
        ret
        .size   dgemm_8x3_panel_kernel, .-dgemm_8x3_panel_kernel
