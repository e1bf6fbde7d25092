/* The Helmholtz operator of spectral elements of 8*8*8 points: derivatives along three directions, the product with a geometry
 * of six factors for each point, and the same derivatives transposed. A vector holds a sum's eight terms, or eight points of a row;
 * both need vectors of 512 bits. */
#include "threads.h"

enum { N = 8, POINTS = N * N * N, FACTORS = 7, MAX_ELEMENTS = 1920 };

typedef double cube[N][N][N];

static _Alignas(LINE) cube q[MAX_ELEMENTS], result[MAX_ELEMENTS];
/* The last of the seven factors is not used. */
static _Alignas(LINE) cube geometry[MAX_ELEMENTS][FACTORS];
static _Alignas(LINE) double derivative[N][N];

/* A thread's copy of an element's values, the fluxes, and the transposed derivatives. */
struct locals {
    _Alignas(LINE) cube u, r, s, t;
    double turned[N][N];
};

static struct locals locals[MAX_THREADS];

enum { FORM_TERMS, FORM_POINTS };
enum { FORM, ELEMENTS, PASSES, THREADS };

static struct option options[] = {
    [FORM] = {"form", FORM_POINTS, 0, 0, "terms|points"},
    [ELEMENTS] = {"elements", 48, 1, MAX_ELEMENTS, NULL},
    [PASSES] = {"passes", 1, 1, 1000000, NULL},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
};

static _Alignas(LINE) bool wrong[MAX_THREADS];

/* First element of a thread. */
static uint64_t part(unsigned thread)
{
    return options[ELEMENTS].value * thread / options[THREADS].value;
}

/* An element's values. */
static inline void copy(double *u, uint64_t element)
{
    svbool_t p = svptrue_b64();
    for (unsigned i = 0; i < POINTS; i += N)
        svst1(p, u + i, svld1(p, &q[element][0][0][i]));
}

/* Terms: vectors of the terms of a sum. */

/* The sum of all elements, by pairwise addition. */
static inline double sum(svbool_t p, svfloat64_t v)
{
    v = svadd_x(p, v, svext(v, v, 4));
    v = svadd_x(p, v, svext(v, v, 2));
    /* The first element is a scalar already. */
    double sum;
    __asm__("" : "=w"(sum) : "0"(svadd_x(p, v, svext(v, v, 1))));
    return sum;
}

static inline double dot(svbool_t p, svfloat64_t a, svfloat64_t b)
{
    return sum(p, svmul_x(p, a, b));
}

/* Loads the number at a pointer and advances the pointer by a separate addition. */
static inline double next(const double **at)
{
    double number = **at;
    __asm__ volatile("add %0, %0, #8" : "+r"(*at));
    return number;
}

/* Offset of an element's arrays from the start of a line, in numbers: the compiler has them on its stack, which is aligned to 16
 * bytes. Counted gathers merge fewer pairs of elements than they would from the start of a line. */
enum { ON_STACK = 2 };

/* The eight points of a row, one after the other. */
#define EACH_POINT(point) point(0) point(1) point(2) point(3) point(4) point(5) point(6) point(7)

/* Six pointers to a row's factors are in memory and advance from point to point, as counts of general register loads and
 * integer operations show; each factor is loaded once. Rows of the derivative stay in registers. s has the direction of its
 * derivative innermost: three gathers per point are counted, two of them here. The 384 counted prefetch instructions, six per
 * row, load almost no line into L1: they address the next row, in arrays that are there. */
static inline void fluxes_by_terms(svbool_t p, double (*restrict u)[N][N], double (*restrict r)[N][N],
                                   double (*restrict s)[N][N], double (*restrict t)[N][N], const cube *g)
{
    const double *volatile factors[6];
    for (unsigned f = 0; f < 6; f++)
        factors[f] = g[f][0][0];
    svint64_t rows = svindex_s64(0, N), planes = svindex_s64(0, N * N);
#define ROW(i) svfloat64_t d##i = svld1(p, derivative[i]);
    EACH_POINT(ROW)
#undef ROW
    uint64_t row_at = 0;
    for (unsigned k = 0; k < N; k++) {
        svfloat64_t dk = svld1(p, derivative[k]);
        for (unsigned j = 0; j < N; j++) {
            svfloat64_t dj = svld1(p, derivative[j]), row = svld1(p, u[k][j]);
            const double *g0 = factors[0] + row_at, *g1 = factors[1] + row_at, *g2 = factors[2] + row_at;
            const double *g3 = factors[3] + row_at, *g4 = factors[4] + row_at, *g5 = factors[5] + row_at;
            __builtin_prefetch(r[k][j + 1], 1, 3);
            __builtin_prefetch(s[k][j + 1], 1, 3);
            __builtin_prefetch(t[k][j + 1], 1, 3);
#define POINT(i)                                                                                       \
    {                                                                                                  \
        svfloat64_t column = svld1_gather_index(p, &u[k][0][i], rows);                                 \
        svfloat64_t pillar = svld1_gather_index(p, &u[0][j][i], planes);                               \
        double along_r = dot(p, d##i, row), along_s = dot(p, dj, column);                              \
        double along_t = dot(p, dk, pillar);                                                           \
        double f0 = next(&g0), f1 = next(&g1), f2 = next(&g2);                                         \
        double f3 = next(&g3), f4 = next(&g4), f5 = next(&g5);                                         \
        r[k][j][i] = f0 * along_r + f1 * along_s + f2 * along_t;                                       \
        s[k][i][j] = f1 * along_r + f3 * along_s + f4 * along_t;                                       \
        t[k][j][i] = f2 * along_r + f4 * along_s + f5 * along_t;                                       \
    }
            EACH_POINT(POINT)
#undef POINT
            row_at += N;
        }
    }
}

/* Columns of the derivative are gathered, as 208 counted gathers in addition to those of points show, and rows of s stay in registers for a
 * plane. */
static inline void sums_by_terms(svbool_t p, double (*restrict r)[N][N], double (*restrict s)[N][N],
                                 double (*restrict t)[N][N], double (*restrict to)[N][N])
{
    svint64_t rows = svindex_s64(0, N), planes = svindex_s64(0, N * N);
    for (unsigned k = 0; k < N; k++) {
#define COLUMN(i) svfloat64_t d##i = svld1_gather_index(p, &derivative[0][i], rows), s##i = svld1(p, s[k][i]);
        EACH_POINT(COLUMN)
#undef COLUMN
        for (unsigned j = 0; j < N; j++) {
            svfloat64_t dj = svld1_gather_index(p, &derivative[0][j], rows);
            svfloat64_t dk = svld1_gather_index(p, &derivative[0][k], rows), row = svld1(p, r[k][j]);
            __builtin_prefetch(r[k][j + 1], 0, 3);
            __builtin_prefetch(s[k][j + 1], 0, 3);
            __builtin_prefetch(t[k][j + 1], 0, 3);
#define POINT(i)                                                                       \
    {                                                                                  \
        svfloat64_t pillar = svld1_gather_index(p, &t[0][j][i], planes);               \
        to[k][j][i] = dot(p, d##i, row) + dot(p, dj, s##i) + dot(p, dk, pillar);       \
    }
            EACH_POINT(POINT)
#undef POINT
        }
    }
}

static __attribute__((noinline)) void by_terms(struct locals *local, uint64_t element)
{
    svbool_t p = svptrue_b64();
    double *u = local->u[0][0] + ON_STACK;
    double(*cubes)[N][N] = (double(*)[N][N])u;
    copy(u, element);
    fluxes_by_terms(p, cubes, cubes + N, cubes + 2 * N, cubes + 3 * N, geometry[element]);
    sums_by_terms(p, cubes + N, cubes + 2 * N, cubes + 3 * N, result[element]);
}

/* Points: vectors of a row's points (axhelm.S). */

void axhelm_fluxes(double *u, const double *turned, const double *derivative, const double *geometry, double *fluxes);
void axhelm_sums(double *fluxes, const double *derivative, double *result);

static __attribute__((noinline)) void by_points(struct locals *local, uint64_t element)
{
    svbool_t p = svptrue_b64();
    for (unsigned i = 0; i < N; i++)
        svst1(p, local->turned[i], svld1_gather_index(p, &derivative[0][i], svindex_s64(0, N)));
    copy(local->u[0][0], element);
    axhelm_fluxes(local->u[0][0], local->turned[0], derivative[0], geometry[element][0][0][0], local->r[0][0]);
    axhelm_sums(local->r[0][0], derivative[0], result[element][0][0]);
}

static double value(uint64_t i)
{
    return (double)(i * 0x9e3779b97f4a7c15 >> 40) * 0x1p-24;
}

/* Returns the operator's value at one point. */
static double expected(uint64_t element, unsigned k, unsigned j, unsigned i)
{
    const cube *g = geometry[element];
    const cube *u = &q[element];
    double sum = 0;
    for (unsigned m = 0; m < N; m++) {
        /* Derivatives at the points of the row, the column and the pillar of (k, j, i). */
        unsigned at[3][3] = {{k, j, m}, {k, m, i}, {m, j, i}};
        for (unsigned way = 0; way < 3; way++) {
            unsigned z = at[way][0], y = at[way][1], x = at[way][2];
            double along[3] = {0, 0, 0};
            for (unsigned n = 0; n < N; n++) {
                along[0] += derivative[x][n] * (*u)[z][y][n];
                along[1] += derivative[y][n] * (*u)[z][n][x];
                along[2] += derivative[z][n] * (*u)[n][y][x];
            }
            static const unsigned char which[3][3] = {{0, 1, 2}, {1, 3, 4}, {2, 4, 5}};
            double flux = 0;
            for (unsigned d = 0; d < 3; d++)
                flux += g[which[way][d]][z][y][x] * along[d];
            sum += derivative[m][way == 0 ? i : way == 1 ? j : k] * flux;
        }
    }
    return sum;
}

/* Whether some points of an element are correct; all values are positive. */
static bool correct(uint64_t element)
{
    bool ok = true;
    for (unsigned point = 0; point < POINTS; point += 73) {
        unsigned k = point / (N * N), j = point / N % N, i = point % N;
        double right = expected(element, k, j, i), difference = result[element][k][j][i] - right;
        ok &= (difference < 0 ? -difference : difference) <= 1e-12 * right;
    }
    return ok;
}

static void initialise(uint64_t element)
{
    for (unsigned point = 0; point < POINTS; point++) {
        (&q[element][0][0][0])[point] = value(element * POINTS + point);
        (&result[element][0][0][0])[point] = -1;
        for (unsigned f = 0; f < FACTORS; f++)
            (&geometry[element][f][0][0][0])[point] = value((element * FACTORS + f) * POINTS + point);
    }
}

static void run(unsigned thread)
{
    uint64_t from = part(thread), to = part(thread + 1);
    void (*call)(struct locals *, uint64_t) = options[FORM].value == FORM_TERMS ? by_terms : by_points;
    for (uint64_t e = from; e < to; e++)
        initialise(e);
    meet(thread);
    /* The last quarter leaves the caches in the state of a whole sweep. */
    for (uint64_t e = to - (to - from + 3) / 4; e < to; e++)
        call(&locals[thread], e);

    measure_begin_together(thread, "axhelm");
    for (uint64_t i = 0; i < options[PASSES].value; i++) {
        for (uint64_t e = from; e < to; e++)
            call(&locals[thread], e);
        meet(thread);
    }
    measure_end_together(thread);

    bool ok = true;
    for (uint64_t e = from; e < to; e += 16)
        ok &= correct(e);
    wrong[thread] = !ok;
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    if (svcntd() != N)
        cannot_run("needs vectors of 512 bits");
    for (unsigned i = 0; i < N * N; i++)
        (&derivative[0][0])[i] = value(i);
    run_threads((unsigned)options[THREADS].value, run);

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
