// Loops of the measuring program that no other program has.

        .text

.macro LOOP name
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
.endm

.macro END name
        subs    x0, x0, #1
        b.ne    1b
        ret
        .size   \name, .-\name
.endm

// Eight instructions of one class per iteration, independent of each other:
//
//   void class_NAME(uint64_t iterations)

.macro CLASS name, op:vararg
        LOOP    class_\name
        ptrue   p0.d
        mov     x1, #3
        movi    v0.2d, #0
        mov     z1.d, #1
        fmov    z2.d, #1.0
        .irp    n, 16,17,18,19,20,21,22,23
        CLASS_FILL \n
        .endr
        .p2align 5
1:
        .irp    n, 2,3,4,5,6,7,9,10
        CLASS_ONE \n, \op
        .endr
        END     class_\name
.endm

.macro CLASS_FILL n
        fmov    z\n\().d, #1.0
.endm

// One of the eight: \n is the number of its registers.
.macro CLASS_ONE n, op:vararg
        \op     \n
.endm

.macro DO_ADD n
        add     x\n, x\n, #1
.endm
.macro DO_ADD_SHIFTED n
        add     x\n, x\n, x1, lsl #3
.endm
.macro DO_ROR n
        ror     x\n, x\n, #7
.endm
.macro DO_MUL n
        mul     x\n, x1, x1
.endm
.macro DO_MADD n
        madd    x\n, x1, x1, x\n
.endm
.macro DO_FADD n
        fadd    z\n\().d, z0.d, z16.d
.endm
.macro DO_FMLA n
        fmla    z\n\().d, p0/m, z16.d, z17.d
.endm
.macro DO_FMLA_ELEMENT n
        fmla    v\n\().2d, v16.2d, v17.d[0]
.endm
.macro DO_INTEGER_ADD n
        add     z\n\().d, z1.d, z16.d
.endm
.macro DO_SEL n
        sel     z\n\().d, p0, z1.d, z16.d
.endm
.macro DO_COMPARE n
        cmpeq   p1.d, p0/z, z1.d, z16.d
.endm
.macro DO_WHILELO n
        whilelo p1.d, xzr, x1
.endm
.macro DO_DUP n
        dup     z\n\().d, x1
.endm
.macro DO_CONVERT n
        fcvtzs  z\n\().d, p0/m, z16.d
.endm
.macro DO_DIVIDE n
        fdiv    z\n\().d, p0/m, z\n\().d, z16.d
.endm

        CLASS   add, DO_ADD
        CLASS   add_shifted, DO_ADD_SHIFTED
        CLASS   ror, DO_ROR
        CLASS   mul, DO_MUL
        CLASS   madd, DO_MADD
        CLASS   fadd, DO_FADD
        CLASS   fmla, DO_FMLA
        CLASS   fmla_element, DO_FMLA_ELEMENT
        CLASS   integer_add, DO_INTEGER_ADD
        CLASS   sel, DO_SEL
        CLASS   compare, DO_COMPARE
        CLASS   whilelo, DO_WHILELO
        CLASS   dup, DO_DUP
        CLASS   convert, DO_CONVERT
        CLASS   divide, DO_DIVIDE

// void chain_add(uint64_t iterations): 128 additions, each of which needs the one before.
        LOOP    chain_add
        mov     x1, #0
        .p2align 5
1:
        .rept   128
        add     x1, x1, #1
        .endr
        END     chain_add

// A value passes through one place in memory: a load, an addition and a store.
//
//   void forward_NAME(uint64_t iterations, void *place)
        LOOP    forward_early
        .p2align 5
1:
        ldr     x2, [x1]
        add     x2, x2, #1
        str     x2, [x1]
        END     forward_early

// The load's address needs the value that is stored, so that the load comes when the data of the store do.
.macro FORWARD_LATE delay
        str     x2, [x1]
        and     x3, x2, #1
        .rept   \delay
        lsr     x3, x3, #1
        .endr
        ldr     x2, [x1, x3]
.endm

        LOOP    forward_together
        mov     x2, #0
        .p2align 5
1:
        .rept   16
        FORWARD_LATE 1
        .endr
        END     forward_together

// The load comes later and later: up to some delay it comes too early, and is sent again.
.macro FORWARD_DELAYED address, adds, products
        mov     x4, x2
        and     x3, x2, #1
        .rept   \adds
        add     x4, x4, #0
        .endr
        .rept   \products
        mul     x4, x4, x5
        .endr
        .rept   \address
        lsr     x3, x3, #1
        .endr
        str     x4, [x1]
        ldr     x2, [x1, x3]
.endm

        LOOP    forward_delays
        mov     x2, #0
        mov     x5, #1
        .p2align 5
1:
        .irp    delay, 1,2,3,4,5,6,7,8,9,10,11,12,13,14
        FORWARD_DELAYED \delay, 0, 0
        FORWARD_DELAYED \delay, 1, 0
        FORWARD_DELAYED \delay, 2, 0
        FORWARD_DELAYED \delay, 0, 1
        FORWARD_DELAYED \delay, 1, 1
        .endr
        END     forward_delays

// Through a whole SVE register, whose data come 24 to 43 cycles after the addresses: logical operations take 4 cycles, additions 9.
// All addresses need the value that was loaded before, so that each round begins alike. All values are zero.
.macro FORWARD_VECTOR logical, additions
        add     x4, x1, x3
        ldr     z0, [x4, #4, mul vl]
        .rept   \logical
        eor     z0.d, z0.d, z1.d
        .endr
        .rept   \additions
        fadd    z0.d, z0.d, z1.d
        .endr
        str     z0, [x4]
        ldr     z2, [x4]
        fmov    x3, d2
.endm

        LOOP    forward_vector
        mov     z1.d, #0
        mov     x3, #0
        .p2align 5
1:
        FORWARD_VECTOR 6, 0
        FORWARD_VECTOR 4, 1
        FORWARD_VECTOR 2, 2
        FORWARD_VECTOR 0, 3
        FORWARD_VECTOR 7, 0
        FORWARD_VECTOR 5, 1
        FORWARD_VECTOR 3, 2
        FORWARD_VECTOR 1, 3
        FORWARD_VECTOR 8, 0
        FORWARD_VECTOR 6, 1
        FORWARD_VECTOR 4, 2
        FORWARD_VECTOR 2, 3
        FORWARD_VECTOR 9, 0
        FORWARD_VECTOR 7, 1
        FORWARD_VECTOR 5, 2
        FORWARD_VECTOR 3, 3
        FORWARD_VECTOR 10, 0
        FORWARD_VECTOR 8, 1
        FORWARD_VECTOR 6, 2
        FORWARD_VECTOR 4, 3
        END     forward_vector

// void zero_NAME(uint64_t lines, void *to): a line per iteration.
        LOOP    zero_alone
1:
        dc      zva, x1
        add     x1, x1, #256
        END     zero_alone

.macro STORE_LINE
        .irp    k, 0,1,2,3
        st1d    {z0.d}, p0, [x1, #\k, mul vl]
        .endr
.endm

        LOOP    zero_store
        ptrue   p0.d
        fmov    z0.d, #1.0
1:
        STORE_LINE
        add     x1, x1, #256
        END     zero_store

        LOOP    zero_both
        ptrue   p0.d
        fmov    z0.d, #1.0
1:
        dc      zva, x1
        STORE_LINE
        add     x1, x1, #256
        END     zero_both

// void half_NAME(uint64_t lines, void *to): stores a line in halves of vectors, or in whole ones.
        LOOP    half_half
        ptrue   p0.d, vl4
        fmov    z0.d, #1.0
1:
        .irp    k, 0,1,2,3,4,5,6,7
        add     x2, x1, #(32 * \k)
        st1d    {z0.d}, p0, [x2]
        .endr
        add     x1, x1, #256
        END     half_half

        LOOP    half_whole
        ptrue   p0.d
        fmov    z0.d, #1.0
1:
        .irp    k, 0,1,2,3
        add     x2, x1, #(64 * \k)
        st1d    {z0.d}, p0, [x2]
        .endr
        add     x1, x1, #256
        END     half_whole

// void byte_stores(uint64_t lines, void *to): a byte in each line.
        LOOP    byte_stores
1:
        strb    w0, [x1]
        add     x1, x1, #256
        END     byte_stores

// void run_NAME(uint64_t lines, void *to), turns_NAME: stores of a few bytes fill two blocks of 16 bytes per iteration, one block after the
// other, or both in turns.
.macro STORE_RUN name, store, register, bytes
        LOOP    run_\name
        lsl     x0, x0, #3
1:
        STORE_FROM \store, \register, \bytes, 0, 0, 0
        STORE_FROM \store, \register, \bytes, 0, 16, 0
        add     x1, x1, #32
        END     run_\name

        LOOP    turns_\name
        lsl     x0, x0, #3
1:
        STORE_FROM \store, \register, \bytes, 0, 0, 1
        add     x1, x1, #32
        END     turns_\name
.endm

// Stores to a block from \at on, and to the next one after each of them if \both.
.macro STORE_FROM store, register, bytes, at, block, both
        \store   \register, [x1, #(\block + \at)]
.if \both
        \store   \register, [x1, #(16 + \at)]
.endif
.if \at + \bytes < 16
        STORE_FROM \store, \register, \bytes, (\at + \bytes), \block, \both
.endif
.endm

        STORE_RUN 1, strb, w2, 1
        STORE_RUN 2, strh, w2, 2
        STORE_RUN 4, str, w2, 4
        STORE_RUN 8, str, x2, 8

// void load_lines(uint64_t lines, const void *from): loads a line with four vectors.
        LOOP    load_lines
        ptrue   p0.d
1:
        .irp    k, 0,1,2,3
        ld1d    {z\k\().d}, p0/z, [x1, #\k, mul vl]
        .endr
        add     x1, x1, #256
        END     load_lines

// void load_lines_prefetched(uint64_t lines, const void *from, uint64_t distance): with a prefetch to L1 `distance` bytes ahead.
        LOOP    load_lines_prefetched
        ptrue   p0.d
1:
        .irp    k, 0,1,2,3
        ld1d    {z\k\().d}, p0/z, [x1, #\k, mul vl]
        .endr
        prfm    pldl1keep, [x1, x2]
        add     x1, x1, #256
        END     load_lines_prefetched

// void load_line_ends(uint64_t lines, const void *from): one load of eight bytes in each line.
        LOOP    load_line_ends
1:
        ldr     x3, [x1]
        add     x1, x1, #256
        END     load_line_ends

// The list of benchmarks, without its columns for people.
        .section .rodata
        .globl  collect_list
collect_list:
        .incbin "build/collect.list"
        .byte   0
