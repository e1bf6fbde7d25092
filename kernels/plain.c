/* Load, copy and Triad of four arrays with one vector per iteration. */
#include "runtime.h"

enum { POOL = 128 << 20 };

static _Alignas(LINE) unsigned char pool[POOL];

typedef double kernel(double *y, const double *x1, const double *x2, const double *x3, uint64_t n);
kernel plain_load_kernel, plain_copy_kernel, plain_triad_kernel;

enum { LOAD, COPY, TRIAD };
static kernel *const kernels[] = {plain_load_kernel, plain_copy_kernel, plain_triad_kernel};
static const unsigned streams[] = {1, 2, 4};

enum { OP, N, PASSES };

static struct option options[] = {
    [OP] = {"op", TRIAD, 0, 0, "load|copy|triad"},
    [N] = {"n", 1320, 8, POOL / sizeof(double), NULL},
    [PASSES] = {"passes", 5000, 1, 1000000000, NULL},
};

/* x1(i) = i, x2(i) = 2, x3(i) = n - i: then y(i) is i or n + i exactly. */
static void initialise(double *const *arrays, unsigned count, uint64_t n)
{
    svbool_t all = svptrue_b64();
    for (uint64_t i = 0; i < n; i += svcntd()) {
        svst1(all, arrays[0] + i, svcvt_f64_x(all, svindex_s64((int64_t)i, 1)));
        if (count == 4) {
            svst1(all, arrays[1] + i, svdup_f64(2));
            svst1(all, arrays[2] + i, svcvt_f64_x(all, svindex_s64((int64_t)(n - i), -1)));
        }
        if (count > 1)
            svst1(all, arrays[count - 1] + i, svdup_f64(-1));
    }
}

static bool correct(const double *y, uint64_t n, uint64_t first)
{
    svbool_t all = svptrue_b64(), wrong = svpfalse();
    for (uint64_t i = 0; i < n; i += svcntd()) {
        svfloat64_t expected = svcvt_f64_x(all, svindex_s64((int64_t)(first + i), 1));
        wrong = svorr_z(all, wrong, svcmpne(all, svld1(all, y + i), expected));
    }
    return !svptest_any(all, wrong);
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t op = options[OP].value, n = options[N].value, first = op == TRIAD ? n : 0;
    if (n % 8 || n % svcntd())
        cannot_run("n must be a multiple of 8 and of the elements of a vector");
    unsigned count = streams[op];
    double *arrays[4];
    place_arrays(pool, sizeof pool, n * sizeof(double), count, arrays);
    initialise(arrays, count, n);
    double *y = arrays[count - 1];
    const double *x1 = arrays[0], *x2 = arrays[count == 4 ? 1 : 0], *x3 = arrays[count == 4 ? 2 : 0];
    kernels[op](y, x1, x2, x3, n);

    double last = 0;
    measure_begin("plain");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        last = kernels[op](y, x1, x2, x3, n);
    measure_end();

    return finish(last == (double)(first + n - svcntd()) && correct(y, n, first), options, COUNT_OF(options));
}
