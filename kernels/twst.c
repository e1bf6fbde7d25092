/* The two-stream recursion of a radiation scheme over 54 levels and 10 columns, with the levels innermost, one by one, or with
 * the columns innermost, as vectors. */
#include "runtime.h"

enum { LEVELS = 54, EDGES = LEVELS + 1, COLUMNS = 10 };

typedef double grid[COLUMNS][EDGES];

/* What is given: reflectance and transmittance of a layer without and with clouds, its emission down and up. */
static _Alignas(LINE) grid clear_r, clear_t, cloudy_r, cloudy_t, down, up;
static _Alignas(LINE) double fraction[EDGES];
/* What is computed: of a layer, and of all layers below (`minus`) or above (`plus`). */
static _Alignas(LINE) grid layer_r, layer_t, minus_r, minus_e, plus_r, plus_e;
/* The last four with the columns innermost. */
static _Alignas(LINE) double turned[4][EDGES][COLUMNS];

enum { LEVELS_INNER, COLUMNS_INNER };
enum { INNER, PASSES };

static struct option options[] = {
    [INNER] = {"inner", LEVELS_INNER, 0, 0, "levels|columns"},
    [PASSES] = {"passes", 10, 1, 1000000000, NULL},
};

/* A product that is not joined with an addition. */
static inline double product(double a, double b)
{
    double p = a * b;
    __asm__("" : "+w"(p));
    return p;
}

/* a/b by an estimate and two steps of the third order; twice the same division is computed twice. */
static inline double quotient(double a, double b)
{
    double r;
    __asm__ volatile("frecpe %d0, %d1" : "=w"(r) : "w"(b));
    for (int step = 0; step < 2; step++) {
        double e = 1 - b * r;
        r += r * (e + e * e);
    }
    return a * r;
}

/* R and T of the layers of a column, one by one. */
static inline void mix(unsigned c)
{
    for (unsigned k = 0; k < LEVELS; k++) {
        double f = fraction[k], g = 1 - f;
        __asm__ volatile("" : "+w"(g)); /* no vectors */
        layer_r[c][k] = cloudy_r[c][k] * f + clear_r[c][k] * g;
        layer_t[c][k] = cloudy_t[c][k] * f + clear_t[c][k] * g;
    }
}

/* One layer more: R and E of all so far, `r` and `e`, become those at `to_r` and `to_e`. */
static inline void add_layer(double r, double e, unsigned c, unsigned k, const grid from, const grid same, double *to_r,
                             double *to_e)
{
    double layer = layer_r[c][k], t = layer_t[c][k], reach = 1 - r * layer;
    *to_r = layer + product(quotient(t, reach), r * t);
    *to_e = same[c][k] + product(quotient(t, reach), r * from[c][k] + e);
}

static __attribute__((noinline)) void levels_inner(void)
{
    for (unsigned c = 0; c < COLUMNS; c++) {
        mix(c);
        for (unsigned i = 0; i < LEVELS; i++) {
            unsigned k = LEVELS - 1 - i;
            add_layer(minus_r[c][k + 1], minus_e[c][k + 1], c, k, up, down, &minus_r[c][k], &minus_e[c][k]);
            add_layer(plus_r[c][i], plus_e[c][i], c, i, down, up, &plus_r[c][i + 1], &plus_e[c][i + 1]);
        }
    }
}

static inline svfloat64_t quotient_vector(svbool_t p, svfloat64_t a, svfloat64_t b)
{
    svfloat64_t r = svrecpe(b), one = svdup_f64(1);
    for (int step = 0; step < 2; step++) {
        svfloat64_t e = svmls_x(p, one, b, r);
        r = svmla_x(p, r, r, svmla_x(p, e, e, e));
    }
    return svmul_x(p, a, r);
}

static inline void mix_vectors(unsigned c)
{
    for (uint64_t k = 0; k < LEVELS; k += svcntd()) {
        svbool_t p = svwhilelt_b64(k, (uint64_t)LEVELS);
        svfloat64_t f = svld1(p, fraction + k), g = svsubr_x(p, f, 1);
        svfloat64_t r = svmul_x(p, svld1(p, clear_r[c] + k), g), t = svmul_x(p, svld1(p, clear_t[c] + k), g);
        svst1(p, layer_r[c] + k, svmla_x(p, r, svld1(p, cloudy_r[c] + k), f));
        svst1(p, layer_t[c] + k, svmla_x(p, t, svld1(p, cloudy_t[c] + k), f));
    }
}

/* As `add_layer`, for a vector of columns from `c` on; `column` are the distances of a grid's columns. */
static inline void add_layer_vectors(svbool_t p, svint64_t column, svfloat64_t r, svfloat64_t e, unsigned c, unsigned k,
                                     const grid from, const grid same, double *to_r, double *to_e)
{
    svfloat64_t layer = svld1_gather_index(p, layer_r[c] + k, column), t = svld1_gather_index(p, layer_t[c] + k, column);
    svfloat64_t q = quotient_vector(p, t, svmls_x(p, svdup_f64(1), r, layer));
    svfloat64_t inner = svmla_x(p, e, r, svld1_gather_index(p, from[c] + k, column));
    svst1(p, to_r, svmla_x(p, layer, q, svmul_x(p, r, t)));
    svst1(p, to_e, svmla_x(p, svld1_gather_index(p, same[c] + k, column), q, inner));
}

static void turn(unsigned array, const grid from, svint64_t column)
{
    for (unsigned k = 0; k < EDGES; k++)
        for (uint64_t c = 0; c < COLUMNS; c += svcntd()) {
            svbool_t p = svwhilelt_b64(c, (uint64_t)COLUMNS);
            svst1(p, turned[array][k] + c, svld1_gather_index(p, from[c] + k, column));
        }
}

static void turn_back(unsigned array, grid to)
{
    svint64_t level = svindex_s64(0, COLUMNS);
    for (unsigned c = 0; c < COLUMNS; c++)
        for (uint64_t k = 0; k < EDGES; k += svcntd()) {
            svbool_t p = svwhilelt_b64(k, (uint64_t)EDGES);
            svst1(p, to[c] + k, svld1_gather_index(p, turned[array][k] + c, level));
        }
}

static __attribute__((noinline)) void columns_inner(void)
{
    svint64_t column = svindex_s64(0, EDGES);
    turn(0, minus_r, column);
    turn(1, minus_e, column);
    turn(2, plus_r, column);
    turn(3, plus_e, column);
    for (unsigned c = 0; c < COLUMNS; c++)
        mix_vectors(c);
    for (unsigned i = 0; i < LEVELS; i++) {
        unsigned k = LEVELS - 1 - i;
        for (uint64_t c = 0; c < COLUMNS; c += svcntd()) {
            svbool_t p = svwhilelt_b64(c, (uint64_t)COLUMNS);
            add_layer_vectors(p, column, svld1(p, turned[0][k + 1] + c), svld1(p, turned[1][k + 1] + c), c, k, up, down,
                              turned[0][k] + c, turned[1][k] + c);
            add_layer_vectors(p, column, svld1(p, turned[2][i] + c), svld1(p, turned[3][i] + c), c, i, down, up,
                              turned[2][i + 1] + c, turned[3][i + 1] + c);
        }
    }
    turn_back(0, minus_r);
    turn_back(1, minus_e);
    turn_back(2, plus_r);
    turn_back(3, plus_e);
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
        minus_r[c][LEVELS] = plus_r[c][0] = 0.3;
        minus_e[c][LEVELS] = plus_e[c][0] = 1;
    }
}

static bool close(double value, double expected)
{
    double difference = value - expected;
    return (difference < 0 ? -difference : difference) <= 1e-12 * expected;
}

/* Whether one sweep of a column is what divisions give; all values are positive. */
static bool correct(unsigned c)
{
    bool ok = true;
    double r = 0.3, e = 1, s = 0.3, d = 1;
    for (unsigned i = 0; i < LEVELS; i++) {
        unsigned k = LEVELS - 1 - i;
        double f = fraction[k], layer = cloudy_r[c][k] * f + clear_r[c][k] * (1 - f);
        double t = cloudy_t[c][k] * f + clear_t[c][k] * (1 - f), q = t / (1 - r * layer);
        e = down[c][k] + q * (r * up[c][k] + e);
        r = layer + q * (r * t);
        ok &= close(minus_r[c][k], r) && close(minus_e[c][k], e);
        f = fraction[i], layer = cloudy_r[c][i] * f + clear_r[c][i] * (1 - f);
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
