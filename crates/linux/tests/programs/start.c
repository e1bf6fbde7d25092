/* Prints what the stack holds at the start, as far as it is the same on every Linux. */
#include "bare.h"

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
    for (; stack[0]; stack += 2) {
        switch (stack[0]) {
        case 4: /* AT_PHENT */
        case 5: /* AT_PHNUM */
        case 7: /* AT_BASE */
        case 8: /* AT_FLAGS */
        case 9: /* AT_ENTRY */
        case 17: /* AT_CLKTCK */
        case 23: /* AT_SECURE */
            hex("aux", stack[0]);
            hex("  =", stack[1]);
            break;
        case 16: /* AT_HWCAP, without the timer's event stream, which QEMU does not have */
            hex("hwcap", stack[1] & ~4UL);
            break;
        case 3: /* AT_PHDR: the first header is read through it */
            hex("first header type", *(unsigned *)stack[1]);
            break;
        case 15: /* AT_PLATFORM */
            text((char *)stack[1]);
            text("\n");
            break;
        case 31: /* AT_EXECFN: the same string as the program's name here */
            hex("execfn starts with /", *(char *)stack[1] == '/');
            break;
        }
    }
    CALL(94, 7, 0, 0);
}
