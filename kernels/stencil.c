/* A seven-point stencil over a grid: each plane of u is used three times, while rhs and unew stream through. With the
 * sector cache u can stay in L2. */
#include "sector.h"
#include "threads.h"

enum { MAX_POINTS = 8 << 20 };

static _Alignas(LINE) double unew[MAX_POINTS];
static _Alignas(LINE) double u[MAX_POINTS];
static _Alignas(LINE) double rhs[MAX_POINTS];

void stencil_row(double *unew, const double *u, const double *rhs, uint64_t count, int64_t row, int64_t plane,
                 const double factors[4]);

enum { PLAIN, TAGGED };
enum { N1, N2, N3, POINTERS, L2_WAYS, PASSES, THREADS };

/* The defaults are one core's share of twelve of 320 inner planes. */
static struct option options[] = {
    [N1] = {"n1", 452, 3, 4096, NULL},
    [N2] = {"n2", 52, 3, 4096, NULL},
    [N3] = {"n3", 29, 3, 4096, NULL},
    [POINTERS] = {"pointers", PLAIN, 0, 0, "plain|tagged"},
    [L2_WAYS] = {"l2-ways", 0, 0, USABLE_WAYS, NULL},
    [PASSES] = {"passes", 3, 1, 1000000, NULL},
    [THREADS] = {"threads", 1, 1, MAX_THREADS, NULL},
};

static uint64_t n[3];
/* The input grid, as passed to the kernel. */
static const double *from;
static _Alignas(LINE) bool wrong[MAX_THREADS];

/* 1/h1**2, 1/h2**2, 1/h3**2 and the factor of the difference: powers of two, so that all values are exact. */
static const double factors[4] = {4, 2, 8, 0.125};

/* The first inner plane of a thread's part. */
static uint64_t part(unsigned thread)
{
    return 1 + (n[2] - 2) * thread / options[THREADS].value;
}

/* The inner points of planes `first` to `last`, row by row. */
static void stencil_kernel(uint64_t first, uint64_t last)
{
    uint64_t row = n[0], plane = n[0] * n[1];
    for (uint64_t k = first; k < last; k++) {
        for (uint64_t j = 1; j + 1 < n[1]; j++) {
            uint64_t at = k * plane + j * row + 1;
            stencil_row(unew + at, from + at, rhs + at, n[0] - 2, (int64_t)(row * sizeof *u),
                        (int64_t)(plane * sizeof *u), factors);
        }
    }
}

static void initialise(uint64_t first, uint64_t last)
{
    uint64_t plane = n[0] * n[1];
    for (uint64_t at = first * plane; at < last * plane; at++) {
        u[at] = (double)(at * 29 & 0xff);
        rhs[at] = (double)(at & 0x3f);
        unew[at] = 0;
    }
}

/* Whether one inner point is correct. */
static bool is_right(uint64_t at)
{
    uint64_t row = n[0], plane = n[0] * n[1];
    double sum = (u[at + 1] + u[at - 1]) * factors[0] + (u[at + row] + u[at - row]) * factors[1] +
                 (u[at + plane] + u[at - plane]) * factors[2];
    return unew[at] == (sum - rhs[at]) * factors[3];
}

/* Every seventh inner point of planes `first` to `last`, and whether the edges of their rows are unchanged. */
static bool correct(uint64_t first, uint64_t last)
{
    bool ok = true;
    for (uint64_t k = first; k < last; k++) {
        for (uint64_t j = 1; j + 1 < n[1]; j++) {
            uint64_t at = (k * n[1] + j) * n[0];
            ok &= unew[at] == 0 && unew[at + n[0] - 1] == 0;
            for (uint64_t i = 1; i + 1 < n[0]; i += 7)
                ok &= is_right(at + i);
        }
    }
    return ok;
}

static void stencil(unsigned thread)
{
    uint64_t first = part(thread), last = part(thread + 1);
    bool at_start = thread == 0, at_end = thread + 1 == options[THREADS].value;
    initialise(first - at_start, last + at_end);
    meet(thread);
    stencil_kernel(first, last);

    measure_begin_together(thread, "stencil");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        stencil_kernel(first, last);
    measure_end_together(thread);
    wrong[thread] = !correct(first, last);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    for (unsigned i = 0; i < 3; i++)
        n[i] = options[N1 + i].value;
    if (n[0] * n[1] * n[2] > MAX_POINTS)
        cannot_run("n1 * n2 * n3 must not be above 8388608");
    from = options[POINTERS].value == TAGGED ? in_sector_1(u) : u;
    uint64_t ways = options[L2_WAYS].value, before = 0;
    if (ways) {
        before = read_ways();
        give_sector_1(ways, WAYS);
    }
    run_threads((unsigned)options[THREADS].value, stencil);
    if (ways)
        write_ways(before);

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
