/* Pointer chase whose loads go through a vector register: the latency of such loads from L1, and of the move to the next address. */
#include "runtime.h"

enum { MAX_NODES = 256 };

/* One cache line; the chain is a single cycle through all of them. A load of a whole vector stays within its line. */
static _Alignas(LINE) struct node {
    struct node *next;
    unsigned char rest[LINE - sizeof(struct node *)];
} nodes[MAX_NODES];

typedef const struct node *kernel(const struct node *start, uint64_t hops);
kernel chase_double_kernel, chase_quad_kernel, chase_vector_kernel;

enum { LOAD, NODES, HOPS };

static struct option options[] = {
    [LOAD] = {"load", 0, 0, 0, "double|quad|vector"},
    [NODES] = {"nodes", 128, 1, MAX_NODES, NULL},
    [HOPS] = {"hops", 100000, 1, 1000000000000, NULL},
};

static kernel *const KERNELS[] = {chase_double_kernel, chase_quad_kernel, chase_vector_kernel};

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t count = options[NODES].value, hops = options[HOPS].value;
    for (uint64_t i = 0; i < count; i++)
        nodes[i].next = &nodes[(i + 1) % count];
    kernel *chase = KERNELS[options[LOAD].value];
    bool ok = chase(nodes, count) == nodes;

    measure_begin("vector-chase");
    const struct node *end = chase(nodes, hops);
    measure_end();

    ok &= end == &nodes[hops % count];
    return finish(ok, options, COUNT_OF(options));
}
