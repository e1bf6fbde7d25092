/* Functions and conversions of one operand: y(i) = op x1(i) on data in the L1 cache, vectorised or scalar. */
#include "runtime.h"

enum { MAX_N = 1 << 16 };

static _Alignas(LINE) unsigned char pool[2 * MAX_N * sizeof(double)];

typedef void kernel(void *y, const void *x1, uint64_t iterations);
kernel unary_abs_kernel, unary_aint_kernel, unary_dble_kernel, unary_real_kernel, unary_int_kernel;
kernel unary_abs_scalar_kernel, unary_aint_scalar_kernel, unary_dble_scalar_kernel, unary_real_scalar_kernel,
    unary_int_scalar_kernel;

enum { ABS, AINT, DBLE, REAL, INT };
enum { VECTOR, SCALAR };
enum { OP, N, PASSES, FORM };

static kernel *const KERNELS[2][5] = {
    [VECTOR] = {unary_abs_kernel, unary_aint_kernel, unary_dble_kernel, unary_real_kernel, unary_int_kernel},
    [SCALAR] = {unary_abs_scalar_kernel, unary_aint_scalar_kernel, unary_dble_scalar_kernel, unary_real_scalar_kernel,
                unary_int_scalar_kernel},
};

static struct option options[] = {
    [OP] = {"op", ABS, 0, 0, "abs|aint|dble|real|int"},
    [N] = {"n", 3072, 64, MAX_N, NULL},
    [PASSES] = {"passes", 4000, 1, 1000000000, NULL},
    [FORM] = {"form", VECTOR, 0, 0, "vector|scalar"},
};

/* Operands of both signs, with fractions, exact in single precision. */
static double operand(uint64_t i)
{
    return ((double)(i % 1999) - 999.0) * 0.375;
}

static void initialise(void *y, void *x1)
{
    for (uint64_t i = 0; i < options[N].value; i++) {
        ((double *)y)[i] = -1;
        if (options[OP].value == DBLE)
            ((float *)x1)[i] = (float)operand(i);
        else
            ((double *)x1)[i] = operand(i);
    }
}

static bool as_expected(const void *y, uint64_t i)
{
    double x = operand(i);
    switch (options[OP].value) {
    case ABS:
        return ((const double *)y)[i] == (x < 0 ? -x : x);
    case AINT:
        return ((const double *)y)[i] == (double)(int32_t)x;
    case DBLE:
        return ((const double *)y)[i] == x;
    case REAL:
        return ((const float *)y)[i] == (float)x;
    default:
        return ((const int32_t *)y)[i] == (int32_t)x;
    }
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t op = options[OP].value, n = options[N].value, form = options[FORM].value;
    uint64_t per_iteration = 8 * (form == VECTOR ? svcntd() : 1);
    if (n % per_iteration)
        cannot_run("n must be a multiple of the elements of eight vectors");
    double *arrays[2];
    place_arrays(pool, sizeof pool, n * sizeof(double), 2, arrays);
    /* The array of 32-bit elements is the second one: the first ends where it begins. */
    void *y = arrays[op == DBLE ? 0 : 1], *x1 = arrays[op == DBLE ? 1 : 0];
    initialise(y, x1);
    KERNELS[form][op](y, x1, n / per_iteration);

    measure_begin("unary");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        KERNELS[form][op](y, x1, n / per_iteration);
    measure_end();

    bool ok = true;
    for (uint64_t i = 0; i < n; i++)
        ok &= as_expected(y, i);
    return finish(ok, options, COUNT_OF(options));
}
