/* Triad with gather loads and scatter stores: y(s*i) = x1(l*i) + c0 * x2(l*i) on data in the L1 cache (by default). */
#include "runtime.h"

static _Alignas(LINE) unsigned char pool[32 << 20];

typedef void kernel(void *y, const void *x1, const void *x2, uint64_t iterations, uint64_t load_stride,
                    uint64_t store_stride, double c0);
/* The single-precision kernels take c0 as a float in the same register. */
typedef void kernel_single(void *y, const void *x1, const void *x2, uint64_t iterations, uint64_t load_stride,
                           uint64_t store_stride, float c0);

kernel contiguous_contiguous_double_kernel, contiguous_scatter_double_kernel, gather_contiguous_double_kernel,
    gather_scatter_double_kernel, contiguous_scatter_unknown_double_kernel, gather_contiguous_unknown_double_kernel,
    gather_scatter_unknown_double_kernel;
kernel_single contiguous_contiguous_single_kernel, contiguous_scatter_single_kernel, gather_contiguous_single_kernel,
    gather_scatter_single_kernel, contiguous_scatter_unknown_single_kernel, gather_contiguous_unknown_single_kernel,
    gather_scatter_unknown_single_kernel;

/* Index: strides known at compile time, load, store. */
static kernel *const DOUBLE_KERNELS[2][2][2] = {
    {{contiguous_contiguous_double_kernel, contiguous_scatter_double_kernel},
     {gather_contiguous_double_kernel, gather_scatter_double_kernel}},
    {{contiguous_contiguous_double_kernel, contiguous_scatter_unknown_double_kernel},
     {gather_contiguous_unknown_double_kernel, gather_scatter_unknown_double_kernel}},
};
static kernel_single *const SINGLE_KERNELS[2][2][2] = {
    {{contiguous_contiguous_single_kernel, contiguous_scatter_single_kernel},
     {gather_contiguous_single_kernel, gather_scatter_single_kernel}},
    {{contiguous_contiguous_single_kernel, contiguous_scatter_unknown_single_kernel},
     {gather_contiguous_unknown_single_kernel, gather_scatter_unknown_single_kernel}},
};

enum { DOUBLE, SINGLE };
enum { CONTIGUOUS, INDEXED };
enum { KNOWN, UNKNOWN };
enum { TYPE, LOAD, STORE, STRIDE, COMPILED, N, PASSES, OFFSET };

static struct option options[] = {
    [TYPE] = {"type", DOUBLE, 0, 0, "double|single"},
    [LOAD] = {"load", INDEXED, 0, 0, "contiguous|gather"},
    [STORE] = {"store", CONTIGUOUS, 0, 0, "contiguous|scatter"},
    [STRIDE] = {"stride", 1, 0, 64, NULL},
    [COMPILED] = {"compiled", KNOWN, 0, 0, "known|unknown"},
    [N] = {"n", 1344, 64, 1 << 20, NULL},
    [PASSES] = {"passes", 4000, 1, 1000000000, NULL},
    [OFFSET] = {"offset", 0, 0, 63, NULL},
};

static const float C0 = 3.0f;

/* Element `i` of an array of the chosen type. */
static void put(void *array, uint64_t i, double value)
{
    if (options[TYPE].value == SINGLE)
        ((float *)array)[i] = (float)value;
    else
        ((double *)array)[i] = value;
}

static double get(const void *array, uint64_t i)
{
    return options[TYPE].value == SINGLE ? ((const float *)array)[i] : ((const double *)array)[i];
}

static void pass(void *y, const void *x1, const void *x2, uint64_t iterations, uint64_t load_stride,
                 uint64_t store_stride)
{
    uint64_t load = options[LOAD].value, store = options[STORE].value, compiled = options[COMPILED].value;
    if (options[TYPE].value == SINGLE)
        SINGLE_KERNELS[compiled][load][store](y, x1, x2, iterations, load_stride, store_stride, C0);
    else
        DOUBLE_KERNELS[compiled][load][store](y, x1, x2, iterations, load_stride, store_stride, C0);
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t n = options[N].value, stride = options[STRIDE].value;
    uint64_t size = options[TYPE].value == SINGLE ? sizeof(float) : sizeof(double);
    uint64_t load_stride = options[LOAD].value == INDEXED ? stride : 1;
    uint64_t store_stride = options[STORE].value == INDEXED ? stride : 1;
    uint64_t per_iteration = 4 * svcntb() / size;
    if (n % per_iteration)
        cannot_run("n must be a multiple of the elements of four vectors (32 double, 64 single with 512 bits)");
    if (!stride && (options[LOAD].value == CONTIGUOUS || options[STORE].value == INDEXED))
        cannot_run("stride=0 (one element for all) is for load=gather store=contiguous");
    uint64_t span = stride ? n * stride : n, offset = options[OFFSET].value;
    if (offset % size)
        cannot_run("offset must be a multiple of the size of an element");
    double *arrays[3];
    place_arrays(pool, sizeof pool, span * size + offset, 3, arrays);
    /* Loaded arrays start this many bytes after the start of a line. */
    void *y = arrays[0], *x1 = (char *)arrays[1] + offset, *x2 = (char *)arrays[2] + offset;
    for (uint64_t i = 0; i < span; i++) {
        put(y, i, -1);
        put(x1, i, (double)(i & 0xffff));
        put(x2, i, (double)(i * 7 & 0xffff));
    }
    pass(y, x1, x2, n / per_iteration, load_stride, store_stride);

    measure_begin("gather");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        pass(y, x1, x2, n / per_iteration, load_stride, store_stride);
    measure_end();

    /* All values are integers below 2**24, hence exact in both types; elements between scattered ones are unchanged. */
    bool ok = true;
    for (uint64_t i = 0; i < n; i++)
        ok &= get(y, i * store_stride) == get(x1, i * load_stride) + (double)C0 * get(x2, i * load_stride);
    for (uint64_t i = 0; i < n * store_stride; i++)
        ok &= i % store_stride == 0 || get(y, i) == -1;
    return finish(ok, options, COUNT_OF(options));
}
