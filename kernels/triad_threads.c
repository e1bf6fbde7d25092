/* Triad on many threads: y(i) = x1(i) + c0 * x2(i), each thread with a contiguous part and never waiting for the others. */
#include "threads.h"

/* Three arrays of the 50 million elements of STREAM's usual size on this machine. */
enum { MAX_N = 50000000 };
static _Alignas(LINE) unsigned char pool[3ul * 8 * MAX_N];

typedef uint64_t kernel(double *y, const double *x1, const double *x2, uint64_t iterations, double c0,
                        uint64_t zero_distance, uint64_t l1_distance, uint64_t l2_distance);
kernel triad_kernel, triad_zfill_kernel, triad_swpf_kernel, triad_swpf_l1_kernel, triad_zfill_swpf_kernel;
void triad8_kernel(double *y, const double *x1, const double *x2, uint64_t iterations, double c0);

enum { N, PASSES, THREADS, FORM, INIT, ZERO_LINES, L1_LINES, L2_LINES };
enum { WIDE, PLAIN, SWPF_L1, SWPF, ZFILL, ZFILL_SWPF };
enum { BY_THREADS, BY_ONE };

static struct option options[] = {
    [N] = {"n", 174720, 64, MAX_N, NULL},
    [PASSES] = {"passes", 20, 1, 1000000000, NULL},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
    [FORM] = {"form", PLAIN, 0, 0, "wide|plain|swpf-l1|swpf|zfill|zfill-swpf"},
    [INIT] = {"init", BY_THREADS, 0, 0, "threads|one"},
    [ZERO_LINES] = {"zero-lines", 18, 1, 100, NULL},
    [L1_LINES] = {"l1-lines", 9, 1, 100, NULL},
    [L2_LINES] = {"l2-lines", 70, 1, 1000, NULL},
};

/* The loops of triad.S for each form: from the start of a part to the zeroing distance before its end, and from
 * there on, where DC ZVA would run into the next thread's part. */
static kernel *const with_zeroing[] = {
    [ZFILL] = triad_zfill_kernel,
    [ZFILL_SWPF] = triad_zfill_swpf_kernel,
};
static kernel *const without_zeroing[] = {
    [PLAIN] = triad_kernel,
    [SWPF_L1] = triad_swpf_l1_kernel,
    [SWPF] = triad_swpf_kernel,
    [ZFILL] = triad_kernel,
    [ZFILL_SWPF] = triad_swpf_kernel,
};

static const double C0 = 3.0;

static double *y, *x1, *x2;
static _Alignas(LINE) bool wrong[MAX_THREADS];

/* Elements of one iteration of the form's loop. */
static uint64_t per_iteration(void)
{
    return (options[FORM].value == WIDE ? 8 : 4) * svcntd();
}

/* Start of a thread's part, in elements: a multiple of an iteration, and of 64, so that no line belongs to two threads. */
static uint64_t part(unsigned thread)
{
    uint64_t unit = per_iteration() > 32 ? per_iteration() : 32;
    return options[N].value / unit * thread / options[THREADS].value * unit;
}

static uint64_t pass_by_fours(uint64_t from, uint64_t to)
{
    uint64_t form = options[FORM].value, step = per_iteration();
    uint64_t zero = options[ZERO_LINES].value * LINE, l1 = options[L1_LINES].value * LINE;
    uint64_t l2 = options[L2_LINES].value * LINE;
    uint64_t iterations = (to - from) / step, last = zero / (step * sizeof(double)), written = 0;
    if (form >= ZFILL && iterations > last) {
        written = with_zeroing[form](y + from, x1 + from, x2 + from, iterations - last, C0, zero, l1, l2);
        from += written / sizeof(double);
        iterations = last;
    }
    if (iterations)
        written += without_zeroing[form](y + from, x1 + from, x2 + from, iterations, C0, 0, l1, l2);
    return written / sizeof(double);
}

/* One pass over elements `from` to `to`; returns the number of elements written. */
static uint64_t pass(uint64_t from, uint64_t to)
{
    if (options[FORM].value != WIDE)
        return pass_by_fours(from, to);
    if (to > from)
        triad8_kernel(y + from, x1 + from, x2 + from, (to - from) / per_iteration(), C0);
    return to - from;
}

/* x1(i) = i, x2(i) = n - i: then y(i) = 3n - 2i exactly. */
static void initialise(uint64_t from, uint64_t to)
{
    svbool_t all = svptrue_b64();
    uint64_t n = options[N].value;
    for (uint64_t i = from; i < to; i += svcntd()) {
        svst1(all, x1 + i, svcvt_f64_x(all, svindex_s64((int64_t)i, 1)));
        svst1(all, x2 + i, svcvt_f64_x(all, svindex_s64((int64_t)(n - i), -1)));
        svst1(all, y + i, svdup_f64(0));
    }
}

static bool correct(uint64_t from, uint64_t to)
{
    svbool_t all = svptrue_b64(), differs = svpfalse();
    uint64_t n = options[N].value;
    for (uint64_t i = from; i < to; i += svcntd()) {
        svfloat64_t expected = svcvt_f64_x(all, svindex_s64((int64_t)(3 * n - 2 * i), -2));
        differs = svorr_z(all, differs, svcmpne(all, svld1(all, y + i), expected));
    }
    return !svptest_any(all, differs);
}

static void triad(unsigned thread)
{
    uint64_t from = part(thread), to = part(thread + 1);
    if (options[INIT].value == BY_THREADS)
        initialise(from, to);
    else if (thread == 0)
        initialise(0, options[N].value);
    meet(thread);
    bool ok = pass(from, to) == to - from;

    measure_begin_together(thread, "triad");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        ok &= pass(from, to) == to - from;
    measure_end_together(thread);
    wrong[thread] = !ok || !correct(from, to);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t n = options[N].value;
    if (n % 64 || n % per_iteration())
        cannot_run("n must be a multiple of 64");
    if (options[FORM].value >= ZFILL)
        require_line_zeroing();
    double *arrays[3];
    place_arrays(pool, sizeof pool, n * sizeof(double), 3, arrays);
    y = arrays[0], x1 = arrays[1], x2 = arrays[2];
    run_threads((unsigned)options[THREADS].value, triad);

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
