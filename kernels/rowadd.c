/* Predicated row add: short rows that are not a multiple of the vector length, stored and loaded again with a mask. */
#include "runtime.h"

enum { MAX_X = 8, MAX_ROWS = 4096 };

static _Alignas(LINE) unsigned char pool[2 * MAX_X * MAX_ROWS * sizeof(double)];

typedef void kernel(double *y, const double *x1, uint64_t rows, uint64_t x, uint64_t pitch_bytes);
kernel rowadd_kernel, rowadd_padded_kernel;

enum { X, PITCH, ROWS, PASSES };

static struct option options[] = {
    [X] = {"x", 6, 1, MAX_X, NULL},
    [PITCH] = {"pitch", 0, 0, MAX_X, NULL},
    [ROWS] = {"rows", 256, 1, MAX_ROWS, NULL},
    [PASSES] = {"passes", 4000, 1, 1000000000, NULL},
};

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t x = options[X].value, rows = options[ROWS].value, passes = options[PASSES].value;
    if (!options[PITCH].value)
        options[PITCH].value = x;
    uint64_t pitch = options[PITCH].value;
    if (pitch < x)
        cannot_run("pitch must be at least x");
    if (x > svcntd())
        cannot_run("x is larger than a vector of this length; x=8 needs 512 bits");
    double *arrays[2];
    place_arrays(pool, sizeof pool, rows * pitch * sizeof(double), 2, arrays);
    double *y = arrays[0], *x1 = arrays[1];
    for (uint64_t i = 0; i < rows * pitch; i++) {
        y[i] = 0;
        x1[i] = (double)(i % 1021);
    }
    kernel *run = pitch > x ? rowadd_padded_kernel : rowadd_kernel;
    run(y, x1, rows, x, pitch * sizeof(double));

    measure_begin("rowadd");
    for (uint64_t i = 0; i < passes; i++)
        run(y, x1, rows, x, pitch * sizeof(double));
    measure_end();

    /* All sums are integers, hence exact; the padding must be unchanged. */
    bool ok = true;
    for (uint64_t i = 0; i < rows * pitch; i++)
        ok &= y[i] == (i % pitch < x ? (double)(passes + 1) * x1[i] : 0);
    return finish(ok, options, COUNT_OF(options));
}
