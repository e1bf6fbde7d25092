/* Triad in single precision with gather loads and scatter stores on many threads: y(i) = x1(i) + c0 * x2(i), each thread with a
 * contiguous part. The loops are those of gather.S for strides that are not known when they are compiled; all strides are 1. */
#include "threads.h"

/* Three arrays of 80 MiB. */
enum { MAX_N = 20 << 20 };
static _Alignas(LINE) unsigned char pool[3ul * sizeof(float) * MAX_N];

typedef void kernel(void *y, const void *x1, const void *x2, uint64_t iterations, uint64_t load_stride,
                    uint64_t store_stride, float c0);
kernel contiguous_contiguous_single_kernel, contiguous_scatter_unknown_single_kernel, gather_contiguous_unknown_single_kernel,
    gather_scatter_unknown_single_kernel;

enum { CONTIGUOUS, INDEXED };
enum { LOAD, STORE, N, PASSES, THREADS };

static kernel *const kernels[2][2] = {
    [CONTIGUOUS] = {contiguous_contiguous_single_kernel, contiguous_scatter_unknown_single_kernel},
    [INDEXED] = {gather_contiguous_unknown_single_kernel, gather_scatter_unknown_single_kernel},
};

static struct option options[] = {
    [LOAD] = {"load", INDEXED, 0, 0, "contiguous|gather"},
    [STORE] = {"store", CONTIGUOUS, 0, 0, "contiguous|scatter"},
    [N] = {"n", 349440, 64, MAX_N, NULL},
    [PASSES] = {"passes", 2, 1, 1000000000, NULL},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
};

static float *y, *x1, *x2;
static _Alignas(LINE) bool wrong[MAX_THREADS];

static uint64_t per_iteration(void)
{
    return 4 * svcntw();
}

/* Start of a thread's part, in elements: a multiple of an iteration and of a line. */
static uint64_t part(unsigned thread)
{
    uint64_t unit = per_iteration() > 64 ? per_iteration() : 64;
    return options[N].value / unit * thread / options[THREADS].value * unit;
}

/* Vectors of one value, a small integer. */
static float of_x1(uint64_t i)
{
    return (float)(i / svcntw() & 15);
}

static float of_x2(uint64_t i)
{
    return (float)(i / svcntw() >> 4 & 15);
}

static void gather_threads(unsigned thread)
{
    uint64_t from = part(thread), to = part(thread + 1);
    svbool_t all = svptrue_b32();
    for (uint64_t i = from; i < to; i += svcntw()) {
        svst1(all, x1 + i, svdup_f32(of_x1(i)));
        svst1(all, x2 + i, svdup_f32(of_x2(i)));
        svst1(all, y + i, svdup_f32(-1));
    }
    kernel *run = kernels[options[LOAD].value][options[STORE].value];
    uint64_t iterations = (to - from) / per_iteration();
    meet(thread);
    if (iterations)
        run(y + from, x1 + from, x2 + from, iterations, 1, 1, 3);

    measure_begin_together(thread, "gather-threads");
    for (uint64_t i = 0; i < options[PASSES].value && iterations; i++)
        run(y + from, x1 + from, x2 + from, iterations, 1, 1, 3);
    measure_end_together(thread);

    svbool_t differs = svpfalse();
    for (uint64_t i = from; i < to; i += svcntw())
        differs = svorr_z(all, differs, svcmpne(all, svld1(all, y + i), svdup_f32(of_x1(i) + 3 * of_x2(i))));
    wrong[thread] = svptest_any(all, differs);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t n = options[N].value;
    if (n % 64)
        cannot_run("n must be a multiple of 64");
    double *arrays[3];
    place_arrays(pool, sizeof pool, n * sizeof(float), 3, arrays);
    y = (float *)arrays[0], x1 = (float *)arrays[1], x2 = (float *)arrays[2];
    run_threads((unsigned)options[THREADS].value, gather_threads);

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
