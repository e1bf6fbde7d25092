/* a(i) = a(i) + s * b(c(i)) on many threads of a CMG: each with its part of the streams a and c, sharing b. */
#include "sector.h"
#include "threads.h"

enum { MAX_N = 8 << 20, MAX_M = 1 << 20, SPARE = 16 };

static _Alignas(LINE) double a[MAX_N];
static _Alignas(LINE) int64_t c[MAX_N + SPARE];
static _Alignas(LINE) double b[MAX_M];

/* sector.S */
void sector_kernel(double *a, const double *b, const int64_t *c, uint64_t iterations, double s);

enum { PLAIN, TAGGED };
enum { N, M, POINTERS, L2_WAYS, PASSES, THREADS };

static struct option options[] = {
    [N] = {"n", 8388608, 16, MAX_N, NULL},
    [M] = {"m", 589824, 1, MAX_M, NULL},
    [POINTERS] = {"pointers", PLAIN, 0, 0, "plain|tagged"},
    [L2_WAYS] = {"l2-ways", 0, 0, USABLE_WAYS, NULL},
    [PASSES] = {"passes", 1, 1, 1000000, NULL},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
};

static uint64_t ways_before;
static _Alignas(LINE) bool wrong[MAX_THREADS];

/* Start of a thread's part of the streams: a multiple of an iteration and of a line. */
static uint64_t part(unsigned thread)
{
    uint64_t n = options[N].value, lines = n / (LINE / sizeof(double));
    return thread == options[THREADS].value ? n : lines * thread / options[THREADS].value * (LINE / sizeof(double));
}

static void initialise(uint64_t from, uint64_t to)
{
    uint64_t m = options[M].value;
    for (uint64_t i = from, next = from % m; i < to; i++, next = next + 1 < m ? next + 1 : 0) {
        a[i] = (double)(i & 0xff);
        c[i] = (int64_t)next;
    }
}

/* All values are integers below 2**53, hence exact. */
static bool correct(uint64_t from, uint64_t to)
{
    double times = (double)(options[PASSES].value + 1) * 3;
    bool ok = true;
    for (uint64_t i = from; i < to; i++)
        ok &= a[i] == (double)(i & 0xff) + times * b[c[i]];
    return ok;
}

static void add(unsigned thread)
{
    uint64_t from = part(thread), to = part(thread + 1), ways = options[L2_WAYS].value;
    uint64_t iterations = (to - from) / (2 * svcntd());
    const double *of_b = options[POINTERS].value == TAGGED ? in_sector_1(b) : b;
    initialise(from, to);
    if (thread == 0) {
        for (uint64_t i = 0; i < options[M].value; i++)
            b[i] = (double)(i & 0xffff);
        ways_before = ways ? read_ways() : 0;
    }
    meet(thread);
    if (ways)
        give_sector_1(ways, WAYS);
    if (iterations)
        sector_kernel(a + from, of_b, c + from, iterations, 3);

    measure_begin_together(thread, "sector");
    for (uint64_t i = 0; iterations && i < options[PASSES].value; i++)
        sector_kernel(a + from, of_b, c + from, iterations, 3);
    measure_end_together(thread);
    if (ways)
        write_ways(ways_before);
    wrong[thread] = !correct(from, to);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    if (options[N].value % (2 * svcntd()))
        cannot_run("n must be a multiple of the elements of two vectors (16 with 512 bits)");
    run_threads((unsigned)options[THREADS].value, add);

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
