/* Matrices with the shapes of public collections, row by row and without a search: a row's length and its
 * columns follow from its number. Values are small integers, so that every sum of products is exact. */
#include "spmv.h"

enum { VALUE_BITS = 4, LARGEST_VALUE = 1 << VALUE_BITS };

/* Parameters of a row. */
static struct {
    struct recipe of;
    uint64_t n;
    uint64_t side, depth; /* of a grid, in points */
    unsigned neighbours;
    int64_t dx[27], dy[27], dz[27], away[27];
} shape;

/* A function that scatters its arguments over all 64 bits: two xor-shifts around multiplications by 2^64
 * divided by the golden ratio. */
static inline uint64_t scatter(uint64_t x, uint64_t y)
{
    x = (x + shape.of.seed * 0xd1342543de82ef95 + (y << 40)) * 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15;
    return x ^ (x >> 29);
}

/* A number below `limit`, which is below 2^32. */
static inline uint64_t draw(uint64_t x, uint64_t y, uint64_t limit)
{
    return (scatter(x, y) >> 32) * limit >> 32;
}

static inline uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The first of `row` columns around the diagonal, and the one after the last. */
static inline uint64_t band_begin(uint64_t i)
{
    return i > shape.of.row / 2 ? i - shape.of.row / 2 : 0;
}

static inline uint64_t band_end(uint64_t i)
{
    return smaller(shape.n, i + (shape.of.row + 1) / 2);
}

static uint64_t banded_length(uint64_t i)
{
    return band_end(i) - band_begin(i);
}

static void banded_fill(uint64_t i, int32_t *index, uint64_t length)
{
    int32_t first = (int32_t)band_begin(i);
    for (int32_t k = 0; k < (int32_t)length; k++)
        index[k] = first + k;
}

/* Diagonals at even distances, from -band to band. */
static inline int64_t diagonal(uint64_t d)
{
    return (int64_t)(2 * shape.of.band * d / (shape.of.row - 1)) - (int64_t)shape.of.band;
}

static uint64_t diagonals_length(uint64_t i)
{
    uint64_t length = 0;
    for (uint64_t d = 0; d < shape.of.row; d++)
        length += (uint64_t)((int64_t)i + diagonal(d)) < shape.n;
    return length;
}

static void diagonals_fill(uint64_t i, int32_t *index, uint64_t length)
{
    uint64_t k = 0;
    for (uint64_t d = 0; k < length; d++)
        if ((uint64_t)((int64_t)i + diagonal(d)) < shape.n)
            index[k++] = (int32_t)((int64_t)i + diagonal(d));
}

/* Range of columns for row i: 2*band+1 around the diagonal, or all if band is 0. `n` and `i` may count blocks. */
static inline void window(uint64_t n, uint64_t i, uint64_t *first, uint64_t *width)
{
    uint64_t band = shape.of.band;
    *width = band ? smaller(n, 2 * band + 1) : n;
    *first = band && i > band ? smaller(i - band, n - *width) : 0;
}

/* One random column in each of `count` equal parts of the window. */
static inline uint64_t drawn(uint64_t i, uint64_t k, uint64_t first, uint64_t part)
{
    return first + k * part + draw(i, k, part);
}

static uint64_t random_length(uint64_t i)
{
    uint64_t first, width;
    window(shape.n, i, &first, &width);
    return smaller(shape.of.row, width);
}

static void random_fill(uint64_t i, int32_t *index, uint64_t length)
{
    uint64_t first, width;
    window(shape.n, i, &first, &width);
    uint64_t part = width / length;
    for (uint64_t k = 0; k < length; k++)
        index[k] = (int32_t)drawn(i, k, first, part);
}

/* Blocks of a row of blocks. */
static uint64_t blocks_across(void)
{
    uint64_t first, width, wanted = shape.of.row / shape.of.block;
    window(shape.n / shape.of.block, 0, &first, &width);
    return wanted ? smaller(wanted, width) : 1;
}

static uint64_t blocks_length(uint64_t i)
{
    (void)i;
    return blocks_across() * shape.of.block;
}

static void blocks_fill(uint64_t i, int32_t *index, uint64_t length)
{
    uint64_t block = shape.of.block, count = length / block, first, width;
    window(shape.n / block, i / block, &first, &width);
    for (uint64_t k = 0; k < count; k++) {
        int32_t column = (int32_t)(drawn(i / block, k, first, width / count) * block);
        for (uint64_t c = 0; c < block; c++)
            *index++ = column + (int32_t)c;
    }
}

/* Whether the point x, y, z has the d-th neighbour. */
static inline bool on_grid(uint64_t x, uint64_t y, uint64_t z, unsigned d)
{
    return x + (uint64_t)shape.dx[d] < shape.side && y + (uint64_t)shape.dy[d] < shape.side &&
           z + (uint64_t)shape.dz[d] < shape.depth;
}

static inline bool inside(uint64_t at, uint64_t size)
{
    return size == 1 || at - 1 < size - 2;
}

/* Whether a point has all its neighbours. */
static inline bool is_interior(uint64_t x, uint64_t y, uint64_t z)
{
    return inside(x, shape.side) && inside(y, shape.side) && inside(z, shape.depth);
}

static inline void point(uint64_t i, uint64_t *x, uint64_t *y, uint64_t *z)
{
    uint64_t line = i / shape.side;
    *x = i - line * shape.side;
    *z = line / shape.side;
    *y = line - *z * shape.side;
}

static uint64_t stencil_length(uint64_t i)
{
    uint64_t x, y, z, length = 0;
    point(i, &x, &y, &z);
    if (shape.side > 1 && is_interior(x, y, z))
        return shape.neighbours;
    for (unsigned d = 0; d < shape.neighbours; d++)
        length += on_grid(x, y, z, d);
    return length;
}

static void stencil_fill(uint64_t i, int32_t *index, uint64_t length)
{
    if (length == shape.neighbours) {
        for (unsigned d = 0; d < shape.neighbours; d++)
            index[d] = (int32_t)((int64_t)i + shape.away[d]);
        return;
    }
    uint64_t x, y, z;
    point(i, &x, &y, &z);
    for (unsigned d = 0; d < shape.neighbours; d++)
        if (on_grid(x, y, z, d))
            *index++ = (int32_t)((int64_t)i + shape.away[d]);
}

/* Points of 3 by 3 (by 3), either only those at most one step away, or all; in ascending order of their numbers. */
static void plan_grid(bool cube, bool all)
{
    uint64_t side = 1;
    while ((side + 1) * (side + 1) * (cube ? side + 1 : 1) <= shape.n)
        side++;
    shape.side = side;
    shape.depth = cube ? side : 1;
    shape.n = side * side * shape.depth;
    for (int64_t z = cube ? -1 : 0; z <= (cube ? 1 : 0); z++)
        for (int64_t y = -1; y <= 1; y++)
            for (int64_t x = -1; x <= 1; x++) {
                if (!all && x * x + y * y + z * z > 1)
                    continue;
                unsigned d = shape.neighbours++;
                shape.dx[d] = x, shape.dy[d] = y, shape.dz[d] = z;
                shape.away[d] = (z * (int64_t)side + y) * (int64_t)side + x;
            }
}

/* Row lengths of Zipf's law with exponent 1/2: x is a row's rank among all, as a fraction. Their mean is `row`, the longest has
 * about row/2 times the root of n. */
static uint64_t powerlaw_length(uint64_t i)
{
    double x = (double)((scatter(i, 0xffff) >> 32) + 1) * 0x1p-32;
    uint64_t length = (uint64_t)((double)shape.of.row / 2 / __builtin_sqrt(x) + 0.5);
    return smaller(length ? length : 1, shape.n);
}

/* Columns follow a power law, too: x from 0 to 1, drawn in equal parts, becomes x*x. */
static void powerlaw_fill(uint64_t i, int32_t *index, uint64_t length)
{
    uint64_t next = 0, part = (1ull << 32) / length;
    for (uint64_t k = 0; k < length; k++) {
        uint64_t x = k * part + draw(i, k, part);
        uint64_t column = (x * x >> 32) * shape.n >> 32;
        /* No duplicates, and room for the following ones. */
        column = smaller(column, shape.n - length + k);
        column = column < next ? next : column;
        index[k] = (int32_t)column;
        next = column + 1;
    }
}

/* The first row is full, and so is the first column; the others have a band. */
static uint64_t arrow_length(uint64_t i)
{
    return i == 0 ? shape.n : band_end(i) - band_begin(i) + (band_begin(i) > 0);
}

static void arrow_fill(uint64_t i, int32_t *index, uint64_t length)
{
    int32_t first = i == 0 ? 0 : (int32_t)band_begin(i);
    if (first > 0) {
        *index++ = 0;
        length--;
    }
    for (int32_t k = 0; k < (int32_t)length; k++)
        index[k] = first + k;
}

/* A band, except for one row in the middle with seven of eight columns. */
static uint64_t denserow_length(uint64_t i)
{
    return i == shape.n / 2 ? shape.n - shape.n / 8 : banded_length(i);
}

static void denserow_fill(uint64_t i, int32_t *index, uint64_t length)
{
    if (i != shape.n / 2) {
        banded_fill(i, index, length);
        return;
    }
    for (uint64_t k = 0; k < length; k++)
        index[k] = (int32_t)(k + k / 7);
}

static const struct {
    uint64_t (*length)(uint64_t i);
    void (*fill)(uint64_t i, int32_t *index, uint64_t length);
} ROWS[] = {
    [BANDED] = {banded_length, banded_fill},
    [DIAGONALS] = {diagonals_length, diagonals_fill},
    [BLOCKS] = {blocks_length, blocks_fill},
    [STENCIL2D] = {stencil_length, stencil_fill},
    [STENCIL3D] = {stencil_length, stencil_fill},
    [STENCIL27] = {stencil_length, stencil_fill},
    [POWERLAW] = {powerlaw_length, powerlaw_fill},
    [RANDOM] = {random_length, random_fill},
    [ARROW] = {arrow_length, arrow_fill},
    [DENSEROW] = {denserow_length, denserow_fill},
};

static void plan(const struct recipe *recipe)
{
    shape.of = *recipe;
    shape.n = recipe->n;
    switch (recipe->kind) {
    case DIAGONALS:
        shape.of.band = recipe->band ? smaller(recipe->band, shape.n - 1) : shape.n - 1;
        if (recipe->row < 2 || recipe->row > 2 * shape.of.band + 1)
            cannot_run("diagonals: row must be 2 at least, and not more than the diagonals from -band to band");
        break;
    case BLOCKS:
        shape.n = recipe->n / recipe->block * recipe->block;
        if (!shape.n)
            cannot_run("blocks: n must be a block at least");
        break;
    case STENCIL2D:
        plan_grid(false, false);
        break;
    case STENCIL3D:
        plan_grid(true, false);
        break;
    case STENCIL27:
        plan_grid(true, true);
        break;
    default:
        break;
    }
}

/* 1 to LARGEST_VALUE, in a pattern unrelated to the columns. */
static void fill_values(double *value, uint64_t count)
{
    for (uint64_t k = 0; k < count; k++)
        value[k] = (double)(int64_t)((k * 0x9e3779b97f4a7c15 >> (64 - VALUE_BITS)) + 1);
}

struct matrix generate(const struct recipe *recipe)
{
    plan(recipe);
    struct matrix a = new_matrix(shape.n);
    uint64_t nonzeros = 0;
    for (uint64_t i = 0; i < shape.n; i++) {
        nonzeros += ROWS[recipe->kind].length(i);
        a.ptr[i + 1] = (int32_t)nonzeros;
    }
    take_nonzeros(&a, nonzeros);
    for (uint64_t i = 0; i < shape.n; i++)
        ROWS[recipe->kind].fill(i, a.index + a.ptr[i], (uint64_t)(a.ptr[i + 1] - a.ptr[i]));
    fill_values(a.value, nonzeros);
    a.largest = LARGEST_VALUE;
    return a;
}
