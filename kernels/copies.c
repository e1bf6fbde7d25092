/* Copies, each timed on its own: by a loop, by one with zero fill, and by the C library's memcpy. Caches keep the arrays, or are filled with
 * other data before each copy. Each thread copies a contiguous part, and all meet before and after. */
#include "threads.h"

#include <string.h>

enum { OTHER = 16 << 20 }; /* twice the L2 cache of one CMG */
#define POOL (1ul << 30)

static _Alignas(LINE) unsigned char pool[POOL];
static _Alignas(LINE) volatile uint64_t other[OTHER / sizeof(uint64_t)];

void copy_kernel(void *y, const void *x1, uint64_t iterations, uint64_t rest);
void copy_zfill_kernel(void *y, const void *x1, uint64_t zeroing, uint64_t other, uint64_t distance);

enum { LOOP, ZERO_FILL, MEMCPY };
enum { KEPT, CLEANED };
enum { BY, BYTES, CACHES, PASSES, THREADS, ZERO_LINES };

static struct option options[] = {
    [BY] = {"by", LOOP, 0, 0, "loop|zero-fill|memcpy"},
    [BYTES] = {"bytes", 1 << 20, LINE, POOL / 2, NULL},
    [CACHES] = {"caches", KEPT, 0, 0, "kept|cleaned"},
    [PASSES] = {"passes", 2, 1, 1000000000, NULL},
    [THREADS] = {"threads", 1, 1, MAX_THREADS, NULL},
    [ZERO_LINES] = {"zero-lines", 18, 1, 100, NULL},
};

static unsigned char *y, *x1;
static _Alignas(LINE) bool wrong[MAX_THREADS];

static uint64_t of(unsigned option)
{
    return options[option].value;
}

/* Share of a thread in a number of bytes: whole lines. */
static uint64_t part(unsigned thread, uint64_t bytes)
{
    return bytes / LINE * thread / of(THREADS) * LINE;
}

static void copy_with_zero_fill(unsigned char *to, const unsigned char *from, uint64_t bytes)
{
    uint64_t step = 4 * svcntb(), distance = of(ZERO_LINES) * LINE;
    uint64_t last = distance < bytes ? distance : bytes;
    copy_zfill_kernel(to, from, (bytes - last) / step, last / step, distance);
}

static void copy(unsigned char *to, const unsigned char *from, uint64_t bytes)
{
    switch (of(BY)) {
    case LOOP: copy_kernel(to, from, bytes / (8 * svcntb()), bytes % (8 * svcntb())); break;
    case ZERO_FILL: copy_with_zero_fill(to, from, bytes); break;
    default: memcpy(to, from, bytes);
    }
}

/* Elements are written before they are first read, since pages that were never written may share one physical page. */
static void touch_other(unsigned thread, bool write)
{
    const uint64_t step = LINE / sizeof(uint64_t);
    uint64_t from = part(thread, OTHER) / sizeof(uint64_t), to = part(thread + 1, OTHER) / sizeof(uint64_t);
    for (uint64_t i = from; i < to; i += step) {
        if (write)
            other[i] = i;
        else
            (void)other[i];
    }
}

/* Any pattern whose neighbouring vectors differ. */
static svuint8_t pattern(uint64_t i)
{
    svbool_t all = svptrue_b8();
    return svadd_x(all, svindex_u8((uint8_t)(i >> 4), 3), (uint8_t)(i >> 12));
}

static void copies(unsigned thread)
{
    svbool_t all = svptrue_b8();
    uint64_t from = part(thread, of(BYTES)), bytes = part(thread + 1, of(BYTES)) - from;
    touch_other(thread, true);
    for (uint64_t i = from; i < from + bytes; i += svcntb())
        svst1(all, x1 + i, pattern(i));
    copy(y + from, x1 + from, bytes);
    for (uint64_t pass = 0; pass < of(PASSES); pass++) {
        if (of(CACHES) == CLEANED)
            touch_other(thread, false);
        measure_begin_together(thread, "copies");
        copy(y + from, x1 + from, bytes);
        measure_end_together(thread);
    }
    bool ok = true;
    for (uint64_t i = from; i < from + bytes; i += svcntb())
        ok &= !svptest_any(all, svcmpne(all, svld1(all, y + i), pattern(i)));
    wrong[thread] = !ok;
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    if (of(BYTES) % LINE)
        cannot_run("bytes must be a multiple of a line, 256");
    if (of(BY) == ZERO_FILL)
        require_line_zeroing();
    double *arrays[2];
    place_arrays(pool, sizeof pool, of(BYTES), COUNT_OF(arrays), arrays);
    y = (unsigned char *)arrays[0];
    x1 = (unsigned char *)arrays[1];
    run_threads((unsigned)of(THREADS), copies);

    bool ok = true;
    for (unsigned t = 0; t < of(THREADS); t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
