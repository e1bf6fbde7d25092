/* Register-blocked DGEMM tile on packed blocks in the L1 cache: C += A * B, repeatedly. */
#include "runtime.h"

enum { MAX_K = 1024, MAX_ROWS = 8, MAX_VECTORS = 4, MAX_LANES = 32 };

/* The kernel loads one k past the end of a and b. */
static _Alignas(LINE) double a[(MAX_K + 1) * MAX_ROWS];
static _Alignas(LINE) double b[(MAX_K + 1) * MAX_VECTORS * MAX_LANES];
static _Alignas(LINE) double c[MAX_ROWS * MAX_VECTORS * MAX_LANES];

typedef void kernel(double *c, const double *a, const double *b, uint64_t iterations);
kernel dgemm_5x4_kernel, dgemm_8x3_kernel;

enum { TILE, K, PASSES };

static struct option options[] = {
    [TILE] = {"tile", 0, 0, 0, "5x4|8x3"},
    [K] = {"k", 128, 4, MAX_K, NULL},
    [PASSES] = {"passes", 2000, 1, 1000000000, NULL},
};

static const struct {
    kernel *run;
    uint64_t rows, vectors;
} TILES[] = {{dgemm_5x4_kernel, 5, 4}, {dgemm_8x3_kernel, 8, 3}};

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t k = options[K].value, passes = options[PASSES].value;
    if (k % 4)
        cannot_run("k must be a multiple of 4");
    kernel *run = TILES[options[TILE].value].run;
    uint64_t rows = TILES[options[TILE].value].rows, columns = TILES[options[TILE].value].vectors * svcntd();
    /* Small integers: every sum is exact. */
    for (uint64_t i = 0; i < (k + 1) * rows; i++)
        a[i] = (double)(int64_t)(i % 13) - 6;
    for (uint64_t i = 0; i < (k + 1) * columns; i++)
        b[i] = (double)(int64_t)(i % 17) - 5;
    for (uint64_t i = 0; i < rows * columns; i++)
        c[i] = (double)i;
    run(c, a, b, k / 4);

    measure_begin("dgemm-tile");
    for (uint64_t i = 0; i < passes; i++)
        run(c, a, b, k / 4);
    measure_end();

    bool ok = true;
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t column = 0; column < columns; column++) {
            uint64_t i = row * columns + column;
            double sum = 0;
            for (uint64_t l = 0; l < k; l++)
                sum += a[l * rows + row] * b[l * columns + column];
            ok &= c[i] == (double)i + (double)(passes + 1) * sum;
        }
    return finish(ok, options, COUNT_OF(options));
}
