// y(i) = op x1(i): one contiguous load, one operation and one contiguous store.
//
// Eight vectors (or, in the scalar loops, eight elements) per iteration: 8 loads, 8 operations, 8 stores, 2 pointer additions,
// 1 counter and 1 branch. Software-pipelined by half an iteration, like the loops of stream3.inc. (All ours.)
//
//   void NAME(void *y, const void *x1, uint64_t iterations)
//
// iterations >= 1. Operands have numbers that are free in both vector and general registers: 3 to 7 and 16 to 18.

// \op of four operands while the four of the other half are loaded.
.macro UNARY_HALF op, load, from, a0, a1, a2, a3, n0, n1, n2, n3
        \load   \n0, \from
        \op     \a0
        \load   \n1, (\from + 1)
        \op     \a1
        \load   \n2, (\from + 2)
        \op     \a2
        \load   \n3, (\from + 3)
        \op     \a3
.endm

.macro UNARY_STORE store, to, a0, a1, a2, a3
        \store  \a0, \to
        \store  \a1, (\to + 1)
        \store  \a2, (\to + 2)
        \store  \a3, (\to + 3)
.endm

// \load_step, \store_step: bytes from iteration to iteration, registers or immediates.
.macro UNARY name, op, load, store, load_step, store_step
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        ptrue   p0.d
        cntb    x9, all, mul #8         // bytes of eight whole vectors
        lsr     x10, x9, #1             // of eight halves
        \load   4, 0
        \load   5, 1
        \load   6, 2
        \load   7, 3
        subs    x2, x2, #1
        b.eq    2f
        .p2align 5
1:
        UNARY_HALF \op, \load, 4, 4, 5, 6, 7, 3, 16, 17, 18
        add     x1, x1, \load_step
        UNARY_STORE \store, 0, 4, 5, 6, 7
        UNARY_HALF \op, \load, 0, 3, 16, 17, 18, 4, 5, 6, 7
        subs    x2, x2, #1
        UNARY_STORE \store, 4, 3, 16, 17, 18
        add     x0, x0, \store_step
        b.ne    1b
2:
        UNARY_HALF \op, \load, 4, 4, 5, 6, 7, 3, 16, 17, 18
        UNARY_STORE \store, 0, 4, 5, 6, 7
        \op     3
        \op     16
        \op     17
        \op     18
        UNARY_STORE \store, 4, 3, 16, 17, 18
        ret
        .size   \name, .-\name
.endm

// Vectors of doubles, or of 32-bit elements in the lower halves of 64 bits.

.macro LOAD_D a, k
        ld1d    {z\a\().d}, p0/z, [x1, #\k, mul vl]
.endm

.macro LOAD_W a, k
        ld1w    {z\a\().d}, p0/z, [x1, #\k, mul vl]
.endm

.macro STORE_D a, k
        st1d    {z\a\().d}, p0, [x0, #\k, mul vl]
.endm

.macro STORE_W a, k
        st1w    {z\a\().d}, p0, [x0, #\k, mul vl]
.endm

.macro ABS a
        fabs    z\a\().d, p0/m, z\a\().d
.endm

.macro AINT a
        frintz  z\a\().d, p0/m, z\a\().d
.endm

.macro DBLE a
        fcvt    z\a\().d, p0/m, z\a\().s
.endm

.macro REAL a
        fcvt    z\a\().s, p0/m, z\a\().d
.endm

.macro INT a
        fcvtzs  z\a\().d, p0/m, z\a\().d
.endm

        UNARY   unary_abs_kernel, ABS, LOAD_D, STORE_D, x9, x9
        UNARY   unary_aint_kernel, AINT, LOAD_D, STORE_D, x9, x9
        UNARY   unary_dble_kernel, DBLE, LOAD_W, STORE_D, x10, x9
        UNARY   unary_real_kernel, REAL, LOAD_D, STORE_W, x9, x10
        UNARY   unary_int_kernel, INT, LOAD_D, STORE_W, x9, x10

// Single elements.

.macro LOAD_SCALAR_D a, k
        ldr     d\a, [x1, #(8 * (\k))]
.endm

.macro LOAD_SCALAR_S a, k
        ldr     s\a, [x1, #(4 * (\k))]
.endm

.macro STORE_SCALAR_D a, k
        str     d\a, [x0, #(8 * (\k))]
.endm

.macro STORE_SCALAR_S a, k
        str     s\a, [x0, #(4 * (\k))]
.endm

.macro ABS_SCALAR a
        fabs    d\a, d\a
.endm

.macro AINT_SCALAR a
        frintz  d\a, d\a
.endm

.macro DBLE_SCALAR a
        fcvt    d\a, s\a
.endm

.macro REAL_SCALAR a
        fcvt    s\a, d\a
.endm

        UNARY   unary_abs_scalar_kernel, ABS_SCALAR, LOAD_SCALAR_D, STORE_SCALAR_D, #64, #64
        UNARY   unary_aint_scalar_kernel, AINT_SCALAR, LOAD_SCALAR_D, STORE_SCALAR_D, #64, #64
        UNARY   unary_dble_scalar_kernel, DBLE_SCALAR, LOAD_SCALAR_S, STORE_SCALAR_D, #32, #64
        UNARY   unary_real_scalar_kernel, REAL_SCALAR, LOAD_SCALAR_D, STORE_SCALAR_S, #64, #32

// A scalar conversion to an integer goes to a general register, from which it is stored.

.macro INT_SCALAR a
        fcvtzs  w\a, d\a
.endm

.macro STORE_SCALAR_W a, k
        str     w\a, [x0, #(4 * (\k))]
.endm

        UNARY   unary_int_scalar_kernel, INT_SCALAR, LOAD_SCALAR_D, STORE_SCALAR_W, #64, #32
