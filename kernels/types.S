// y(i) = x1(i) + c0 * x2(i) in single precision and with 2-byte integers: the loops of triad.S and triad8.S, with elements of
// these types. c0 is the first element of d0, whatever its type.

        .altmacro

// A load or store of vector \reg, \k vectors after \base; ld1w and st1w, or ld1h and st1h.
.macro VECTOR_LOAD t, reg, base, k
.ifc \t, s
        ld1w    {z\reg\().s}, p0/z, [\base, #\k, mul vl]
.else
        ld1h    {z\reg\().h}, p0/z, [\base, #\k, mul vl]
.endif
.endm

.macro VECTOR_STORE t, reg, base, k
.ifc \t, s
        st1w    {z\reg\().s}, p0, [\base, #\k, mul vl]
.else
        st1h    {z\reg\().h}, p0, [\base, #\k, mul vl]
.endif
.endm

// \x1 = \x1 + c0 * \x2
.macro ADD_PRODUCT t, x1, x2
.ifc \t, s
        fmla    z\x1\().s, p0/m, z\x2\().s, z31.s
.else
        mla     z\x1\().h, p0/m, z\x2\().h, z31.h
.endif
.endm

// Four vectors of each array per iteration, as TRIAD4 of triad.S:
//
//   uint64_t NAME(void *y, const void *x1, const void *x2, uint64_t iterations, double c0,
//                 uint64_t zero_distance, uint64_t l1_distance, uint64_t l2_distance)
//
// iterations >= 1; distances in bytes. Returns the bytes of y written.
.macro TYPED4 name, t, zero, software
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        ptrue   p0.\t
        dup     z31.\t, z0.\t[0]
        cntb    x10, all, mul #4
        cntb    x12, all, mul #3
        add     x8, x0, x12
        add     x9, x1, x12
        add     x2, x2, x12
.if \zero
        add     x7, x0, x4
        add     x12, x0, x4
        orr     x8, x8, #0x6000000000000000     // no hardware prefetch for the stores: it would read the zeroed lines
.else
        mov     x7, #0
        mov     x12, #0
.endif
        .p2align 5
1:
        VECTOR_LOAD \t, 0, x9, -3
        VECTOR_LOAD \t, 4, x2, -3
.if \zero
        dc      zva, x7
.endif
        add     x7, x7, x10
        VECTOR_LOAD \t, 1, x9, -2
        VECTOR_LOAD \t, 5, x2, -2
        subs    x3, x3, #1
        VECTOR_LOAD \t, 2, x9, -1
        VECTOR_LOAD \t, 6, x2, -1
        VECTOR_LOAD \t, 3, x9, 0
        VECTOR_LOAD \t, 7, x2, 0
        prfm    pldl1keep, [x9, x5]
        prfm    pldl1keep, [x2, x5]
.if \software == 1
        prfm    pldl2keep, [x9, x6]
        prfm    pldl2keep, [x2, x6]
.endif
        add     x9, x9, x10
        add     x2, x2, x10
        ADD_PRODUCT \t, 0, 4
        ADD_PRODUCT \t, 1, 5
        ADD_PRODUCT \t, 2, 6
        ADD_PRODUCT \t, 3, 7
        VECTOR_STORE \t, 0, x8, -3
        VECTOR_STORE \t, 1, x8, -2
        VECTOR_STORE \t, 2, x8, -1
        VECTOR_STORE \t, 3, x8, 0
        prfm    pstl1keep, [x8, x5]
.if \zero == 0 && \software == 1
        prfm    pstl2keep, [x8, x6]
.endif
        add     x8, x8, x10
        b.ne    1b
        sub     x0, x7, x12
        ret
        .size   \name, .-\name
.endm

// Eight vectors of each array per iteration, as STREAM3 of stream3.inc; the remaining arguments of TYPED4 are not used.
.macro TYPED8_HALF t, a, b, next1, next2, na, nb
        VECTOR_LOAD \t, %(\na + 0), \next1, 0
        VECTOR_LOAD \t, %(\nb + 0), \next2, 0
        ADD_PRODUCT \t, %(\a + 0), %(\b + 0)
        VECTOR_LOAD \t, %(\na + 1), \next1, 1
        VECTOR_LOAD \t, %(\nb + 1), \next2, 1
        ADD_PRODUCT \t, %(\a + 1), %(\b + 1)
        VECTOR_LOAD \t, %(\na + 2), \next1, 2
        VECTOR_LOAD \t, %(\nb + 2), \next2, 2
        ADD_PRODUCT \t, %(\a + 2), %(\b + 2)
        VECTOR_LOAD \t, %(\na + 3), \next1, 3
        VECTOR_LOAD \t, %(\nb + 3), \next2, 3
        ADD_PRODUCT \t, %(\a + 3), %(\b + 3)
.endm

.macro TYPED8_STORE t, half, a
        VECTOR_STORE \t, %(\a + 0), x0, %(4 * \half)
        VECTOR_STORE \t, %(\a + 1), x0, %(4 * \half + 1)
        VECTOR_STORE \t, %(\a + 2), x0, %(4 * \half + 2)
        VECTOR_STORE \t, %(\a + 3), x0, %(4 * \half + 3)
.endm

.macro TYPED8 name, t
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        ptrue   p0.\t
        dup     z31.\t, z0.\t[0]
        cntb    x9, all, mul #8         // bytes of one array per iteration
        mul     x8, x9, x3              // bytes in all
        add     x11, x1, x9, lsr #1
        add     x12, x2, x9, lsr #1
        VECTOR_LOAD \t, 0, x1, 0
        VECTOR_LOAD \t, 4, x2, 0
        VECTOR_LOAD \t, 1, x1, 1
        VECTOR_LOAD \t, 5, x2, 1
        VECTOR_LOAD \t, 2, x1, 2
        VECTOR_LOAD \t, 6, x2, 2
        VECTOR_LOAD \t, 3, x1, 3
        VECTOR_LOAD \t, 7, x2, 3
        subs    x3, x3, #1
        b.eq    2f
        .p2align 5
1:
        TYPED8_HALF \t, 0, 4, x11, x12, 16, 20
        add     x1, x1, x9
        add     x2, x2, x9
        TYPED8_STORE \t, 0, 0
        TYPED8_HALF \t, 16, 20, x1, x2, 0, 4
        add     x11, x11, x9
        add     x12, x12, x9
        subs    x3, x3, #1
        TYPED8_STORE \t, 1, 16
        add     x0, x0, x9
        b.ne    1b
2:
        TYPED8_HALF \t, 0, 4, x11, x12, 16, 20
        TYPED8_STORE \t, 0, 0
        ADD_PRODUCT \t, 16, 20
        ADD_PRODUCT \t, 17, 21
        ADD_PRODUCT \t, 18, 22
        ADD_PRODUCT \t, 19, 23
        TYPED8_STORE \t, 1, 16
        mov     x0, x8
        ret
        .size   \name, .-\name
.endm

        TYPED8  wide_single_kernel, s
        TYPED8  wide_short_kernel, h
        TYPED4  swpf_l1_single_kernel, s, 0, 2
        TYPED4  swpf_l1_short_kernel, h, 0, 2
        TYPED4  swpf_single_kernel, s, 0, 1
        TYPED4  swpf_short_kernel, h, 0, 1
        TYPED4  zfill_swpf_single_kernel, s, 1, 1
        TYPED4  zfill_swpf_short_kernel, h, 1, 1
