// y(i) = x1(i) op x2(i), one loop per operation.

#include "stream3.inc"

        STREAM3 add_kernel, OP_ADD
        STREAM3 mul_kernel, OP_MUL
        STREAM3 fma_kernel, OP_FMA
        STREAM3 div_kernel, OP_DIV
        STREAM3 max_kernel, OP_MAX

// The scalar form, as compiled without vectorisation: eight elements per iteration, 37 instructions: 16
// loads, 8 operations, 8 stores, 3 pointer additions, counter and branch (all ours).

.macro SCALAR3_HALF op, from, a0, a1, a2, a3, b0, b1, b2, b3, na0, na1, na2, na3, nb0, nb1, nb2, nb3
        SCALAR3_PAIR \from, \na0, \nb0
        \op     d\a0, d\b0
        SCALAR3_PAIR (\from + 1), \na1, \nb1
        \op     d\a1, d\b1
        SCALAR3_PAIR (\from + 2), \na2, \nb2
        \op     d\a2, d\b2
        SCALAR3_PAIR (\from + 3), \na3, \nb3
        \op     d\a3, d\b3
.endm

.macro SCALAR3_PAIR k, a, b
        ldr     d\a, [x1, #(8 * (\k))]
        ldr     d\b, [x2, #(8 * (\k))]
.endm

.macro SCALAR3_STORE k, a0, a1, a2, a3
        str     d\a0, [x0, #(8 * \k)]
        str     d\a1, [x0, #(8 * \k + 8)]
        str     d\a2, [x0, #(8 * \k + 16)]
        str     d\a3, [x0, #(8 * \k + 24)]
.endm

.macro SCALAR3 name, op
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        fmov    d31, d0
        SCALAR3_PAIR 0, 0, 4
        SCALAR3_PAIR 1, 1, 5
        SCALAR3_PAIR 2, 2, 6
        SCALAR3_PAIR 3, 3, 7
        subs    x3, x3, #1
        b.eq    2f
        .p2align 5
1:
        SCALAR3_HALF \op, 4, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
        add     x1, x1, #64
        add     x2, x2, #64
        SCALAR3_STORE 0, 0, 1, 2, 3
        SCALAR3_HALF \op, 0, 16, 17, 18, 19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5, 6, 7
        subs    x3, x3, #1
        SCALAR3_STORE 4, 16, 17, 18, 19
        add     x0, x0, #64
        b.ne    1b
2:
        SCALAR3_HALF \op, 4, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
        SCALAR3_STORE 0, 0, 1, 2, 3
        \op     d16, d20
        \op     d17, d21
        \op     d18, d22
        \op     d19, d23
        SCALAR3_STORE 4, 16, 17, 18, 19
        ret
        .size   \name, .-\name
.endm

.macro SCALAR_ADD a, b
        fadd    \a, \a, \b
.endm

.macro SCALAR_MUL a, b
        fmul    \a, \a, \b
.endm

.macro SCALAR_FMA a, b                  // x1 + c0 * x2
        fmadd   \a, \b, d31, \a
.endm

.macro SCALAR_MAX a, b
        fmaxnm  \a, \a, \b
.endm

        SCALAR3 add_scalar_kernel, SCALAR_ADD
        SCALAR3 mul_scalar_kernel, SCALAR_MUL
        SCALAR3 fma_scalar_kernel, SCALAR_FMA
        SCALAR3 max_scalar_kernel, SCALAR_MAX

// x1 / x2 without a division: with r = estimate of 1/x2 (8 bits) and e = 1 - x2*r, r*(1 + e + e**2) has three times as many
// bits. Two such steps and the product with x1: 8 operations and 13 FLOPs per element.
//
// Software-pipelined: four vectors start in every interval. Times from there in cycles (the latencies are 11 for loads, 4 for
// the estimate, 9 for all others; registers do not cover the whole latency of the load, out-of-order execution does the rest):
//
//    0  load x2            17  e = e + e*e        44  x2 = x2 + x2*x2      54  load x1 (to x2)
//    4  r = estimate       26  r = r + r*e        53  r = r + r*x2         55  r = r*x1
//    8  e = 1 - x2*r       35  x2 = 1 - x2*r                               64  store r
//
// An interval has 20 cycles: 36 operations and store data for two pipes, of which one takes 20. Instructions are in the
// order of their times modulo 20. r and x2 are live for three intervals: they have three sets of registers, and the loop is
// three intervals long.

// One interval: vectors of set `s0` start, those of set `s1` started one, of `s2` two, of `s3` three intervals
// before (0: none). Sets of registers, the first of four each: r, x2 of those that start (and of those stored), then
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
.if DIV_SCALAR
        ldr     d\a0, [\base]
        ldr     d\a1, [\base, #8]
        ldr     d\a2, [\base, #16]
        ldr     d\a3, [\base, #24]
.else
        ld1d    {z\a0\().d}, p0/z, [\base]
        ld1d    {z\a1\().d}, p0/z, [\base, #1, mul vl]
        ld1d    {z\a2\().d}, p0/z, [\base, #2, mul vl]
        ld1d    {z\a3\().d}, p0/z, [\base, #3, mul vl]
.endif
        add     \base, \base, x9
.endm

.macro DIV_STORE4 a0, a1, a2, a3
.if DIV_SCALAR
        str     d\a0, [x0]
        str     d\a1, [x0, #8]
        str     d\a2, [x0, #16]
        str     d\a3, [x0, #24]
.else
        st1d    {z\a0\().d}, p0, [x0]
        st1d    {z\a1\().d}, p0, [x0, #1, mul vl]
        st1d    {z\a2\().d}, p0, [x0, #2, mul vl]
        st1d    {z\a3\().d}, p0, [x0, #3, mul vl]
.endif
        add     x0, x0, x9
.endm

.macro DIV_ESTIMATE r, b, e
.if DIV_SCALAR
        frecpe  d\r, d\b
.else
        frecpe  z\r\().d, z\b\().d
.endif
.endm

.macro DIV_FIRST_ERROR b, r, e          // e = 1 - b*r
.if DIV_SCALAR
        fmsub   d\e, d\b, d\r, d28
.else
        movprfx z\e\(), z\b\()
        fmsb    z\e\().d, p0/m, z\r\().d, z28.d
.endif
.endm

.macro DIV_ERROR b, r, e                // b = 1 - b*r
.if DIV_SCALAR
        fmsub   d\b, d\b, d\r, d28
.else
        fmsb    z\b\().d, p0/m, z\r\().d, z28.d
.endif
.endm

.macro DIV_TIMES r, x, e                // r = r*(1 + x)
.if DIV_SCALAR
        fmadd   d\r, d\r, d\x, d\r
.else
        fmla    z\r\().d, p0/m, z\r\().d, z\x\().d
.endif
.endm

.macro DIV_PRODUCT r, a, e
.if DIV_SCALAR
        fmul    d\r, d\r, d\a
.else
        fmul    z\r\().d, z\r\().d, z\a\().d
.endif
.endm

// The interval with this number modulo 3.
.macro DIV_0 s0, s1, s2, s3
        DIV_INTERVAL \s0, \s1, \s2, \s3, 0, 8, 4, 12, 20, 16
.endm

.macro DIV_1 s0, s1, s2, s3
        DIV_INTERVAL \s0, \s1, \s2, \s3, 4, 0, 8, 16, 12, 20
.endm

.macro DIV_2 s0, s1, s2, s3
        DIV_INTERVAL \s0, \s1, \s2, \s3, 8, 4, 0, 20, 16, 12
.endm

// x3 counts units of eight vectors, two intervals, and is at least 2.
.macro DIV_SERIES
        stp     d8, d9, [sp, #-64]!
        stp     d10, d11, [sp, #16]
        stp     d12, d13, [sp, #32]
        stp     d14, d15, [sp, #48]
.if DIV_SCALAR
        fmov    d28, #1.0
        mov     x9, #32
.else
        ptrue   p0.d
        fmov    z28.d, #1.0
        cntb    x9, all, mul #4
.endif
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
.endm

        .globl  div_series_kernel
        .type   div_series_kernel, %function
        .p2align 6
div_series_kernel:
        .set    DIV_SCALAR, 0
        DIV_SERIES
        .size   div_series_kernel, .-div_series_kernel

// The scalar form: four elements start in every interval, 12.25 instructions each.
        .globl  div_series_scalar_kernel
        .type   div_series_scalar_kernel, %function
        .p2align 6
div_series_scalar_kernel:
        .set    DIV_SCALAR, 1
        DIV_SERIES
        .size   div_series_scalar_kernel, .-div_series_scalar_kernel
