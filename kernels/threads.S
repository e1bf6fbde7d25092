// Threads and system calls of the threaded programs.

        .text

// long linux_call(long a0, long a1, long a2, long a3, long a4, long a5, long number): negative: an error of Linux
        .globl  linux_call
        .type   linux_call, %function
linux_call:
        mov     x8, x6
        svc     #0
        ret
        .size   linux_call, .-linux_call

// long linux_start_thread(unsigned long flags, void *stack, uint32_t *parent_tid, unsigned long tls, uint32_t *child_tid,
//                         void (*body)(unsigned long), unsigned long argument)
//
// The new thread calls body(argument) on its own stack, and ends when that returns.
        .globl  linux_start_thread
        .type   linux_start_thread, %function
linux_start_thread:
        mov     x8, #220                // clone
        svc     #0
        cbz     x0, 1f
        ret
1:      mov     x29, #0
        mov     x30, #0
        mov     x0, x6
        blr     x5
        mov     x0, #0
        mov     x8, #93                 // exit, of this thread
        svc     #0
        .size   linux_start_thread, .-linux_start_thread
