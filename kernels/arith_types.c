/* Basic arithmetic on 4-byte floating-point numbers and 4- and 8-byte integers: y(i) = x1(i) op x2(i) on data in the L1 cache, by
 * vectors and one by one. */
#include "runtime.h"

enum { MAX_BYTES = 1 << 19, UNROLLED = 8 };

static _Alignas(LINE) unsigned char pool[3 * MAX_BYTES];

typedef void kernel(void *y, const void *x1, const void *x2, uint64_t n);

/* c0 of `fma`, not known when its loops are compiled, so that they multiply. */
static volatile int factor = 3;

/* Loops over n elements, a multiple of eight vectors; `before` comes first. */
#define LOOPS(type, suffix, op, before, vector, scalar)                                                                         \
    static void __attribute__((noinline)) op##_##suffix##_vectors(void *to, const void *from1, const void *from2, uint64_t n) \
    {                                                                                                                   \
        type *restrict y = to;                                                                                          \
        const type *restrict x1 = from1, *restrict x2 = from2;                                                          \
        svbool_t all = svptrue_b8();                                                                                    \
        before;                                                                                                         \
        uint64_t step = svcntb() / sizeof(type);                                                                        \
        for (uint64_t i = 0; i < n; i += UNROLLED * step)                                                               \
            _Pragma("GCC unroll 8") for (uint64_t k = 0; k < UNROLLED; k++)                                              \
            {                                                                                                           \
                __auto_type a = svld1_vnum(all, x1 + i, (int64_t)k);                                                     \
                __auto_type b = svld1_vnum(all, x2 + i, (int64_t)k);                                                     \
                svst1_vnum(all, y + i, (int64_t)k, vector);                                                             \
            }                                                                                                           \
    }                                                                                                                   \
    static void __attribute__((noinline)) op##_##suffix##_elements(void *to, const void *from1, const void *from2, uint64_t n) \
    {                                                                                                                   \
        type *restrict y = to;                                                                                          \
        const type *restrict x1 = from1, *restrict x2 = from2;                                                          \
        before;                                                                                                         \
        for (uint64_t i = 0; i < n; i += UNROLLED, y += UNROLLED, x1 += UNROLLED, x2 += UNROLLED)                         \
            _Pragma("GCC unroll 8") for (uint64_t k = 0; k < UNROLLED; k++)                                              \
            {                                                                                                           \
                type a = x1[k], b = x2[k];                                                                              \
                y[k] = scalar;                                                                                          \
            }                                                                                                           \
    }

#define TYPE(type, suffix, product)                                                           \
    LOOPS(type, suffix, add, , svadd_x(all, a, b), a + b)                                     \
    LOOPS(type, suffix, sub, , svsub_x(all, a, b), a - b)                                     \
    LOOPS(type, suffix, mul, , svmul_x(all, a, b), a *b)                                      \
    LOOPS(type, suffix, fma, type c0 = (type)factor, svmla_x(all, a, b, c0), product)

TYPE(float, single, __builtin_fmaf(c0, b, a))
TYPE(int64_t, long, a + c0 * b)
TYPE(int32_t, int, a + c0 * b)

enum { ADD, SUB, MUL, FMA };
enum { SINGLE, LONG, INT };
enum { VECTOR, SCALAR };

#define KERNELS(suffix)                                                                                                 \
    {                                                                                                                   \
        {add_##suffix##_vectors, sub_##suffix##_vectors, mul_##suffix##_vectors, fma_##suffix##_vectors},                \
            {add_##suffix##_elements, sub_##suffix##_elements, mul_##suffix##_elements, fma_##suffix##_elements},        \
    }
static kernel *const kernels[3][2][4] = {KERNELS(single), KERNELS(long), KERNELS(int)};

enum { OP, TYPE, BYTES, PASSES, FORM };

static struct option options[] = {
    [OP] = {"op", FMA, 0, 0, "add|sub|mul|fma"},
    [TYPE] = {"type", SINGLE, 0, 0, "single|long|int"},
    [BYTES] = {"bytes", 16384, 512, MAX_BYTES, NULL},
    [PASSES] = {"passes", 2000, 1, 1000000000, NULL},
    [FORM] = {"form", VECTOR, 0, 0, "vector|scalar"},
};

static int64_t get(const void *array, uint64_t i)
{
    switch (options[TYPE].value) {
    case SINGLE:
        return (int64_t)((const float *)array)[i];
    case LONG:
        return ((const int64_t *)array)[i];
    default:
        return ((const int32_t *)array)[i];
    }
}

static void put(void *array, uint64_t i, int64_t value)
{
    switch (options[TYPE].value) {
    case SINGLE:
        ((float *)array)[i] = (float)value;
        break;
    case LONG:
        ((int64_t *)array)[i] = value;
        break;
    default:
        ((int32_t *)array)[i] = (int32_t)value;
    }
}

static int64_t expected(int64_t a, int64_t b)
{
    switch (options[OP].value) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case MUL:
        return a * b;
    default:
        return a + factor * b;
    }
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t bytes = options[BYTES].value, n = bytes / (options[TYPE].value == LONG ? 8 : 4);
    if (bytes % (UNROLLED * svcntb()))
        cannot_run("bytes must be a multiple of eight vectors");
    double *arrays[3];
    place_arrays(pool, sizeof pool, bytes, 3, arrays);
    /* Small integers, which all types represent exactly. */
    for (uint64_t i = 0; i < n; i++) {
        put(arrays[0], i, 0);
        put(arrays[1], i, (int64_t)(i % 251));
        put(arrays[2], i, (int64_t)(i % 13));
    }
    kernel *run = kernels[options[TYPE].value][options[FORM].value][options[OP].value];
    run(arrays[0], arrays[1], arrays[2], n);

    measure_begin("arith-types");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        run(arrays[0], arrays[1], arrays[2], n);
    measure_end();

    bool ok = true;
    for (uint64_t i = 0; i < n; i++)
        ok &= get(arrays[0], i) == expected((int64_t)(i % 251), (int64_t)(i % 13));
    return finish(ok, options, COUNT_OF(options));
}
