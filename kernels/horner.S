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

// Eight rows interleaved, if rows are independent (m = 0).
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

// Software-pipelined like the compiler's loop (m = 0): every 21 cycles, its initiation interval, two rows
// start. For the first of them, the load is at 0, the multiply-adds are at 11, 20, … (11 and 9 cycles are the
// latencies), the store after the last one; the second row is one cycle later. Instructions are in the order of their
// times modulo 21, those of one cycle in the order: multiply-adds, load, store. A row is in progress for 4.4 intervals at
// most; a value and a sum are live for no more than 84 cycles = 4 intervals, so they have 4 registers each (z0–z7,
// z8–z15), and the loop is four intervals, eight rows, long.

// Instructions `slot` cycles after the start of interval `now` (number `now` modulo 4); intervals below `oldest` and
// above `newest` start no rows.
.macro HORNER_SLOT degree, slot, now, oldest, newest
.irp row, 0, 1
.irp k, 1, 2, 3, 4, 5, 6, 7, 8, 9
.if \k <= \degree
        HORNER_DUE HORNER_PIPELINED_STEP, %(11 + 9 * (\k - 1) + \row), \slot, \now, \oldest, \newest, \row, \k
.endif
.endr
        HORNER_DUE HORNER_PIPELINED_LOAD, \row, \slot, \now, \oldest, \newest, \row, 0
        HORNER_DUE HORNER_PIPELINED_STORE, %(11 + 9 * \degree + \row), \slot, \now, \oldest, \newest, \row, 0
.endr
.endm

// `what`, for the row that started in the matching interval, if its `time` is at this slot.
.macro HORNER_DUE what, time, slot, now, oldest, newest, row, k
.if (\time) % 21 == \slot
.if (\now - (\time) / 21 >= \oldest) && (\now - (\time) / 21 <= \newest)
        \what  %(2 * ((\now - (\time) / 21) & 3) + \row), \k
.endif
.endif
.endm

.macro HORNER_PIPELINED_LOAD value, k
        ld1d    {z\value\().d}, p0/z, [x1]
        add     x1, x1, x9
.endm

.macro HORNER_PIPELINED_STEP value, k
.if \k == 1
        HORNER_COPY %(8 + \value)
.endif
        HORNER_STEP \value, %(8 + \value), %(25 - \k)
.endm

.macro HORNER_COPY sum
        movprfx z\sum, z25
.endm

.macro HORNER_PIPELINED_STORE value, k
        HORNER_PIPELINED_ST1D %(8 + \value)
        add     x0, x0, x9
.endm

.macro HORNER_PIPELINED_ST1D sum
        st1d    {z\sum\().d}, p0, [x0]
.endm

.macro HORNER_INTERVALS degree, oldest, newest, now:vararg
.irp interval, \now
.irp slot, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20
        HORNER_SLOT \degree, \slot, \interval, \oldest, \newest
.endr
.endr
.endm

.macro HORNER_PIPELINED degree
        .globl  horner\degree\()_pipelined_kernel
        .type   horner\degree\()_pipelined_kernel, %function
        .p2align 6
horner\degree\()_pipelined_kernel:
        stp     d8, d9, [sp, #-64]!
        stp     d10, d11, [sp, #16]
        stp     d12, d13, [sp, #32]
        stp     d14, d15, [sp, #48]
        HORNER_START \degree
        // Prologue: the first rows.
        HORNER_INTERVALS \degree, 4, 7, 4, 5, 6, 7
        subs    x3, x3, #1
        b.eq    2f
        .p2align 5
1:
        HORNER_INTERVALS \degree, 0, 7, 4, 5, 6, 7
        subs    x3, x3, #1
        b.ne    1b
2:
        // Epilogue: the last rows.
        HORNER_INTERVALS \degree, 0, 3, 4, 5, 6, 7, 8
        ldp     d14, d15, [sp, #48]
        ldp     d12, d13, [sp, #32]
        ldp     d10, d11, [sp, #16]
        ldp     d8, d9, [sp], #64
        ret
        .size   horner\degree\()_pipelined_kernel, .-horner\degree\()_pipelined_kernel
.endm

        .altmacro
.irp degree, 1, 2, 3, 4, 5, 6, 7, 8, 9
        HORNER  \degree
        HORNER_INTERLEAVED \degree
        HORNER_PIPELINED \degree
.endr
