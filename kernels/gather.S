// y(s*i) = x1(l*i) + c0 * x2(l*i), each side contiguous or through an index vector; four vectors per iteration: 8 loads,
// 4 FMA, 4 stores, 1 counter, 1 branch and additions to pointers: one per contiguous array, one per
// indexed access, whose address has no displacement. If strides are not known at compile time, an indexed
// access has two, for its address and for its offset, as the counts of such a loop on the machine show (10.7 instructions per
// vector with two gathers and a scatter).
//
//   void NAME(void *y, const void *x1, const void *x2, uint64_t iterations, uint64_t load_stride,
//             uint64_t store_stride, T c0)
//
// Strides l and s in elements, 1 for a contiguous side; iterations >= 1.
//
// Of the macros' arguments, t is the element (d or s), w the general register of its width (x or w), shift the log2 of
// its size, extend how an index vector becomes an offset.

// The index vector z\index of a side, \bytes from one vector to the next.
.macro INDEX_VECTOR t, w, shift, count, stride, bytes, index
        \count  \bytes
        mul     \bytes, \bytes, x\stride
        index   z\index\().\t, #0, \w\stride
        lsl     \bytes, \bytes, #\shift
.endm

.macro GATHER name, t, w, shift, count, ld, st, extend, gather, scatter, unknown

.macro LOAD reg, base, k, at, offset
.if \gather && \unknown
        add     \at, \base, \offset
        add     \offset, \offset, x10
        \ld     {\reg}, p0/z, [\at, z20.\t, \extend]
.elseif \gather
        \ld     {\reg}, p0/z, [\base, z20.\t, \extend]
        add     \base, \base, x10
.else
        \ld     {\reg}, p0/z, [\base, #\k, mul vl]
.endif
.endm

.macro STORE reg, k
.if \scatter && \unknown
        add     x16, x0, x15
        add     x15, x15, x11
        \st     {\reg}, p0, [x16, z21.\t, \extend]
.elseif \scatter
        \st     {\reg}, p0, [x0, z21.\t, \extend]
        add     x0, x0, x11
.else
        \st     {\reg}, p0, [x0, #\k, mul vl]
.endif
.endm

        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        ptrue   p0.\t
        dup     z31.\t, z0.\t[0]
        cntb    x12, all, mul #4
        INDEX_VECTOR \t, \w, \shift, \count, 4, x10, 20
        INDEX_VECTOR \t, \w, \shift, \count, 5, x11, 21
        mov     x13, #0
        mov     x14, #0
        mov     x15, #0
        .p2align 5
1:
.if \unknown
        LOAD    z0.\t, x1, 0, x16, x13
        LOAD    z4.\t, x2, 0, x17, x14
        LOAD    z1.\t, x1, 1, x16, x13
        LOAD    z5.\t, x2, 1, x17, x14
        LOAD    z2.\t, x1, 2, x16, x13
        LOAD    z6.\t, x2, 2, x17, x14
        LOAD    z3.\t, x1, 3, x16, x13
        LOAD    z7.\t, x2, 3, x17, x14
.if \gather == 0
        add     x1, x1, x12
        add     x2, x2, x12
.endif
        fmla    z0.\t, p0/m, z4.\t, z31.\t
        fmla    z1.\t, p0/m, z5.\t, z31.\t
        fmla    z2.\t, p0/m, z6.\t, z31.\t
        fmla    z3.\t, p0/m, z7.\t, z31.\t
        STORE   z0.\t, 0
        STORE   z1.\t, 1
        STORE   z2.\t, 2
        STORE   z3.\t, 3
        subs    x3, x3, #1
.else
        LOAD    z0.\t, x1, 0
        LOAD    z4.\t, x2, 0
        LOAD    z1.\t, x1, 1
        LOAD    z5.\t, x2, 1
        LOAD    z2.\t, x1, 2
        LOAD    z6.\t, x2, 2
        LOAD    z3.\t, x1, 3
        LOAD    z7.\t, x2, 3
.if \gather == 0
        add     x1, x1, x12
        add     x2, x2, x12
.endif
        fmla    z0.\t, p0/m, z4.\t, z31.\t
        fmla    z1.\t, p0/m, z5.\t, z31.\t
        fmla    z2.\t, p0/m, z6.\t, z31.\t
        fmla    z3.\t, p0/m, z7.\t, z31.\t
        subs    x3, x3, #1
        STORE   z0.\t, 0
        STORE   z1.\t, 1
        STORE   z2.\t, 2
        STORE   z3.\t, 3
.endif
.if \scatter == 0
        add     x0, x0, x12
.endif
        b.ne    1b
        ret
        .size   \name, .-\name

        .purgem LOAD
        .purgem STORE
.endm

.macro GATHER_TYPE suffix, t, w, shift, count, ld, st, extend
        GATHER  contiguous_contiguous_\suffix\()_kernel, \t, \w, \shift, \count, \ld, \st, "\extend", 0, 0, 0
        GATHER  contiguous_scatter_\suffix\()_kernel, \t, \w, \shift, \count, \ld, \st, "\extend", 0, 1, 0
        GATHER  gather_contiguous_\suffix\()_kernel, \t, \w, \shift, \count, \ld, \st, "\extend", 1, 0, 0
        GATHER  gather_scatter_\suffix\()_kernel, \t, \w, \shift, \count, \ld, \st, "\extend", 1, 1, 0
        GATHER  contiguous_scatter_unknown_\suffix\()_kernel, \t, \w, \shift, \count, \ld, \st, "\extend", 0, 1, 1
        GATHER  gather_contiguous_unknown_\suffix\()_kernel, \t, \w, \shift, \count, \ld, \st, "\extend", 1, 0, 1
        GATHER  gather_scatter_unknown_\suffix\()_kernel, \t, \w, \shift, \count, \ld, \st, "\extend", 1, 1, 1
.endm

        GATHER_TYPE double, d, x, 3, cntd, ld1d, st1d, "lsl #3"
        GATHER_TYPE single, s, w, 2, cntw, ld1w, st1w, "uxtw #2"
