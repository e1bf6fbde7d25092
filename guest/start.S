// Entry of the program: passes the arguments, and the environment behind them, on to C.

        .text
        .globl  _start
        .type   _start, %function
_start:
        mov     x29, #0
        mov     x30, #0
        ldr     x0, [sp]                // argc
        add     x1, sp, #8              // argv
        add     x2, x1, x0, lsl #3
        add     x2, x2, #8              // the environment
        and     sp, x1, #~15
        b       begin
        .size   _start, .-_start
