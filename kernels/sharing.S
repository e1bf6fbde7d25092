// void count_kernel(uint64_t *counter, uint64_t rounds): adds 1 to the counter `rounds` times, in memory each time.

        .text
        .globl  count_kernel
        .type   count_kernel, %function
        .p2align 6
count_kernel:
        ldr     x2, [x0]
        add     x2, x2, #1
        str     x2, [x0]
        subs    x1, x1, #1
        b.ne    count_kernel
        ret
        .size   count_kernel, .-count_kernel
