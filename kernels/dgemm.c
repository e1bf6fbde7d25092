/* C += A B of square matrices in blocks: panels of B and rows of A are packed, so that the inner loop runs through contiguous memory
 * that stays in the caches, with its sums in registers. */
#include "runtime.h"

void *linux_map(size_t bytes);

enum {
    ROWS = 5,    /* of a tile of C */
    VECTORS = 4, /* of a row of a tile */
    DEPTH = 256, /* of A's columns and B's rows that are packed together */
    HEIGHT = 120 /* rows of A that are packed together: 240 KB, and a multiple of ROWS */
};

enum { N, PASSES };

static struct option options[] = {
    [N] = {"n", 240, 1, 1 << 14, NULL},
    [PASSES] = {"passes", 1, 1, 1000000, NULL},
};

static double *a, *b, *c, *packed_a, *packed_b;

static double *take(uint64_t elements)
{
    double *memory = linux_map(elements * sizeof(double));
    /* Errors are the highest addresses. */
    if ((uintptr_t)memory > UINTPTR_MAX - 4096)
        cannot_run("the system has not so much memory; choose a smaller n");
    return memory;
}

static inline uint64_t smaller(uint64_t x, uint64_t y)
{
    return x < y ? x : y;
}

/* Columns of a tile. */
static inline uint64_t tile_width(void)
{
    return VECTORS * svcntd();
}

/* Rows of B as wide as a tile, one tile after the other; zero beyond the last column. */
static void pack_b(uint64_t n, uint64_t k, uint64_t depth)
{
    double *to = packed_b;
    for (uint64_t j = 0; j < n; j += tile_width())
        for (uint64_t l = k; l < k + depth; l++)
            for (unsigned v = 0; v < VECTORS; v++, to += svcntd()) {
                uint64_t column = j + v * svcntd();
                svst1(svptrue_b64(), to, svld1(svwhilelt_b64(column, n), b + l * n + column));
            }
}

/* Columns of A as high as a tile, one tile after the other; zero beyond the last row. */
static void pack_a(uint64_t n, uint64_t i, uint64_t rows, uint64_t k, uint64_t depth)
{
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t l = 0; l < depth; l++)
            packed_a[(r / ROWS * depth + l) * ROWS + r % ROWS] = a[(i + r) * n + k + l];
    for (uint64_t r = rows; r % ROWS; r++)
        for (uint64_t l = 0; l < depth; l++)
            packed_a[(r / ROWS * depth + l) * ROWS + r % ROWS] = 0;
}

#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4)
#define CLEAR(r) svfloat64_t s##r##0 = svdup_f64(0), s##r##1 = s##r##0, s##r##2 = s##r##0, s##r##3 = s##r##0;
#define MULTIPLY(r) \
    s##r##0 = svmla_x(all, s##r##0, b0, left[r]); \
    s##r##1 = svmla_x(all, s##r##1, b1, left[r]); \
    s##r##2 = svmla_x(all, s##r##2, b2, left[r]); \
    s##r##3 = svmla_x(all, s##r##3, b3, left[r]);
#define ADD(r) \
    if (r < rows) { \
        add_vector(to + r * n, 0, columns, s##r##0); \
        add_vector(to + r * n, 1, columns, s##r##1); \
        add_vector(to + r * n, 2, columns, s##r##2); \
        add_vector(to + r * n, 3, columns, s##r##3); \
    }

static inline void add_vector(double *row, uint64_t vector, uint64_t columns, svfloat64_t sum)
{
    uint64_t at = vector * svcntd();
    svbool_t p = svwhilelt_b64(at, columns);
    svst1(p, row + at, svadd_x(p, svld1(p, row + at), sum));
}

/* A tile: `depth` times a column of A by a row of B, 20 sums in registers; added to the `rows` and `columns` of C at that position. */
static void tile(double *to, uint64_t n, uint64_t rows, uint64_t columns, const double *left, const double *right, uint64_t depth)
{
    svbool_t all = svptrue_b64();
    EACH_ROW(CLEAR)
    for (uint64_t l = 0; l < depth; l++, left += ROWS, right += tile_width()) {
        svfloat64_t b0 = svld1_vnum(all, right, 0), b1 = svld1_vnum(all, right, 1);
        svfloat64_t b2 = svld1_vnum(all, right, 2), b3 = svld1_vnum(all, right, 3);
        EACH_ROW(MULTIPLY)
    }
    EACH_ROW(ADD)
}

__attribute__((noinline)) static void dgemm_kernel(uint64_t n)
{
    for (uint64_t k = 0; k < n; k += DEPTH) {
        uint64_t depth = smaller(DEPTH, n - k);
        pack_b(n, k, depth);
        for (uint64_t i = 0; i < n; i += HEIGHT) {
            uint64_t height = smaller(HEIGHT, n - i);
            pack_a(n, i, height, k, depth);
            for (uint64_t j = 0; j < n; j += tile_width())
                for (uint64_t r = 0; r < height; r += ROWS)
                    tile(c + (i + r) * n + j, n, smaller(ROWS, height - r), smaller(tile_width(), n - j),
                         packed_a + r * depth, packed_b + j * depth, depth);
        }
    }
}

/* -7 to 8, so that every sum is exact, in a pattern unrelated to the block sizes. */
static inline double small(uint64_t x)
{
    return (double)((int64_t)(x * 0x9e3779b97f4a7c15 >> 60) - 7);
}

static inline double a_at(uint64_t i, uint64_t k)
{
    return small(i * 16411 + k);
}

static inline double b_at(uint64_t k, uint64_t j)
{
    return small(k * 32771 + j);
}

/* Compares C x with A (B x) for a vector x, which checks each row. */
static bool is_product(uint64_t n, double times)
{
    double *x = take(2 * n), *bx = x + n;
    for (uint64_t i = 0; i < n; i++)
        x[i] = (double)(int64_t)(i * i % 29) - 13;
    for (uint64_t k = 0; k < n; k++)
        for (uint64_t j = 0; j < n; j++)
            bx[k] += b_at(k, j) * x[j];
    bool ok = true;
    for (uint64_t i = 0; i < n; i++) {
        double cx = 0, abx = 0;
        for (uint64_t j = 0; j < n; j++) {
            cx += c[i * n + j] * x[j];
            abx += a_at(i, j) * bx[j];
        }
        ok &= cx == times * abx;
    }
    return ok;
}

/* Checks some elements individually. */
static bool has_elements(uint64_t n, double times)
{
    bool ok = true;
    for (uint64_t at = 0; at < n * n; at += n * n / 16 + 1) {
        uint64_t i = at / n, j = at % n;
        double sum = 0;
        for (uint64_t k = 0; k < n; k++)
            sum += a_at(i, k) * b_at(k, j);
        ok &= c[at] == times * sum;
    }
    return ok;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t n = options[N].value, passes = options[PASSES].value;
    a = take(n * n);
    b = take(n * n);
    c = take(n * n);
    packed_a = take(HEIGHT * DEPTH);
    packed_b = take((n + tile_width()) * DEPTH);
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < n; j++) {
            a[i * n + j] = a_at(i, j);
            b[i * n + j] = b_at(i, j);
        }
    dgemm_kernel(n);

    measure_begin("dgemm");
    for (uint64_t i = 0; i < passes; i++)
        dgemm_kernel(n);
    measure_end();
    double times = (double)(passes + 1);
    return finish(is_product(n, times) && has_elements(n, times), options, COUNT_OF(options));
}
