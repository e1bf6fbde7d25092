/* Triad: y(i) = x1(i) + c0 * x2(i), built several times for the levels of the memory hierarchy (see Makefile). */
#include "runtime.h"

/* TRIAD_BODY      vectors of each array per iteration of the loop: 8, or 4
 * TRIAD_N         default elements per array
 * TRIAD_PASSES    default number of passes
 * TRIAD_POOL      bytes for the three arrays together
 * TRIAD_ZERO      the loop clears lines of y ahead of the stores with DC ZVA
 * TRIAD_SOFTWARE  the loop prefetches by software */

static _Alignas(LINE) unsigned char pool[TRIAD_POOL];

enum {
    N,
    PASSES,
#if TRIAD_SOFTWARE
    L1_LINES,
    L2_LINES,
#endif
#if TRIAD_ZERO || TRIAD_SOFTWARE
    ZERO_LINES,
#endif
};

static struct option options[] = {
    [N] = {"n", TRIAD_N, 64, TRIAD_POOL / 24, NULL},
    [PASSES] = {"passes", TRIAD_PASSES, 1, 1000000000, NULL},
#if TRIAD_SOFTWARE
    [L1_LINES] = {"l1-lines", 9, 1, 100, NULL},
    [L2_LINES] = {"l2-lines", 70, 1, 1000, NULL},
    [ZERO_LINES] = {"zero-lines", 0, 0, 100, NULL},
#elif TRIAD_ZERO
    [ZERO_LINES] = {"zero-lines", 15, 1, 100, NULL},
#endif
};

static const double C0 = 3.0;

#if TRIAD_BODY == 8

void triad_kernel(double *y, const double *x1, const double *x2, uint64_t iterations, double c0);

/* One pass over the arrays; returns the number of elements of y that the kernel wrote. */
static uint64_t pass(double *y, const double *x1, const double *x2)
{
    uint64_t n = options[N].value;
    triad_kernel(y, x1, x2, n / (TRIAD_BODY * svcntd()), C0);
    return n;
}

#else

typedef uint64_t kernel(double *y, const double *x1, const double *x2, uint64_t iterations, double c0,
                        uint64_t zero_distance, uint64_t l1_distance, uint64_t l2_distance);
kernel triad_kernel, triad_zfill_kernel, triad_swpf_kernel, triad_zfill_swpf_kernel;

static uint64_t pass(double *y, const double *x1, const double *x2)
{
    uint64_t written = 0, n = options[N].value, per_iteration = TRIAD_BODY * svcntd();
    uint64_t l1 = 0, l2 = 0;
    kernel *ahead = triad_kernel;
#if TRIAD_SOFTWARE
    l1 = options[L1_LINES].value * LINE;
    l2 = options[L2_LINES].value * LINE;
    ahead = triad_swpf_kernel;
#endif
#if TRIAD_ZERO || TRIAD_SOFTWARE
    /* The last lines of y are stored without DC ZVA, which would run past the end of the array. */
    uint64_t distance = options[ZERO_LINES].value * LINE;
    uint64_t rest = distance / (per_iteration * sizeof(double));
    uint64_t iterations = n / per_iteration;
    if (distance && iterations > rest) {
        iterations -= rest;
#if TRIAD_SOFTWARE
        written = triad_zfill_swpf_kernel(y, x1, x2, iterations, C0, distance, l1, l2);
#else
        written = triad_zfill_kernel(y, x1, x2, iterations, C0, distance, l1, l2);
#endif
        written /= sizeof(double);
    }
#endif
    if (written < n)
        written += ahead(y + written, x1 + written, x2 + written, (n - written) / per_iteration, C0, 0, l1, l2) /
                   sizeof(double);
    return written;
}

#endif

/* x1(i) = i, x2(i) = n - i: then y(i) = 3n - 2i exactly. */
static void initialise(double *y, double *x1, double *x2, uint64_t n)
{
    svbool_t all = svptrue_b64();
    for (uint64_t i = 0; i < n; i += svcntd()) {
        svst1(all, x1 + i, svcvt_f64_x(all, svindex_s64((int64_t)i, 1)));
        svst1(all, x2 + i, svcvt_f64_x(all, svindex_s64((int64_t)(n - i), -1)));
        svst1(all, y + i, svdup_f64(0));
    }
}

static bool correct(const double *y, uint64_t n)
{
    svbool_t all = svptrue_b64(), wrong = svpfalse();
    for (uint64_t i = 0; i < n; i += svcntd()) {
        svfloat64_t expected = svcvt_f64_x(all, svindex_s64((int64_t)(3 * n - 2 * i), -2));
        wrong = svorr_z(all, wrong, svcmpne(all, svld1(all, y + i), expected));
    }
    return !svptest_any(all, wrong);
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t n = options[N].value;
    if (n % 64 || n % (TRIAD_BODY * svcntd()))
        cannot_run("n must be a multiple of 64 and of the elements of one loop iteration");
#if TRIAD_ZERO || TRIAD_SOFTWARE
    if (options[ZERO_LINES].value)
        require_line_zeroing();
#endif
    double *arrays[3];
    place_arrays(pool, sizeof pool, n * sizeof(double), 3, arrays);
    double *y = arrays[0], *x1 = arrays[1], *x2 = arrays[2];
    initialise(y, x1, x2, n);
    uint64_t written = pass(y, x1, x2);
    bool ok = written == n;

    measure_begin("triad");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        ok &= pass(y, x1, x2) == n;
    measure_end();

    return finish(ok && correct(y, n), options, COUNT_OF(options));
}
