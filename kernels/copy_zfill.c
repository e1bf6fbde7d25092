/* Contiguous copy of a number of lines with zero fill, repeated. */
#include "runtime.h"

#define POOL (2ul << 30)

static _Alignas(LINE) unsigned char pool[POOL];

void copy_zfill_kernel(void *y, const void *x1, uint64_t zeroing, uint64_t other, uint64_t distance);

enum { BYTES, PASSES, ZERO_LINES };

static struct option options[] = {
    [BYTES] = {"bytes", 16384, LINE, POOL / 2, NULL},
    [PASSES] = {"passes", 5000, 1, 1000000000, NULL},
    [ZERO_LINES] = {"zero-lines", 18, 1, 100, NULL},
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
    uint64_t bytes = options[BYTES].value, step = 4 * svcntb(), distance = options[ZERO_LINES].value * LINE;
    if (bytes % LINE)
        cannot_run("bytes must be a multiple of a line, 256");
    require_line_zeroing();
    double *arrays[2];
    place_arrays(pool, sizeof pool, bytes, 2, arrays);
    unsigned char *y = (unsigned char *)arrays[0], *x1 = (unsigned char *)arrays[1];
    svbool_t all = svptrue_b8();
    for (uint64_t i = 0; i < bytes; i += svcntb()) {
        svst1(all, x1 + i, pattern(i));
        svst1(all, y + i, svdup_u8(0));
    }
    uint64_t other = distance < bytes ? distance / step : bytes / step, zeroing = bytes / step - other;
    copy_zfill_kernel(y, x1, zeroing, other, distance);

    measure_begin("copy-zfill");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        copy_zfill_kernel(y, x1, zeroing, other, distance);
    measure_end();

    bool ok = true;
    for (uint64_t i = 0; i < bytes; i += svcntb())
        ok &= !svptest_any(all, svcmpne(all, svld1(all, y + i), pattern(i)));
    return finish(ok, options, COUNT_OF(options));
}
