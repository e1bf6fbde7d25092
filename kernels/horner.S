// One pass of y(:,j) = c0 + y(:,j-m) * (c1 + y(:,j-m) * (c2 + … )) over rows of one vector each, DEGREE FMAs per row.
//
//   void NAME(double *store, const double *load, const double *coefficients, uint64_t iterations)
//
// `load` is `store` for m = 0 and one vector before it for m = 1; iterations >= 1.

// z25 = highest coefficient, z24 the next one, and so on; x9 = bytes of one row.
.macro HORNER_START degree
        ptrue   p0.d
        cntb    x9
.irp k, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
.if \k <= \degree
        HORNER_COEFFICIENT %(25 - \k), %(8 * (\degree - \k))
.endif
.endr
.endm

.macro HORNER_COEFFICIENT reg, offset
        ld1rd   {z\reg\().d}, p0/z, [x2, #\offset]
.endm

// Rows one after the other, two per iteration: 15 instructions per row with 9 FMAs. The hardware may overlap the rows
// when their addresses allow it.
.macro HORNER_ROW degree, in, sum
        ld1d    {z\in\().d}, p0/z, [x1]
        add     x1, x1, x9
        movprfx z\sum, z25
.irp k, 1, 2, 3, 4, 5, 6, 7, 8, 9
.if \k <= \degree
        HORNER_STEP \in, \sum, %(25 - \k)
.endif
.endr
        st1d    {z\sum\().d}, p0, [x0]
        add     x0, x0, x9
.endm

.macro HORNER_STEP in, sum, coefficient
        fmad    z\sum\().d, p0/m, z\in\().d, z\coefficient\().d
.endm

.macro HORNER degree
        .globl  horner\degree\()_kernel
        .type   horner\degree\()_kernel, %function
        .p2align 6
horner\degree\()_kernel:
        HORNER_START \degree
        .p2align 5
1:
        HORNER_ROW \degree, 0, 1
        HORNER_ROW \degree, 2, 3
        subs    x3, x3, #1
        b.ne    1b
        ret
        .size   horner\degree\()_kernel, .-horner\degree\()_kernel
.endm

// Eight rows interleaved, as software pipelining arranges them when it is told that rows are independent (m = 0).
.macro HORNER_INTERLEAVED degree
        .globl  horner\degree\()_interleaved_kernel
        .type   horner\degree\()_interleaved_kernel, %function
        .p2align 6
horner\degree\()_interleaved_kernel:
        stp     d8, d9, [sp, #-64]!
        stp     d10, d11, [sp, #16]
        stp     d12, d13, [sp, #32]
        stp     d14, d15, [sp, #48]
        HORNER_START \degree
        lsl     x9, x9, #3
        .p2align 5
1:
.irp r, 0, 1, 2, 3, 4, 5, 6, 7
        HORNER_LOAD \r
.endr
        add     x1, x1, x9
.irp r, 8, 9, 10, 11, 12, 13, 14, 15
        movprfx z\r, z25
        HORNER_STEP %(\r - 8), \r, 24
.endr
.irp k, 2, 3, 4, 5, 6, 7, 8, 9
.if \k <= \degree
.irp r, 0, 1, 2, 3, 4, 5, 6, 7
        HORNER_STEP \r, %(\r + 8), %(25 - \k)
.endr
.endif
.endr
.irp r, 0, 1, 2, 3, 4, 5, 6, 7
        HORNER_STORE \r, %(\r + 8)
.endr
        add     x0, x0, x9
        subs    x3, x3, #1
        b.ne    1b
        ldp     d14, d15, [sp, #48]
        ldp     d12, d13, [sp, #32]
        ldp     d10, d11, [sp, #16]
        ldp     d8, d9, [sp], #64
        ret
        .size   horner\degree\()_interleaved_kernel, .-horner\degree\()_interleaved_kernel
.endm

.macro HORNER_LOAD row
        ld1d    {z\row\().d}, p0/z, [x1, #\row, mul vl]
.endm

.macro HORNER_STORE row, sum
        st1d    {z\sum\().d}, p0, [x0, #\row, mul vl]
.endm

        .altmacro
.irp degree, 1, 2, 3, 4, 5, 6, 7, 8, 9
        HORNER  \degree
        HORNER_INTERLEAVED \degree
.endr
