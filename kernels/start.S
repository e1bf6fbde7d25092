// Process entry and system calls of the freestanding programs: there is no libc.

        .text

        .globl  _start
        .type   _start, %function
_start:
        mov     x29, #0
        mov     x30, #0
        ldr     x0, [sp]                // argc
        add     x1, sp, #8              // argv
        bl      program
        b       linux_exit
        .size   _start, .-_start

// long linux_write(int fd, const void *bytes, unsigned long count)
        .globl  linux_write
        .type   linux_write, %function
linux_write:
        mov     x8, #64
        svc     #0
        ret
        .size   linux_write, .-linux_write

// long linux_clock_gettime(int clock, struct timespec *now)
        .globl  linux_clock_gettime
        .type   linux_clock_gettime, %function
linux_clock_gettime:
        mov     x8, #113
        svc     #0
        ret
        .size   linux_clock_gettime, .-linux_clock_gettime

// _Noreturn void linux_exit(int status): exits with exit_group
        .globl  linux_exit
        .type   linux_exit, %function
linux_exit:
        mov     x8, #94
        svc     #0
        .size   linux_exit, .-linux_exit
