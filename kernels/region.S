// Overhead of a vendor's OpenMP library per parallel region, in addition to waiting at the hardware barrier: not its code,
// which is not public, but the same amount of work, as counted beside the loops of a program that is one parallel loop
// (triadt of the Fugaku workbooks, whose loops are known exactly).
//
// A thread follows a chain of places in its data, of two lines each: the first has the address of the second, which has that of
// the next place. Between two visits the program's arrays pass through L1D and evict these lines. Counts per
// thread and region, in addition to the loop:
//
//   each thread      600 instructions, 159 loads, 45 stores, 115 branches, 57 lines fetched into L1D, 12 of them before and after
//                    (this program's own), and 2,700 cycles of waiting for integer loads, 1,600 of them for L2:
//                    22 places (region_join), 27 instructions each
//   first thread   1,841 instructions, 532 loads, 310 stores, 266 branches, 50 lines; 1,485 cycles, 640 of them for L2, in which
//                    the others wait for it: 25 places (region_fork), 74 instructions each
//
// In the first line are: at 0 the address of the second, at 40 the number 40; in the second at 0 the address of the next place, at 8
// and 40 the number 40; in both from 48, stored values.
//
//   void region_join(void *place, uint64_t places)
//   void region_fork(void *place, uint64_t places)

        .text

// From x0, the place, to x4, the next one; each load depends on the one before: seven loads, 11 instructions.
.macro FOLLOW
        ldr     x2, [x0]
        ldr     x3, [x2, #8]
        ldr     x5, [x2, x3]
        and     x5, x5, #0xf8
        ldr     x6, [x0, x5]
        and     x6, x6, #0xf8
        ldr     x7, [x2, x6]
        ldr     x4, [x2]
        sub     x8, x7, x3
        add     x4, x4, x8
        ldr     x9, [x0, x7]
.endm

        .globl  region_join
        .type   region_join, %function
        .p2align 6
region_join:
1:
        FOLLOW
        cbz     x9, 2f                  // never
        add     x10, x9, x6
        eor     x11, x10, x5
        str     x11, [x0, #48]
        tbnz    x4, #0, 2f              // never
        add     x12, x11, x9
        and     x12, x12, #0xffff
        orr     x13, x12, #1
        cbz     x13, 2f                 // never
        str     x13, [x2, #56]
        add     x14, x13, x12
        tbnz    x2, #0, 2f              // never
        eor     x15, x14, x11
        mov     x0, x4
        subs    x1, x1, #1
        b.ne    1b
2:
        ret
        .size   region_join, .-region_join

// A set-up step: two dependent loads and one more, stores in both lines, branches: 14 instructions.
.macro SET_UP at
        ldr     x9, [x0, x9]
        ldr     x10, [x0, #\at]
        and     x9, x9, #0xf8
        cbz     x9, 2f                  // never
        eor     x11, x10, x5
        add     x12, x10, x11
        ldr     x13, [x2, x9]
        str     x12, [x0, #\at]
        eor     x14, x13, x12
        cbz     x13, 2f                 // never
        str     x14, [x0, #\at + 8]
        add     x15, x14, x10
        orr     x16, x15, x12
        str     x16, [x2, #\at + 8]
.endm

        .globl  region_fork
        .type   region_fork, %function
        .p2align 6
region_fork:
1:
        FOLLOW
        SET_UP  64
        SET_UP  80
        SET_UP  96
        SET_UP  112
        cbz     x4, 2f                  // never
        tbnz    x4, #0, 2f              // never
        eor     x15, x15, x14
        str     x15, [x0, #48]
        mov     x0, x4
        subs    x1, x1, #1
        b.ne    1b
2:
        ret
        .size   region_fork, .-region_fork
