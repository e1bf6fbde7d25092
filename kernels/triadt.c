/* Triad through pointers, whose stride the compiler knows (contiguous) or not (gathers and scatters), swept again and again by
 * many threads, each with its part, which meet after each sweep. */
#include "threads.h"

enum { MAX_N = 1 << 20 };

static _Alignas(LINE) unsigned char pool[3ul * 8 * MAX_N];

/* gather.S */
typedef void kernel(void *y, const void *x1, const void *x2, uint64_t iterations, uint64_t load_stride,
                    uint64_t store_stride, double c0);
kernel contiguous_contiguous_double_kernel, gather_scatter_unknown_double_kernel;

enum { CONTIGUOUS, STRIDED };
static kernel *const kernels[] = {contiguous_contiguous_double_kernel, gather_scatter_unknown_double_kernel};

enum { POINTERS, N, PASSES, THREADS };

static struct option options[] = {
    [POINTERS] = {"pointers", CONTIGUOUS, 0, 0, "contiguous|strided"},
    [N] = {"n", 196608, 32, MAX_N, NULL},
    [PASSES] = {"passes", 20, 1, 1000000000, NULL},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
};

static const double C0 = 3.0;

static double *arrays[3];
static _Alignas(LINE) bool wrong[MAX_THREADS];

/* Where a thread's part begins: whole iterations of 32 elements or fewer, so that no line belongs to two. */
static uint64_t part(unsigned thread)
{
    return options[N].value / 32 * thread / options[THREADS].value * 32;
}

static void sweep(uint64_t from, uint64_t to)
{
    uint64_t iterations = (to - from) / (4 * svcntd());
    if (iterations)
        kernels[options[POINTERS].value](arrays[0] + from, arrays[1] + from, arrays[2] + from, iterations, 1, 1, C0);
}

static void run(unsigned thread)
{
    uint64_t from = part(thread), to = part(thread + 1);
    for (uint64_t i = from; i < to; i++) {
        arrays[0][i] = -1;
        arrays[1][i] = (double)i;
        arrays[2][i] = (double)(i % 77);
    }
    meet(thread);
    sweep(from, to);

    measure_begin_together(thread, "triadt");
    for (uint64_t i = 0; i < options[PASSES].value; i++) {
        sweep(from, to);
        meet(thread);
    }
    measure_end_together(thread);

    bool ok = true;
    for (uint64_t i = from; i < to; i++)
        ok &= arrays[0][i] == (double)i + C0 * (double)(i % 77);
    wrong[thread] = !ok;
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t n = options[N].value;
    if (n % 32)
        cannot_run("n must be a multiple of 32");
    place_arrays(pool, sizeof pool, n * sizeof(double), 3, arrays);
    run_threads((unsigned)options[THREADS].value, run);

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
