/* Optical depth of a gas over 54 levels and 5 channels: three tables interpolated in pressure and in temperature, ten to the
 * power of the result. A vector holds channels of a level, or levels of a channel. */
#include "runtime.h"

enum { LEVELS = 54, CHANNELS = 5, TABLES = 3, PRESSURES = 26 };

/* By pressure and channel, and by channel and pressure. */
static _Alignas(LINE) double table[TABLES][PRESSURES][CHANNELS], turned[TABLES][CHANNELS][PRESSURES];
/* Table index below a level's pressure, fraction above it, and two factors of its temperature. */
static _Alignas(LINE) int64_t pressure[LEVELS];
static _Alignas(LINE) double share[LEVELS], warmth[2][LEVELS];
/* Gas content and thickness of a level. */
static _Alignas(LINE) double gas[LEVELS], thickness[LEVELS];
static _Alignas(LINE) double depth[CHANNELS][LEVELS];

/* Arguments of the loops (dtrn3.S), which use the offsets of its members. */
static const struct constants {
    double ln_10, per_ln_2, shift, ln_2_high, ln_2_low, fifth, fourth, third, most, least, infinite;
    uint64_t bias;
    double factors[2]; /* of the product of gas and thickness */
} CONSTANTS = {
    .ln_10 = 0x1.26bb1bbb55516p1,
    .per_ln_2 = 0x1.71547652b82fep0,
    /* Added to a number, it leaves its sixty-fourths in the lowest bits. */
    .shift = 0x1.8p+46,
    .ln_2_high = 0x1.62e42fefa3800p-1,
    .ln_2_low = 0x1.ef35793c76730p-45,
    .fifth = 1.0 / 120,
    .fourth = 1.0 / 24,
    .third = 1.0 / 6,
    .most = 308,
    .least = -307,
    .infinite = __builtin_inf(),
    /* Exponents, above the sixty-fourths. */
    .bias = 1023 << 6,
    .factors = {0.01, 0.75},
};

struct given {
    const int64_t *pressure;
    const double *share, *warmth[2], *gas, *thickness, *table[TABLES];
    double *depth;
    const struct constants *constants;
};

void dtrn3_channels(const struct given *given, uint64_t channels);
void dtrn3_levels(const struct given *given, uint64_t channels);

enum { CHANNELS_INNER, LEVELS_INNER };
enum { INNER, PASSES };

static struct option options[] = {
    [INNER] = {"inner", CHANNELS_INNER, 0, 0, "channels|levels"},
    [PASSES] = {"passes", 10, 1, 1000000000, NULL},
};

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
        thickness[k] = 1 + unit(&random);
    }
}

/* Ten to the power of x: halves x until a short series is accurate, then squares. */
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

/* Whether the depth at a point is correct after `sweeps` sweeps. */
static bool correct(unsigned c, unsigned k, uint64_t sweeps)
{
    double values[TABLES];
    for (unsigned t = 0; t < TABLES; t++) {
        const double (*at)[CHANNELS] = &table[t][pressure[k]];
        values[t] = at[0][c] * (1 - share[k]) + at[1][c] * share[k];
    }
    double x = values[1] + (values[2] - values[1]) * warmth[0][k] + (values[1] - values[0]) * warmth[1][k];
    double content = gas[k] * thickness[k] * CONSTANTS.factors[0] * CONSTANTS.factors[1];
    double expected = (double)sweeps * slow_power_of_ten(x) * content;
    double difference = depth[c][k] - expected;
    return (difference < 0 ? -difference : difference) <= 1e-11 * expected;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    bool levels = options[INNER].value == LEVELS_INNER;
    if (!levels && svcntd() < CHANNELS)
        cannot_run("needs vectors of 512 bits with inner=channels");
    void (*call)(const struct given *, uint64_t) = levels ? dtrn3_levels : dtrn3_channels;
    const double *tables = levels ? turned[0][0] : table[0][0];
    const unsigned size = PRESSURES * CHANNELS;
    struct given given = {
        .pressure = pressure,
        .share = share,
        .warmth = {warmth[0], warmth[1]},
        .gas = gas,
        .thickness = thickness,
        .table = {tables, tables + size, tables + 2 * size},
        .depth = depth[0],
        .constants = &CONSTANTS,
    };
    initialise();
    call(&given, CHANNELS);

    measure_begin("dtrn3");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        call(&given, CHANNELS);
    measure_end();

    bool ok = true;
    for (unsigned c = 0; c < CHANNELS; c++)
        for (unsigned k = 0; k < LEVELS; k++)
            ok &= correct(c, k, options[PASSES].value + 1);
    return finish(ok, options, COUNT_OF(options));
}
