// const void *chase_kernel(const void *start, uint64_t hops): follows a chain of pointers; hops >= 1.

        .globl  chase_kernel
        .type   chase_kernel, %function
        .p2align 6
chase_kernel:
1:
        ldr     x0, [x0]
        subs    x1, x1, #1
        b.ne    1b
        ret
        .size   chase_kernel, .-chase_kernel
