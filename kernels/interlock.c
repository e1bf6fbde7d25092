/* Loads behind stores to other bytes: where the store fetch interlock delays them although nothing overlaps. Each round stores a vector,
 * loads another, and stores that in the next round, so that delays add up. With clear=1 the load is out of reach of the check. */
#include "runtime.h"

enum { CASE, CLEAR, ROUNDS };
enum { GATHER, PAGE, UNALIGNED, PAIRS, SMALL_PAIRS, LOW_BITS, MISSED, BOTH_MISSED, CASES };

static struct option options[] = {
    [CASE] = {"case", GATHER, 0, 0, "gather|page|unaligned|pairs|small-pairs|low-bits|missed|both-missed"},
    [CLEAR] = {"clear", 0, 0, 1, NULL},
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

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
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
