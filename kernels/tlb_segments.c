/* A little memory in each segment of a program: data, heap, stack, and a block per thread. The number of
 * pages that this takes is the purpose of the program. */
#include "threads.h"

enum { MMAP = 222, BRK = 214, PROT_READ_WRITE = 3, MAP_PRIVATE = 2, MAP_ANONYMOUS = 0x20, MAP_STACK = 0x20000 };

enum { THREADS, BYTES };

static struct option options[] = {
    [THREADS] = {"threads", 8, 1, MAX_THREADS, NULL},
    [BYTES] = {"bytes", 1 << 20, 64 << 10, 1 << 30, NULL},
};

static volatile uint64_t data = 1;
static volatile uint64_t *blocks[MAX_THREADS];

/* Far from everything else and from each other, like thread stacks with large pages. */
static const uint64_t FIRST_BLOCK = 0x200000000000, DISTANCE = 1 << 30;

static void take_block(unsigned thread)
{
    long at = linux_call((long)(FIRST_BLOCK + thread * DISTANCE), (long)options[BYTES].value, PROT_READ_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0, MMAP);
    if (at < 0 && at > -4096)
        cannot_run("the system gives no more memory");
    blocks[thread] = (uint64_t *)at;
    *blocks[thread] = thread;
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t heap = (uint64_t)linux_call(0, 0, 0, 0, 0, 0, BRK);
    if ((uint64_t)linux_call((long)(heap + options[BYTES].value), 0, 0, 0, 0, 0, BRK) == heap)
        cannot_run("the system gives no more heap");
    *(volatile uint64_t *)heap = ++data;
    run_threads((unsigned)options[THREADS].value, take_block);
    bool ok = data == 2 && *(volatile uint64_t *)heap == 2;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok = ok && *blocks[t] == t;
    return finish(ok, options, COUNT_OF(options));
}
