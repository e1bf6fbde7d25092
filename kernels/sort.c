/* Sorting and counting of pseudo-random keys: integer code with unpredictable branches, and no vectors
 * (the Makefile compiles this file without them). A pass counts the keys by their leading bits in a hash table, sorts
 * them, and compares the lengths of the runs of equal leading bits with the table, so that each half checks the other. */
#include "runtime.h"

/* Maximum number of keys; at most 2^WORD_BITS_MOST words are counted, with four slots each. */
enum { KEYS = 1 << 20, WORD_BITS_MOST = 17, SLOTS = 4 << WORD_BITS_MOST };

/* A hash table with linear probing; `count` 0: free. */
struct slot {
    uint32_t word, count;
};

static _Alignas(LINE) uint64_t keys[KEYS];
static _Alignas(LINE) struct slot table[SLOTS];

enum { N, PASSES };

static struct option options[] = {
    [N] = {"n", 20000, 2, KEYS, NULL},
    [PASSES] = {"passes", 2, 1, 1000000000, NULL},
};

/* A function that scatters its argument over all 64 bits: two xor-shifts around a multiplication by
 * 2^64 divided by the golden ratio. */
static uint64_t scatter(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15;
    return x ^ (x >> 29);
}

static uint64_t key(uint64_t pass, uint64_t i)
{
    return scatter(scatter(pass + 1) + i);
}

/* Returns the slot of `word`, or the free one for it. */
static struct slot *find(uint32_t word, uint64_t mask)
{
    uint64_t i = scatter(word) & mask;
    while (table[i].count && table[i].word != word)
        i = (i + 1) & mask;
    return &table[i];
}

static void insertion_sort(uint64_t *from, uint64_t *to)
{
    for (uint64_t *at = from + 1; at < to; at++) {
        uint64_t moving = *at, *hole = at;
        for (; hole > from && hole[-1] > moving; hole--)
            *hole = hole[-1];
        *hole = moving;
    }
}

static uint64_t median(uint64_t a, uint64_t b, uint64_t c)
{
    if (a > b) {
        uint64_t larger = a;
        a = b;
        b = larger;
    }
    return c < a ? a : c > b ? b : c;
}

/* Quicksort; the smaller part by recursion, so that its depth is at most log2(n). */
static void sort(uint64_t *from, uint64_t *to)
{
    while (to - from > 16) {
        uint64_t pivot = median(*from, from[(to - from) / 2], to[-1]);
        uint64_t *low = from, *high = to - 1;
        while (low <= high) {
            while (*low < pivot)
                low++;
            while (*high > pivot)
                high--;
            if (low <= high) {
                uint64_t smaller = *high;
                *high-- = *low;
                *low++ = smaller;
            }
        }
        /* Now everything before `low` is at most the pivot, everything after `high` at least. */
        if (high + 1 - from < to - low) {
            sort(from, high + 1);
            from = low;
        } else {
            sort(low, to);
            to = high + 1;
        }
    }
    insertion_sort(from, to);
}

/* One pass; returns whether the sorted keys and the table agree. `word_shift` selects the leading bits of a key. */
static bool pass(uint64_t number, uint64_t n, uint64_t mask, unsigned word_shift)
{
    for (uint64_t i = 0; i <= mask; i++)
        table[i].count = 0;
    for (uint64_t i = 0; i < n; i++) {
        keys[i] = key(number, i);
        uint32_t word = (uint32_t)(keys[i] >> word_shift);
        struct slot *slot = find(word, mask);
        slot->word = word;
        slot->count++;
    }
    sort(keys, keys + n);
    bool ok = true;
    for (uint64_t i = 0; i < n;) {
        uint32_t word = (uint32_t)(keys[i] >> word_shift), run = 0;
        for (; i < n && keys[i] >> word_shift == word; i++)
            run++;
        ok &= find(word, mask)->count == run;
    }
    return ok;
}

/* Whether `keys` are those of pass `number`, in order. Two sums identify the set of keys. */
static bool sorted(uint64_t number, uint64_t n)
{
    uint64_t sum = 0, scattered = 0;
    bool ok = true;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t expected = key(number, i);
        sum += keys[i] - expected;
        scattered += scatter(keys[i]) - scatter(expected);
        ok &= i == 0 || keys[i - 1] <= keys[i];
    }
    return ok && sum == 0 && scattered == 0;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t n = options[N].value, passes = options[PASSES].value;
    /* Eight keys per word, up to twice as many. */
    unsigned bits = 1;
    while (bits < WORD_BITS_MOST && 16ul << bits <= n)
        bits++;
    uint64_t mask = (4ul << bits) - 1;
    bool ok = pass(0, n, mask, 64 - bits) && sorted(0, n);

    measure_begin("sort");
    for (uint64_t i = 1; i <= passes; i++)
        ok &= pass(i, n, mask, 64 - bits);
    measure_end();

    return finish(ok && sorted(passes, n), options, COUNT_OF(options));
}
