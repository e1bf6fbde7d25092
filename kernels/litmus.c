/* Litmus tests of the Arm memory model: small programs of two to four threads whose outcome shows whether accesses were
 * seen out of order. An outcome that the architecture forbids fails the run; those it allows are counted. */
#include "threads.h"

enum { TEST, FORM, ROUNDS, SEED };
enum { MP, SB, LB, S, R, TWO_PLUS_TWO_W, IRIW, CO_RR };
/* Plain accesses; LDAR and STLR; plain accesses with a DMB between them. */
enum { PLAIN, ORDERED, DMB };

static struct option options[] = {
    [TEST] = {"test", MP, 0, 0, "mp|sb|lb|s|r|2+2w|iriw|corr"},
    [FORM] = {"form", PLAIN, 0, 0, "plain|ordered|dmb"},
    [ROUNDS] = {"rounds", 20, 1, 1000000000, NULL},
    [SEED] = {"seed", 1, 0, 1000000, NULL},
};

/* Copies of a test in a round, each with variables of its own. */
enum { COPIES = 64, THREADS_AT_MOST = 4, ACCESSES = 2 };

/* The variables, each on a separate line. */
static struct {
    _Alignas(LINE) uint32_t value;
} variables[COPIES][2];

/* An access: the value written, or 0 for a read; to x (0) or y (1). */
struct access {
    bool there;
    uint8_t variable, written;
};
#define READ(v) {true, v, 0}
#define WRITE(v, value) {true, v, value}
enum { X = 0, Y = 1 };

/* The accesses of each thread, and the outcome that is not sequentially consistent: values read by thread and access, and the
 * final values of x and y. */
enum { ANY = 255 };
static const struct test {
    unsigned threads;
    struct access does[THREADS_AT_MOST][ACCESSES];
    uint8_t read[THREADS_AT_MOST][ACCESSES];
    uint8_t final[2];
    bool forbidden_when_plain;
} tests[] = {
    [MP] = {2, {{WRITE(X, 1), WRITE(Y, 1)}, {READ(Y), READ(X)}}, {{ANY, ANY}, {1, 0}}, {ANY, ANY}, false},
    [SB] = {2, {{WRITE(X, 1), READ(Y)}, {WRITE(Y, 1), READ(X)}}, {{ANY, 0}, {ANY, 0}}, {ANY, ANY}, false},
    [LB] = {2, {{READ(X), WRITE(Y, 1)}, {READ(Y), WRITE(X, 1)}}, {{1, ANY}, {1, ANY}}, {ANY, ANY}, false},
    [S] = {2, {{WRITE(X, 2), WRITE(Y, 1)}, {READ(Y), WRITE(X, 1)}}, {{ANY, ANY}, {1, ANY}}, {2, ANY}, false},
    [R] = {2, {{WRITE(X, 1), WRITE(Y, 1)}, {WRITE(Y, 2), READ(X)}}, {{ANY, ANY}, {ANY, 0}}, {ANY, 2}, false},
    [TWO_PLUS_TWO_W] = {2,
                        {{WRITE(X, 1), WRITE(Y, 2)}, {WRITE(Y, 1), WRITE(X, 2)}},
                        {{ANY, ANY}, {ANY, ANY}},
                        {1, 1},
                        false},
    [IRIW] = {4,
              {{WRITE(X, 1)}, {WRITE(Y, 1)}, {READ(X), READ(Y)}, {READ(Y), READ(X)}},
              {{ANY, ANY}, {ANY, ANY}, {1, 0}, {1, 0}},
              {ANY, ANY},
              false},
    [CO_RR] = {2, {{WRITE(X, 1)}, {READ(X), READ(X)}}, {{ANY, ANY}, {1, 0}}, {ANY, ANY}, true},
};

static _Alignas(LINE) uint32_t seen[THREADS_AT_MOST][COPIES][ACCESSES];
static uint64_t weak_outcomes;

static uint32_t plain_access(struct access what, uint32_t *variable)
{
    uint32_t value = what.written;
    if (what.written)
        __asm__ volatile("str %w0, [%1]" : : "r"(value), "r"(variable) : "memory");
    else
        __asm__ volatile("ldr %w0, [%1]" : "=r"(value) : "r"(variable) : "memory");
    return value;
}

static uint32_t ordered_access(struct access what, uint32_t *variable)
{
    uint32_t value = what.written;
    if (what.written)
        __asm__ volatile("stlr %w0, [%1]" : : "r"(value), "r"(variable) : "memory");
    else
        __asm__ volatile("ldar %w0, [%1]" : "=r"(value) : "r"(variable) : "memory");
    return value;
}

/* A thread's part of one copy. */
static void run_copy(const struct access *does, uint64_t form, unsigned copy, uint32_t *results)
{
    uint32_t *first = &variables[copy][does[0].variable].value, *second = &variables[copy][does[1].variable].value;
    if (form == ORDERED) {
        results[0] = ordered_access(does[0], first);
        if (does[1].there)
            results[1] = ordered_access(does[1], second);
        return;
    }
    results[0] = plain_access(does[0], first);
    if (form == DMB)
        __asm__ volatile("dmb ish" : : : "memory");
    if (does[1].there)
        results[1] = plain_access(does[1], second);
}

/* Waits for a pseudo-random time, so that copies interleave in many ways. */
static void wait_a_little(uint64_t *random)
{
    *random = *random * 6364136223846793005 + 1442695040888963407;
    for (uint64_t i = *random >> 60; i; i--)
        __asm__ volatile("" : : : "memory");
}

static bool is_weak(const struct test *test, unsigned copy)
{
    for (unsigned t = 0; t < test->threads; t++)
        for (unsigned a = 0; a < ACCESSES; a++)
            if (test->read[t][a] != ANY && seen[t][copy][a] != test->read[t][a])
                return false;
    for (unsigned v = 0; v < 2; v++)
        if (test->final[v] != ANY && variables[copy][v].value != test->final[v])
            return false;
    return true;
}

static void look_and_reset(const struct test *test)
{
    for (unsigned copy = 0; copy < COPIES; copy++) {
        weak_outcomes += is_weak(test, copy);
        variables[copy][X].value = 0;
        variables[copy][Y].value = 0;
    }
}

static void run_test(unsigned thread)
{
    const struct test *test = &tests[options[TEST].value];
    uint64_t form = options[FORM].value, random = options[SEED].value * MAX_THREADS + thread;
    measure_begin_together(thread, "litmus");
    for (uint64_t i = 0; i < options[ROUNDS].value; i++) {
        for (unsigned copy = 0; copy < COPIES; copy++) {
            wait_a_little(&random);
            run_copy(test->does[thread], form, copy, seen[thread][copy]);
        }
        meet(thread);
        if (thread == 0)
            look_and_reset(test);
        meet(thread);
    }
    measure_end_together(thread);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    const struct test *test = &tests[options[TEST].value];
    run_threads(test->threads, run_test);

    bool allowed = options[FORM].value == PLAIN && !test->forbidden_when_plain;
    const struct option report[] = {
        options[TEST],
        options[FORM],
        options[ROUNDS],
        options[SEED],
        {"copies", COPIES * options[ROUNDS].value, 0, 0, NULL},
        {"weak", weak_outcomes, 0, 0, NULL},
        {"weak-is", allowed, 0, 0, "forbidden|allowed"},
    };
    return finish(allowed || !weak_outcomes, report, COUNT_OF(report));
}
