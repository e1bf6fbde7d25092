/* Prints what a program can query about the machine. */
#include "bare.h"

static word id(word n)
{
    word v = 0;
    switch (n) {
    case 0:
        __asm__("mrs %0, cntfrq_el0" : "=r"(v));
        break;
    case 1:
        __asm__("mrs %0, dczid_el0" : "=r"(v));
        break;
    case 2:
        __asm__("mrs %0, ctr_el0" : "=r"(v));
        break;
    case 3:
        __asm__("mrs %0, midr_el1" : "=r"(v));
        break;
    }
    return v;
}

static const char *names[52] = { [6] = "page", [16] = "hwcap", [51] = "smallest signal stack" };

void begin(word *stack)
{
    word info[14], random[2], mask = 0, node;
    char uname[6 * 65];
    stack += *stack + 2;
    while (*stack++)
        ;
    for (word type = 0; type < 52; type++)
        for (word *entry = stack; entry[0]; entry += 2)
            if (entry[0] == type && names[type])
                hex(names[type], entry[1]);
    hex("counter frequency", id(0));
    hex("zero block", 4UL << (id(1) & 15));
    hex("cache type", id(2));
    hex("main id", id(3));
    hex("affinity bytes", CALL(123, 0, 128, &mask));
    hex("affinity", mask);
    mask = 1 << 3;
    hex("bind to CPU 3", CALL(122, 0, 8, &mask));
    mask = 1 << 20;
    hex("bind to CPU 20", CALL(122, 0, 8, &mask));
    CALL(168, &mask, &node, 0);
    hex("cpu", (unsigned)mask);
    hex("node", (unsigned)node);
    CALL(179, info, 0, 0);
    hex("memory", info[4]);
    CALL(278, random, 16, 0);
    hex("random", random[0] != random[1]);
    CALL(160, uname, 0, 0);
    text(uname);
    text(" ");
    text(uname + 4 * 65);
    text("\n");
    CALL(94, 0, 0, 0);
}
