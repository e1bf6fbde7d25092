// void pingpong_kernel(uint64_t *turn, uint64_t mine, uint64_t rounds)
//
// `rounds` times: waits until the word is `mine`, writes mine + 1, and continues with mine + 2.

        .text
        .globl  pingpong_kernel
        .type   pingpong_kernel, %function
        .p2align 6
pingpong_kernel:
        ldar    x3, [x0]
        cmp     x3, x1
        b.ne    pingpong_kernel
        add     x3, x1, #1
        stlr    x3, [x0]
        add     x1, x1, #2
        subs    x2, x2, #1
        b.ne    pingpong_kernel
        ret
        .size   pingpong_kernel, .-pingpong_kernel
