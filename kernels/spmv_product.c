/* y = A x in each format, vectorised over the elements that the format stores together. */
#include "spmv.h"

static inline svfloat64_t gather(svbool_t p, const double *x, const int32_t *index)
{
    return svld1_gather_index(p, x, svld1sw_s64(p, index));
}

/* Nonzeros `k` to `end`-1, of one row. */
static inline double sum_row(const int32_t *index, const double *value, int64_t k, int64_t end, const double *x)
{
    svfloat64_t sum = svdup_f64(0);
    svbool_t p = svwhilelt_b64(k, end);
    while (svptest_any(svptrue_b64(), p)) {
        sum = svmla_m(p, sum, svld1(p, value + k), gather(p, x, index + k));
        k += (int64_t)svcntd();
        p = svwhilelt_b64(k, end);
    }
    return svaddv(svptrue_b64(), sum);
}

static void clear(double *y, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = 0;
}

static void multiply_crs(const struct storage *s, double *restrict y, const double *restrict x)
{
    for (uint64_t i = 0; i < s->n; i++)
        y[i] = sum_row(s->index, s->value, s->ptr[i], s->ptr[i + 1], x);
}

/* The rows of a column are distinct, so a vector of them can be added at once. */
static void multiply_ccs(const struct storage *s, double *restrict y, const double *restrict x)
{
    clear(y, s->n);
    for (uint64_t j = 0; j < s->n; j++) {
        int64_t end = s->ptr[j + 1];
        for (int64_t k = s->ptr[j]; k < end; k += (int64_t)svcntd()) {
            svbool_t p = svwhilelt_b64(k, end);
            svint64_t row = svld1sw_s64(p, s->index + k);
            svfloat64_t sum = svld1_gather_index(p, y, row);
            svst1_scatter_index(p, y, row, svmla_x(p, sum, svld1(p, s->value + k), x[j]));
        }
    }
}

static void multiply_msr(const struct storage *s, double *restrict y, const double *restrict x)
{
    for (uint64_t i = 0; i < s->n; i++)
        y[i] = s->value[i] * x[i] + sum_row(s->index, s->value, s->index[i], s->index[i + 1], x);
}

static void multiply_dia(const struct storage *s, double *restrict y, const double *restrict x)
{
    int64_t n = (int64_t)s->n;
    clear(y, s->n);
    for (uint64_t d = 0; d < s->count; d++) {
        int64_t above = s->offset[d], first = above < 0 ? -above : 0, end = above < 0 ? n : n - above;
        const double *value = s->value + d * s->n;
        for (int64_t i = first; i < end; i++)
            y[i] += value[i] * x[i + above];
    }
}

/* Adds to `count` elements of y, one per row. */
static inline void add_diagonal(double *y, const double *value, const int32_t *index, int64_t count, const double *x)
{
    for (int64_t i = 0; i < count; i += (int64_t)svcntd()) {
        svbool_t p = svwhilelt_b64(i, count);
        svst1(p, y + i, svmla_x(p, svld1(p, y + i), svld1(p, value + i), gather(p, x, index + i)));
    }
}

static void multiply_ell(const struct storage *s, double *restrict y, const double *restrict x)
{
    clear(y, s->n);
    for (uint64_t d = 0; d < s->count; d++)
        add_diagonal(y, s->value + d * s->n, s->index + d * s->n, (int64_t)s->n, x);
}

/* In the order of row lengths, then by row number. */
static void multiply_jds(const struct storage *s, double *restrict y, const double *restrict x)
{
    clear(s->work, s->n);
    for (uint64_t d = 0; d < s->count; d++)
        add_diagonal(s->work, s->value + s->ptr[d], s->index + s->ptr[d], s->ptr[d + 1] - s->ptr[d], x);
    int64_t n = (int64_t)s->n;
    for (int64_t i = 0; i < n; i += (int64_t)svcntd()) {
        svbool_t p = svwhilelt_b64(i, n);
        svst1_scatter_index(p, y, svld1sw_s64(p, s->row + i), svld1(p, s->work + i));
    }
}

/* Scalar: consecutive entries may have the same row. */
static void multiply_coo(const struct storage *s, double *restrict y, const double *restrict x)
{
    clear(y, s->n);
    for (uint64_t k = 0; k < s->nonzeros; k++)
        y[s->row[k]] += s->value[k] * x[s->column[k]];
}

__attribute__((noinline)) void spmv_kernel(const struct storage *s, double *y, const double *x)
{
    static void (*const MULTIPLY[])(const struct storage *, double *, const double *) = {
        [CRS] = multiply_crs, [CCS] = multiply_ccs, [MSR] = multiply_msr, [DIA] = multiply_dia,
        [ELL] = multiply_ell, [JDS] = multiply_jds, [BSR] = spmv_blocks,  [BSC] = spmv_blocks,
        [VBR] = spmv_blocks,  [COO] = multiply_coo,
    };
    MULTIPLY[s->format](s, y, x);
}
