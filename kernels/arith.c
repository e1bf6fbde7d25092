/* Basic arithmetic: y(i) = x1(i) op x2(i) on data in the L1 cache. */
#include "runtime.h"

enum { MAX_N = 1 << 16 };

static _Alignas(LINE) unsigned char pool[3 * MAX_N * sizeof(double)];

typedef void kernel(double *y, const double *x1, const double *x2, uint64_t iterations, double c0);
kernel add_kernel, mul_kernel, fma_kernel, div_kernel, div_series_kernel, max_kernel;
kernel add_scalar_kernel, mul_scalar_kernel, fma_scalar_kernel, div_series_scalar_kernel, max_scalar_kernel;

enum { ADD, MUL, FMA, DIV, DIV_SERIES, MAX };
enum { VECTOR, SCALAR };

/* The division instruction has no scalar loop. */
static kernel *const KERNELS[2][6] = {
    [VECTOR] = {add_kernel, mul_kernel, fma_kernel, div_kernel, div_series_kernel, max_kernel},
    [SCALAR] = {add_scalar_kernel, mul_scalar_kernel, fma_scalar_kernel, NULL, div_series_scalar_kernel,
                max_scalar_kernel},
};

enum { OP, N, PASSES, FORM };

static struct option options[] = {
    [OP] = {"op", FMA, 0, 0, "add|mul|fma|div|div-series|max"},
    [N] = {"n", 2048, 64, MAX_N, NULL},
    [PASSES] = {"passes", 4000, 1, 1000000000, NULL},
    [FORM] = {"form", VECTOR, 0, 0, "vector|scalar"},
};

static const double C0 = 3.0;

static bool as_expected(uint64_t op, double y, double x1, double x2)
{
    switch (op) {
    case ADD:
        return y == x1 + x2;
    case MUL:
        return y == x1 * x2;
    case FMA:
        return y == __builtin_fma(C0, x2, x1);
    case DIV:
        return y == x1 / x2;
    case MAX:
        return y == (x1 > x2 ? x1 : x2);
    default: {
        double error = y - x1 / x2, bound = x1 / x2 * 0x1p-50;
        return error <= bound && -error <= bound;
    }
    }
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t op = options[OP].value, n = options[N].value;
    if (n % (8 * svcntd()))
        cannot_run("n must be a multiple of the elements of eight vectors");
    if (op == DIV_SERIES && n < 16 * svcntd())
        cannot_run("div-series needs n of sixteen vectors at least");
    kernel *run = KERNELS[options[FORM].value][op];
    if (!run)
        cannot_run("form=scalar is for all but div");
    double *arrays[3];
    place_arrays(pool, sizeof pool, n * sizeof(double), 3, arrays);
    double *y = arrays[0], *x1 = arrays[1], *x2 = arrays[2];
    for (uint64_t i = 0; i < n; i++) {
        y[i] = 0;
        x1[i] = 1.0 + (double)i * 0.7;
        x2[i] = 3.0 + (double)i * 0.1;
    }
    uint64_t iterations = n / (8 * (options[FORM].value == SCALAR ? 1 : svcntd()));
    run(y, x1, x2, iterations, C0);

    measure_begin("arith");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        run(y, x1, x2, iterations, C0);
    measure_end();

    bool ok = true;
    for (uint64_t i = 0; i < n; i++)
        ok &= as_expected(op, y[i], x1[i], x2[i]);
    return finish(ok, options, COUNT_OF(options));
}
