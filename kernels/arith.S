// y(i) = x1(i) op x2(i), one loop per operation.

#include "stream3.inc"

        STREAM3 add_kernel, OP_ADD
        STREAM3 mul_kernel, OP_MUL
        STREAM3 fma_kernel, OP_FMA
        STREAM3 div_kernel, OP_DIV

// x1 / x2 without a division: with r = estimate of 1/x2 and e = 1 - x2*r (below 2**-8),
// x1*r*(1+e)*(1+e**2)*(1+e**4) leaves the error e**8. 8 operations and 11 FLOPs for each element.
//
// Software-pipelined: every interval four vectors begin. Counted from there in cycles, as far apart as registers last, the
// out-of-order execution does the rest (the latencies are 11 for loads, 4 for the estimate, 9 for all others):
//
//    0  load x2          9  r = estimate        21  e2 = e*e, q += q*e        42  store q
//    7  load x1         13  q = x1*r, e         28  e4 = e2*e2, q += q*e2
//                                               35  q += q*e4
//
// An interval has 18 cycles: 36 operations and store data for two pipes. Instructions stand in the order of their times
// modulo 18. q (x1 before) is in use for two intervals and e (x2 before) for more than one: they have two sets of registers,
// and the loop is two intervals long.

// Interval `phase` (0 or 1, whose registers are q0.. and e0.. of the vectors that begin, and p0.., f0.. of those before):
// what of it happens to vectors that `begin`, that began one interval before (`go`) and two before (`end`).
.macro DIV_INTERVAL begin, go, end, q0, q1, q2, q3, e0, e1, e2, e3, p0, p1, p2, p3, f0, f1, f2, f3
.if \begin
        DIV_LOAD x2, \e0, \e1, \e2, \e3
        add     x2, x2, x9
.endif
.if \go
        DIV_EACH DIV_SQUARE, 24, 25, 26, 27, \f0, \f1, \f2, \f3
        DIV_EACH DIV_TIMES, \p0, \p1, \p2, \p3, \f0, \f1, \f2, \f3
.endif
.if \end
        st1d    {z\q0\().d}, p0, [x0]
        st1d    {z\q1\().d}, p0, [x0, #1, mul vl]
        st1d    {z\q2\().d}, p0, [x0, #2, mul vl]
        st1d    {z\q3\().d}, p0, [x0, #3, mul vl]
        add     x0, x0, x9
.endif
.if \begin
        DIV_LOAD x1, \q0, \q1, \q2, \q3
        add     x1, x1, x9
        DIV_EACH DIV_ESTIMATE, 20, 21, 22, 23, \e0, \e1, \e2, \e3
.endif
.if \go
        DIV_EACH DIV_SQUARE, 16, 17, 18, 19, 24, 25, 26, 27
        DIV_EACH DIV_TIMES, \p0, \p1, \p2, \p3, 24, 25, 26, 27
.endif
.if \begin
        DIV_EACH DIV_ERROR, \e0, \e1, \e2, \e3, 20, 21, 22, 23
        DIV_EACH DIV_QUOTIENT, \q0, \q1, \q2, \q3, 20, 21, 22, 23
.endif
.if \go
        DIV_EACH DIV_TIMES, \p0, \p1, \p2, \p3, 16, 17, 18, 19
.endif
.endm

.macro DIV_EACH what, a0, a1, a2, a3, b0, b1, b2, b3
        \what  \a0, \b0
        \what  \a1, \b1
        \what  \a2, \b2
        \what  \a3, \b3
.endm

.macro DIV_LOAD base, a0, a1, a2, a3
        ld1d    {z\a0\().d}, p0/z, [\base]
        ld1d    {z\a1\().d}, p0/z, [\base, #1, mul vl]
        ld1d    {z\a2\().d}, p0/z, [\base, #2, mul vl]
        ld1d    {z\a3\().d}, p0/z, [\base, #3, mul vl]
.endm

.macro DIV_ESTIMATE r, b
        frecpe  z\r\().d, z\b\().d
.endm

.macro DIV_ERROR b, r                   // b = 1 - b*r
        fmsb    z\b\().d, p0/m, z\r\().d, z28.d
.endm

.macro DIV_QUOTIENT q, r
        fmul    z\q\().d, z\q\().d, z\r\().d
.endm

.macro DIV_SQUARE e2, e
        fmul    z\e2\().d, z\e\().d, z\e\().d
.endm

.macro DIV_TIMES q, e                   // q = q*(1 + e)
        fmla    z\q\().d, p0/m, z\q\().d, z\e\().d
.endm

.macro DIV_EVEN begin, go, end
        DIV_INTERVAL \begin, \go, \end, 0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15
.endm

.macro DIV_ODD begin, go, end
        DIV_INTERVAL \begin, \go, \end, 4, 5, 6, 7, 12, 13, 14, 15, 0, 1, 2, 3, 8, 9, 10, 11
.endm

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
        DIV_EVEN 1, 0, 0
        DIV_ODD 1, 1, 0
        subs    x3, x3, #1
        b.eq    2f
        .p2align 5
1:
        DIV_EVEN 1, 1, 1
        DIV_ODD 1, 1, 1
        subs    x3, x3, #1
        b.ne    1b
2:
        DIV_EVEN 0, 1, 1
        DIV_ODD 0, 0, 1
        ldp     d14, d15, [sp, #48]
        ldp     d12, d13, [sp, #32]
        ldp     d10, d11, [sp, #16]
        ldp     d8, d9, [sp], #64
        ret
        .size   div_series_kernel, .-div_series_kernel
