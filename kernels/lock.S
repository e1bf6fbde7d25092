// A ticket lock.

        .text

// uint64_t take_ticket_and_poll(uint64_t *next_ticket, uint64_t *now_served): the ticket, once it is served
        .globl  take_ticket_and_poll
        .type   take_ticket_and_poll, %function
        .p2align 6
take_ticket_and_poll:
        mov     x3, #1
        ldadda  x3, x2, [x0]
1:      ldar    x3, [x1]
        cmp     x3, x2
        b.ne    1b
        mov     x0, x2
        ret
        .size   take_ticket_and_poll, .-take_ticket_and_poll

// The same; between two reads the core sleeps until another core writes the line.
        .globl  take_ticket_and_sleep
        .type   take_ticket_and_sleep, %function
        .p2align 6
take_ticket_and_sleep:
        mov     x3, #1
        ldadda  x3, x2, [x0]
        ldar    x3, [x1]
        cmp     x3, x2
        b.eq    2f
        sevl                            // so that the first WFE does not wait
1:      wfe
        ldaxr   x3, [x1]                // the monitor sends an event when the line is written
        cmp     x3, x2
        b.ne    1b
2:      mov     x0, x2
        ret
        .size   take_ticket_and_sleep, .-take_ticket_and_sleep

// void serve_next(uint64_t *now_served, uint64_t ticket)
        .globl  serve_next
        .type   serve_next, %function
        .p2align 6
serve_next:
        add     x1, x1, #1
        stlr    x1, [x0]
        ret
        .size   serve_next, .-serve_next
