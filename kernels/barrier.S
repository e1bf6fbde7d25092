// One round at the hardware barrier, through window 0, in the order that the specification of the HPC extension (1.4.3.5)
// gives: the inverse of LBSY is written to the window as BST, and the barrier is over when LBSY has that value.

        .text

.macro HARDWARE_BARRIER name, event
        .globl  \name
        .type   \name, %function
        .p2align 6
\name:
        mrs     x1, S3_3_C15_C15_0      // LBSY
        mvn     x1, x1
        and     x1, x1, #1
        msr     S3_3_C15_C15_0, x1      // BST
.if \event
        sevl                            // so that the first WFE does not wait
.endif
1:
.if \event
        wfe
.endif
        mrs     x2, S3_3_C15_C15_0
        and     x2, x2, #1
        cmp     x1, x2
        b.ne    1b
        ret
        .size   \name, .-\name
.endm

        HARDWARE_BARRIER hardware_barrier_poll, 0
        HARDWARE_BARRIER hardware_barrier_wfe, 1
