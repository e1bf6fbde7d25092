/* System calls and start-up for programs without a C library. Only general-purpose registers are used. */
typedef unsigned long word;

static inline word call(word n, word a, word b, word c, word d, word e, word f)
{
    register word x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    register word x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#define CALL(n, a, b, c) call(n, (word)(a), (word)(b), (word)(c), 0, 0, 0)

static void text(const char *s)
{
    word n = 0;
    while (s[n])
        n++;
    CALL(64, 1, s, n);
}

static void hex(const char *name, word v)
{
    char buffer[20], *p = buffer + 19;
    text(name);
    text(" ");
    *p = 0;
    do
        *--p = "0123456789abcdef"[v & 15];
    while (v >>= 4);
    text(p);
    text("\n");
}

void begin(word *stack);
__asm__(".globl _start\n_start: mov x29, #0\n mov x30, #0\n mov x0, sp\n bl begin\n");
