// y(i) = x1(i) op x2(i), one loop per operation.

#include "stream3.inc"

        STREAM3 add_kernel, OP_ADD
        STREAM3 mul_kernel, OP_MUL
        STREAM3 fma_kernel, OP_FMA
        STREAM3 div_kernel, OP_DIV

// x1 / x2 without a division: with r = estimate of 1/x2 (8 bits) and e = 1 - x2*r, r*(1 + e + e**2) has three times as many
// bits. Two such steps and the product with x1: 8 operations and 13 FLOPs for each element.
//
// Software-pipelined: every interval four vectors begin. Counted from there in cycles (the latencies are 11 for loads, 4 for
// the estimate, 9 for all others; registers do not last for all of the load's, the out-of-order execution does the rest):
//
//    0  load x2            17  e = e + e*e        44  x2 = x2 + x2*x2      54  load x1 (to x2)
//    4  r = estimate       26  r = r + r*e        53  r = r + r*x2         55  r = r*x1
//    8  e = 1 - x2*r       35  x2 = 1 - x2*r                               64  store r
//
// An interval has 20 cycles: 36 operations and store data for two pipes, of which one takes 20. Instructions stand in the
// order of their times modulo 20. r and x2 are in use for three intervals: they have three sets of registers, and the loop is
// three intervals long.

// What one interval does with the vectors that `s0` begin, and with those that began `s1` one, `s2` two, `s3` three intervals
// before (0: there are none). Sets of registers, the first of four each: r, x2 of those that begin (and of those stored), then
// of one and two intervals before.
.macro DIV_INTERVAL s0, s1, s2, s3, ra, rb, rc, xa, xb, xc
.if \s0
        DIV_LOAD x2, \xa
.endif
.if \s2
        DIV_EACH DIV_TIMES, \xc, \xc
.endif
.if \s3
        DIV_STORE \ra
.endif
.if \s0
        DIV_EACH DIV_ESTIMATE, \ra, \xa
.endif
.if \s1
        DIV_EACH DIV_TIMES, \rb, DIV_E
.endif
.if \s0
        DIV_EACH DIV_FIRST_ERROR, \xa, \ra
.endif
.if \s2
        DIV_EACH DIV_TIMES, \rc, \xc
        DIV_LOAD x1, \xc
        DIV_EACH DIV_PRODUCT, \rc, \xc
.endif
.if \s1
        DIV_EACH DIV_ERROR, \xb, \rb
.endif
.if \s0
        DIV_EACH DIV_TIMES, DIV_E, DIV_E
.endif
.endm

        .equ    DIV_E, 24               // z24 to z27

        .altmacro                       // arguments %(…) are computed

.macro DIV_EACH what, a, b
        \what  %(\a + 0), %(\b + 0), 24
        \what  %(\a + 1), %(\b + 1), 25
        \what  %(\a + 2), %(\b + 2), 26
        \what  %(\a + 3), %(\b + 3), 27
.endm

.macro DIV_LOAD base, a
        DIV_LOAD4 \base, %(\a + 0), %(\a + 1), %(\a + 2), %(\a + 3)
.endm

.macro DIV_STORE a
        DIV_STORE4 %(\a + 0), %(\a + 1), %(\a + 2), %(\a + 3)
.endm

.macro DIV_LOAD4 base, a0, a1, a2, a3
        ld1d    {z\a0\().d}, p0/z, [\base]
        ld1d    {z\a1\().d}, p0/z, [\base, #1, mul vl]
        ld1d    {z\a2\().d}, p0/z, [\base, #2, mul vl]
        ld1d    {z\a3\().d}, p0/z, [\base, #3, mul vl]
        add     \base, \base, x9
.endm

.macro DIV_STORE4 a0, a1, a2, a3
        st1d    {z\a0\().d}, p0, [x0]
        st1d    {z\a1\().d}, p0, [x0, #1, mul vl]
        st1d    {z\a2\().d}, p0, [x0, #2, mul vl]
        st1d    {z\a3\().d}, p0, [x0, #3, mul vl]
        add     x0, x0, x9
.endm

.macro DIV_ESTIMATE r, b, e
        frecpe  z\r\().d, z\b\().d
.endm

.macro DIV_FIRST_ERROR b, r, e          // e = 1 - b*r
        movprfx z\e\(), z\b\()
        fmsb    z\e\().d, p0/m, z\r\().d, z28.d
.endm

.macro DIV_ERROR b, r, e                // b = 1 - b*r
        fmsb    z\b\().d, p0/m, z\r\().d, z28.d
.endm

.macro DIV_TIMES r, x, e                // r = r*(1 + x)
        fmla    z\r\().d, p0/m, z\r\().d, z\x\().d
.endm

.macro DIV_PRODUCT r, a, e
        fmul    z\r\().d, z\r\().d, z\a\().d
.endm

// The interval whose number leaves the rest 0, 1 or 2 when divided by 3.
.macro DIV_0 s0, s1, s2, s3
        DIV_INTERVAL \s0, \s1, \s2, \s3, 0, 8, 4, 12, 20, 16
.endm

.macro DIV_1 s0, s1, s2, s3
        DIV_INTERVAL \s0, \s1, \s2, \s3, 4, 0, 8, 16, 12, 20
.endm

.macro DIV_2 s0, s1, s2, s3
        DIV_INTERVAL \s0, \s1, \s2, \s3, 8, 4, 0, 20, 16, 12
.endm

// x3 counts eight vectors, two intervals, and is 2 at least.
        .globl  div_series_kernel
        .type   div_series_kernel, %function
        .p2align 6
div_series_kernel:
        stp     d8, d9, [sp, #-64]!
        stp     d10, d11, [sp, #16]
        stp     d12, d13, [sp, #32]
        stp     d14, d15, [sp, #48]
        ptrue   p0.d
        fmov    z28.d, #1.0
        cntb    x9, all, mul #4
        lsl     x3, x3, #1
        sub     x3, x3, #3
        DIV_0   1, 0, 0, 0
        DIV_1   1, 1, 0, 0
        DIV_2   1, 1, 1, 0
        .p2align 5
1:
        DIV_0   1, 1, 1, 1
        subs    x3, x3, #1
        b.eq    2f
        DIV_1   1, 1, 1, 1
        subs    x3, x3, #1
        b.eq    3f
        DIV_2   1, 1, 1, 1
        subs    x3, x3, #1
        b.ne    1b
        DIV_0   0, 1, 1, 1
        DIV_1   0, 0, 1, 1
        DIV_2   0, 0, 0, 1
        b       4f
2:
        DIV_1   0, 1, 1, 1
        DIV_2   0, 0, 1, 1
        DIV_0   0, 0, 0, 1
        b       4f
3:
        DIV_2   0, 1, 1, 1
        DIV_0   0, 0, 1, 1
        DIV_1   0, 0, 0, 1
4:
        ldp     d14, d15, [sp, #48]
        ldp     d12, d13, [sp, #32]
        ldp     d10, d11, [sp, #16]
        ldp     d8, d9, [sp], #64
        ret
        .size   div_series_kernel, .-div_series_kernel
