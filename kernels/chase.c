/* Pointer chase: the latency of dependent loads over a footprint of 256-byte lines in random order. */
#include "runtime.h"

enum {
    MAX_FOOTPRINT = 64 << 20,
    EVICTION = 16 << 20, /* twice the L2 cache of one CMG */
};

/* One cache line; the chain is a single cycle through all of them. */
struct node {
    struct node *next;
    unsigned char rest[LINE - sizeof(struct node *)];
};

static _Alignas(LINE) struct node nodes[MAX_FOOTPRINT / LINE];
static _Alignas(LINE) volatile uint64_t eviction[EVICTION / sizeof(uint64_t)];

const struct node *chase_kernel(const struct node *start, uint64_t hops);

enum { COLD, WARM };
enum { FOOTPRINT, HOPS, STATE };

static struct option options[] = {
    [FOOTPRINT] = {"footprint", 1 << 20, 2 * LINE, MAX_FOOTPRINT, NULL},
    [HOPS] = {"hops", 4000, 1, 1000000000000, NULL},
    [STATE] = {"state", COLD, 0, 0, "cold|warm"},
};

/* Sattolo's shuffle: a random permutation that is one cycle. */
static void link_nodes(uint64_t count)
{
    uint64_t random = 0x853c49e6748fea9b;
    for (uint64_t i = 0; i < count; i++)
        nodes[i].next = &nodes[i];
    for (uint64_t i = count - 1; i > 0; i--) {
        random = random * 6364136223846793005 + 1442695040888963407;
        uint64_t j = (random >> 32) * i >> 32;
        struct node *swapped = nodes[i].next;
        nodes[i].next = nodes[j].next;
        nodes[j].next = swapped;
    }
}

/* Fills both caches with other lines. They are written first, since pages that were never written may share one physical page. */
static void evict(void)
{
    const uint64_t step = LINE / sizeof(uint64_t);
    for (uint64_t i = 0; i < COUNT_OF(eviction); i += step)
        eviction[i] = i;
    for (uint64_t i = 0; i < COUNT_OF(eviction); i += step)
        (void)eviction[i];
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t count = options[FOOTPRINT].value / LINE, hops = options[HOPS].value;
    link_nodes(count);
    /* The first walk also proves that the chain is one cycle: it first returns after `count` hops. */
    const struct node *at = nodes;
    uint64_t cycle = 0;
    do {
        at = at->next;
        cycle++;
    } while (at != nodes && cycle <= count);
    if (options[STATE].value == COLD)
        evict();

    measure_begin("chase");
    const struct node *end = chase_kernel(nodes, hops);
    measure_end();

    at = nodes;
    for (uint64_t i = 0; i < hops % count; i++)
        at = at->next;
    return finish(cycle == count && end == at, options, COUNT_OF(options));
}
