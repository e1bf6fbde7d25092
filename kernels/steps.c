/* Repeats one operation: chains of additions, multiplications and FMA, loads and stores in the L1 cache. */
#include "runtime.h"

enum { VECTORS = 256, CHAIN = 32, BLOCK = 4096 };

static _Alignas(LINE) unsigned char block[VECTORS * LINE];

/* The chains return their result: the integer ones as x0, the FMA chain in the first lane. */
uint64_t steps_add_kernel(void *block, uint64_t rounds);
uint64_t steps_mul_kernel(void *block, uint64_t rounds);
double steps_fma_kernel(void *block, uint64_t rounds);
void steps_load_kernel(void *block, uint64_t rounds);
void steps_load4_kernel(void *block, uint64_t rounds);
void steps_store_kernel(void *block, uint64_t rounds);
void steps_zero_kernel(void *block, uint64_t rounds);

enum { ADD, MUL, FMA, LOAD, LOAD4, STORE, ZERO };
enum { OP, ROUNDS };

static struct option options[] = {
    [OP] = {"op", FMA, 0, 0, "add|mul|fma|load|load4|store|zero"},
    [ROUNDS] = {"rounds", 20000, 1, 1000000000, NULL},
};

/* 3 to the power `exponent`, modulo 2**64. */
static uint64_t power_of_3(uint64_t exponent)
{
    uint64_t power = 1;
    for (uint64_t base = 3; exponent; exponent >>= 1, base *= base)
        power *= exponent & 1 ? base : 1;
    return power;
}

/* One run of the loop; returns whether the result of a chain is correct. */
static bool run(uint64_t op, uint64_t rounds)
{
    switch (op) {
    case ADD:
        return steps_add_kernel(block, rounds) == 1 + CHAIN * rounds;
    case MUL:
        return steps_mul_kernel(block, rounds) == power_of_3(CHAIN * rounds);
    case FMA:
        return steps_fma_kernel(block, rounds) == (double)(CHAIN * rounds);
    case LOAD:
        steps_load_kernel(block, rounds);
        return true;
    case LOAD4:
        steps_load4_kernel(block, rounds);
        return true;
    case STORE:
        steps_store_kernel(block, rounds);
        return true;
    default:
        steps_zero_kernel(block, rounds);
        return true;
    }
}

/* The stores leave ones in their part of the block and nothing elsewhere; all others leave it unchanged. */
static bool block_is_right(uint64_t op)
{
    bool right = true;
    for (uint64_t i = 0; i < sizeof block; i++)
        right &= block[i] == (op >= STORE && i < BLOCK);
    return right;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t op = options[OP].value;
    if (op == ZERO) {
        uint64_t dczid;
        __asm__("mrs %0, dczid_el0" : "=r"(dczid));
        if (dczid != 6) /* log2 of the block's size in words; bit 4: DC ZVA is prohibited */
            cannot_run("op=zero needs a processor on which DC ZVA clears 256 bytes, as on A64FX");
    }
    bool ok = run(op, 2);

    measure_begin("steps");
    ok &= run(op, options[ROUNDS].value);
    measure_end();

    return finish(ok && block_is_right(op), options, COUNT_OF(options));
}
