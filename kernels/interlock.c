/* Loads behind stores to other bytes: where the store fetch interlock delays them although nothing overlaps. Each round stores a vector,
 * loads another, and stores that in the next round, so that delays add up. With clear=1 the load is out of reach of the check. case=rows adds
 * to rows of six doubles, whose masked stores lock the next row; clear=1 is software-pipelined, clear=2 without vectors. */
#include "runtime.h"

enum { CASE, CLEAR, ROUNDS };
enum { GATHER, PAGE, UNALIGNED, PAIRS, SMALL_PAIRS, LOW_BITS, MISSED, BOTH_MISSED, ROWS, CASES };

static struct option options[] = {
    [CASE] = {"case", GATHER, 0, 0, "gather|page|unaligned|pairs|small-pairs|low-bits|missed|both-missed|rows"},
    [CLEAR] = {"clear", 0, 0, 2, NULL},
    [ROUNDS] = {"rounds", 20000, 1, 100000000, NULL},
};

/* Bits 11 to 0 of addresses are compared first. Addresses a way of L1 apart are in the same set. */
enum { COMPARED = 4096, WAY = 16384, LINES_BEYOND_L1 = 32 };

static _Alignas(65536) unsigned char pool[(LINES_BEYOND_L1 + 2) * WAY];

/* Store and load of a round: at `to` and `from`, or at one of LINES_BEYOND_L1 places a way apart. */
struct places {
    unsigned char *to;
    const unsigned char *from;
    uint64_t to_step, from_step;
};

#define KERNEL(name, TYPE, STORE, LOAD)                                                            \
    static __attribute__((noinline)) void name(const struct places *p, uint64_t rounds)            \
    {                                                                                              \
        const svbool_t all = svptrue_b8();                                                         \
        svint##TYPE##_t value = svdup_s##TYPE(0);                                                  \
        for (uint64_t i = 0; i < rounds; i++) {                                                    \
            int##TYPE##_t *to = (int##TYPE##_t *)(p->to + i % LINES_BEYOND_L1 * p->to_step);        \
            const int##TYPE##_t *from = (const int##TYPE##_t *)(p->from + i % LINES_BEYOND_L1 * p->from_step); \
            STORE;                                                                                 \
            value = LOAD;                                                                          \
            __asm__ volatile("" : "+w"(value) : : "memory");                                       \
        }                                                                                          \
        (void)all;                                                                                 \
    }

KERNEL(vectors, 64, svst1(all, to, value), svld1(all, from))
KERNEL(gathers, 64, svst1(svptrue_pat_b64(SV_VL1), to, value), svld1_gather_index(all, from, svindex_s64(0, 1)))
KERNEL(unaligned, 16, svst1(svptrue_pat_b16(SV_VL2), to, value), svld1(all, from))
KERNEL(pairs, 64, svst2(svptrue_pat_b64(SV_VL1), to, svcreate2(value, value)),
       svget2(svld2(svptrue_pat_b64(SV_VL1), from), 0))
KERNEL(small_pairs, 16, svst2(all, to, svcreate2(value, value)), svld1(all, from))

static void (*const kernels[CASES])(const struct places *, uint64_t) = {
    gathers, vectors, unaligned, pairs, small_pairs, vectors, vectors, vectors,
};

/* Nothing overlaps in any case; with `clear` neither do the bytes that are compared. */
static struct places places_of(uint64_t which, bool clear)
{
    unsigned char *base = pool + WAY, *other = base + COMPARED;
    switch (which) {
    case GATHER: return (struct places){base + (clear ? LINE : LINE / 2), base, 0, 0};
    case PAGE: return (struct places){other + COMPARED - 32 - (clear ? 1024 : 0), base + COMPARED - 32 + 2 * COMPARED, 0, 0};
    case UNALIGNED: return (struct places){base + 2, base + 6 + (clear ? 64 : 0), 0, 0};
    case PAIRS: return (struct places){base, base + (clear ? LINE : LINE / 2), 0, 0};
    case SMALL_PAIRS: return (struct places){base, base + (clear ? LINE : 2 * svcntb()), 0, 0};
    case LOW_BITS: return (struct places){other + (clear ? 1024 : 0), base, 0, 0};
    case MISSED: return (struct places){other + (clear ? 1024 : 0), base, WAY, 0};
    default: return (struct places){other + (clear ? 1024 : 0), base, WAY, WAY};
    }
}

/* Rows of six doubles, and those of a group that is loaded before the group before it is stored. */
enum { COLUMNS = 6, ROW_COUNT = 256, GROUP = 8 };

static __attribute__((noinline)) void rows_in_turn(double *y, const double *x)
{
    const svbool_t row = svptrue_pat_b64(SV_VL6);
    for (unsigned j = 0; j < ROW_COUNT; j++, y += COLUMNS, x += COLUMNS)
        svst1(row, y, svadd_x(row, svld1(row, y), svld1(row, x)));
}

#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define DECLARE(k) svfloat64_t sum##k;
#define LOAD_ROW(k) sum##k = svadd_x(row, svld1(row, from + k * COLUMNS), svld1(row, x + k * COLUMNS));
#define STORE_ROW(k) svst1(row, y + k * COLUMNS, sum##k);
#define NEXT_ROW(k)                                                                                        \
    {                                                                                                      \
        svfloat64_t next = svadd_x(row, svld1(row, from + k * COLUMNS), svld1(row, x + k * COLUMNS));      \
        svst1(row, y + k * COLUMNS, sum##k);                                                               \
        sum##k = next;                                                                                     \
    }

/* Each row is loaded a group before the row at its position is stored, so that no load follows the store of the row before it. */
static __attribute__((noinline)) void rows_pipelined(double *y, const double *x)
{
    const svbool_t row = svptrue_pat_b64(SV_VL6);
    const double *restrict from = y;
    EACH(DECLARE)
    EACH(LOAD_ROW)
    for (unsigned j = GROUP; j < ROW_COUNT; j += GROUP, y += GROUP * COLUMNS) {
        from += GROUP * COLUMNS, x += GROUP * COLUMNS;
        EACH(NEXT_ROW)
    }
    EACH(STORE_ROW)
}

static __attribute__((noinline)) void rows_of_elements(double *y, const double *x)
{
    for (unsigned j = 0; j < ROW_COUNT; j++, y += COLUMNS, x += COLUMNS)
        _Pragma("GCC unroll 6") for (unsigned i = 0; i < COLUMNS; i++)
            y[i] += x[i];
}

/* `rounds` passes over all rows; whether each element has been added to as often. */
static bool add_rows(uint64_t form, uint64_t rounds)
{
    static void (*const forms[])(double *, const double *) = {rows_in_turn, rows_pipelined, rows_of_elements};
    double *y = (double *)pool, *x = y + ROW_COUNT * COLUMNS;
    for (unsigned i = 0; i < ROW_COUNT * COLUMNS; i++)
        x[i] = i % 7;
    forms[form](y, x);
    measure_begin("interlock");
    for (uint64_t i = 0; i < rounds; i++)
        forms[form](y, x);
    measure_end();
    bool ok = true;
    for (unsigned i = 0; i < ROW_COUNT * COLUMNS; i++)
        ok &= y[i] == (double)(rounds + 1) * x[i];
    return ok;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    if (options[CASE].value == ROWS) {
        if (svcntd() < 8)
            cannot_run("case=rows needs vectors of 512 bits");
        return finish(add_rows(options[CLEAR].value, options[ROUNDS].value), options, COUNT_OF(options));
    }
    if (options[CLEAR].value > 1)
        cannot_run("clear=2 is for case=rows");
    const struct places places = places_of(options[CASE].value, options[CLEAR].value);
    void (*run)(const struct places *, uint64_t) = kernels[options[CASE].value];
    run(&places, LINES_BEYOND_L1);
    /* Loads find what was there before: no store may reach it. */
    unsigned char *mark = (unsigned char *)places.from;
    *mark = 1;

    measure_begin("interlock");
    run(&places, options[ROUNDS].value);
    measure_end();
    return finish(*mark == 1, options, COUNT_OF(options));
}
