/* Prints the initial contents of the stack that are the same on every Linux. */
#include "bare.h"

static void show(word type, word value)
{
    switch (type) {
    case 4: /* AT_PHENT */
    case 5: /* AT_PHNUM */
    case 7: /* AT_BASE */
    case 8: /* AT_FLAGS */
    case 9: /* AT_ENTRY */
    case 17: /* AT_CLKTCK */
    case 23: /* AT_SECURE */
        hex("aux", type);
        hex("  =", value);
        break;
    case 16: /* AT_HWCAP, without the timer's event stream, which QEMU does not have */
        hex("hwcap", value & ~4UL);
        break;
    case 3: /* AT_PHDR: the first header is read through it */
        hex("first header type", *(unsigned *)value);
        break;
    case 15: /* AT_PLATFORM */
        text((char *)value);
        text("\n");
        break;
    case 31: /* AT_EXECFN */
        hex("file name starts with /", *(char *)value == '/');
        break;
    }
}

void begin(word *stack)
{
    word argc = *stack++;
    hex("argc", argc);
    hex("stack aligned", (word)(stack - 1) & 15);
    for (word i = 1; i < argc; i++) {
        text((char *)stack[i]);
        text("\n");
    }
    stack += argc;
    hex("argv end", *stack++);
    while (*stack) {
        text((char *)*stack++);
        text("\n");
    }
    stack++;
    /* In the order of their types, because the order of the entries depends on the kernel. */
    for (word type = 1; type < 40; type++)
        for (word *entry = stack; entry[0]; entry += 2)
            if (entry[0] == type)
                show(type, entry[1]);
    CALL(94, 7, 0, 0);
}
