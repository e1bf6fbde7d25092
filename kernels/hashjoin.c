/* A hash join: a table of the build side's keys, probed with those of the other side. Probes are independent, so
 * their misses overlap. Linear probing, or chains of entries. */
#include "runtime.h"

void *linux_map(size_t bytes);

enum { LINEAR, CHAINS };
enum { TABLE, BUILD, PROBE, MATCHES, SEED };

static struct option options[] = {
    [TABLE] = {"table", LINEAR, 0, 0, "linear|chains"},
    [BUILD] = {"build", 65536, 1, 1 << 28, NULL},
    [PROBE] = {"probe", 100000, 1, 1 << 30, NULL},
    [MATCHES] = {"matches", 75, 0, 100, NULL},
    [SEED] = {"seed", 1, 0, UINT32_MAX, NULL},
};

/* Entry of both kinds of tables; key 0 is free. `next` is the number of the chain's next entry, counted from 1. */
struct entry {
    uint64_t key;
    uint32_t payload, next;
};

static struct entry *entries; /* slots of the linear table, or rows of the build side */
static uint32_t *heads;       /* first entry of each chain */
static unsigned shift;        /* selects the bits of a hash that number slots or chains */
static uint64_t mask;

/* A bijection, so that different numbers have different keys. Neither side's numbers are 0, so no key is. */
static uint64_t scatter(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15;
    return x ^ (x >> 29);
}

static inline uint64_t slot_of(uint64_t key)
{
    return key * 0xd1342543de82ef95 >> shift;
}

/* Row i of the build side; rows are counted from 1. */
static inline uint64_t build_key(uint64_t i)
{
    return scatter((options[SEED].value << 31) + i);
}

/* The row of the build side whose key row i of the other side has; numbers beyond the last row match none. */
static inline uint64_t partner(uint64_t i)
{
    uint64_t drawn = scatter(scatter(options[SEED].value + i)), build = options[BUILD].value;
    bool matches = (drawn & 0xffff) * 100 >> 16 < options[MATCHES].value;
    uint64_t row = (drawn >> 32) * build >> 32;
    return matches ? row + 1 : row + 1 + build;
}

static void *take(uint64_t bytes)
{
    void *memory = linux_map(bytes);
    /* Errors are the highest addresses. */
    if ((uintptr_t)memory > UINTPTR_MAX - 4096)
        cannot_run("the system has not so much memory; choose a smaller build or probe");
    return memory;
}

/* At least twice as many slots, or chains, as rows. */
static void make_table(uint64_t rows, bool chains)
{
    uint64_t slots = 2;
    shift = 63;
    while (slots < (chains ? rows : 2 * rows)) {
        slots *= 2;
        shift--;
    }
    mask = slots - 1;
    entries = take((chains ? rows + 1 : slots) * sizeof *entries);
    if (chains)
        heads = take(slots * sizeof *heads);
}

static void insert(uint64_t row, bool chains)
{
    uint64_t key = build_key(row), at = slot_of(key);
    if (chains) {
        entries[row] = (struct entry){key, (uint32_t)row, heads[at]};
        heads[at] = (uint32_t)row;
        return;
    }
    while (entries[at].key)
        at = (at + 1) & mask;
    entries[at].key = key;
    entries[at].payload = (uint32_t)row;
}

/* Result of a join: the number of pairs, and the sum of the build side's payloads. */
struct result {
    uint64_t pairs, sum;
};

__attribute__((noinline)) static struct result linear_kernel(const uint64_t *keys, uint64_t count)
{
    struct result r = {0, 0};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t key = keys[i], at = slot_of(key);
        while (entries[at].key && entries[at].key != key)
            at = (at + 1) & mask;
        /* A free slot has payload 0. */
        r.pairs += entries[at].payload != 0;
        r.sum += entries[at].payload;
    }
    return r;
}

__attribute__((noinline)) static struct result chains_kernel(const uint64_t *keys, uint64_t count)
{
    struct result r = {0, 0};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t key = keys[i];
        uint32_t at = heads[slot_of(key)];
        while (at && entries[at].key != key)
            at = entries[at].next;
        /* Entry 0 belongs to no row and has payload 0. */
        r.pairs += entries[at].payload != 0;
        r.sum += entries[at].payload;
    }
    return r;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t build = options[BUILD].value, probe = options[PROBE].value;
    bool chains = options[TABLE].value == CHAINS;
    make_table(build, chains);
    for (uint64_t row = 1; row <= build; row++)
        insert(row, chains);
    uint64_t *keys = take(probe * sizeof *keys);
    struct result expected = {0, 0};
    for (uint64_t i = 0; i < probe; i++) {
        uint64_t row = partner(i);
        keys[i] = build_key(row);
        expected.pairs += row <= build;
        expected.sum += row <= build ? row : 0;
    }

    measure_begin("probe");
    struct result r = chains ? chains_kernel(keys, probe) : linear_kernel(keys, probe);
    measure_end();

    static struct option shown[COUNT_OF(options) + 2];
    for (unsigned i = 0; i < COUNT_OF(options); i++)
        shown[i] = options[i];
    shown[COUNT_OF(options)] = (struct option){"pairs", r.pairs, 0, 0, NULL};
    shown[COUNT_OF(options) + 1] = (struct option){"sum", r.sum, 0, 0, NULL};
    return finish(r.pairs == expected.pairs && r.sum == expected.sum, shown, COUNT_OF(shown));
}
