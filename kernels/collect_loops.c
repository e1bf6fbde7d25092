/* The loops of the measuring program: their options, their memory, what a repetition does. */
#include "collect.h"

void *linux_map(size_t bytes);
long linux_unmap(void *block, size_t bytes);

enum { EVICTION = 16 << 20, MOST_STREAMS = 24, GETPPID = 173, FUTEX_BOTH = 2 };

/* Memory of all threads, and bytes of each thread. */
static unsigned char *memory;
static uint64_t part_bytes;

static unsigned char *part(unsigned thread)
{
    return memory + thread * part_bytes;
}

static unsigned char *map(uint64_t bytes)
{
    unsigned char *block = linux_map(bytes);
    /* Errors are the highest addresses. */
    if ((uintptr_t)block > UINTPTR_MAX - 4096)
        no_result("the system has not so much memory");
    return block;
}

/* Maps `bytes` for each thread, in whole pages. */
static void map_parts(uint64_t bytes)
{
    part_bytes = (bytes + setting.page - 1) / setting.page * setting.page;
    memory = map(part_bytes * setting.threads);
}

/* Writes all words: 1.0. */
static void fill(unsigned thread)
{
    double *at = (double *)part(thread);
    for (uint64_t i = 0; i < part_bytes / sizeof(double); i += svcntd())
        svst1(svptrue_b64(), at + i, svdup_f64(1));
}

/* chase: dependent loads over nodes in random order. */

enum { NODES, STRIDE, HOPS, STATE };
enum { WARM, COLD };
static struct option chase_options[] = {
    [NODES] = {"nodes", 192, 2, 1 << 20, NULL},
    [STRIDE] = {"stride", LINE, 0, 1 << 30, NULL}, /* 0: a page and a line */
    [HOPS] = {"hops", 4000, 1, 1000000000, NULL},
    [STATE] = {"state", WARM, 0, 0, "warm|cold"},
};
static uint64_t stride;
static volatile unsigned char *eviction;

const void *chase_kernel(const void *start, uint64_t hops);

static void **node(unsigned thread, uint64_t i)
{
    return (void **)(part(thread) + i * stride);
}

/* Sattolo's shuffle: a random permutation that is one cycle. */
static void link_nodes(unsigned thread)
{
    uint64_t random = 0x853c49e6748fea9b, count = chase_options[NODES].value;
    for (uint64_t i = 0; i < count; i++)
        *node(thread, i) = node(thread, i);
    for (uint64_t i = count - 1; i > 0; i--) {
        random = random * 6364136223846793005 + 1442695040888963407;
        uint64_t k = (random >> 32) * i >> 32;
        void *swapped = *node(thread, i);
        *node(thread, i) = *node(thread, k);
        *node(thread, k) = swapped;
    }
    if (eviction && thread == 0)
        for (uint64_t i = 0; i < EVICTION; i += LINE)
            eviction[i] = 1;
}

/* Fills the caches of the first thread with other lines. */
static void evict(void)
{
    for (uint64_t i = 0; i < EVICTION; i += LINE)
        (void)eviction[i];
}

static void chase_body(unsigned thread)
{
    chase_kernel(node(thread, 0), chase_options[HOPS].value);
}

static void chase(int argc, char **argv)
{
    parse_options(argc, argv, chase_options, COUNT_OF(chase_options));
    stride = chase_options[STRIDE].value ? chase_options[STRIDE].value : setting.page + LINE;
    map_parts(chase_options[NODES].value * stride);
    bool cold = chase_options[STATE].value == COLD;
    if (cold)
        eviction = map(EVICTION);
    measure(&(struct work){link_nodes, cold ? evict : NULL, chase_body, chase_options[HOPS].value});
}

/* stream: one vector of each array per iteration; each thread has its own arrays. */

enum { STREAM_OP, STREAM_BYTES, STREAM_PASSES };
static struct option stream_options[] = {
    [STREAM_OP] = {"op", 0, 0, 0, "load|copy|update|triad|daxpy"},
    [STREAM_BYTES] = {"bytes", 16384, 256, 1ul << 30, NULL}, /* of an array of a thread */
    [STREAM_PASSES] = {"passes", 1, 1, 1000000, NULL},
};
typedef double stream_kernel(double *y, const double *x1, const double *x2, const double *x3, uint64_t n);
stream_kernel plain_load_kernel, plain_copy_kernel, plain_update_kernel, plain_triad_kernel, plain_daxpy_kernel;
static stream_kernel *const stream_kernels[] = {plain_load_kernel, plain_copy_kernel, plain_update_kernel,
                                                plain_triad_kernel, plain_daxpy_kernel};
static const unsigned stream_arrays[] = {1, 2, 1, 4, 2};
static uint64_t array_bytes;

static void stream_body(unsigned thread)
{
    uint64_t op = stream_options[STREAM_OP].value, n = stream_options[STREAM_BYTES].value / sizeof(double);
    double *arrays[4];
    for (unsigned i = 0; i < COUNT_OF(arrays); i++)
        arrays[i] = (double *)(part(thread) + i % stream_arrays[op] * array_bytes);
    for (uint64_t i = 0; i < stream_options[STREAM_PASSES].value; i++)
        stream_kernels[op](arrays[0], arrays[stream_arrays[op] > 1], arrays[2], arrays[3], n);
}

static void stream(int argc, char **argv)
{
    parse_options(argc, argv, stream_options, COUNT_OF(stream_options));
    uint64_t bytes = stream_options[STREAM_BYTES].value / svcntb() * svcntb();
    stream_options[STREAM_BYTES].value = bytes;
    /* A line between arrays, so that they are not in the same sets. */
    array_bytes = (bytes + setting.page - 1) / setting.page * setting.page + LINE;
    map_parts(array_bytes * stream_arrays[stream_options[STREAM_OP].value]);
    measure(&(struct work){fill, NULL, stream_body, bytes / svcntb() * stream_options[STREAM_PASSES].value});
}

/* streams: loads of several arrays in turns, a line of each; then of the next group of arrays. */

enum { COUNT, EACH, GROUPS, GAP };
static struct option streams_options[] = {
    [COUNT] = {"count", 1, 1, MOST_STREAMS, NULL},
    [EACH] = {"bytes", 262144, 256, 1 << 28, NULL}, /* of an array */
    [GROUPS] = {"groups", 1, 1, 1 << 20, NULL},
    [GAP] = {"gap", 0, 0, 1 << 20, NULL}, /* lines between arrays; 0: to the next page, and one */
};

/* Loads a line. */
static inline void load_line(svbool_t all, const unsigned char *line)
{
    for (uint64_t v = 0; v < LINE; v += svcntb())
        __asm__ volatile("ld1d {z0.d}, %0/z, [%1]" : : "Upl"(all), "r"(line + v) : "z0", "memory");
}

static void __attribute__((noinline)) load_streams(const unsigned char *from, uint64_t pitch, uint64_t count,
                                                   uint64_t bytes)
{
    svbool_t all = svptrue_b64();
    for (uint64_t i = 0; i < bytes; i += LINE)
        for (uint64_t k = 0; k < count; k++)
            load_line(all, from + k * pitch + i);
}

static void streams_body(unsigned thread)
{
    uint64_t count = streams_options[COUNT].value;
    for (uint64_t group = 0; group < streams_options[GROUPS].value; group++)
        load_streams(part(thread) + group * count * array_bytes, array_bytes, count, streams_options[EACH].value);
}

static void streams(int argc, char **argv)
{
    parse_options(argc, argv, streams_options, COUNT_OF(streams_options));
    uint64_t lines = streams_options[EACH].value / LINE, gap = streams_options[GAP].value;
    uint64_t arrays = streams_options[COUNT].value * streams_options[GROUPS].value;
    array_bytes = gap ? (lines + gap) * LINE : (lines * LINE + setting.page - 1) / setting.page * setting.page + LINE;
    map_parts(array_bytes * arrays);
    measure(&(struct work){fill, NULL, streams_body, lines * arrays});
}

/* lines: one of the loops over the lines of a block. */

typedef void lines_kernel(uint64_t lines, void *at, uint64_t distance);
lines_kernel zero_alone, zero_store, zero_both, half_half, half_whole, byte_stores, load_lines, load_lines_prefetched,
    load_line_ends, run_1, run_2, run_4, run_8, turns_1, turns_2, turns_4, turns_8;
static lines_kernel *const lines_kernels[] = {zero_alone, zero_store,  zero_both,  half_half,
                                              half_whole, byte_stores, load_lines, load_lines_prefetched,
                                              load_line_ends, run_1, run_2, run_4, run_8,
                                              turns_1, turns_2, turns_4, turns_8};
enum { LINES_OP, LINES_BYTES, LINES_PASSES, AHEAD };
static struct option lines_options[] = {
    [LINES_OP] = {"op", 0, 0, 0,
                  "zero|store|zero-store|store-halves|store-wholes|store-bytes|load|load-prefetched|load-first|"
                  "run-1|run-2|run-4|run-8|turns-1|turns-2|turns-4|turns-8"},
    [LINES_BYTES] = {"bytes", 16384, 256, 1 << 30, NULL},
    [LINES_PASSES] = {"passes", 1, 1, 1000000, NULL},
    [AHEAD] = {"ahead", 6, 0, 1000, NULL}, /* lines */
};

static void lines_body(unsigned thread)
{
    for (uint64_t i = 0; i < lines_options[LINES_PASSES].value; i++)
        lines_kernels[lines_options[LINES_OP].value](lines_options[LINES_BYTES].value / LINE, part(thread),
                                                     lines_options[AHEAD].value * LINE);
}

static void line_loop(int argc, char **argv)
{
    parse_options(argc, argv, lines_options, COUNT_OF(lines_options));
    map_parts(lines_options[LINES_BYTES].value);
    uint64_t lines = lines_options[LINES_BYTES].value / LINE;
    measure(&(struct work){fill, NULL, lines_body, lines * lines_options[LINES_PASSES].value});
}

/* class, forward, split: loops that need no memory, or one place. */

typedef void place_kernel(uint64_t iterations, void *place);
#define CLASSES(one) \
    one(add) one(add_shifted) one(ror) one(mul) one(madd) one(fadd) one(fmla) one(fmla_element) one(integer_add) one(sel) \
    one(compare) one(whilelo) one(dup) one(convert) one(divide)
#define DECLARE(name) place_kernel class_##name;
#define ADDRESS(name) class_##name,
#define NAME(name) #name "|"
CLASSES(DECLARE)
place_kernel chain_add, forward_early, forward_together, forward_delays, forward_vector;
static place_kernel *const place_kernels[] = {CLASSES(ADDRESS) chain_add, forward_early, forward_together, forward_delays,
                                              forward_vector};
enum { PLACE_OP, ITERATIONS };
static struct option place_options[] = {
    [PLACE_OP] = {"op", 0, 0, 0,
                  CLASSES(NAME) "add_chain|forward_early|forward_together|forward_delays|forward_vector"},
    [ITERATIONS] = {"iterations", 1000, 1, 1000000000, NULL},
};

static void place_body(unsigned thread)
{
    place_kernels[place_options[PLACE_OP].value](place_options[ITERATIONS].value, part(thread));
}

static void clear(unsigned thread)
{
    for (uint64_t i = 0; i < part_bytes / sizeof(uint64_t); i++)
        ((volatile uint64_t *)part(thread))[i] = 0;
}

static void one_place(int argc, char **argv)
{
    parse_options(argc, argv, place_options, COUNT_OF(place_options));
    map_parts(2 * LINE);
    measure(&(struct work){clear, NULL, place_body, place_options[ITERATIONS].value});
}

/* rowadd: the loop of rowadd.c, rows that are loaded after the row before was stored in part. */

enum { X, ROWS };
static struct option row_options[] = {
    [X] = {"x", 6, 1, 8, NULL},
    [ROWS] = {"rows", 256, 1, 4096, NULL},
};
void rowadd_kernel(double *y, const double *x1, uint64_t rows, uint64_t x, uint64_t pitch_bytes);

static void row_body(unsigned thread)
{
    double *y = (double *)part(thread);
    uint64_t rows = row_options[ROWS].value, x = row_options[X].value;
    rowadd_kernel(y, y + 8 * 4096, rows, x, x * sizeof(double));
}

static void row_add(int argc, char **argv)
{
    parse_options(argc, argv, row_options, COUNT_OF(row_options));
    map_parts(2 * 8 * 4096 * sizeof(double));
    measure(&(struct work){fill, NULL, row_body, row_options[ROWS].value});
}

/* horner: the loop of horner.c with nine operations; each row reads the one before from memory. */

enum { HORNER_ROWS };
static struct option horner_options[] = {
    [HORNER_ROWS] = {"rows", 512, 16, 4096, NULL},
};
void horner9_kernel(double *store, const double *load, const double *coefficients, uint64_t iterations);

static void horner_body(unsigned thread)
{
    static const double coefficients[] = {0.01, 3.8, -3.8, 1e-3, -1e-3, 2e-3, -2e-3, 1e-3, 3e-3, -3e-3};
    double *rows = (double *)part(thread);
    horner9_kernel(rows + svcntd(), rows, coefficients, horner_options[HORNER_ROWS].value / 2);
}

static void horner(int argc, char **argv)
{
    parse_options(argc, argv, horner_options, COUNT_OF(horner_options));
    map_parts((horner_options[HORNER_ROWS].value + 2) * svcntb());
    measure(&(struct work){fill, NULL, horner_body, horner_options[HORNER_ROWS].value / 2 * 2});
}

/* typed: the loop of triad-l1 with elements of 8, 4 and 2 bytes, whole vectors. */

enum { TYPE, TYPED_BYTES, TYPED_PASSES };
static struct option typed_options[] = {
    [TYPE] = {"type", 0, 0, 0, "double|single|short"},
    [TYPED_BYTES] = {"bytes", 10752, 512, 1 << 24, NULL}, /* of an array */
    [TYPED_PASSES] = {"passes", 10, 1, 1000000, NULL},
};
/* The last three arguments are not used by loops of whole lines. */
typedef uint64_t typed_kernel(void *y, const void *x1, const void *x2, uint64_t iterations, double c0, uint64_t zero_distance,
                              uint64_t l1_distance, uint64_t l2_distance);
typed_kernel wide_single_kernel, wide_short_kernel, triad8_kernel;
static typed_kernel *const typed_kernels[] = {triad8_kernel, wide_single_kernel, wide_short_kernel};

static void typed_body(unsigned thread)
{
    unsigned char *y = part(thread);
    uint64_t iterations = typed_options[TYPED_BYTES].value / (8 * svcntb());
    for (uint64_t i = 0; i < typed_options[TYPED_PASSES].value; i++)
        typed_kernels[typed_options[TYPE].value](y, y + array_bytes, y + 2 * array_bytes, iterations, 0, 0, 0, 0);
}

static void typed(int argc, char **argv)
{
    parse_options(argc, argv, typed_options, COUNT_OF(typed_options));
    array_bytes = (typed_options[TYPED_BYTES].value + LINE - 1) / LINE * LINE;
    map_parts(3 * array_bytes);
    uint64_t vectors = typed_options[TYPED_BYTES].value / (8 * svcntb()) * 8;
    measure(&(struct work){fill, NULL, typed_body, vectors * typed_options[TYPED_PASSES].value});
}

/* hand-over: two threads pass a line back and forth. */

enum { ROUNDS };
static struct option round_options[] = {
    [ROUNDS] = {"rounds", 500, 1, 1000000, NULL},
};
void pingpong_kernel(uint64_t *turn, uint64_t mine, uint64_t rounds);

static void reset_turn(void)
{
    *(uint64_t *)memory = 0;
}

static void hand_over_body(unsigned thread)
{
    pingpong_kernel((uint64_t *)memory, thread, round_options[ROUNDS].value);
}

static void hand_over(int argc, char **argv)
{
    parse_options(argc, argv, round_options, COUNT_OF(round_options));
    if (setting.threads != 2)
        no_result("the loop needs two threads");
    map_parts(LINE);
    measure(&(struct work){clear, reset_turn, hand_over_body, 2 * round_options[ROUNDS].value});
}

/* wake: two threads in turns sleep in the kernel until the other wakes them. */

static void wake_body(unsigned thread)
{
    uint32_t *turn = (uint32_t *)memory;
    for (uint32_t mine = thread; mine < 2 * round_options[ROUNDS].value; mine += 2) {
        for (uint32_t now; (now = __atomic_load_n(turn, __ATOMIC_ACQUIRE)) != mine;)
            futex_wait(turn, now);
        __atomic_store_n(turn, mine + 1, __ATOMIC_RELEASE);
        futex_wake_all(turn);
    }
}

static void wake(int argc, char **argv)
{
    parse_options(argc, argv, round_options, COUNT_OF(round_options));
    if (setting.threads != 2)
        no_result("the loop needs two threads");
    map_parts(LINE);
    measure(&(struct work){clear, reset_turn, wake_body, 2 * round_options[ROUNDS].value});
}

/* call: a system call that does next to nothing. */

static void call_body(unsigned thread)
{
    (void)thread;
    for (uint64_t i = 0; i < round_options[ROUNDS].value; i++)
        linux_call(0, 0, 0, 0, 0, 0, GETPPID);
}

static void call(int argc, char **argv)
{
    parse_options(argc, argv, round_options, COUNT_OF(round_options));
    measure(&(struct work){NULL, NULL, call_body, round_options[ROUNDS].value});
}

/* fault: first touches of pages. */

enum { PAGES };
static struct option fault_options[] = {
    [PAGES] = {"pages", 64, 1, 65536, NULL},
};

static void renew(void)
{
    if (memory)
        linux_unmap(memory, part_bytes);
    part_bytes = fault_options[PAGES].value * setting.page;
    memory = map(part_bytes);
}

static void fault_body(unsigned thread)
{
    (void)thread;
    for (uint64_t i = 0; i < fault_options[PAGES].value; i++)
        *(volatile unsigned char *)(memory + i * setting.page) = 1;
}

static void fault(int argc, char **argv)
{
    parse_options(argc, argv, fault_options, COUNT_OF(fault_options));
    measure(&(struct work){NULL, renew, fault_body, fault_options[PAGES].value});
}

static const struct {
    const char *name;
    void (*run)(int argc, char **argv);
} loops[] = {
    {"chase", chase},   {"stream", stream}, {"streams", streams}, {"lines", line_loop},
    {"place", one_place}, {"rowadd", row_add}, {"horner", horner}, {"typed", typed},
    {"call", call},     {"hand-over", hand_over}, {"wake", wake}, {"fault", fault},
};

void run_loop(const char *name, int argc, char **argv)
{
    for (unsigned i = 0; i < COUNT_OF(loops); i++) {
        const char *a = loops[i].name, *b = name;
        while (*a && *a == *b)
            a++, b++;
        if (!*a && !*b) {
            loops[i].run(argc, argv);
            return;
        }
    }
    no_result("the program has no such loop");
}
