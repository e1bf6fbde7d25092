// y(s*i) = x1(l*i) + c0 * x2(l*i), each side contiguous or through index vectors; four vectors per iteration, 21
// instructions: 8 loads, 4 FMA, 4 stores, 3 pointers, 1 counter, 1 branch.
//
//   void NAME(void *y, const void *x1, const void *x2, uint64_t iterations, uint64_t load_stride,
//             uint64_t store_stride, T c0)
//
// Strides l and s in elements, 1 for a contiguous side; iterations >= 1.
//
// Of the macros' arguments, t is the element (d or s), w the general register of its width (x or w), shift the log2 of
// its size, extend how an index vector becomes an offset.

// Index vectors z\a .. z\d of the elements that four vectors touch, and \bytes to the next four.
.macro INDEX_VECTORS t, w, shift, count, stride, bytes, a, b, c, d
        \count  x9
        mul     x9, x9, x\stride
        dup     z30.\t, \w\()9
        index   z\a\().\t, #0, \w\stride
        add     z\b\().\t, z\a\().\t, z30.\t
        add     z\c\().\t, z\b\().\t, z30.\t
        add     z\d\().\t, z\c\().\t, z30.\t
        lsl     \bytes, x9, #2 + \shift
.endm

.macro GATHER name, t, w, shift, count, ld, st, extend, gather, scatter

.macro LOAD reg, base, k, offsets
.if \gather
        \ld     {\reg}, p0/z, [\base, \offsets, \extend]
.else
        \ld     {\reg}, p0/z, [\base, #\k, mul vl]
.endif
.endm

.macro STORE reg, k, offsets
.if \scatter
        \st     {\reg}, p0, [x0, \offsets, \extend]
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
        INDEX_VECTORS \t, \w, \shift, \count, 4, x10, 20, 21, 22, 23
        INDEX_VECTORS \t, \w, \shift, \count, 5, x11, 24, 25, 26, 27
        .p2align 5
1:
        LOAD    z0.\t, x1, 0, z20.\t
        LOAD    z4.\t, x2, 0, z20.\t
        LOAD    z1.\t, x1, 1, z21.\t
        LOAD    z5.\t, x2, 1, z21.\t
        LOAD    z2.\t, x1, 2, z22.\t
        LOAD    z6.\t, x2, 2, z22.\t
        LOAD    z3.\t, x1, 3, z23.\t
        LOAD    z7.\t, x2, 3, z23.\t
        add     x1, x1, x10
        add     x2, x2, x10
        fmla    z0.\t, p0/m, z4.\t, z31.\t
        fmla    z1.\t, p0/m, z5.\t, z31.\t
        fmla    z2.\t, p0/m, z6.\t, z31.\t
        fmla    z3.\t, p0/m, z7.\t, z31.\t
        subs    x3, x3, #1
        STORE   z0.\t, 0, z24.\t
        STORE   z1.\t, 1, z25.\t
        STORE   z2.\t, 2, z26.\t
        STORE   z3.\t, 3, z27.\t
        add     x0, x0, x11
        b.ne    1b
        ret
        .size   \name, .-\name

        .purgem LOAD
        .purgem STORE
.endm

.macro GATHER_TYPE suffix, t, w, shift, count, ld, st, extend
        GATHER  contiguous_contiguous_\suffix\()_kernel, \t, \w, \shift, \count, \ld, \st, "\extend", 0, 0
        GATHER  contiguous_scatter_\suffix\()_kernel, \t, \w, \shift, \count, \ld, \st, "\extend", 0, 1
        GATHER  gather_contiguous_\suffix\()_kernel, \t, \w, \shift, \count, \ld, \st, "\extend", 1, 0
        GATHER  gather_scatter_\suffix\()_kernel, \t, \w, \shift, \count, \ld, \st, "\extend", 1, 1
.endm

        GATHER_TYPE double, d, x, 3, cntd, ld1d, st1d, "lsl #3"
        GATHER_TYPE single, s, w, 2, cntw, ld1w, st1w, "uxtw #2"
