/* Maps all blocks of memory, then unmaps all: the system calls behind `malloc` and `free` of
 * large blocks. */
#include "runtime.h"

enum { MAX_COUNT = 4096 };

/* mmap and munmap of private, writable memory. */
void *linux_map(size_t bytes);
long linux_unmap(void *block, size_t bytes);

/* Maps `count` blocks, and unmaps them. */
void maps_take(void **blocks, uint64_t count, size_t bytes);
void maps_give(void **blocks, uint64_t count, size_t bytes);

enum { COUNT, BYTES, ROUNDS };

static struct option options[] = {
    [COUNT] = {"count", 1024, 1, MAX_COUNT, NULL},
    [BYTES] = {"bytes", 8 << 20, 64 << 10, 1 << 30, NULL},
    [ROUNDS] = {"rounds", 2, 1, 1000, NULL},
};

static void *blocks[MAX_COUNT];

void maps_take(void **to, uint64_t count, size_t bytes)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] = linux_map(bytes);
}

void maps_give(void **from, uint64_t count, size_t bytes)
{
    for (uint64_t i = 0; i < count; i++)
        linux_unmap(from[i], bytes);
}

/* Whether all blocks exist and start with zero, also if they were used before; then uses them. */
static bool are_clear(uint64_t count)
{
    bool clear = true;
    for (uint64_t i = 0; i < count; i++) {
        /* Errors are the highest addresses. */
        if ((uintptr_t)blocks[i] > UINTPTR_MAX - 4096)
            cannot_run("the system gives no more memory");
        volatile uint64_t *block = blocks[i];
        clear = clear && *block == 0;
        *block = i + 1;
    }
    return clear;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t count = options[COUNT].value, bytes = options[BYTES].value;
    bool ok = true;
    for (uint64_t round = 0; round < options[ROUNDS].value; round++) {
        measure_begin(round ? "take again" : "take");
        maps_take(blocks, count, bytes);
        measure_end();
        ok = are_clear(count) && ok;
        measure_begin(round ? "give back again" : "give back");
        maps_give(blocks, count, bytes);
        measure_end();
    }
    return finish(ok, options, COUNT_OF(options));
}
