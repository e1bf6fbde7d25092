/* Arrays that a program uses in turn, at random places in its heap: permanent ones, and work
 * arrays that each step allocates and frees, so that the next step's are elsewhere. All steps do the same work. */
#include "tlb.h"

enum { MAX_ARRAYS = 256, MAX_STEPS = 99, SMALLEST = 1 << 20, GRAIN = 64 << 10 };

enum { ARRAYS, WORK, STEPS, VISITS, ROUNDS, SPAN, SEED };

static struct option options[] = {
    [ARRAYS] = {"arrays", 64, 1, MAX_ARRAYS, NULL},
    [WORK] = {"work", 0, 0, MAX_ARRAYS, NULL},
    [STEPS] = {"steps", 1, 1, MAX_STEPS, NULL},
    [VISITS] = {"visits", 64, 1, 1000000, NULL},
    [ROUNDS] = {"rounds", 1, 1, 1 << 20, NULL},
    [SPAN] = {"span", 4ull << 30, 64 << 20, 1ull << 40, NULL},
    [SEED] = {"seed", 1, 0, 1000000000, NULL},
};

static double *arrays[2 * MAX_ARRAYS];
static uint64_t random_state;

/* A number below `limit`: the upper bits of a linear congruential generator. */
static uint64_t draw(uint64_t limit)
{
    random_state = random_state * 6364136223846793005 + 1442695040888963407;
    return (random_state >> 32) * limit >> 32;
}

/* The place at which an array is used, in an L1 set that few others use. */
static double *place(unsigned char *heap, uint64_t offset, uint64_t number)
{
    return (double *)(heap + offset / GRAIN * GRAIN + number % 64 * PLACE);
}

/* Next position of the heap's allocator: after the last work array, or at the start if there is no room. */
static uint64_t next_fit;

static uint64_t allocate(uint64_t bytes)
{
    uint64_t at = next_fit;
    if (at + bytes > options[SPAN].value)
        at = 0;
    next_fit = at + bytes;
    return at;
}

/* Uses the first `count` arrays in turn. */
static double visit(uint64_t count)
{
    double sum = 0;
    for (uint64_t a = 0; a < count; a++)
        sum += tlb_work(arrays[a], options[ROUNDS].value);
    return sum;
}

static const char *step_name(uint64_t step)
{
    static char names[MAX_STEPS][8];
    char *name = names[step];
    const char digits[] = {(char)('0' + (step + 1) / 10), (char)('0' + (step + 1) % 10)};
    for (unsigned i = 0; i < 5; i++)
        name[i] = "step "[i];
    name[5] = digits[0];
    name[6] = digits[1];
    return name;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t own = options[ARRAYS].value, work = options[WORK].value, span = options[SPAN].value;
    unsigned char *heap = tlb_map(span);
    random_state = options[SEED].value * 0x9e3779b97f4a7c15 + 1;
    draw(1);
    for (uint64_t a = 0; a < own; a++)
        arrays[a] = place(heap, draw((span - SMALLEST) / GRAIN) * GRAIN, a);
    bool ok = true;
    for (uint64_t step = 0; step < options[STEPS].value; step++) {
        /* Work arrays of 1 to 64 MiB. */
        for (uint64_t a = 0; a < work; a++)
            arrays[own + a] = place(heap, allocate(SMALLEST * (1 + draw(span >> 26 < 64 ? span >> 26 : 64))), own + a);
        for (uint64_t a = 0; a < own + work; a++)
            *arrays[a] = (double)(a % 7 + 1);
        double expected = 0;
        for (uint64_t a = 0; a < own + work; a++)
            expected += *arrays[a];
        expected *= (double)(options[ROUNDS].value * options[VISITS].value);
        /* All steps start with the same caches and predictors, and no translation is needed for the first time. */
        double sum = visit(own + work);
        ok = ok && sum * (double)options[VISITS].value == expected;
        sum = 0;
        measure_begin(step_name(step));
        for (uint64_t i = 0; i < options[VISITS].value; i++)
            sum += visit(own + work);
        measure_end();
        ok = ok && sum == expected;
        for (uint64_t a = 0; a < own + work; a++)
            *arrays[a] = 0;
    }
    return finish(ok, options, COUNT_OF(options));
}
