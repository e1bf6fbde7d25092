/* C += A B on the threads of one to four CMGs, A by columns, B and C by rows. C is divided by rows among threads. For each block of columns of A and rows of B, the
 * threads of a CMG pack B together, in memory of their own CMG, and each packs its rows of A; the inner loop (dgemm_panel.S) then reads
 * one panel of B again and again from L1, and the panels of A from L2. */
#include "threads.h"

/* Rows and vectors of a tile of C (dgemm_panel.S), and the columns of A that are packed together: a panel of B has half of L1. */
enum { ROWS = 8, VECTORS = 3, DEPTH = 160 };

/* Distances while blocks are packed: of prefetches of B in elements and of A in columns, of zeroed lines in panels of B and lines of A. */
enum { B_AHEAD = 128, A_AHEAD = 12, ZERO_AHEAD = 4 };

/* Rows of A in a line. */
enum { LINE_ROWS = LINE / sizeof(double) };

enum { MAX_M = 4096, MAX_N = 4096, MAX_K = 1280, MAX_ROWS = 512, MAX_WIDTH = VECTORS * 32, MAX_CMGS = 4, CMG_CPUS = 12, FIRST_CPU = 12 };

enum { M, N, K, PASSES, THREADS, SECTORS };

static struct option options[] = {
    [M] = {"m", 480, 8, MAX_M, NULL},
    [N] = {"n", 960, 8, MAX_N, NULL},
    [K] = {"k", 320, 4, MAX_K, NULL},
    [PASSES] = {"passes", 1, 1, 1000000, NULL},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
    [SECTORS] = {"sectors", 0, 0, 1, NULL},
};

void dgemm_8x3_panel_kernel(double *c, const double *a, const double *b, uint64_t iterations, uint64_t pitch,
                            const double *next, uint64_t tiles);

static _Alignas(LINE) double a[MAX_M * MAX_K], b[MAX_K * MAX_N], c[MAX_M * MAX_N];
/* The kernel loads some elements beyond the end of A. */
static _Alignas(LINE) double packed_a[MAX_THREADS][MAX_ROWS * DEPTH + LINE];
static _Alignas(LINE) double packed_b[MAX_CMGS][(MAX_N + MAX_WIDTH) * DEPTH + LINE];
static _Alignas(LINE) bool wrong[MAX_THREADS];

/* The CMG of a thread, its number there, and the threads there; one CMG where CPUs have other numbers. */
struct place {
    unsigned cmg, number, count;
};

static unsigned cmg_of(unsigned thread)
{
    unsigned cpu = cpu_of(thread);
    return cpu < FIRST_CPU ? 0 : (cpu - FIRST_CPU) / CMG_CPUS % MAX_CMGS;
}

static struct place place_of(unsigned thread)
{
    struct place place = {cmg_of(thread), 0, 0};
    for (unsigned t = 0; t < options[THREADS].value; t++)
        if (cmg_of(t) == place.cmg) {
            place.number += t < thread;
            place.count++;
        }
    return place;
}

static uint64_t width(void)
{
    return VECTORS * svcntd();
}

/* First row of a thread: whole tiles. */
static uint64_t part(unsigned thread)
{
    return options[M].value / ROWS * thread / options[THREADS].value * ROWS;
}

static uint64_t smaller(uint64_t x, uint64_t y)
{
    return x < y ? x : y;
}

/* Zeroes the lines of `bytes` bytes, which will all be written, so that they are not read from memory. */
static void zero(double *to, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += LINE)
        __asm__ volatile("dc zva, %0" : : "r"((uintptr_t)to + at) : "memory");
}

/* Share `share` of `shares` of a block of B: panels as wide as a tile, one after the other. Four rows of a panel are packed at a time, which
 * are whole lines if vectors have 512 bits, and then those of the next panel, so that rows of B are read as streams. */
static void pack_b(double *panels, uint64_t k, uint64_t depth, unsigned share, unsigned shares)
{
    const uint64_t n = options[N].value, across = n / width(), all = depth / 4 * across, end = all * (share + 1) / shares;
    const uint64_t bytes = 4 * width() * sizeof(double), zeroed = bytes % LINE ? 0 : ZERO_AHEAD;
    uint64_t at = all * share / shares;
    for (uint64_t l = at / across, j = at % across; at < end; l++, j = 0)
        for (; j < across && at < end; j++, at++) {
            double *to = panels + j * width() * depth + l * 4 * width();
            if (zeroed && j + zeroed < across && at + zeroed < end)
                zero(to + zeroed * width() * depth, bytes);
            for (unsigned r = 0; r < 4; r++) {
                const double *row = b + (k + 4 * l + r) * n + j * width();
                __builtin_prefetch(row + B_AHEAD, 0, 3);
                for (unsigned v = 0; v < VECTORS; v++)
                    svst1_vnum(svptrue_b64(), to + r * width(), v, svld1_vnum(svptrue_b64(), row, v));
            }
        }
}

/* Rows `from` to `to` of A, which is stored by columns, as panels of a tile's rows: a line of each column at a time, for as many panels. */
static void pack_a(double *panels, uint64_t from, uint64_t to, uint64_t k, uint64_t depth)
{
    const uint64_t m = options[M].value;
    for (uint64_t i = from; i < to; i += LINE_ROWS, panels += LINE_ROWS * depth) {
        const uint64_t rows = smaller(LINE_ROWS, to - i);
        const double *column = a + k * m + i;
        for (uint64_t l = 0; l < depth; l++, column += m) {
            __builtin_prefetch(column + A_AHEAD * m, 0, 3);
            for (uint64_t r = 0; r < rows; r += ROWS) {
                double *panel = panels + r * depth + l * ROWS;
                if (l % 4 == 0 && l + 4 * ZERO_AHEAD < depth)
                    zero(panel + 4 * ZERO_AHEAD * ROWS, LINE);
                for (uint64_t part = 0; part < ROWS; part += svcntd())
                    svst1(svptrue_b64(), panel + part, svld1(svptrue_b64(), column + r + part));
            }
        }
    }
}

/* With sectors of L1: A one way, B two, all else one. Bits 57:56 of a pointer name the sector of its accesses. */
enum { SECTOR_OF_B = 1, SECTOR_OF_A = 2 };

static const double *in_sector(const double *data, uint64_t sector)
{
    return options[SECTORS].value ? (const double *)((uintptr_t)data | sector << 56) : data;
}

static void give_ways(uint64_t others, uint64_t of_b, uint64_t of_a)
{
    /* IMP_SCCR_L1_EL0: maximum ways of each sector of L1D, four bits each. */
    uint64_t ways = others | of_b << 4 * SECTOR_OF_B | of_a << 4 * SECTOR_OF_A;
    if (options[SECTORS].value)
        __asm__ volatile("msr S3_3_C11_C8_2, %0" : : "r"(ways) : "memory");
}

/* All tiles of these rows: a panel of B stays in L1, while A is read from L2 panel by panel. */
static void multiply(const double *left, const double *right, uint64_t from, uint64_t to, uint64_t depth)
{
    uint64_t n = options[N].value;
    for (uint64_t j = 0; j < n && from < to; j += width())
        dgemm_8x3_panel_kernel(c + from * n + j, in_sector(left, SECTOR_OF_A), in_sector(right + j * depth, SECTOR_OF_B), depth / 4,
                               n * sizeof(double), c + from * n + smaller(j + width(), n - width()), (to - from) / ROWS);
}

static void dgemm(unsigned thread, struct place place)
{
    for (uint64_t k = 0; k < options[K].value; k += DEPTH) {
        uint64_t depth = smaller(DEPTH, options[K].value - k);
        pack_b(packed_b[place.cmg], k, depth, place.number, place.count);
        pack_a(packed_a[thread], part(thread), part(thread + 1), k, depth);
        meet(thread);
        give_ways(1, 2, 1);
        multiply(packed_a[thread], packed_b[place.cmg], part(thread), part(thread + 1), depth);
        give_ways(0, 0, 0);
        meet(thread);
    }
}

/* -7 to 8, so that every sum is exact, in a pattern unrelated to the block sizes. */
static inline double small(uint64_t x)
{
    return (double)((int64_t)(x * 0x9e3779b97f4a7c15 >> 60) - 7);
}

static double a_at(uint64_t i, uint64_t k)
{
    return small(i * 16411 + k);
}

static double b_at(uint64_t k, uint64_t j)
{
    return small(k * 32771 + j);
}

/* Each thread touches its rows of C, and its share of A and B, first. */
static void initialise(unsigned thread)
{
    uint64_t m = options[M].value, n = options[N].value, depth = options[K].value, threads = options[THREADS].value;
    for (uint64_t i = part(thread) * n; i < part(thread + 1) * n; i++)
        c[i] = 0;
    for (uint64_t k = depth * thread / threads; k < depth * (thread + 1) / threads; k++) {
        for (uint64_t i = 0; i < m; i++)
            a[k * m + i] = a_at(i, k);
        for (uint64_t j = 0; j < n; j++)
            b[k * n + j] = b_at(k, j);
    }
}

/* Checks some elements of the thread's rows. */
static bool correct(unsigned thread, double times)
{
    bool ok = true;
    uint64_t n = options[N].value, from = part(thread) * n, to = part(thread + 1) * n;
    for (uint64_t at = from; at < to; at += (to - from) / 7 + 1) {
        double sum = 0;
        for (uint64_t k = 0; k < options[K].value; k++)
            sum += a_at(at / n, k) * b_at(k, at % n);
        ok &= c[at] == times * sum;
    }
    return ok;
}

static void run(unsigned thread)
{
    struct place place = place_of(thread);
    initialise(thread);
    meet(thread);
    dgemm(thread, place);

    measure_begin_together(thread, "dgemm");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        dgemm(thread, place);
    measure_end_together(thread);
    wrong[thread] = !correct(thread, (double)(options[PASSES].value + 1));
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    require_line_zeroing();
    if (options[M].value % ROWS || options[N].value % width() || options[K].value % 4)
        cannot_run("m must be a multiple of 8, n of three vectors, and k of 4");
    if (part(1) * DEPTH + ROWS * DEPTH > COUNT_OF(packed_a[0]))
        cannot_run("too many rows for a thread; choose a smaller m");
    run_threads((unsigned)options[THREADS].value, run);

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
