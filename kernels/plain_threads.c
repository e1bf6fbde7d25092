/* The loops of plain.S on many threads, each with a contiguous part of the arrays and never waiting for the others. */
#include "plain.h"
#include "threads.h"

enum { OP, N, PASSES, THREADS };

static struct option options[] = {
    [OP] = {"op", TRIAD, 0, 0, "load|copy|update|triad|daxpy"},
    [N] = {"n", 165000, LINE / sizeof(double), POOL / sizeof(double), NULL},
    [PASSES] = {"passes", 20, 1, 1000000000, NULL},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
};

static double *arrays[4];
static _Alignas(LINE) bool wrong[MAX_THREADS];

/* Start of a thread's part, in elements: at the start of a line. The last thread has the remainder. */
static uint64_t part(unsigned thread)
{
    uint64_t n = options[N].value, per_line = LINE / sizeof(double);
    return thread == options[THREADS].value ? n : n / per_line * thread / options[THREADS].value * per_line;
}

/* Element `i` of an array that increases in steps of one. */
static svfloat64_t ascending(uint64_t i)
{
    return svcvt_f64_x(svptrue_b64(), svindex_s64((int64_t)i, 1));
}

/* x1(i) = i, x2(i) = 2, x3(i) = 3, y(i) = -1 unless it is x1. All results are integers below 2**53. */
static void initialise(unsigned count, uint64_t from, uint64_t to)
{
    svbool_t all = svptrue_b64();
    for (uint64_t i = from; i < to; i += svcntd()) {
        svst1(all, arrays[0] + i, ascending(i));
        if (count == 4) {
            svst1(all, arrays[1] + i, svdup_f64(2));
            svst1(all, arrays[2] + i, svdup_f64(3));
        }
        if (count > 1)
            svst1(all, arrays[count - 1] + i, svdup_f64(-1));
    }
}

/* Whether every element is its index times `scale`, plus `more`. */
static bool correct(const double *y, uint64_t from, uint64_t to, double scale, double more)
{
    svbool_t all = svptrue_b64(), differs = svpfalse();
    for (uint64_t i = from; i < to; i += svcntd()) {
        svfloat64_t expected = svmla_x(all, svdup_f64(more), ascending(i), scale);
        differs = svorr_z(all, differs, svcmpne(all, svld1(all, y + i), expected));
    }
    return !svptest_any(all, differs);
}

static void run(unsigned thread)
{
    uint64_t op = options[OP].value, passes = options[PASSES].value;
    uint64_t from = part(thread), to = part(thread + 1);
    unsigned count = streams[op];
    double *y = arrays[count - 1] + from;
    const double *x1 = arrays[0] + from, *x2 = arrays[count == 4 ? 1 : 0] + from;
    const double *x3 = arrays[count == 4 ? 2 : 0] + from;
    initialise(count, from, to);
    meet(thread);
    double last = kernels[op](y, x1, x2, x3, to - from);

    measure_begin_together(thread, "plain");
    for (uint64_t i = 0; i < passes; i++)
        last = kernels[op](y, x1, x2, x3, to - from);
    measure_end_together(thread);

    double scale = op == DAXPY ? 3 * (double)(passes + 1) : 1;
    double more = op == TRIAD ? 6 : op == DAXPY ? -1 : 0;
    bool ok = last == (double)(to - svcntd()) * scale + more;
    wrong[thread] = !ok || !correct(arrays[count - 1], from, to, scale, more);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t n = options[N].value;
    if (n % 8)
        cannot_run("n must be a multiple of 8");
    if (n / (LINE / sizeof(double)) < options[THREADS].value)
        cannot_run("n must be 32 for each thread at least");
    /* Arrays are page-aligned, as in the measured programs. */
    place_arrays(pool, sizeof pool, (n * sizeof(double) + PAGE - 1) / PAGE * PAGE, streams[options[OP].value], arrays);
    run_threads((unsigned)options[THREADS].value, run);

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
