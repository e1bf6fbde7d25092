/* The two-stream recursion of a radiation scheme over 54 levels and 10 columns, with the levels innermost, in scalar code, or with
 * the columns innermost, as vectors. */
#include "runtime.h"

enum { LEVELS = 54, EDGES = LEVELS + 1, CLOUDS = 2, COLUMNS = 5 * CLOUDS };

/* R and E at the lowest and at the highest edge. */
#define EDGE_R 0.3
#define EDGE_E 1.0

typedef double grid[COLUMNS][EDGES];

/* Input: reflectance and transmittance of a layer without and with clouds, its emission down and up. */
static _Alignas(LINE) grid clear_r, clear_t, cloudy_r, cloudy_t, down, up;
static _Alignas(LINE) double fraction[EDGES], share[EDGES];
/* Results for a layer, and for all layers below (`minus`) or above (`plus`). */
static _Alignas(LINE) grid layer_r, layer_t, minus_r, minus_e, plus_r, plus_e;
/* The last four with the columns innermost. */
static _Alignas(LINE) double turned[4][EDGES][COLUMNS];

enum { LEVELS_INNER, COLUMNS_INNER };
enum { INNER, PASSES };

static struct option options[] = {
    [INNER] = {"inner", LEVELS_INNER, 0, 0, "levels|columns"},
    [PASSES] = {"passes", 10, 1, 1000000000, NULL},
};

#define INLINE static inline __attribute__((always_inline))

/* A product that is not fused with an addition. */
INLINE double product(double a, double b)
{
    double p = a * b;
    __asm__("" : "+w"(p));
    return p;
}

/* a + t / d * x as a + (t * x) / d, by an estimate of 1/d, which each quotient computes again. */
INLINE double add_quotient(double a, double t, double x, double d)
{
    double first;
    __asm__ volatile("frecpe %d0, %d1" : "=w"(first) : "w"(d));
    double e = 1 - d * first, square = product(e, e), estimate = first + first * e;
    estimate += estimate * square;
    double rest = 1 - d * estimate, dividend = product(t, x), quotient = product(dividend, estimate);
    return __builtin_fma(quotient, rest, __builtin_fma(dividend, estimate, a));
}

/* The last argument for the vectors of `count` elements, at `at` under `p`. The last, partial one, with the predicate `last`, has
 * separate code. */
#define FOR_VECTORS(at, p, count, whole, last, ...) \
    do {                                            \
        uint64_t at = 0;                            \
        do {                                        \
            svbool_t p = whole;                     \
            __VA_ARGS__;                            \
            at += svcntd();                         \
        } while (at + svcntd() <= (count));         \
        svbool_t p = last;                          \
        __VA_ARGS__;                                \
    } while (0)

/* The share of clouds in a column, as vectors in both forms. */
static inline void cover(unsigned c, svbool_t whole, svbool_t last)
{
    if (c % CLOUDS == 0)
        FOR_VECTORS(k, p, LEVELS, whole, last, svst1(p, share + k, svdup_f64(0)));
    else
        FOR_VECTORS(k, p, LEVELS, whole, last, svst1(p, share + k, svld1(p, fraction + k)));
}

/* Adds a layer: updates R and E of all layers so far. The layer's own values are R, T, and its emission towards the layers
 * so far and away from them. */
INLINE void add_layer(double *r, double *e, double own_r, double t, double towards, double away, double *to_r, double *to_e)
{
    double so_far = *r, d = 1 - so_far * own_r;
    *to_r = *r = add_quotient(own_r, t, product(so_far, t), d);
    *to_e = *e = add_quotient(away, t, so_far * towards + *e, d);
}

/* A layer of a column, R and T of which are computed first. */
INLINE void add_below(unsigned c, unsigned k, double *r, double *e)
{
    double f = share[k], g = 1 - f;
    double own_r = cloudy_r[c][k] * f + product(clear_r[c][k], g), t = cloudy_t[c][k] * f + product(clear_t[c][k], g);
    layer_r[c][k] = own_r;
    layer_t[c][k] = t;
    add_layer(r, e, own_r, t, up[c][k], down[c][k], &minus_r[c][k], &minus_e[c][k]);
}

INLINE void add_above(unsigned c, unsigned k, double *r, double *e)
{
    add_layer(r, e, layer_r[c][k], layer_t[c][k], down[c][k], up[c][k], &plus_r[c][k + 1], &plus_e[c][k + 1]);
}

/* E of the layers so far comes from memory in every other step: 12.1 loads and 1.33 branches per point are counted. R stays in a
 * register: a step takes 60 cycles, the length of its chain. */
static inline double again(const double *at)
{
    return *(const volatile double *)at;
}

static __attribute__((noinline)) void levels_inner(void)
{
    const uint64_t vector = svcntd();
    const svbool_t whole = svptrue_b64(), last = svwhilelt_b64(LEVELS / vector * vector, (uint64_t)LEVELS);
    for (unsigned c = 0; c < COLUMNS; c++) {
        cover(c, whole, last);
        double r = minus_r[c][LEVELS], e;
        for (unsigned k = LEVELS; k > 0; k -= 2) {
            e = again(&minus_e[c][k]);
            add_below(c, k - 1, &r, &e);
            add_below(c, k - 2, &r, &e);
        }
        r = plus_r[c][0];
        for (unsigned k = 0; k < LEVELS; k += 2) {
            e = again(&plus_e[c][k]);
            add_above(c, k, &r, &e);
            add_above(c, k + 1, &r, &e);
        }
    }
}

/* Start and current position of arrays, which do not fit into registers: loaded again for each access of the
 * recursion, as counts of general register loads and stores show. */
static double *volatile copied[] = {minus_r[0], minus_e[0], plus_r[0], plus_e[0]};
static double *volatile grids[] = {layer_r[0], layer_t[0], up[0], down[0], layer_r[0], layer_t[0], down[0], up[0]};
static double *volatile streams[] = {turned[0][0], turned[1][0], turned[2][0], turned[3][0],
                                     turned[0][0], turned[1][0], turned[2][0], turned[3][0]};
static volatile uint64_t places[4];

/* Common part of quotients by d: an estimate of 1/d of 32 bits, and in `rest` its residual. */
static inline svfloat64_t reciprocal(svbool_t p, svfloat64_t d, svfloat64_t *rest)
{
    svfloat64_t first = svrecpe(d), one = svdup_f64(1);
    svfloat64_t e = svmls_x(p, one, d, first), square = svmul_x(p, e, e);
    svfloat64_t estimate = svmla_x(p, first, first, e);
    estimate = svmla_x(p, estimate, estimate, square);
    *rest = svmls_x(p, one, d, estimate);
    return estimate;
}

/* a + t / d * x as a + (t * x) / d: dividends differ, so only the reciprocal is shared. */
static inline svfloat64_t add_quotients(svbool_t p, svfloat64_t a, svfloat64_t t, svfloat64_t x, svfloat64_t estimate,
                                        svfloat64_t rest)
{
    svfloat64_t product = svmul_x(p, t, x), quotient = svmul_x(p, product, estimate);
    return svmla_x(p, svmla_x(p, a, product, estimate), quotient, rest);
}

/* 0, n, 2 * n, …: computed for each layer of the recursion, as 75 counted moves from general registers to all elements show. */
static inline svint64_t steps_of(int64_t n)
{
    __asm__ volatile("" : "+r"(n));
    return svindex_s64(0, n);
}

/* R and T of the layers of a column, as vectors. */
static inline void mix_vectors(unsigned c, svbool_t whole, svbool_t last)
{
    cover(c, whole, last);
    FOR_VECTORS(k, p, LEVELS, whole, last, {
        svfloat64_t f = svld1(p, share + k), g = svsubr_x(p, f, 1);
        svfloat64_t r = svmul_x(p, svld1(p, clear_r[c] + k), g), t = svmul_x(p, svld1(p, clear_t[c] + k), g);
        svst1(p, layer_r[c] + k, svmla_x(p, r, svld1(p, cloudy_r[c] + k), f));
        svst1(p, layer_t[c] + k, svmla_x(p, t, svld1(p, cloudy_t[c] + k), f));
    });
}

static inline svfloat64_t gather(svbool_t p, unsigned grid, uint64_t layer, svint64_t column)
{
    return svld1_gather_index(p, grids[grid] + layer, column);
}

/* Adds a layer for a vector of columns: R and E of all layers so far, at `from`, are updated to `to`. The
 * layer's own values are at `layer` of four grids starting at `grid`: R, T, and its emission towards the layers so far and away from
 * them. */
static inline void add_layer_vectors(svbool_t p, svint64_t column, unsigned grid, uint64_t layer, unsigned stream, uint64_t from,
                                     uint64_t to)
{
    svfloat64_t r = svld1(p, streams[stream] + from), e = svld1(p, streams[stream + 1] + from);
    svfloat64_t own_r = gather(p, grid, layer, column), t = gather(p, grid + 1, layer, column);
    svfloat64_t towards = gather(p, grid + 2, layer, column), away = gather(p, grid + 3, layer, column);
    svfloat64_t rest, estimate = reciprocal(p, svmls_x(p, svdup_f64(1), r, own_r), &rest);
    svst1(p, streams[stream + 4] + to, add_quotients(p, own_r, t, svmul_x(p, r, t), estimate, rest));
    svst1(p, streams[stream + 5] + to, add_quotients(p, away, t, svmla_x(p, e, r, towards), estimate, rest));
}

/* Both directions, for a vector of columns; then continues with the next one, or with the next layer after the last. */
INLINE void add_layers(svbool_t p, svint64_t column, bool last)
{
    uint64_t below = places[0], above = places[1], up_to = places[2], down_from = places[3];
    add_layer_vectors(p, column, 0, below, 0, up_to + COLUMNS, up_to);
    add_layer_vectors(p, column, 4, above, 2, down_from, down_from + COLUMNS);
    uint64_t back = last ? COLUMNS / svcntd() * svcntd() : 0, on = last ? 0 : svcntd();
    places[0] = below + (on - back) * EDGES - last;
    places[1] = above + (on - back) * EDGES + last;
    places[2] = up_to + on - back - (last ? COLUMNS : 0);
    places[3] = down_from + on - back + (last ? COLUMNS : 0);
}

/* Values at the edges of a column, common to all. */
static inline void set_edges(unsigned c, svbool_t one)
{
    svint64_t apart = steps_of(EDGES);
    svst1_scatter_index(one, &minus_r[c][LEVELS], apart, svdup_f64(EDGE_R));
    svst1_scatter_index(one, &minus_e[c][LEVELS], apart, svdup_f64(EDGE_E));
    svst1_scatter_index(one, &plus_r[c][0], apart, svdup_f64(EDGE_R));
    svst1_scatter_index(one, &plus_e[c][0], apart, svdup_f64(EDGE_E));
}

/* Transposes one of the arrays by level and column, and back: four consecutive loops, as counted branches show. */
static inline void turn(unsigned array, svbool_t whole, svbool_t last)
{
    svint64_t column = steps_of(EDGES);
    for (uint64_t k = 0; k < EDGES; k++) {
        const double *from = copied[array] + k;
        double *to = streams[array] + k * COLUMNS;
        FOR_VECTORS(c, p, COLUMNS, whole, last, svst1(p, to + c, svld1_gather_index(p, from + c * EDGES, column)));
    }
}

static inline void turn_back(unsigned array, svbool_t whole, svbool_t last)
{
    svint64_t level = steps_of(COLUMNS);
    for (uint64_t c = 0; c < COLUMNS; c++) {
        const double *from = streams[array] + c;
        double *to = copied[array] + c * EDGES;
        FOR_VECTORS(k, p, EDGES, whole, last, svst1(p, to + k, svld1_gather_index(p, from + k * COLUMNS, level)));
    }
}

static __attribute__((noinline)) void columns_inner(void)
{
    const uint64_t vector = svcntd();
    const svbool_t whole = svptrue_b64(), one = svwhilelt_b64(0, 1);
    const svbool_t columns = svwhilelt_b64(COLUMNS / vector * vector, (uint64_t)COLUMNS);
    const svbool_t levels = svwhilelt_b64(LEVELS / vector * vector, (uint64_t)LEVELS);
    const svbool_t edges = svwhilelt_b64(EDGES / vector * vector, (uint64_t)EDGES);
    for (unsigned c = 0; c < COLUMNS; c++) {
        mix_vectors(c, whole, levels);
        set_edges(c, one);
    }
    turn(0, whole, columns);
    turn(1, whole, columns);
    turn(2, whole, columns);
    turn(3, whole, columns);
    places[0] = LEVELS - 1;
    places[1] = 0;
    places[2] = (LEVELS - 1) * COLUMNS;
    places[3] = 0;
    for (unsigned i = 0; i < LEVELS; i++) {
        svint64_t column = steps_of(EDGES);
        FOR_VECTORS(c, p, COLUMNS, whole, columns, add_layers(p, column, c + vector > COLUMNS));
    }
    turn_back(0, whole, edges);
    turn_back(1, whole, edges);
    turn_back(2, whole, edges);
    turn_back(3, whole, edges);
}

static double unit(uint64_t *random)
{
    *random = *random * 6364136223846793005 + 1442695040888963407;
    return (double)(*random >> 40) * 0x1p-24;
}

static void initialise(void)
{
    uint64_t random = 0x853c49e6748fea9b;
    for (unsigned k = 0; k < EDGES; k++)
        fraction[k] = unit(&random);
    for (unsigned c = 0; c < COLUMNS; c++) {
        for (unsigned k = 0; k < EDGES; k++) {
            clear_r[c][k] = 0.1 * unit(&random);
            cloudy_r[c][k] = 0.5 * unit(&random);
            clear_t[c][k] = 0.9 - clear_r[c][k];
            cloudy_t[c][k] = 0.9 - cloudy_r[c][k];
            down[c][k] = unit(&random);
            up[c][k] = unit(&random);
        }
        minus_r[c][LEVELS] = plus_r[c][0] = EDGE_R;
        minus_e[c][LEVELS] = plus_e[c][0] = EDGE_E;
    }
}

static bool close(double value, double expected)
{
    double difference = value - expected;
    return (difference < 0 ? -difference : difference) <= 1e-12 * expected;
}

/* Whether one sweep of a column agrees with divisions; all values are positive. */
static bool correct(unsigned c)
{
    bool ok = true;
    double r = EDGE_R, e = EDGE_E, s = EDGE_R, d = EDGE_E;
    for (unsigned i = 0; i < LEVELS; i++) {
        unsigned k = LEVELS - 1 - i;
        double f = c % CLOUDS == 0 ? 0 : fraction[k], layer = cloudy_r[c][k] * f + clear_r[c][k] * (1 - f);
        double t = cloudy_t[c][k] * f + clear_t[c][k] * (1 - f), q = t / (1 - r * layer);
        e = down[c][k] + q * (r * up[c][k] + e);
        r = layer + q * (r * t);
        ok &= close(minus_r[c][k], r) && close(minus_e[c][k], e);
        f = c % CLOUDS == 0 ? 0 : fraction[i], layer = cloudy_r[c][i] * f + clear_r[c][i] * (1 - f);
        t = cloudy_t[c][i] * f + clear_t[c][i] * (1 - f), q = t / (1 - s * layer);
        d = up[c][i] + q * (s * down[c][i] + d);
        s = layer + q * (s * t);
        ok &= close(plus_r[c][i + 1], s) && close(plus_e[c][i + 1], d);
    }
    return ok;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    void (*call)(void) = options[INNER].value == LEVELS_INNER ? levels_inner : columns_inner;
    initialise();
    call();

    measure_begin("twst");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        call();
    measure_end();

    bool ok = true;
    for (unsigned c = 0; c < COLUMNS; c++)
        ok &= correct(c);
    return finish(ok, options, COUNT_OF(options));
}
