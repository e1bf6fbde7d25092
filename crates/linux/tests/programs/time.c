/* Clocks, sleeping and waiting in simulated time. */
#include "bare.h"

struct time { word seconds, ns; };

static word now(int clock)
{
    struct time t;
    CALL(113, clock, &t, 0);
    return t.seconds * 1000000000 + t.ns;
}

static word ticks(void)
{
    word v;
    __asm__ volatile("isb\n mrs %0, cntvct_el0" : "=r"(v));
    return v;
}

void begin(word *stack)
{
    word start = now(1), first = ticks(), hour = 3600000000000;
    unsigned futex = 1;
    struct time t = { 3600, 5 };
    CALL(101, &t, 0, 0);
    word slept = now(1) - start, counted = (ticks() - first) * 10;
    hex("slept at least an hour", slept >= hour + 5);
    hex("but not much more", slept < hour + 1000000);
    hex("counter agrees", counted + 1000000 > slept && slept + 1000000 > counted);
    hex("up for hours, as the counter says", start >= 4 * hour && start < 5 * hour && first * 10 - start < 1000000);
    t.seconds = 21700;
    call(115, 1, 1 /* TIMER_ABSTIME */, (word)&t, 0, 0, 0);
    hex("absolute sleep", now(1) >= 21700000000005 && now(1) < 21700010000000);
    t.seconds = 10;
    start = now(1);
    word result = call(98, (word)&futex, 0, 1, (word)&t, 0, 0);
    hex("waited for a futex", result == -110UL && now(1) - start >= 10000000005 && now(1) - start < 10010000000);
    hex("hardly any of it on the CPU", now(2) < 1000000);
    hex("start of the year 2020", now(0) / 1000000000 / 86400 == 18262);
    if (*stack > 1 && *(char *)stack[2] == 'd')
        call(98, (word)&futex, 0, 1, 0, 0, 0);
    CALL(94, 0, 0, 0);
}
