// y(i) = x1(i) + c0 * x2(i) through pointers, eight vectors per iteration, each of which loads the operands of the next iteration, as
// counted on the machine: 2,040 of 2,048 FMA (2,034 of the strided form) have a MOVPRFX, since the operand is in the register that is loaded next, and
// there is one branch per eight vectors. In addition to 16 loads, 8 FMA, 8 stores and 8 MOVPRFX, an iteration has
//
//   contiguous  9 instructions, as counted: two pointers for each array, two counters, branch
//   strided     51 instructions, as counted (2,904 and 13,661 per sweep except those of region.S): for each access an address
//               and an offset, which has no displacement; counter, branch, and one more counter
//
// Their order is ours; that of the strided form follows commit counts: two vectors alternate, as the many cycles in which two and four
// instructions commit suggest.
//
//   void contiguous_kernel(void *y, const void *x1, const void *x2, uint64_t iterations, uint64_t stride, double c0)
//   void strided_kernel(the same)
//
// `iterations` of eight vectors, 1 or more; `stride` in elements, 1 for the contiguous one.

        .text

.macro LOADS_contiguous k, factor
.if \k < 4
        ld1d    {z\k\().d}, p0/z, [x1, #\k, mul vl]
        ld1d    {z\factor\().d}, p0/z, [x2, #\k, mul vl]
.else
        ld1d    {z\k\().d}, p0/z, [x5, #\k - 4, mul vl]
        ld1d    {z\factor\().d}, p0/z, [x6, #\k - 4, mul vl]
.endif
.endm
.macro STORE_contiguous k, result
.if \k < 4
        st1d    {z\result\().d}, p0, [x0, #\k, mul vl]
.else
        st1d    {z\result\().d}, p0, [x7, #\k - 4, mul vl]
.endif
.endm
.macro NEXT_contiguous
        add     x1, x1, x12
        add     x2, x2, x12
        add     x5, x5, x12
        add     x6, x6, x12
.endm
.macro STORED_contiguous
        add     x0, x0, x12
        add     x7, x7, x12
.endm

.macro LOADS_strided k, factor
        add     x16, x1, x5
        add     x5, x5, x12
        ld1d    {z\k\().d}, p0/z, [x16, z24.d, lsl #3]
        add     x17, x2, x6
        add     x6, x6, x12
        ld1d    {z\factor\().d}, p0/z, [x17, z24.d, lsl #3]
.endm
.macro STORE_strided k, result
        add     x15, x0, x7
        add     x7, x7, x12
        st1d    {z\result\().d}, p0, [x15, z24.d, lsl #3]
.endm
.macro NEXT_strided
.endm
.macro STORED_strided
.endm

// \what for each of the eight vectors: its number, the register of its factor, that of its result.
.macro EIGHT what, way
        \what   \way, 0, 8, 16
        \what   \way, 1, 9, 17
        \what   \way, 2, 10, 18
        \what   \way, 3, 11, 19
        \what   \way, 4, 12, 20
        \what   \way, 5, 13, 21
        \what   \way, 6, 14, 22
        \what   \way, 7, 15, 23
.endm
.macro FIRST way, k, factor, result
        LOADS_\way \k, \factor
.endm
.macro FMA k, factor, result
        movprfx z\result, z\k
        fmla    z\result\().d, p0/m, z\factor\().d, z31.d
.endm
.macro MIDDLE way, k, factor, result
        FMA     \k, \factor, \result
        LOADS_\way \k, \factor
        STORE_\way \k, \result
.endm
.macro PAIR k, factor, result, l, next, second
        FMA     \k, \factor, \result
        FMA     \l, \next, \second
        STORE_strided \k, \result
        STORE_strided \l, \second
        LOADS_strided \k, \factor
        LOADS_strided \l, \next
.endm
.macro MIDDLES_contiguous
        EIGHT   MIDDLE, contiguous
.endm
.macro MIDDLES_strided
        PAIR    0, 8, 16, 1, 9, 17
        PAIR    2, 10, 18, 3, 11, 19
        PAIR    4, 12, 20, 5, 13, 21
        PAIR    6, 14, 22, 7, 15, 23
.endm
.macro LAST way, k, factor, result
        fmla    z\k\().d, p0/m, z\factor\().d, z31.d
        STORE_\way \k, \k
.endm

.macro KERNEL way
        .globl  \way\()_kernel
        .type   \way\()_kernel, %function
        .p2align 6
\way\()_kernel:
        ptrue   p0.d
        dup     z31.d, z0.d[0]
        mov     x9, #0
.ifc \way, contiguous
        cntb    x12, all, mul #8
        addvl   x5, x1, #4
        addvl   x6, x2, #4
        addvl   x7, x0, #4
.else
        index   z24.d, #0, x4
        cntb    x12
        mul     x12, x12, x4
        mov     x5, #0
        mov     x6, #0
        mov     x7, #0
.endif
        EIGHT   FIRST, \way
        NEXT_\way
        subs    x3, x3, #1
        b.eq    2f
        .p2align 5
1:
        MIDDLES_\way
        NEXT_\way
        STORED_\way
        add     x9, x9, #64
        subs    x3, x3, #1
        b.ne    1b
2:
        EIGHT   LAST, \way
        ret
        .size   \way\()_kernel, .-\way\()_kernel
.endm

        KERNEL  contiguous
        KERNEL  strided
