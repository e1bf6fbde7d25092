/* Triad with elements of 4 and 2 bytes: y(i) = x1(i) + c0 * x2(i) on one or more threads, each with a contiguous part. */
#include "threads.h"

/* Three arrays of 80 MiB. */
enum { MAX_BYTES = 80 << 20 };
static _Alignas(LINE) unsigned char pool[3ul * MAX_BYTES];

typedef uint64_t kernel(unsigned char *y, const unsigned char *x1, const unsigned char *x2, uint64_t iterations, double c0,
                        uint64_t zero_distance, uint64_t l1_distance, uint64_t l2_distance);
kernel wide_single_kernel, wide_short_kernel, swpf_l1_single_kernel, swpf_l1_short_kernel, swpf_single_kernel,
    swpf_short_kernel, zfill_swpf_single_kernel, zfill_swpf_short_kernel;

enum { SINGLE, SHORT };
enum { WIDE, SWPF_L1, SWPF, ZFILL_SWPF };
enum { TYPE, BYTES, PASSES, THREADS, FORM, ZERO_LINES, L1_LINES, L2_LINES };

static kernel *const kernels[2][4] = {
    [SINGLE] = {wide_single_kernel, swpf_l1_single_kernel, swpf_single_kernel, zfill_swpf_single_kernel},
    [SHORT] = {wide_short_kernel, swpf_l1_short_kernel, swpf_short_kernel, zfill_swpf_short_kernel},
};

static struct option options[] = {
    [TYPE] = {"type", SINGLE, 0, 0, "single|short"},
    [BYTES] = {"bytes", 10752, 512, MAX_BYTES, NULL},
    [PASSES] = {"passes", 4000, 1, 1000000000, NULL},
    [THREADS] = {"threads", 1, 1, MAX_THREADS, NULL},
    [FORM] = {"form", WIDE, 0, 0, "wide|swpf-l1|swpf|zfill-swpf"},
    [ZERO_LINES] = {"zero-lines", 18, 1, 100, NULL},
    [L1_LINES] = {"l1-lines", 9, 1, 100, NULL},
    [L2_LINES] = {"l2-lines", 70, 1, 1000, NULL},
};

static unsigned char *y, *x1, *x2;
static _Alignas(LINE) bool wrong[MAX_THREADS];

/* Bytes of an iteration of the form's loop. */
static uint64_t per_iteration(void)
{
    return (options[FORM].value == WIDE ? 8 : 4) * svcntb();
}

/* Start of a thread's part, in bytes: a multiple of an iteration, and of a line, so that no line belongs to two threads. */
static uint64_t part(unsigned thread)
{
    uint64_t unit = per_iteration() > LINE ? per_iteration() : LINE;
    return options[BYTES].value / unit * thread / options[THREADS].value * unit;
}

/* A vector whose elements have this value, which both types represent exactly. */
static svuint8_t vector_of(uint64_t value)
{
    if (options[TYPE].value == SINGLE)
        return svreinterpret_u8(svdup_f32((float)value));
    return svreinterpret_u8(svdup_s16((int16_t)value));
}

/* 3, as the first element of a register. */
static double c0(void)
{
    union {
        double whole;
        float single;
        int16_t small;
    } first = {0};
    if (options[TYPE].value == SINGLE)
        first.single = 3;
    else
        first.small = 3;
    return first.whole;
}

/* Elements of x1 and x2 in the vector that starts at a byte. */
static uint64_t of_x1(uint64_t at)
{
    return at / svcntb() & 15;
}

static uint64_t of_x2(uint64_t at)
{
    return at / svcntb() >> 4 & 15;
}

/* The work of a pass over a thread's part: iterations with DC ZVA, which stops before the next thread's part, and others. */
struct work {
    uint64_t from, zeroing, other;
    kernel *with_zeroing, *without_zeroing;
    uint64_t zero_distance, l1_distance, l2_distance;
    double c0;
};

static struct work work_of(uint64_t from, uint64_t to)
{
    kernel *const *of_type = kernels[options[TYPE].value];
    uint64_t form = options[FORM].value, step = per_iteration(), zero = options[ZERO_LINES].value * LINE;
    struct work work = {from, 0, (to - from) / step, of_type[form], of_type[form], zero, options[L1_LINES].value * LINE,
                        options[L2_LINES].value * LINE, c0()};
    if (form == ZFILL_SWPF) {
        uint64_t last = zero / step < work.other ? zero / step : work.other;
        work.zeroing = work.other - last;
        work.other = last;
        work.without_zeroing = of_type[SWPF];
    }
    return work;
}

/* One pass; returns the bytes written. */
static uint64_t pass(const struct work *w)
{
    uint64_t at = w->from;
    if (w->zeroing)
        at += w->with_zeroing(y + at, x1 + at, x2 + at, w->zeroing, w->c0, w->zero_distance, w->l1_distance, w->l2_distance);
    if (w->other)
        at += w->without_zeroing(y + at, x1 + at, x2 + at, w->other, w->c0, 0, w->l1_distance, w->l2_distance);
    return at - w->from;
}

static void initialise(uint64_t from, uint64_t to)
{
    svbool_t all = svptrue_b8();
    for (uint64_t i = from; i < to; i += svcntb()) {
        svst1(all, x1 + i, vector_of(of_x1(i)));
        svst1(all, x2 + i, vector_of(of_x2(i)));
        svst1(all, y + i, svdup_u8(0));
    }
}

static bool correct(uint64_t from, uint64_t to)
{
    svbool_t all = svptrue_b8(), differs = svpfalse();
    for (uint64_t i = from; i < to; i += svcntb()) {
        svuint8_t expected = vector_of(of_x1(i) + 3 * of_x2(i));
        differs = svorr_z(all, differs, svcmpne(all, svld1(all, y + i), expected));
    }
    return !svptest_any(all, differs);
}

static void triad(unsigned thread)
{
    uint64_t from = part(thread), to = part(thread + 1);
    const struct work work = work_of(from, to);
    initialise(from, to);
    meet(thread);
    bool ok = pass(&work) == to - from;

    measure_begin_together(thread, "types");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        ok &= pass(&work) == to - from;
    measure_end_together(thread);
    wrong[thread] = !ok || !correct(from, to);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t bytes = options[BYTES].value;
    if (bytes % per_iteration() || bytes % LINE)
        cannot_run("bytes must be a multiple of a line, 256, and of four vectors, with form=wide of eight");
    if (options[FORM].value == ZFILL_SWPF)
        require_line_zeroing();
    double *arrays[3];
    place_arrays(pool, sizeof pool, bytes, 3, arrays);
    y = (unsigned char *)arrays[0], x1 = (unsigned char *)arrays[1], x2 = (unsigned char *)arrays[2];
    run_threads((unsigned)options[THREADS].value, triad);

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
