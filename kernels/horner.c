/* Chains of FMAs: rows of one vector, each replaced by a polynomial of itself (m = 0) or of the row before (m = 1). */
#include "runtime.h"

enum { MAX_ROWS = 4096, MAX_LANES = 32, MAX_DEGREE = 9, ROWS_TOGETHER = 8 };

/* Row 0 is the seed of m = 1, one row that m = 0 does not touch. Placed so that row 1 starts on a cache line. */
static _Alignas(LINE) double pool[LINE / sizeof(double) + MAX_ROWS * MAX_LANES];
static double start[(1 + MAX_ROWS) * MAX_LANES];

typedef void kernel(double *store, const double *load, const double *coefficients, uint64_t iterations);

#define DECLARE(degree) \
    kernel horner##degree##_kernel, horner##degree##_interleaved_kernel, horner##degree##_pipelined_kernel
DECLARE(1);
DECLARE(2);
DECLARE(3);
DECLARE(4);
DECLARE(5);
DECLARE(6);
DECLARE(7);
DECLARE(8);
DECLARE(9);

#define FORMS(degree) \
    {horner##degree##_kernel, horner##degree##_interleaved_kernel, horner##degree##_pipelined_kernel}
static kernel *const KERNELS[][3] = {
    FORMS(1), FORMS(2), FORMS(3), FORMS(4), FORMS(5), FORMS(6), FORMS(7), FORMS(8), FORMS(9),
};

enum { SEQUENTIAL, INTERLEAVED, PIPELINED };
enum { DEGREE, M, FORM, ROWS, PASSES };

static struct option options[] = {
    [DEGREE] = {"degree", 9, 1, MAX_DEGREE, NULL},
    [M] = {"m", 0, 0, 1, NULL},
    [FORM] = {"form", SEQUENTIAL, 0, 0, "sequential|interleaved|pipelined"},
    [ROWS] = {"rows", 512, ROWS_TOGETHER, MAX_ROWS, NULL},
    [PASSES] = {"passes", 1000, 1, 1000000000, NULL},
};

/* A chaotic map of [0, 1] to itself, so that one wrong bit anywhere grows into a different result. */
static const double CHAOTIC[MAX_DEGREE + 1] = {0.01, 3.8, -3.8, 1e-3, -1e-3, 2e-3, -2e-3, 1e-3, 3e-3, -3e-3};
/* That is impossible with degree 1. */
static const double LINEAR[2] = {1.0, -0.999};

static double polynomial(double y, const double *c, uint64_t degree)
{
    double value = c[degree];
    while (degree--)
        value = __builtin_fma(value, y, c[degree]);
    return value;
}

/* Rows checked at each end of the array: enough to pass through every instruction of all forms of the loop. */
enum { ROWS_CHECKED = 2 * ROWS_TOGETHER };

/* Recomputes one element with scalar instructions. */
static double expected(uint64_t row, uint64_t lane, uint64_t passes, const double *c)
{
    uint64_t lanes = svcntd(), degree = options[DEGREE].value;
    double y = options[M].value ? start[lane] : start[(1 + row) * lanes + lane];
    for (uint64_t i = options[M].value ? row + 1 : passes; i; i--)
        y = polynomial(y, c, degree);
    return y;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t lanes = svcntd(), rows = options[ROWS].value, passes = options[PASSES].value;
    uint64_t step = options[FORM].value == SEQUENTIAL ? 2 : ROWS_TOGETHER;
    if (rows % ROWS_TOGETHER)
        cannot_run("rows must be a multiple of 8");
    if (options[FORM].value != SEQUENTIAL && options[M].value)
        cannot_run("rows can only be sequential with m=1: each needs the one before");
    const double *c = options[DEGREE].value == 1 ? LINEAR : CHAOTIC;
    double *y = pool + LINE / sizeof(double);
    double *seed = y - lanes;
    for (uint64_t i = 0; i < (1 + rows) * lanes; i++)
        seed[i] = start[i] = 0.1 + 0.8 * (double)(i * 37 % 1009) / 1009;
    kernel *run = KERNELS[options[DEGREE].value - 1][options[FORM].value];
    const double *load = options[M].value ? seed : y;
    run(y, load, c, rows / step);

    measure_begin("horner");
    for (uint64_t i = 0; i < passes; i++)
        run(y, load, c, rows / step);
    measure_end();

    bool ok = true;
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t lane = row % lanes;
        if (row < ROWS_CHECKED || row + ROWS_CHECKED >= rows)
            ok &= y[row * lanes + lane] == expected(row, lane, passes + 1, c);
    }
    return finish(ok, options, COUNT_OF(options));
}
