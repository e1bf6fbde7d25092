/* Strided accesses: each step of the loop needs one translation and works on its place, which stays in
 * the L1 cache. The cost of translations shows in comparison with the same loop with sufficiently large pages. */
#include "tlb.h"

/* Places are in different sets of the caches, as far as possible. */
enum { SPREAD = 64 };

enum { STRIDE, COUNT, ROUNDS, PASSES };

static struct option options[] = {
    [STRIDE] = {"stride", 4 << 20, 64 << 10, 1ull << 40, NULL},
    [COUNT] = {"count", 512, 1, 1 << 20, NULL},
    [ROUNDS] = {"rounds", 256, 1, 1 << 20, NULL},
    [PASSES] = {"passes", 2, 1, 1000000, NULL},
};

static double *place(unsigned char *memory, uint64_t step)
{
    return (double *)(memory + step * options[STRIDE].value + step % SPREAD * PLACE);
}

static double pass(unsigned char *memory)
{
    double sum = 0;
    for (uint64_t step = 0; step < options[COUNT].value; step++)
        sum += tlb_work(place(memory, step), options[ROUNDS].value);
    return sum;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t count = options[COUNT].value, stride = options[STRIDE].value;
    if (count > UINT64_MAX / 2 / stride)
        cannot_run("count times stride is more than any memory");
    unsigned char *memory = tlb_map(count * stride);
    for (uint64_t step = 0; step < count; step++)
        place(memory, step)[step % (PLACE / sizeof(double))] = (double)(step % 7);
    double first = pass(memory), sum = 0;
    measure_begin("stride");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        sum += pass(memory);
    measure_end();
    double expected = 0;
    for (uint64_t step = 0; step < count; step++)
        expected += (double)(step % 7);
    /* Integers: exact. */
    expected *= (double)options[ROUNDS].value;
    bool ok = first == expected && sum == expected * (double)options[PASSES].value;
    return finish(ok, options, COUNT_OF(options));
}
