/* Optical depth of a gas over 54 levels and 5 channels: three tables interpolated in pressure, a parabola in temperature, ten to
 * the power of that. A vector is that of a level's channels, or that of a channel's levels. */
#include "runtime.h"

enum { LEVELS = 54, CHANNELS = 5, TABLES = 3, PRESSURES = 26 };

/* By pressure and channel, and by channel and pressure. */
static _Alignas(LINE) double table[TABLES][PRESSURES][CHANNELS], turned[TABLES][CHANNELS][PRESSURES];
/* The pressure below a level, how far above it is, and two factors of its temperature. */
static _Alignas(LINE) int64_t pressure[LEVELS];
static _Alignas(LINE) double share[LEVELS], warmth[2][LEVELS];
/* Content of gas, density and thickness. */
static _Alignas(LINE) double gas[LEVELS], density[LEVELS], thickness[LEVELS];
static _Alignas(LINE) double depth[CHANNELS][LEVELS];

static const double PER_CUBIC_METRE = 0.01;

enum { CHANNELS_INNER, LEVELS_INNER };
enum { INNER, PASSES };

static struct option options[] = {
    [INNER] = {"inner", CHANNELS_INNER, 0, 0, "channels|levels"},
    [PASSES] = {"passes", 10, 1, 1000000000, NULL},
};

/* What the power takes: the compiler's loops load these again for each vector, as counted loads say. */
static const struct {
    double ln_10, per_ln_2, shift, ln_2_high, ln_2_low, sixth, twenty_fourth, half, one, two;
} CONSTANTS = {
    .ln_10 = 0x1.26bb1bbb55516p1,
    .per_ln_2 = 0x1.71547652b82fep0,
    /* Added to a number, it leaves sixty-fourths of it in the lowest bits, with the bias of exponents before them. */
    .shift = 0x1.800000000ffc0p+46,
    .ln_2_high = 0x1.62e42fefa3800p-1,
    .ln_2_low = 0x1.ef35793c76730p-45,
    .sixth = 1.0 / 6,
    .twenty_fourth = 1.0 / 24,
    .half = 0.5,
    .one = 1,
    .two = 2,
};

/* One of them in all elements. */
static inline svfloat64_t all(const double *constant)
{
    __asm__ volatile("" : "+r"(constant));
    return svdup_f64(*constant);
}

/* Ten to the power of x, by the table of FEXPA and a polynomial. */
static inline svfloat64_t power_of_ten(svbool_t p, svfloat64_t x)
{
    svfloat64_t y = svmul_x(p, x, all(&CONSTANTS.ln_10)), shift = all(&CONSTANTS.shift);
    svfloat64_t bits = svmla_x(p, shift, y, all(&CONSTANTS.per_ln_2));
    svfloat64_t n = svsub_x(p, bits, shift);
    svfloat64_t r = svmls_x(p, svmls_x(p, y, n, all(&CONSTANTS.ln_2_high)), n, all(&CONSTANTS.ln_2_low));
    svfloat64_t s = svmla_x(p, all(&CONSTANTS.sixth), r, all(&CONSTANTS.twenty_fourth));
    s = svmla_x(p, all(&CONSTANTS.one), r, svmla_x(p, all(&CONSTANTS.half), r, s));
    svfloat64_t power = svexpa(svreinterpret_u64(bits));
    return svmla_x(p, power, power, svmul_x(p, r, s));
}

/* The parabola through three values, at factors a and b. */
static inline svfloat64_t parabola(svbool_t p, svfloat64_t first, svfloat64_t second, svfloat64_t third, svfloat64_t a,
                                   svfloat64_t b)
{
    svfloat64_t bend = svmls_x(p, svadd_x(p, first, third), second, all(&CONSTANTS.two));
    svfloat64_t slope = svmla_x(p, svsub_x(p, third, first), bend, a);
    return svmla_x(p, second, slope, b);
}

/* Between a table's values at two pressures. */
static inline svfloat64_t level_of(svbool_t p, const double *low, svfloat64_t f, svfloat64_t g)
{
    return svmla_x(p, svmul_x(p, svld1(p, low + CHANNELS), f), svld1(p, low), g);
}

static inline svfloat64_t levels_of(svbool_t p, const double *table, svint64_t below, svfloat64_t f, svfloat64_t g)
{
    svfloat64_t high = svld1_gather_index(p, table + 1, below);
    return svmla_x(p, svmul_x(p, high, f), svld1_gather_index(p, table, below), g);
}

/* Level by level; the depths of a level's channels lie apart. */
static __attribute__((noinline)) void channels_inner(void)
{
    for (uint64_t k = 0; k < LEVELS; k++) {
        double f = share[k], g = 1 - f, length = gas[k] * density[k] * thickness[k] * PER_CUBIC_METRE;
        for (uint64_t c = 0; c < CHANNELS; c += svcntd()) {
            svbool_t p = svwhilelt_b64(c, (uint64_t)CHANNELS);
            const double *at = table[0][pressure[k]] + c;
            svint64_t apart = svindex_s64(0, LEVELS);
            svfloat64_t first = level_of(p, at, svdup_f64(f), svdup_f64(g));
            svfloat64_t second = level_of(p, at + PRESSURES * CHANNELS, svdup_f64(f), svdup_f64(g));
            svfloat64_t third = level_of(p, at + 2 * PRESSURES * CHANNELS, svdup_f64(f), svdup_f64(g));
            svfloat64_t a = svdup_f64(warmth[0][k]), b = svdup_f64(warmth[1][k]);
            svfloat64_t power = power_of_ten(p, parabola(p, first, second, third, a, b));
            svfloat64_t before = svld1_gather_index(p, depth[c] + k, apart);
            svst1_scatter_index(p, depth[c] + k, apart, svmla_x(p, before, power, svdup_f64(length)));
        }
    }
}

/* Channel by channel; the table's values for the levels lie apart. */
static __attribute__((noinline)) void levels_inner(void)
{
    for (uint64_t c = 0; c < CHANNELS; c++) {
        for (uint64_t k = 0; k < LEVELS; k += svcntd()) {
            svbool_t p = svwhilelt_b64(k, (uint64_t)LEVELS);
            svint64_t below = svld1(p, pressure + k);
            svfloat64_t f = svld1(p, share + k), g = svsubr_x(p, f, 1);
            svfloat64_t first = levels_of(p, turned[0][c], below, f, g), second = levels_of(p, turned[1][c], below, f, g);
            svfloat64_t third = levels_of(p, turned[2][c], below, f, g);
            svfloat64_t length = svmul_x(p, svmul_x(p, svld1(p, gas + k), svld1(p, density + k)), svld1(p, thickness + k));
            length = svmul_x(p, length, PER_CUBIC_METRE);
            svfloat64_t a = svld1(p, warmth[0] + k), b = svld1(p, warmth[1] + k);
            svfloat64_t power = power_of_ten(p, parabola(p, first, second, third, a, b));
            svst1(p, depth[c] + k, svmla_x(p, svld1(p, depth[c] + k), power, length));
        }
    }
}

static double unit(uint64_t *random)
{
    *random = *random * 6364136223846793005 + 1442695040888963407;
    return (double)(*random >> 40) * 0x1p-24;
}

static void initialise(void)
{
    uint64_t random = 0x853c49e6748fea9b;
    for (unsigned t = 0; t < TABLES; t++)
        for (unsigned j = 0; j < PRESSURES; j++)
            for (unsigned c = 0; c < CHANNELS; c++)
                table[t][j][c] = turned[t][c][j] = 4 * unit(&random) - 2;
    for (unsigned k = 0; k < LEVELS; k++) {
        pressure[k] = k * (PRESSURES - 1) / LEVELS;
        share[k] = unit(&random);
        warmth[0][k] = unit(&random) - 0.5;
        warmth[1][k] = unit(&random) - 0.5;
        gas[k] = 1 + unit(&random);
        density[k] = 1 + unit(&random);
        thickness[k] = 1 + unit(&random);
    }
}

/* Ten to the power of x by halving it until a short series does, and squaring. */
static double slow_power_of_ten(double x)
{
    double y = x * CONSTANTS.ln_10 / 1024, sum = 1, term = 1;
    for (int i = 1; i < 12; i++) {
        term *= y / i;
        sum += term;
    }
    for (int i = 0; i < 10; i++)
        sum *= sum;
    return sum;
}

/* Whether the depth at a point is that of so many sweeps. */
static bool correct(unsigned c, unsigned k, uint64_t sweeps)
{
    double values[TABLES];
    for (unsigned t = 0; t < TABLES; t++) {
        const double (*at)[CHANNELS] = &table[t][pressure[k]];
        values[t] = at[0][c] * (1 - share[k]) + at[1][c] * share[k];
    }
    double slope = values[2] - values[0] + (values[0] + values[2] - 2 * values[1]) * warmth[0][k];
    double power = slow_power_of_ten(values[1] + slope * warmth[1][k]);
    double expected = (double)sweeps * power * gas[k] * density[k] * thickness[k] * PER_CUBIC_METRE;
    double difference = depth[c][k] - expected;
    return (difference < 0 ? -difference : difference) <= 1e-11 * expected;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    void (*call)(void) = options[INNER].value == CHANNELS_INNER ? channels_inner : levels_inner;
    initialise();
    call();

    measure_begin("dtrn3");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        call();
    measure_end();

    bool ok = true;
    for (unsigned c = 0; c < CHANNELS; c++)
        for (unsigned k = 0; k < LEVELS; k++)
            ok &= correct(c, k, options[PASSES].value + 1);
    return finish(ok, options, COUNT_OF(options));
}
