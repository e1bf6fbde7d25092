/* Loops over up to four arrays with one vector per iteration: load, copy, update, triad and daxpy. */
#include "plain.h"

enum { OP, N, PASSES };

static struct option options[] = {
    [OP] = {"op", TRIAD, 0, 0, "load|copy|update|triad|daxpy"},
    [N] = {"n", 1320, 8, POOL / sizeof(double), NULL},
    [PASSES] = {"passes", 5000, 1, 1000000000, NULL},
};

/* Element `i` of an array that increases in steps of one. */
static svfloat64_t ascending(uint64_t i)
{
    return svcvt_f64_x(svptrue_b64(), svindex_s64((int64_t)i, 1));
}

/* x1(i) = i, x2(i) = 2, x3(i) = n, y(i) = -1 unless it is x1. All results are integers below 2**53. */
static void initialise(double *const *arrays, unsigned count, uint64_t n)
{
    svbool_t all = svptrue_b64();
    for (uint64_t i = 0; i < n; i += svcntd()) {
        svst1(all, arrays[0] + i, ascending(i));
        if (count == 4) {
            svst1(all, arrays[1] + i, svdup_f64(2));
            svst1(all, arrays[2] + i, svdup_f64((double)n));
        }
        if (count > 1)
            svst1(all, arrays[count - 1] + i, svdup_f64(-1));
    }
}

/* Whether every element is its index times `scale`, plus `more`. */
static bool correct(const double *y, uint64_t n, double scale, double more)
{
    svbool_t all = svptrue_b64(), wrong = svpfalse();
    for (uint64_t i = 0; i < n; i += svcntd()) {
        svfloat64_t expected = svmla_x(all, svdup_f64(more), ascending(i), scale);
        wrong = svorr_z(all, wrong, svcmpne(all, svld1(all, y + i), expected));
    }
    return !svptest_any(all, wrong);
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t op = options[OP].value, n = options[N].value, passes = options[PASSES].value;
    if (n % 8 || n % svcntd())
        cannot_run("n must be a multiple of 8 and of the elements of a vector");
    unsigned count = streams[op];
    double *arrays[4];
    /* Arrays are page-aligned, as in the measured programs. */
    place_arrays(pool, sizeof pool, (n * sizeof(double) + PAGE - 1) / PAGE * PAGE, count, arrays);
    initialise(arrays, count, n);
    double *y = arrays[count - 1];
    const double *x1 = arrays[0], *x2 = arrays[count == 4 ? 1 : 0], *x3 = arrays[count == 4 ? 2 : 0];
    kernels[op](y, x1, x2, x3, n);

    double last = 0;
    measure_begin("plain");
    for (uint64_t i = 0; i < passes; i++)
        last = kernels[op](y, x1, x2, x3, n);
    measure_end();

    double scale = op == DAXPY ? 3 * (double)(passes + 1) : 1;
    double more = op == TRIAD ? 2 * (double)n : op == DAXPY ? -1 : 0;
    bool ok = last == (double)(n - svcntd()) * scale + more && correct(y, n, scale, more);
    return finish(ok, options, COUNT_OF(options));
}
