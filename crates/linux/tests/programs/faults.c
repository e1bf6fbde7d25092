/* Catches faults, checks what the kernel reports about them, and continues after the instruction. */
#include "bare.h"

struct info { int signal, error, code, pad; word address; };

static volatile int count;

static void handler(int signal, struct info *info, char *uc)
{
    word *fault = (word *)(uc + 176), *pc = fault + 33;
    hex("signal", signal);
    hex("  info signal", info->signal);
    if (signal != 4) /* QEMU reports an illegal operand, Linux an illegal opcode */
        hex("  code", info->code);
    hex("  address", info->address);
    hex("  fault address", *fault);
    hex("  x19", fault[1 + 19]);
    hex("  at instruction", *(unsigned *)*pc);
    hex("  pstate", fault[34]);
    hex("  first record", *(unsigned *)(fault + 36));
    *pc += 4;
    fault[1 + 20] = 0x1234; /* x20 after the return */
    count++;
}

struct action { word handler, flags, restorer, mask; };

void begin(word *stack)
{
    struct action a = { (word)handler, 4 /* SA_SIGINFO */, 0, 0 };
    word x20;
    if (stack[0] > 1) /* SM4E, which this processor does not have */
        __asm__ volatile(".inst 0xcec08420");
    CALL(134, 11, &a, 0); /* wrong size of the signal set */
    hex("bad size", call(134, 11, (word)&a, 0, 7, 0, 0));
    for (int s = 4; s <= 11; s++)
        if (s != 9)
            call(134, s, (word)&a, 0, 8, 0, 0);
    __asm__ volatile("mov x19, #0x77\n mov x20, #0\n mov x1, #0x10\n ldr x0, [x1]\n mov %0, x20"
                     : "=r"(x20) : : "x0", "x1", "x19", "x20", "memory");
    hex("x20", x20);
    __asm__ volatile("cmp xzr, xzr\n mov x19, #0x78\n mov x1, #0x18\n str x0, [x1]" : : : "x0", "x1", "x19", "x20", "cc", "memory");
    __asm__ volatile("mov x19, #0x79\n adr x1, begin\n str x0, [x1]" : : : "x0", "x1", "x19", "x20", "memory");
    __asm__ volatile("mov x19, #0x7a\n brk #5" : : : "x19", "x20", "memory");
    __asm__ volatile("mov x19, #0x7b\n udf #1" : : : "x19", "x20", "memory");
    /* SM4E; MATCH of SVE2; a read of SCTLR_EL1 */
    __asm__ volatile("mov x19, #0x7c\n .inst 0xcec08420" : : : "x19", "x20", "memory");
    __asm__ volatile("mov x19, #0x7d\n .inst 0x45218000" : : : "x19", "x20", "memory");
    __asm__ volatile("mov x19, #0x7e\n mrs x0, sctlr_el1" : : : "x0", "x19", "x20", "memory");
    hex("handled", count);
    /* A blocked fault ends the program. */
    word set = 1UL << 10;
    call(135, 0, (word)&set, 0, 8, 0, 0);
    *(volatile int *)8 = 1;
    CALL(94, 0, 0, 0);
}
