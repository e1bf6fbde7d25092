/* The formats of dense blocks: BSR and BSC with equal blocks, VBR with those of the matrix's pattern. Values of a block are stored
 * column by column, so that a vector holds elements of several rows. */
#include "spmv.h"

enum { INDEX = sizeof(int32_t), VALUE = sizeof(double) };

/* Functions are instantiated for each number of rows of a block. */
#define FOR_BLOCK(block, function, ...) \
    switch (block) { \
    case 2: \
        function(2, __VA_ARGS__); \
        break; \
    case 3: \
        function(3, __VA_ARGS__); \
        break; \
    case 4: \
        function(4, __VA_ARGS__); \
        break; \
    default: \
        function(MAX_BLOCK, __VA_ARGS__); \
    }
#define FOR_EACH_BLOCK static inline __attribute__((always_inline)) void

/* Counts the blocks with a nonzero. */
FOR_EACH_BLOCK count_blocks(const uint32_t block, const struct matrix *a, uint64_t rows, uint64_t *count)
{
    /* The last row of blocks, counted from 1, in which each column of blocks was found. */
    uint32_t *met = take(rows, INDEX);
    for (uint64_t i = 0; i < a->n; i++) {
        uint32_t here = (uint32_t)i / block + 1;
        for (int64_t k = a->ptr[i], end = a->ptr[i + 1]; k < end; k++) {
            uint32_t column = (uint32_t)a->index[k] / block;
            *count += met[column] != here;
            met[column] = here;
        }
    }
}

/* Rows of blocks, each with its blocks in the order of its rows. */
FOR_EACH_BLOCK fill_block_rows(const uint32_t block, const struct matrix *a, struct storage *s)
{
    /* The last block of each column of blocks. */
    int32_t *last = take(s->count, INDEX);
    int32_t blocks = 0, first = 0;
    for (uint64_t i = 0; i < a->n; i++) {
        uint32_t row = (uint32_t)i / block, r = (uint32_t)i % block;
        first = r ? first : blocks;
        for (int64_t k = a->ptr[i], end = a->ptr[i + 1]; k < end; k++) {
            uint32_t column = (uint32_t)a->index[k] / block, c = (uint32_t)a->index[k] % block;
            int32_t at = last[column];
            /* Whether it belongs to an earlier row of blocks; an entry that was never set may refer to the first block. */
            if (at < first || at >= blocks || s->index[at] != (int32_t)column) {
                at = blocks++;
                last[column] = at;
                s->index[at] = (int32_t)column;
            }
            s->value[(uint64_t)(uint32_t)at * block * block + c * block + r] = a->value[k];
        }
        s->ptr[row + 1] = blocks;
    }
}

/* Blocks by columns from those by rows: a counting sort. */
static void sort_by_columns(struct storage *s, uint64_t count, uint64_t block)
{
    const struct storage by_rows = *s;
    uint64_t size = block * block;
    s->ptr = take(s->count + 1, INDEX);
    s->index = take(count, INDEX);
    s->value = take(count * size, VALUE);
    for (uint64_t k = 0; k < count; k++)
        s->ptr[by_rows.index[k] + 1]++;
    for (uint64_t j = 0; j < s->count; j++)
        s->ptr[j + 1] += s->ptr[j];
    for (uint64_t i = 0; i < s->count; i++)
        for (int32_t k = by_rows.ptr[i]; k < by_rows.ptr[i + 1]; k++) {
            int32_t at = s->ptr[by_rows.index[k]]++;
            s->index[at] = (int32_t)i;
            for (uint64_t e = 0; e < size; e++)
                s->value[(uint64_t)at * size + e] = by_rows.value[(uint64_t)k * size + e];
        }
    for (uint64_t j = s->count; j > 0; j--)
        s->ptr[j] = s->ptr[j - 1];
    s->ptr[0] = 0;
}

/* `count` rows, or columns, of blocks, which start at `ptr`; `index` has the blocks' columns, or rows. */
void store_blocks(const struct matrix *a, struct storage *s)
{
    uint64_t block = s->block, blocks = 0;
    s->count = (a->n + block - 1) / block;
    FOR_BLOCK(block, count_blocks, a, s->count, &blocks)
    s->bytes = (s->count + 1) * INDEX + blocks * (INDEX + block * block * VALUE);
    const struct product what = {blocks, " blocks of ", block * block, " values"};
    claim(s->format == BSR ? "BSR" : "BSC", s->bytes, &what);
    s->ptr = take(s->count + 1, INDEX);
    s->index = take(blocks, INDEX);
    s->value = take(blocks * block * block, VALUE);
    FOR_BLOCK(block, fill_block_rows, a, s)
    if (s->format == BSC)
        sort_by_columns(s, blocks, block);
}

/* Whether row i has the same columns as the one before it. */
static bool is_alike(const struct matrix *a, uint64_t i)
{
    int32_t length = a->ptr[i] - a->ptr[i - 1];
    if (a->ptr[i + 1] - a->ptr[i] != length)
        return false;
    const int32_t *above = a->index + a->ptr[i - 1], *here = a->index + a->ptr[i];
    for (int32_t k = 0; k < length; k++)
        if (above[k] != here[k])
            return false;
    return true;
}

/* Groups rows with equal patterns: start of each group, and the end. Returns the number of groups. */
static uint64_t part_rows(const struct matrix *a, int32_t *row)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < a->n; i++)
        if (i == 0 || !is_alike(a, i))
            row[count++] = (int32_t)i;
    row[count] = (int32_t)a->n;
    return count;
}

/* Groups columns that every row has all or none of: start of each group, and the end; `number` is each column's group.
 * Returns the number of groups. */
static uint64_t part_columns(const struct matrix *a, int32_t *column, int32_t *number)
{
    /* First, the boundaries of runs of neighbouring columns. */
    for (uint64_t i = 0; i < a->n; i++) {
        int32_t after = -1;
        for (int32_t k = a->ptr[i]; k < a->ptr[i + 1]; k++) {
            if (a->index[k] != after) {
                number[a->index[k]] = 1;
                if (after >= 0)
                    number[after] = 1;
            }
            after = a->index[k] + 1;
        }
        if (after >= 0)
            number[after] = 1;
    }
    uint64_t count = 0;
    for (uint64_t j = 0; j < a->n; j++) {
        if (j == 0 || number[j])
            column[count++] = (int32_t)j;
        number[j] = (int32_t)count - 1;
    }
    column[count] = (int32_t)a->n;
    return count;
}

/* Total number of column groups over the groups of rows. */
static uint64_t count_groups(const struct matrix *a, const int32_t *row, uint64_t rows, const int32_t *number)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < rows; i++) {
        int32_t before = -1;
        for (int32_t k = a->ptr[row[i]]; k < a->ptr[row[i] + 1]; k++) {
            count += number[a->index[k]] != before;
            before = number[a->index[k]];
        }
    }
    return count;
}

/* Stores the values of a group of rows with equal patterns, column by column. */
static void fill_group(const struct matrix *a, int32_t first, int32_t rows, double *value)
{
    int32_t begin = a->ptr[first], length = a->ptr[first + 1] - begin;
    if (rows == 1) {
        for (int32_t k = 0; k < length; k++)
            value[k] = a->value[begin + k];
        return;
    }
    for (int32_t k = 0; k < length; k++)
        for (int32_t r = 0; r < rows; r++)
            *value++ = a->value[begin + r * length + k];
}

static void fill_variable_blocks(const struct matrix *a, struct storage *s, const int32_t *number)
{
    int32_t at = 0;
    for (uint64_t i = 0; i < s->count; i++) {
        int32_t first = s->row[i], rows = s->row[i + 1] - first, to = a->ptr[first];
        fill_group(a, first, rows, s->value + to);
        for (int64_t k = a->ptr[first], end = a->ptr[first + 1]; k < end; at++) {
            int32_t group = number[a->index[k]], width = s->column[group + 1] - s->column[group];
            s->index[at] = group;
            s->offset[at] = to;
            to += width * rows;
            k += width;
        }
        s->ptr[i + 1] = at;
    }
}

/* `count` rows of blocks: `row` has the start of each in rows, `column` in columns, `ptr` in blocks; `index` has the blocks' columns
 * of blocks, `offset` the start of their values. All blocks are full. */
void store_variable_blocks(const struct matrix *a, struct storage *s)
{
    s->row = take(a->n + 1, INDEX);
    s->column = take(a->n + 1, INDEX);
    int32_t *number = take(a->n + 1, INDEX);
    s->count = part_rows(a, s->row);
    uint64_t columns = part_columns(a, s->column, number);
    uint64_t blocks = count_groups(a, s->row, s->count, number);
    s->bytes = (s->count + 1) * 2 * INDEX + (columns + 1) * INDEX + blocks * 2 * INDEX + a->nonzeros * VALUE;
    const struct product what = {blocks, " blocks, ", a->nonzeros, " nonzeros"};
    claim("VBR", s->bytes, &what);
    s->ptr = take(s->count + 1, INDEX);
    s->index = take(blocks, INDEX);
    s->offset = take(blocks, INDEX);
    s->value = take(a->nonzeros, VALUE);
    fill_variable_blocks(a, s, number);
}

/* BSR: rows of a block in the elements of a vector; in several passes if a vector has too few. */
FOR_EACH_BLOCK multiply_bsr(const uint64_t block, const struct storage *s, double *restrict y, const double *restrict x)
{
    for (uint64_t r = 0; r < block; r += svcntd()) {
        svbool_t p = svwhilelt_b64(r, block);
        for (uint64_t i = 0; i < s->count; i++) {
            svfloat64_t sum = svdup_f64(0);
            for (int64_t k = s->ptr[i], end = s->ptr[i + 1]; k < end; k++) {
                const double *value = s->value + (uint64_t)k * block * block + r;
                const double *from = x + (uint64_t)s->index[k] * block;
                for (uint64_t c = 0; c < block; c++)
                    sum = svmla_x(p, sum, svld1(p, value + c * block), from[c]);
            }
            svst1(p, y + i * block + r, sum);
        }
    }
}

/* BSC: columns of blocks are added to y. */
FOR_EACH_BLOCK multiply_bsc(const uint64_t block, const struct storage *s, double *restrict y, const double *restrict x)
{
    for (uint64_t i = 0; i < s->n; i++)
        y[i] = 0;
    for (uint64_t r = 0; r < block; r += svcntd()) {
        svbool_t p = svwhilelt_b64(r, block);
        for (uint64_t j = 0; j < s->count; j++)
            for (int64_t k = s->ptr[j], end = s->ptr[j + 1]; k < end; k++) {
                const double *value = s->value + (uint64_t)k * block * block + r;
                double *to = y + (uint64_t)s->index[k] * block + r;
                svfloat64_t sum = svld1(p, to);
                for (uint64_t c = 0; c < block; c++)
                    sum = svmla_x(p, sum, svld1(p, value + c * block), x[j * block + c]);
                svst1(p, to, sum);
            }
    }
}

/* VBR, a group of one row: its blocks have one row each, so it is stored in `value` as in CRS. */
static inline double multiply_row(const struct storage *s, uint64_t i, const double *restrict x)
{
    svfloat64_t sum = svdup_f64(0);
    for (int64_t k = s->ptr[i], end = s->ptr[i + 1]; k < end; k++) {
        int64_t first = s->column[s->index[k]], width = s->column[s->index[k] + 1] - first, c = 0;
        const double *value = s->value + s->offset[k];
        do {
            svbool_t p = svwhilelt_b64(c, width);
            sum = svmla_m(p, sum, svld1(p, value + c), svld1(p, x + first + c));
            c += (int64_t)svcntd();
        } while (c < width);
    }
    return svaddv(svptrue_b64(), sum);
}

/* VBR, a group of rows: as many as fit into a vector, one per element. */
static inline svfloat64_t multiply_rows(svbool_t p, const struct storage *s, uint64_t i, int64_t r, const double *restrict x)
{
    svfloat64_t sum = svdup_f64(0);
    int64_t rows = s->row[i + 1] - s->row[i];
    for (int64_t k = s->ptr[i], end = s->ptr[i + 1]; k < end; k++) {
        const double *value = s->value + s->offset[k] + r;
        int64_t behind = s->column[s->index[k] + 1];
        for (int64_t c = s->column[s->index[k]]; c < behind; c++, value += rows)
            sum = svmla_x(p, sum, svld1(p, value), x[c]);
    }
    return sum;
}

static void multiply_vbr(const struct storage *s, double *restrict y, const double *restrict x)
{
    for (uint64_t i = 0; i < s->count; i++) {
        int64_t first = s->row[i], rows = s->row[i + 1] - first;
        if (rows == 1) {
            y[first] = multiply_row(s, i, x);
            continue;
        }
        for (int64_t r = 0; r < rows; r += (int64_t)svcntd()) {
            svbool_t p = svwhilelt_b64(r, rows);
            svst1(p, y + first + r, multiply_rows(p, s, i, r, x));
        }
    }
}

void spmv_blocks(const struct storage *s, double *y, const double *x)
{
    if (s->format == BSR)
        FOR_BLOCK(s->block, multiply_bsr, s, y, x)
    else if (s->format == BSC)
        FOR_BLOCK(s->block, multiply_bsc, s, y, x)
    else
        multiply_vbr(s, y, x);
}
