/* Stream-like loop nests of a climate model in single precision, over blocks of points by levels, which are divided
 * among threads: pattern 1 divides six quantities by densities, pattern 2 adds up three arrays for each of six quantities, pattern 3
 * adds tendencies to six quantities in place. With zero-lines, patterns 1 and 2 allocate the lines that they will store (DC ZVA). */
#include "threads.h"

enum { POINTS = 16900, LEVELS = 96, QUANTITIES = 6, BLOCK = POINTS * LEVELS };

/* Layout of the model's arrays: level by level, quantity by quantity. */
static _Alignas(LINE) float before[QUANTITIES][BLOCK], after[QUANTITIES][BLOCK];
static _Alignas(LINE) float flows[5][BLOCK], means[5][BLOCK], metrics[BLOCK];

enum { DIVIDE, SUM, ADD };
enum { PATTERN, PASSES, THREADS, LEVEL_COUNT, ZERO_LINES };

static struct option options[] = {
    [PATTERN] = {"pattern", DIVIDE, 0, 0, "1|2|3"},
    [PASSES] = {"passes", 1, 1, 1000000, NULL},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
    [LEVEL_COUNT] = {"levels", 12, 1, LEVELS, NULL},
    [ZERO_LINES] = {"zero-lines", 0, 0, 100, NULL},
};

static const float FRACTION = 0.5f;

static _Alignas(LINE) bool wrong[MAX_THREADS];

/* First level of a thread. */
static uint64_t part(unsigned thread)
{
    return options[LEVEL_COUNT].value * thread / options[THREADS].value * POINTS;
}

/* a/b by an estimate and one step of the third order: 7 FLOPs, as counted. */
static inline svfloat32_t quotient(svbool_t p, svfloat32_t a, svfloat32_t b)
{
    svfloat32_t r = svrecpe(b), e = svmls_x(p, svdup_f32(1), b, r);
    return svmul_x(p, a, svmla_x(p, r, r, svmla_x(p, e, e, e)));
}

/* Density divided by the metrics, and four flows divided by density. */
static __attribute__((noinline)) void divide_flows(uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i += svcntw()) {
        svbool_t p = svwhilelt_b32(i, to);
        svfloat32_t density = svld1(p, flows[0] + i);
        svst1(p, means[0] + i, quotient(p, density, svld1(p, metrics + i)));
        svst1(p, means[1] + i, quotient(p, svld1(p, flows[1] + i), density));
        svst1(p, means[2] + i, quotient(p, svld1(p, flows[2] + i), density));
        svst1(p, means[3] + i, quotient(p, svld1(p, flows[3] + i), density));
        svst1(p, means[4] + i, quotient(p, svld1(p, flows[4] + i), density));
    }
}

/* A quantity divided by density, two vectors at a time. */
static __attribute__((noinline)) void divide(float *to_array, const float *array, uint64_t from, uint64_t to)
{
    uint64_t length = svcntw();
    for (uint64_t i = from; i < to; i += 2 * length) {
        svbool_t p = svwhilelt_b32(i, to), q = svwhilelt_b32(i + length, to);
        svfloat32_t first = quotient(p, svld1(p, array + i), svld1(p, flows[0] + i));
        svfloat32_t second = quotient(q, svld1(q, array + i + length), svld1(q, flows[0] + i + length));
        svst1(p, to_array + i, first);
        svst1(q, to_array + i + length, second);
    }
}

/* Adds part of a tendency to a quantity, two vectors at a time. */
static __attribute__((noinline)) void add(float *values, const float *tendency, uint64_t from, uint64_t to)
{
    uint64_t length = svcntw();
    svfloat32_t fraction = svdup_f32(FRACTION);
    for (uint64_t i = from; i < to; i += 2 * length) {
        svbool_t p = svwhilelt_b32(i, to), q = svwhilelt_b32(i + length, to);
        svfloat32_t first = svmla_x(p, svld1(p, values + i), svld1(p, tendency + i), fraction);
        svfloat32_t second = svmla_x(q, svld1(q, values + i + length), svld1(q, tendency + i + length), fraction);
        svst1(p, values + i, first);
        svst1(q, values + i + length, second);
    }
}

/* The sum of three arrays, two vectors at a time. */
static __attribute__((noinline)) void sum(float *to_array, const float *a, const float *b, const float *c, uint64_t from, uint64_t to)
{
    uint64_t length = svcntw();
    for (uint64_t i = from; i < to; i += 2 * length) {
        svbool_t p = svwhilelt_b32(i, to), q = svwhilelt_b32(i + length, to);
        svfloat32_t first = svadd_x(p, svadd_x(p, svld1(p, a + i), svld1(p, b + i)), svld1(p, c + i));
        svfloat32_t second = svadd_x(q, svadd_x(q, svld1(q, a + i + length), svld1(q, b + i + length)), svld1(q, c + i + length));
        svst1(p, to_array + i, first);
        svst1(q, to_array + i + length, second);
    }
}

/* Elements of a line, and distance of the prefetches of zeroed lines into L1. */
enum { IN_LINE = LINE / sizeof(float), L1_LINES = 4 };

/* Without hardware prefetch (HPC extension), which would read the zeroed lines. */
static inline float *without_prefetch(float *array)
{
    return (float *)((uintptr_t)array | 0x6000000000000000);
}

/* Zeroes the line at a distance ahead of element `i`, unless it reaches beyond the thread's last element. */
static inline void zero_ahead(float *array, uint64_t i, uint64_t last)
{
    uint64_t ahead = i + options[ZERO_LINES].value * IN_LINE;
    if (ahead + IN_LINE <= last)
        __asm__ volatile("dc zva, %0" : : "r"(array + ahead) : "memory");
    __builtin_prefetch(array + i + L1_LINES * IN_LINE, 1, 3);
}

/* Calls LOOP(from, to) for the elements before the first whole line, for each line, behind ZERO(i), and for the elements after them. */
#define BY_LINES(from, to, ZERO, LOOP)                                                        \
    {                                                                                         \
        uint64_t first = (from + IN_LINE - 1) / IN_LINE * IN_LINE, i = first < to ? first : to; \
        LOOP(from, i);                                                                        \
        for (; i + IN_LINE <= to; i += IN_LINE) {                                             \
            ZERO(i);                                                                          \
            LOOP(i, i + IN_LINE);                                                             \
        }                                                                                     \
        LOOP(i, to);                                                                          \
    }

static __attribute__((noinline)) void divide_flows_zeroing(uint64_t from, uint64_t to, uint64_t last)
{
#define ZERO_MEANS(i)                  \
    for (unsigned k = 0; k < 5; k++)   \
        zero_ahead(means[k], i, last)
#define DIVIDE_FLOWS(begin, end)                                                                                    \
    for (uint64_t j = begin; j < end; j += svcntw()) {                                                              \
        svbool_t p = svwhilelt_b32(j, end);                                                                         \
        svfloat32_t density = svld1(p, flows[0] + j);                                                               \
        svst1(p, without_prefetch(means[0]) + j, quotient(p, density, svld1(p, metrics + j)));                      \
        for (unsigned k = 1; k < 5; k++)                                                                            \
            svst1(p, without_prefetch(means[k]) + j, quotient(p, svld1(p, flows[k] + j), density));                 \
    }
    BY_LINES(from, to, ZERO_MEANS, DIVIDE_FLOWS)
}

static __attribute__((noinline)) void divide_zeroing(float *to_array, const float *array, uint64_t from, uint64_t to, uint64_t last)
{
#define ZERO_ONE(i) zero_ahead(to_array, i, last)
#define DIVIDE_ONE(begin, end)                                                                                      \
    for (uint64_t j = begin; j < end; j += svcntw()) {                                                              \
        svbool_t p = svwhilelt_b32(j, end);                                                                         \
        svst1(p, without_prefetch(to_array) + j, quotient(p, svld1(p, array + j), svld1(p, flows[0] + j)));         \
    }
    BY_LINES(from, to, ZERO_ONE, DIVIDE_ONE)
}

static __attribute__((noinline)) void sum_zeroing(float *to_array, const float *a, const float *b, const float *c, uint64_t from,
                                                  uint64_t to, uint64_t last)
{
#define SUM_ONE(begin, end)                                                                                         \
    for (uint64_t j = begin; j < end; j += svcntw()) {                                                              \
        svbool_t p = svwhilelt_b32(j, end);                                                                         \
        svst1(p, without_prefetch(to_array) + j, svadd_x(p, svadd_x(p, svld1(p, a + j), svld1(p, b + j)), svld1(p, c + j))); \
    }
    BY_LINES(from, to, ZERO_ONE, SUM_ONE)
}

static void divide_flows_of(uint64_t from, uint64_t to, uint64_t last)
{
    if (options[ZERO_LINES].value)
        divide_flows_zeroing(from, to, last);
    else
        divide_flows(from, to);
}

/* One level of a quantity. */
static void one_level(unsigned quantity, uint64_t from, uint64_t to, uint64_t last)
{
    bool zeroing = options[ZERO_LINES].value != 0;
    const float *flow = flows[quantity % 5];
    if (options[PATTERN].value == ADD)
        add(after[quantity], before[quantity], from, to);
    else if (options[PATTERN].value == SUM && zeroing)
        sum_zeroing(after[quantity], before[quantity], flow, metrics, from, to, last);
    else if (options[PATTERN].value == SUM)
        sum(after[quantity], before[quantity], flow, metrics, from, to);
    else if (zeroing)
        divide_zeroing(after[quantity], before[quantity], from, to, last);
    else
        divide(after[quantity], before[quantity], from, to);
}

/* A thread's levels, nest after nest; each level is a separate loop. */
static void pass(unsigned thread)
{
    uint64_t from = part(thread), to = part(thread + 1);
    if (options[PATTERN].value == DIVIDE) {
        for (uint64_t level = from; level < to; level += POINTS)
            divide_flows_of(level, level + POINTS, to);
        meet(thread);
    }
    for (unsigned quantity = 0; quantity < QUANTITIES; quantity++) {
        for (uint64_t level = from; level < to; level += POINTS)
            one_level(quantity, level, level + POINTS, to);
        meet(thread);
    }
}

static void initialise(uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        for (unsigned quantity = 0; quantity < QUANTITIES; quantity++) {
            before[quantity][i] = (float)(i % 61 + quantity);
            after[quantity][i] = 0;
        }
        if (options[PATTERN].value == ADD)
            continue;
        metrics[i] = (float)(1 + i % 7);
        for (unsigned flow = 0; flow < 5; flow++) {
            flows[flow][i] = (float)(1 + i % (31 + flow));
            means[flow][i] = 0;
        }
    }
}

static bool close(float value, float expected)
{
    float difference = value - expected;
    return (difference < 0 ? -difference : difference) <= 1e-6f * expected;
}

/* Whether some points have the result of `passes` passes. */
static bool correct(uint64_t from, uint64_t to, uint64_t passes)
{
    bool ok = true;
    for (uint64_t i = from; i < to; i += 7) {
        for (unsigned quantity = 0; quantity < QUANTITIES; quantity++) {
            float value = before[quantity][i];
            if (options[PATTERN].value == DIVIDE)
                ok &= close(after[quantity][i], value / flows[0][i]);
            else if (options[PATTERN].value == SUM)
                ok &= after[quantity][i] == value + flows[quantity % 5][i] + metrics[i];
            else
                ok &= after[quantity][i] == (float)passes * (value * FRACTION);
        }
        if (options[PATTERN].value != DIVIDE)
            continue;
        ok &= close(means[0][i], flows[0][i] / metrics[i]);
        for (unsigned flow = 1; flow < 5; flow++)
            ok &= close(means[flow][i], flows[flow][i] / flows[0][i]);
    }
    return ok;
}

static void run(unsigned thread)
{
    initialise(part(thread), part(thread + 1));
    meet(thread);
    pass(thread);

    measure_begin_together(thread, "streamlike");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        pass(thread);
    measure_end_together(thread);
    wrong[thread] = !correct(part(thread), part(thread + 1), options[PASSES].value + 1);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    if (options[ZERO_LINES].value && options[PATTERN].value == ADD)
        cannot_run("zero-lines is for patterns 1 and 2; pattern 3 reads what it stores");
    if (options[ZERO_LINES].value)
        require_line_zeroing();
    run_threads((unsigned)options[THREADS].value, run);

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
