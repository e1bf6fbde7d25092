/* Converts rows to the ten formats, each in time linear in its size. The memory of a format is known, and compared with the limit,
 * before its arrays are allocated. */
#include "spmv.h"

static const char *const NAMES[] = {"CRS", "CCS", "MSR", "DIA", "ELL", "JDS", "BSR", "BSC", "VBR", "COO"};

enum { INDEX = sizeof(int32_t), VALUE = sizeof(double) };

static void need(struct storage *s, unsigned __int128 bytes, const struct product *what)
{
    claim(NAMES[s->format], bytes, what);
    s->bytes = (uint64_t)bytes;
}

/* Like `need`, for formats that store only the nonzeros. */
static void need_nonzeros(struct storage *s, unsigned __int128 bytes)
{
    const struct product what = {s->n, " rows, ", s->nonzeros, " nonzeros"};
    need(s, bytes, &what);
}

/* The matrix itself, with its `ptr`, `index` and `value`. */
static void store_crs(const struct matrix *a, struct storage *s)
{
    need_nonzeros(s, (a->n + 1) * INDEX + a->nonzeros * (INDEX + VALUE));
    s->ptr = a->ptr;
    s->index = a->index;
    s->value = a->value;
}

/* `ptr` by columns, `index` has rows. */
static void store_ccs(const struct matrix *a, struct storage *s)
{
    need_nonzeros(s, (a->n + 1) * INDEX + a->nonzeros * (INDEX + VALUE));
    struct matrix t = transposed(a);
    s->ptr = t.ptr;
    s->index = t.index;
    s->value = t.value;
}

/* `value`: the diagonal, a free element, then the other nonzeros by rows; `index`: the start of each row of these, instead of
 * the diagonal, and their columns. */
static void store_msr(const struct matrix *a, struct storage *s)
{
    uint64_t n = a->n, diagonal = 0;
    for (uint64_t i = 0; i < n; i++)
        for (int32_t k = a->ptr[i]; k < a->ptr[i + 1] && a->index[k] <= (int32_t)i; k++)
            diagonal += a->index[k] == (int32_t)i;
    uint64_t count = n + 1 + a->nonzeros - diagonal;
    if (count > MAX_INDEX)
        cannot_run("MSR: rows and nonzeros are too many for indices of 32 bits");
    need_nonzeros(s, count * (INDEX + VALUE));
    s->index = take(count, INDEX);
    s->value = take(count, VALUE);
    int32_t at = (int32_t)n + 1;
    for (uint64_t i = 0; i < n; i++) {
        s->index[i] = at;
        for (int32_t k = a->ptr[i]; k < a->ptr[i + 1]; k++) {
            if (a->index[k] == (int32_t)i) {
                s->value[i] = a->value[k];
                continue;
            }
            s->index[at] = a->index[k];
            s->value[at++] = a->value[k];
        }
    }
    s->index[n] = at;
}

/* `count` diagonals; `offset` has the distance of each above the main diagonal, `value` n elements of each, by rows. */
static void store_dia(const struct matrix *a, struct storage *s)
{
    uint64_t n = a->n;
    /* By distance above the lowest possible diagonal: whether it exists, then its number. */
    int32_t *number = take(2 * n, INDEX);
    for (uint64_t i = 0; i < n; i++)
        for (int32_t k = a->ptr[i]; k < a->ptr[i + 1]; k++)
            number[a->index[k] + (n - 1 - i)] = 1;
    for (uint64_t d = 0; d < 2 * n; d++)
        s->count += (uint64_t)number[d];
    const struct product what = {s->count, " diagonals x ", n, " rows"};
    need(s, s->count * INDEX + (unsigned __int128)s->count * n * VALUE, &what);
    s->offset = take(s->count, INDEX);
    s->value = take(s->count * n, VALUE);
    int32_t count = 0;
    for (uint64_t d = 0; d < 2 * n; d++)
        if (number[d]) {
            number[d] = count;
            s->offset[count++] = (int32_t)((int64_t)d - (int64_t)(n - 1));
        }
    for (uint64_t i = 0; i < n; i++)
        for (int32_t k = a->ptr[i]; k < a->ptr[i + 1]; k++)
            s->value[(uint64_t)number[a->index[k] + (n - 1 - i)] * n + i] = a->value[k];
}

static uint64_t longest_row(const struct matrix *a)
{
    int32_t longest = 0;
    for (uint64_t i = 0; i < a->n; i++) {
        int32_t length = a->ptr[i + 1] - a->ptr[i];
        longest = length > longest ? length : longest;
    }
    return (uint64_t)longest;
}

/* `count` elements of each row, the first ones of all rows, then the second ones and so on; missing elements are zero, in column
 * 0. */
static void store_ell(const struct matrix *a, struct storage *s)
{
    uint64_t n = a->n;
    s->count = longest_row(a);
    const struct product what = {n, " rows x longest row of ", s->count, ""};
    need(s, (unsigned __int128)s->count * n * (INDEX + VALUE), &what);
    s->index = take(s->count * n, INDEX);
    s->value = take(s->count * n, VALUE);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = i;
        for (int32_t k = a->ptr[i]; k < a->ptr[i + 1]; k++, at += n) {
            s->index[at] = a->index[k];
            s->value[at] = a->value[k];
        }
    }
}

/* Rows in descending order of their lengths; `row` has their numbers. As ELL, but without the missing elements: each of the
 * `count` diagonals starts at `ptr`. */
static void store_jds(const struct matrix *a, struct storage *s)
{
    uint64_t n = a->n;
    s->count = longest_row(a);
    need_nonzeros(s, n * INDEX + (s->count + 1) * INDEX + a->nonzeros * (INDEX + VALUE) + n * VALUE);
    s->ptr = take(s->count + 1, INDEX);
    s->row = take(n, INDEX);
    s->index = take(a->nonzeros, INDEX);
    s->value = take(a->nonzeros, VALUE);
    s->work = take(n, VALUE);
    /* Number of rows of each length; then the position of the next one of that length. */
    int32_t *rows = take(s->count + 1, INDEX);
    for (uint64_t i = 0; i < n; i++)
        rows[a->ptr[i + 1] - a->ptr[i]]++;
    int32_t longer = 0;
    for (uint64_t length = s->count + 1; length-- > 0;) {
        int32_t with_it = rows[length];
        rows[length] = longer;
        longer += with_it;
        if (length)
            s->ptr[length] = longer;
    }
    for (uint64_t d = 0; d < s->count; d++)
        s->ptr[d + 1] += s->ptr[d];
    for (uint64_t i = 0; i < n; i++) {
        int32_t place = rows[a->ptr[i + 1] - a->ptr[i]]++;
        s->row[place] = (int32_t)i;
        for (int32_t k = a->ptr[i], d = 0; k < a->ptr[i + 1]; k++, d++) {
            s->index[s->ptr[d] + place] = a->index[k];
            s->value[s->ptr[d] + place] = a->value[k];
        }
    }
}

/* Row, column and value of each nonzero, by rows; columns and values are the matrix's. */
static void store_coo(const struct matrix *a, struct storage *s)
{
    need_nonzeros(s, a->nonzeros * (2 * INDEX + VALUE));
    s->row = take(a->nonzeros, INDEX);
    for (uint64_t i = 0; i < a->n; i++)
        for (int32_t k = a->ptr[i]; k < a->ptr[i + 1]; k++)
            s->row[k] = (int32_t)i;
    s->column = a->index;
    s->value = a->value;
}

struct storage store(const struct matrix *a, enum format format, uint64_t block)
{
    static void (*const STORE[])(const struct matrix *, struct storage *) = {
        [CRS] = store_crs, [CCS] = store_ccs,    [MSR] = store_msr,    [DIA] = store_dia,
        [ELL] = store_ell, [JDS] = store_jds,    [BSR] = store_blocks, [BSC] = store_blocks,
        [VBR] = store_variable_blocks, [COO] = store_coo,
    };
    struct storage s = {.format = format, .n = a->n, .nonzeros = a->nonzeros, .block = block};
    STORE[format](a, &s);
    return s;
}
