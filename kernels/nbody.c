/* Direct gravity of n bodies in single precision, as arrays of coordinates or as an array of bodies. */
#include "runtime.h"

enum { MAX_N = 1 << 14 };

struct body {
    float x, y, z, mass;
};

static _Alignas(LINE) struct body structures[MAX_N];
static _Alignas(LINE) float arrays[4][MAX_N];
static _Alignas(LINE) float sums[MAX_N][3];

/* The first body's coordinates and mass, wherever they are. */
struct bodies {
    const float *x, *y, *z, *mass;
};

typedef void kernel(const struct bodies *bodies, const float *at, float *sums, uint64_t iterations);
kernel nbody_soa_kernel, nbody_aos_kernel;

enum { SOA, AOS };
enum { LAYOUT, N, PASSES };

static struct option options[] = {
    [LAYOUT] = {"layout", SOA, 0, 0, "soa|aos"},
    [N] = {"n", 2048, 64, MAX_N, NULL},
    [PASSES] = {"passes", 1, 1, 1000000000, NULL},
};

static const float SOFTENING = 0.01f;

/* Coordinates between -1 and 1 and masses around 1. */
static void initialise(uint64_t n)
{
    uint64_t random = 0x853c49e6748fea9b;
    for (uint64_t i = 0; i < n; i++) {
        float values[4];
        for (unsigned k = 0; k < 4; k++) {
            random = random * 6364136223846793005 + 1442695040888963407;
            values[k] = (float)(int32_t)(random >> 32) * 0x1p-31f;
        }
        structures[i] = (struct body){values[0], values[1], values[2], 1 + values[3] * 0.5f};
        arrays[0][i] = structures[i].x;
        arrays[1][i] = structures[i].y;
        arrays[2][i] = structures[i].z;
        arrays[3][i] = structures[i].mass;
    }
}

static void pass(uint64_t n)
{
    struct bodies bodies = {arrays[0], arrays[1], arrays[2], arrays[3]};
    kernel *run = nbody_soa_kernel;
    if (options[LAYOUT].value == AOS) {
        bodies = (struct bodies){&structures->x, &structures->y, &structures->z, &structures->mass};
        run = nbody_aos_kernel;
    }
    for (uint64_t i = 0; i < n; i++) {
        float at[4] = {structures[i].x, structures[i].y, structures[i].z, SOFTENING};
        run(&bodies, at, sums[i], n / (4 * svcntw()));
    }
}

static double root(double square)
{
    double root;
    __asm__("fsqrt %d0, %d1" : "=w"(root) : "w"(square));
    return root;
}

static double absolute(double value)
{
    return value < 0 ? -value : value;
}

/* Whether the sums of a body are correct to five digits of the sum of all magnitudes. */
static bool correct(uint64_t i, uint64_t n)
{
    double expected[3] = {0, 0, 0}, magnitude = 0;
    for (uint64_t j = 0; j < n; j++) {
        double d[3] = {(double)structures[j].x - structures[i].x, (double)structures[j].y - structures[i].y,
                       (double)structures[j].z - structures[i].z};
        double r = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + (double)SOFTENING;
        double s = structures[j].mass / (r * root(r));
        for (unsigned k = 0; k < 3; k++) {
            expected[k] += d[k] * s;
            magnitude += absolute(d[k] * s);
        }
    }
    bool ok = true;
    for (unsigned k = 0; k < 3; k++)
        ok &= absolute(sums[i][k] - expected[k]) < magnitude * 1e-5;
    return ok;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t n = options[N].value;
    if (n % (4 * svcntw()))
        cannot_run("n must be a multiple of the elements of four vectors (64 with 512 bits)");
    initialise(n);
    pass(64); /* the first 64 bodies, for the caches */

    measure_begin("nbody");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        pass(n);
    measure_end();

    bool ok = true;
    for (uint64_t i = 0; i < n; i += n / 16)
        ok &= correct(i, n);
    return finish(ok, options, COUNT_OF(options));
}
