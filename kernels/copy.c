/* Contiguous copy of a number of bytes, repeated. */
#include "runtime.h"

#define POOL (2ul << 30)

static _Alignas(LINE) unsigned char pool[POOL];

void copy_kernel(void *y, const void *x1, uint64_t iterations, uint64_t rest);

enum { BYTES, PASSES };

static struct option options[] = {
    [BYTES] = {"bytes", 16384, 1, POOL / 2, NULL},
    [PASSES] = {"passes", 5000, 1, 1000000000, NULL},
};

/* Any pattern whose neighbouring vectors differ. */
static svuint8_t pattern(uint64_t i)
{
    svbool_t all = svptrue_b8();
    return svadd_x(all, svindex_u8((uint8_t)(i >> 4), 3), (uint8_t)(i >> 12));
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t bytes = options[BYTES].value;
    double *arrays[2];
    place_arrays(pool, sizeof pool, bytes, 2, arrays);
    unsigned char *y = (unsigned char *)arrays[0], *x1 = (unsigned char *)arrays[1];
    for (uint64_t i = 0; i < bytes; i += svcntb()) {
        svbool_t inside = svwhilelt_b8_u64(i, bytes);
        svst1(inside, x1 + i, pattern(i));
        svst1(inside, y + i, svdup_u8(0));
    }
    uint64_t iterations = bytes / (8 * svcntb()), rest = bytes % (8 * svcntb());
    copy_kernel(y, x1, iterations, rest);

    measure_begin("copy");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        copy_kernel(y, x1, iterations, rest);
    measure_end();

    bool ok = true;
    for (uint64_t i = 0; i < bytes; i += svcntb()) {
        svbool_t inside = svwhilelt_b8_u64(i, bytes);
        ok &= !svptest_any(inside, svcmpne(inside, svld1(inside, y + i), pattern(i)));
    }
    return finish(ok, options, COUNT_OF(options));
}
