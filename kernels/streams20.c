/* Two polynomials of nine arrays each, y and y2: 18 streams that are read and two that are written, more than the prefetch queue
 * has entries. Each thread has a contiguous part. */
#include "threads.h"

enum { ARRAYS = 20, TERMS = 9, MAX_N = 1 << 21 };
static _Alignas(LINE) unsigned char pool[(size_t)ARRAYS * 8 * MAX_N];

enum { N, PASSES, THREADS, SOFTWARE };

static struct option options[] = {
    [N] = {"n", 161664, 64, MAX_N, NULL},
    [PASSES] = {"passes", 1, 1, 1000000000, NULL},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
    [SOFTWARE] = {"software", 4, 0, 2 * TERMS, NULL},
};

static double *arrays[ARRAYS];
static _Alignas(LINE) bool wrong[MAX_THREADS];

/* Lines between an access and its software prefetch. */
enum { AHEAD_L1 = 6, AHEAD_L2 = 40 };

static uint64_t part(unsigned thread)
{
    return options[N].value / 32 * thread / options[THREADS].value * 32;
}

/* ((x1*c0 + x2)*c1 + ...) + x9 of the vectors at `i`; all factors are 2. */
static inline svfloat64_t polynomial(svbool_t all, double *const x[TERMS], uint64_t i, svfloat64_t two)
{
    svfloat64_t sum = svld1(all, x[0] + i);
    for (unsigned k = 1; k < TERMS; k++)
        sum = svmad_x(all, sum, two, svld1(all, x[k] + i));
    return sum;
}

/* One line of all arrays per iteration; the first `software` arrays are prefetched by instructions. */
static void __attribute__((noinline)) streams20_kernel(uint64_t from, uint64_t to, uint64_t software)
{
    svbool_t all = svptrue_b64();
    svfloat64_t two = svdup_f64(2);
    double *x[2 * TERMS];
    for (unsigned k = 0; k < 2 * TERMS; k++)
        x[k] = arrays[2 + k];
    double *y = arrays[0], *y2 = arrays[1];
    for (uint64_t i = from; i < to; i += 4 * svcntd()) {
        for (uint64_t k = 0; k < software; k++) {
            svprfd(all, x[k] + i + AHEAD_L1 * LINE / 8, SV_PLDL1KEEP);
            svprfd(all, x[k] + i + AHEAD_L2 * LINE / 8, SV_PLDL2KEEP);
        }
        for (uint64_t v = i; v < i + 4 * svcntd(); v += svcntd()) {
            svst1(all, y + v, polynomial(all, x, v, two));
            svst1(all, y2 + v, polynomial(all, x + TERMS, v, two));
        }
    }
}

/* All elements of array k are k, so each polynomial has one value. */
static double value(unsigned first)
{
    double sum = first;
    for (unsigned k = 1; k < TERMS; k++)
        sum = sum * 2 + (first + k);
    return sum;
}

static void streams20(unsigned thread)
{
    uint64_t from = part(thread), to = part(thread + 1);
    svbool_t all = svptrue_b64();
    for (unsigned k = 0; k < ARRAYS; k++)
        for (uint64_t i = from; i < to; i += svcntd())
            svst1(all, arrays[k] + i, svdup_f64(k));
    meet(thread);
    streams20_kernel(from, to, options[SOFTWARE].value);

    measure_begin_together(thread, "streams20");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        streams20_kernel(from, to, options[SOFTWARE].value);
    measure_end_together(thread);

    bool ok = true;
    for (uint64_t i = from; i < to; i++)
        ok &= arrays[0][i] == value(2) && arrays[1][i] == value(2 + TERMS);
    wrong[thread] = !ok;
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t n = options[N].value;
    if (n % 64)
        cannot_run("n must be a multiple of 64");
    place_arrays(pool, sizeof pool, n * sizeof(double), ARRAYS, arrays);
    run_threads((unsigned)options[THREADS].value, streams20);

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
