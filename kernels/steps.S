// Loops of one operation: dependent chains, and loads or stores over a block that stays in the L1 cache.
//
//   T NAME(void *block, uint64_t rounds, …)       rounds >= 1
//
// The functions' further arguments and results are those of steps.c.

// \op 32 times per round, each with the result of the one before.
.macro CHAIN name, op:vararg
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        ptrue   p0.d
        mov     z0.d, #0
        mov     x0, #1
        fmov    z1.d, #1.0
        fmov    z2.d, #1.0
        mov     x2, #3
        .p2align 5
1:
        .rept   32
        \op
        .endr
        subs    x1, x1, #1
        b.ne    1b
        ret
        .size   \name, .-\name
.endm

        CHAIN   steps_add_kernel, add x0, x0, #1
        CHAIN   steps_mul_kernel, mul x0, x0, x2
        CHAIN   steps_fma_kernel, fmla z0.d, p0/m, z1.d, z2.d

// 256 vectors per round, one instruction stream without a loop.
.macro PASS name, times, body
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        ptrue   p0.b
        cntb    x9
        cntb    x11, all, mul #4
1:
        mov     x2, x0
        .rept   \times
        \body
        .endr
        subs    x1, x1, #1
        b.ne    1b
        ret
        .size   \name, .-\name
.endm

.macro LOAD_BY_POINTER
        ld1b    {z0.b}, p0/z, [x2]
        add     x2, x2, x9
.endm

.macro LOAD_FOUR
        ld1b    {z0.b}, p0/z, [x2]
        ld1b    {z1.b}, p0/z, [x2, #1, mul vl]
        ld1b    {z2.b}, p0/z, [x2, #2, mul vl]
        ld1b    {z3.b}, p0/z, [x2, #3, mul vl]
        add     x2, x2, x11
.endm

        PASS    steps_load_kernel, 256, LOAD_BY_POINTER
        PASS    steps_load4_kernel, 64, LOAD_FOUR

// Four kilobytes per round, line by line of 256 bytes: with or without DC ZVA, then stored as vectors.
.macro STORES name, zero
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        ptrue   p0.b
        mov     z0.b, #1
        cntb    x11, all, mul #4
1:
        mov     x2, x0
        add     x3, x0, #4096
        .p2align 5
2:
.if \zero
        dc      zva, x2
.endif
        add     x4, x2, #256
3:
        st1b    {z0.b}, p0, [x2]
        st1b    {z0.b}, p0, [x2, #1, mul vl]
        st1b    {z0.b}, p0, [x2, #2, mul vl]
        st1b    {z0.b}, p0, [x2, #3, mul vl]
        add     x2, x2, x11
        cmp     x2, x4
        b.ne    3b
        cmp     x2, x3
        b.ne    2b
        subs    x1, x1, #1
        b.ne    1b
        ret
        .size   \name, .-\name
.endm

        STORES  steps_store_kernel, 0
        STORES  steps_zero_kernel, 1
