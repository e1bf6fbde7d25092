// void NAME(uint64_t *word, uint64_t rounds): adds 1 to the word `rounds` times.

        .text

        .globl  ldadd_kernel
        .type   ldadd_kernel, %function
        .p2align 6
ldadd_kernel:
        mov     x2, #1
1:      ldadd   x2, x3, [x0]
        subs    x1, x1, #1
        b.ne    1b
        ret
        .size   ldadd_kernel, .-ldadd_kernel

        .globl  exclusive_kernel
        .type   exclusive_kernel, %function
        .p2align 6
exclusive_kernel:
        ldxr    x2, [x0]
        add     x2, x2, #1
        stxr    w3, x2, [x0]
        cbnz    w3, exclusive_kernel
        subs    x1, x1, #1
        b.ne    exclusive_kernel
        ret
        .size   exclusive_kernel, .-exclusive_kernel

        .globl  cas_kernel
        .type   cas_kernel, %function
        .p2align 6
cas_kernel:
        ldr     x2, [x0]
1:      add     x3, x2, #1
        mov     x4, x2
        cas     x2, x3, [x0]            // x2: old value
        cmp     x2, x4
        b.ne    1b
        subs    x1, x1, #1
        b.ne    cas_kernel
        ret
        .size   cas_kernel, .-cas_kernel
