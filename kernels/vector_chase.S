// const void *chase_NAME_kernel(const void *start, uint64_t hops): follows a chain of pointers, each of which is loaded into a
// vector register and moved to the register of the next address; hops >= 1.

.macro CHASE name, load:vararg
        .globl  chase_\name\()_kernel
        .type   chase_\name\()_kernel, %function
        .p2align 6
chase_\name\()_kernel:
        ptrue   p0.d
1:
        \load
        subs    x1, x1, #1
        fmov    x0, d0
        b.ne    1b
        ret
        .size   chase_\name\()_kernel, .-chase_\name\()_kernel
.endm

        CHASE   double, ldr d0, [x0]
        CHASE   quad, ldr q0, [x0]
        CHASE   vector, ld1d {z0.d}, p0/z, [x0]
