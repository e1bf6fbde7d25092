/* Calls a function of an installed library again and again in a measured region.
 *
 * usage: libraries FUNCTION SIZE CALLS
 *
 * FUNCTION   daxpy or saxpy (OpenBLAS; SIZE elements), xxh32 or xxh64 (xxHash; SIZE bytes). Debian's libraries are loaded by their
 *            names, so that the program is built without them.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../kernels/fxscope_roi.h"

#define OPENBLAS "/usr/lib/aarch64-linux-gnu/openblas-serial/libopenblas.so.0"
#define XXHASH "libxxhash.so.0"

static void fail(const char *message)
{
    fprintf(stderr, "libraries: %s\n", message);
    exit(1);
}

static void *function(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_NOW);
    void *found = handle ? dlsym(handle, name) : NULL;
    if (!found)
        fail(dlerror());
    return found;
}

static void *allocated(size_t bytes)
{
    void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!memory)
        fail("not enough memory");
    return memory;
}

/* y += 1*x: with elements of 1 in x and of 0 in y, each element of y counts the calls. */
#define AXPY(type, name)                                                                        \
    static int run_##name(int n, long calls)                                                    \
    {                                                                                           \
        void (*axpy)(int, type, const type *, int, type *, int) = function(OPENBLAS, "cblas_" #name); \
        type *x = allocated(n * sizeof(type)), *y = allocated(n * sizeof(type));                \
        for (int i = 0; i < n; i++)                                                             \
            x[i] = 1, y[i] = 0;                                                                 \
        axpy(n, 1, x, 1, y, 1);                                                                 \
        fxscope_roi_begin(#name);                                                               \
        for (long call = 0; call < calls; call++)                                               \
            axpy(n, 1, x, 1, y, 1);                                                             \
        fxscope_roi_end();                                                                      \
        int right = 1;                                                                          \
        for (int i = 0; i < n; i++)                                                             \
            right &= y[i] == calls + 1;                                                         \
        return right;                                                                           \
    }

AXPY(double, daxpy)
AXPY(float, saxpy)

/* Each call hashes the same bytes, so that all hashes are equal. */
#define XXH(type, name, symbol)                                                  \
    static int run_##name(int bytes, long calls)                                 \
    {                                                                            \
        type (*hash)(const void *, size_t, type) = function(XXHASH, symbol);     \
        unsigned char *input = allocated((size_t)bytes);                         \
        for (int i = 0; i < bytes; i++)                                          \
            input[i] = (unsigned char)(i >> 8 ^ i);                              \
        type expected = hash(input, (size_t)bytes, 0), differs = 0;              \
        fxscope_roi_begin(#name);                                                \
        for (long call = 0; call < calls; call++)                                \
            differs |= hash(input, (size_t)bytes, 0) ^ expected;                 \
        fxscope_roi_end();                                                       \
        return differs == 0 && expected != 0;                                    \
    }

XXH(uint32_t, xxh32, "XXH32")
XXH(uint64_t, xxh64, "XXH64")

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int size, long calls);
    } functions[] = {{"daxpy", run_daxpy}, {"saxpy", run_saxpy}, {"xxh32", run_xxh32}, {"xxh64", run_xxh64}};
    int size = argc == 4 ? atoi(argv[2]) : 0;
    long calls = argc == 4 ? atol(argv[3]) : 0;
    if (size < 1 || calls < 1)
        fail("usage: libraries daxpy|saxpy|xxh32|xxh64 SIZE CALLS");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(argv[1], functions[i].name) == 0) {
            int right = functions[i].run(size, calls);
            printf("libraries %s %s size=%d calls=%ld\n", right ? "ok" : "FAILED", argv[1], size, calls);
            return !right;
        }
    }
    fail("no such function");
}
