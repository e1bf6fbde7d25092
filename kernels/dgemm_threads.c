/* C += A B on the threads of one to four CMGs. C is divided by rows among threads. For each block of columns of A and rows of B, the
 * threads of a CMG pack B together, in memory of their own CMG, and each packs its rows of A; the inner loop (dgemm_tile.S) then reads
 * one panel of B again and again from L1, and the panels of A from L2. */
#include "threads.h"

/* Rows and vectors of a tile of C (dgemm_8x3_kernel), and the columns of A that are packed together: a panel of B has half of L1. */
enum { ROWS = 8, VECTORS = 3, DEPTH = 160 };
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

void dgemm_8x3_kernel(double *c, const double *a, const double *b, uint64_t iterations);

static _Alignas(LINE) double a[MAX_M * MAX_K], b[MAX_K * MAX_N], c[MAX_M * MAX_N];
/* The kernel loads one row of a panel beyond its end. */
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

/* Rows `from` to `to` of a block of B into panels as wide as a tile, one after the other; zero beyond the last column. */
static void pack_b(double *to_pack, uint64_t k, uint64_t depth, uint64_t from, uint64_t to)
{
    uint64_t n = options[N].value;
    for (uint64_t l = from; l < to; l++) {
        const double *row = b + (k + l) * n;
        double *panel = to_pack + l * width();
        for (uint64_t j = 0; j < n; j += width(), panel += depth * width())
            for (unsigned v = 0; v < VECTORS; v++) {
                uint64_t column = j + v * svcntd();
                svst1(svptrue_b64(), panel + v * svcntd(), svld1(svwhilelt_b64(column, n), row + column));
            }
    }
}

/* Rows `from` to `to` of A, a tile's rows at a time: the eight elements of a column are gathered and stored together. */
static void pack_a(double *panel, uint64_t from, uint64_t to, uint64_t k, uint64_t depth)
{
    uint64_t pitch = options[K].value;
    svint64_t rows = svindex_s64(0, (int64_t)pitch);
    for (uint64_t i = from; i < to; i += ROWS)
        for (uint64_t l = k; l < k + depth; l++, panel += ROWS)
            for (uint64_t r = 0; r < ROWS; r += svcntd()) {
                svbool_t p = svwhilelt_b64(r, (uint64_t)ROWS);
                svst1(p, panel + r, svld1_gather_index(p, a + (i + r) * pitch + l, rows));
            }
}

/* The tile's lines of C are fetched while it is computed. */
static void prefetch_tile(const double *to, uint64_t n)
{
    for (unsigned r = 0; r < ROWS; r++, to += n) {
        __builtin_prefetch(to, 1, 3);
        __builtin_prefetch(to + width() - 1, 1, 3);
    }
}

static void add_tile(double *to, const double *tile, uint64_t n, uint64_t columns)
{
    for (unsigned r = 0; r < ROWS; r++, to += n)
        for (unsigned v = 0; v < VECTORS; v++, tile += svcntd()) {
            uint64_t at = v * svcntd();
            svbool_t p = svwhilelt_b64(at, columns);
            svst1(p, to + at, svadd_x(p, svld1(p, to + at), svld1(svptrue_b64(), tile)));
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

/* All tiles of these rows, panel by panel of B. */
static void multiply(const double *left, const double *right, uint64_t from, uint64_t to, uint64_t depth)
{
    _Alignas(LINE) double tile[ROWS * MAX_WIDTH];
    uint64_t n = options[N].value;
    for (uint64_t j = 0; j < n; j += width())
        for (uint64_t i = from; i < to; i += ROWS) {
            double *at = c + i * n + j;
            prefetch_tile(at, n);
            for (unsigned v = 0; v < ROWS * VECTORS; v++)
                svst1_vnum(svptrue_b64(), tile, (int64_t)v, svdup_f64(0));
            dgemm_8x3_kernel(tile, in_sector(left + (i - from) * depth, SECTOR_OF_A),
                             in_sector(right + j * depth, SECTOR_OF_B), depth / 4);
            add_tile(at, tile, n, smaller(width(), n - j));
        }
}

static void dgemm(unsigned thread, struct place place)
{
    for (uint64_t k = 0; k < options[K].value; k += DEPTH) {
        uint64_t depth = smaller(DEPTH, options[K].value - k);
        pack_b(packed_b[place.cmg], k, depth, depth * place.number / place.count, depth * (place.number + 1) / place.count);
        pack_a(packed_a[thread], part(thread), part(thread + 1), k, depth);
        meet(thread);
        multiply(packed_a[thread], packed_b[place.cmg], part(thread), part(thread + 1), depth);
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

/* Each thread touches its rows of A and C, and its share of B, first. */
static void initialise(unsigned thread)
{
    uint64_t n = options[N].value, depth = options[K].value, threads = options[THREADS].value;
    for (uint64_t i = part(thread); i < part(thread + 1); i++) {
        for (uint64_t k = 0; k < depth; k++)
            a[i * depth + k] = a_at(i, k);
        for (uint64_t j = 0; j < n; j++)
            c[i * n + j] = 0;
    }
    for (uint64_t k = depth * thread / threads; k < depth * (thread + 1) / threads; k++)
        for (uint64_t j = 0; j < n; j++)
            b[k * n + j] = b_at(k, j);
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
    give_ways(1, 2, 1);
    meet(thread);
    dgemm(thread, place);

    measure_begin_together(thread, "dgemm");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        dgemm(thread, place);
    measure_end_together(thread);
    give_ways(0, 0, 0);
    wrong[thread] = !correct(thread, (double)(options[PASSES].value + 1));
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    if (options[M].value % ROWS || options[K].value % 4)
        cannot_run("m must be a multiple of 8, and k of 4");
    if (part(1) * DEPTH + ROWS * DEPTH > COUNT_OF(packed_a[0]))
        cannot_run("too many rows for a thread; choose a smaller m");
    run_threads((unsigned)options[THREADS].value, run);

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
