/* Triad under a condition, which a compiler turns into a mask: if (m(i) > 0) y(i) = x1(i) + c*x2(i). A vector without an active element
 * accesses no line of x1, x2 and y, so that their accesses do not advance line by line. Each thread has a contiguous part. */
#include "threads.h"

enum { MAX_N = 1 << 23, MAX_LINES = 1000, CONSTANT = 3, MASKS = 3 };
static _Alignas(LINE) unsigned char pool[(MASKS + 1) * (8ul * MAX_N + MAX_LINES * LINE)];

enum { NONE, ALL, MASKED };
enum { N, EVERY, PREFETCH, LINES, PASSES, THREADS };

static struct option options[] = {
    [N] = {"n", 393216, 64, MAX_N, NULL},
    [EVERY] = {"every", 1, 1, 1 << 20, NULL},
    [PREFETCH] = {"prefetch", NONE, 0, 0, "none|all|masked"},
    [LINES] = {"lines", 8, 1, MAX_LINES, NULL},
    [PASSES] = {"passes", 1, 1, 1000000000, NULL},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
};

/* y, x1, x2 and m. */
static double *arrays[MASKS + 1];
static _Alignas(LINE) bool wrong[MAX_THREADS];

static uint64_t of(unsigned option)
{
    return options[option].value;
}

static uint64_t part(unsigned thread)
{
    return of(N) / 32 * thread / of(THREADS) * 32;
}

/* Whether the condition of element `i` is true: for one of `every` elements, at random. */
static bool is_true(uint64_t i)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return (x ^ x >> 31) % of(EVERY) == 0;
}

/* The arrays in registers. */
struct triad {
    double *y;
    const double *x1, *x2, *m;
    uint64_t ahead;
};

static struct triad triad(void)
{
    return (struct triad){arrays[0], arrays[1], arrays[2], arrays[MASKS], of(LINES) * LINE / 8};
}

static inline svbool_t condition(svbool_t all, const struct triad *t, uint64_t i)
{
    return svcmpgt(all, svld1(all, t->m + i), 0);
}

static inline void triad_of_vector(svbool_t active, const struct triad *t, uint64_t i)
{
    svst1(active, t->y + i, svmla_x(active, svld1(active, t->x1 + i), svld1(active, t->x2 + i), CONSTANT));
}

/* A prefetch without an active element does nothing. */
static inline void prefetch_vector(svbool_t active, const struct triad *t, uint64_t i)
{
    svprfd(active, t->y + i, SV_PSTL1KEEP);
    svprfd(active, t->x1 + i, SV_PLDL1KEEP);
    svprfd(active, t->x2 + i, SV_PLDL1KEEP);
}

static void __attribute__((noinline)) masked_triad_kernel(uint64_t from, uint64_t to)
{
    svbool_t all = svptrue_b64();
    const struct triad t = triad();
    for (uint64_t i = from; i < to; i += svcntd())
        triad_of_vector(condition(all, &t, i), &t, i);
}

/* Prefetches whole lines ahead, whatever the condition of their elements. */
static void __attribute__((noinline)) masked_triad_all_kernel(uint64_t from, uint64_t to)
{
    svbool_t all = svptrue_b64();
    const struct triad t = triad();
    for (uint64_t i = from; i < to; i += LINE / 8) {
        prefetch_vector(all, &t, i + t.ahead);
        for (uint64_t v = i; v < i + LINE / 8; v += svcntd())
            triad_of_vector(condition(all, &t, v), &t, v);
    }
}

/* Prefetches ahead what elements whose condition is true will access. */
static void __attribute__((noinline)) masked_triad_masked_kernel(uint64_t from, uint64_t to)
{
    svbool_t all = svptrue_b64();
    const struct triad t = triad();
    for (uint64_t i = from; i < to; i += svcntd()) {
        prefetch_vector(condition(all, &t, i + t.ahead), &t, i + t.ahead);
        triad_of_vector(condition(all, &t, i), &t, i);
    }
}

static void (*const KERNELS[])(uint64_t from, uint64_t to) = {
    [NONE] = masked_triad_kernel,
    [ALL] = masked_triad_all_kernel,
    [MASKED] = masked_triad_masked_kernel,
};

/* Values are small integers, hence sums are exact. */
static void initialise(uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        arrays[0][i] = -1;
        arrays[1][i] = (double)(i & 1023);
        arrays[2][i] = (double)(i & 511);
        arrays[MASKS][i] = is_true(i);
    }
}

static bool is_right(uint64_t from, uint64_t to)
{
    bool ok = true;
    for (uint64_t i = from; i < to; i++)
        ok &= arrays[0][i] == (is_true(i) ? arrays[1][i] + CONSTANT * arrays[2][i] : -1);
    return ok;
}

static void masked_triad(unsigned thread)
{
    uint64_t from = part(thread), to = part(thread + 1);
    initialise(from, to);
    meet(thread);
    KERNELS[of(PREFETCH)](from, to);

    measure_begin_together(thread, "masked-triad");
    for (uint64_t i = 0; i < of(PASSES); i++)
        KERNELS[of(PREFETCH)](from, to);
    measure_end_together(thread);

    wrong[thread] = !is_right(from, to);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    /* Masks are read ahead, beyond the end of the last part. */
    const size_t bytes = of(N) * sizeof(double) + of(LINES) * LINE;
    if (of(N) % 64)
        cannot_run("n must be a multiple of 64");
    place_arrays(pool, sizeof pool, bytes, COUNT_OF(arrays), arrays);
    run_threads((unsigned)of(THREADS), masked_triad);

    bool ok = true;
    for (unsigned t = 0; t < of(THREADS); t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
