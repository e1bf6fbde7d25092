/* The kernel family: y(i) = op(x1(i), x2(i)) by operation, type, access, level (size), threads, zero fill, software prefetch, alignment
 * and length of the inner loop. */
#include "family.h"

enum { MAX_BYTES = 256 << 20, SLACK = 2 * LINE };
static _Alignas(LINE) unsigned char pool[4ul * MAX_BYTES];

enum {
    OP, TYPE, LOADS, STORES, N, PASSES, THREADS, STRIDE, ORDER, ZERO_LINES, L1_LINES, L2_LINES, OFFSET, STORE_OFFSET, BLOCK, PITCH
};
enum { ASCENDING, RANDOM };

static struct option options[] = {
    [OP] = {"op", FMA, 0, 0, OPERATION_WORDS},
    [TYPE] = {"type", F64, 0, 0, TYPE_WORDS},
    [LOADS] = {"load", CONTIGUOUS, 0, 0, ACCESS_WORDS},
    [STORES] = {"store", CONTIGUOUS, 0, 0, ACCESS_WORDS},
    [N] = {"n", 1344, 32, 1 << 28, NULL},
    [PASSES] = {"passes", 100, 1, 1000000000, NULL},
    [THREADS] = {"threads", 1, 1, MAX_THREADS, NULL},
    [STRIDE] = {"stride", 1, 0, 4096, NULL},
    [ORDER] = {"order", ASCENDING, 0, 0, "ascending|random"},
    [ZERO_LINES] = {"zero-lines", 0, 0, 100, NULL},
    [L1_LINES] = {"l1-lines", 0, 0, 100, NULL},
    [L2_LINES] = {"l2-lines", 0, 0, 1000, NULL},
    [OFFSET] = {"offset", 0, 0, 255, NULL},
    [STORE_OFFSET] = {"store-offset", 0, 0, 255, NULL},
    [BLOCK] = {"block", 0, 0, 1 << 28, NULL},
    [PITCH] = {"pitch", 0, 0, 1 << 28, NULL},
};

static unsigned char *y, *x1, *x2, *indices;
static loop *run, *run_end;
static _Alignas(LINE) bool wrong[MAX_THREADS];

static uint64_t of(unsigned option)
{
    return options[option].value;
}

static loop *const *loops(void)
{
    switch (of(TYPE)) {
    case F64: return loops_f64[of(OP)];
    case F32: return loops_f32[of(OP)];
    case F16: return loops_f16[of(OP)];
    case I64: return loops_i64[of(OP)];
    case I32: return loops_i32[of(OP)];
    case I16: return loops_i16[of(OP)];
    default: return loops_i8[of(OP)];
    }
}

/* The loop that the options name, and the one for the last lines of a part, which DC ZVA must not pass. */
static void choose_loop(void)
{
    bool contiguous = of(LOADS) == CONTIGUOUS && of(STORES) == CONTIGUOUS, pairs = of(LOADS) == PAIRS && of(STORES) == PAIRS;
    unsigned prefetching = of(L2_LINES) ? PREFETCHING : of(L1_LINES) ? PREFETCHING_L1 : PLAIN, number = prefetching;
    if ((of(LOADS) == PAIRS) != (of(STORES) == PAIRS))
        cannot_run("load=pairs and store=pairs belong together");
    if (!contiguous && prefetching)
        cannot_run("l1-lines and l2-lines are for contiguous access");
    if (of(ZERO_LINES) && (pairs || of(LOADS) == INDIRECT || of(STORES) != CONTIGUOUS))
        cannot_run("zero-lines is for contiguous stores with contiguous or strided loads");
    if (of(ZERO_LINES) && (of(L1_LINES) != 0) != (of(L2_LINES) != 0))
        cannot_run("zero-lines needs l1-lines and l2-lines, or neither");
    if (of(ZERO_LINES) && (of(OP) == LOAD || of(STORE_OFFSET)))
        cannot_run("zero-lines needs an operation that stores, at the start of a line");
    if (pairs)
        number = OF_PAIRS;
    else if (!contiguous)
        number = indexed_loop((enum access)of(LOADS), (enum access)of(STORES));
    if (!loops() || !loops()[number])
        cannot_run("there is no such loop: 2- and 1-byte elements have no gathers, integers no functions; from div on, access is contiguous");
    run_end = run = loops()[number];
    if (of(ZERO_LINES)) {
        run = loops()[!contiguous ? ZEROING_GATHER : prefetching ? ZEROING_PREFETCHING : ZEROING];
        if (!run)
            cannot_run("zero-lines is for the operations from load to sign");
    }
}

/* Distance of elements of an array with this access. */
static uint64_t distance(unsigned access)
{
    return of(access) == STRIDED || of(access) == INDIRECT ? of(STRIDE) : 1;
}

/* Elements of one iteration, and of the unit in which parts of threads begin: whole iterations and whole lines of all arrays. */
static uint64_t step(void)
{
    return UNROLLED * svcntb() / source_bytes((enum type)of(TYPE));
}

static uint64_t unit(void)
{
    return UNROLLED * 64 > LINE ? UNROLLED * 64 : LINE;
}

/* A part consists of blocks of `block` elements at a distance of `pitch`; without, it is one block. */
static uint64_t block(void)
{
    return of(BLOCK) ? of(BLOCK) : of(N);
}

static uint64_t pitch(void)
{
    return of(PITCH) ? of(PITCH) : block();
}

/* First element of a thread's part, whose blocks are counted in elements without the gaps. The last part has what remains of n. */
static uint64_t part(unsigned thread)
{
    uint64_t whole = of(BLOCK) ? block() : unit();
    return thread < of(THREADS) ? of(N) / whole * thread / of(THREADS) * whole : of(N);
}

/* Position in the arrays of element i of those that are worked on. */
static uint64_t position(uint64_t i)
{
    return i / block() * pitch() + i % block();
}

/* The calls of a pass over a part: for each block a loop from its start and, after `iterations`, one to its end without DC ZVA; `step` and
 * the others are the bytes from block to block. */
struct plan {
    unsigned char *y;
    const unsigned char *x1, *x2, *index;
    uint64_t blocks, iterations, last_iterations;
    uint64_t x_step, y_step, x_skip, y_skip;
    struct ahead ahead;
};

static struct plan plan_of(uint64_t from, uint64_t to)
{
    uint64_t at = position(from), count = of(BLOCK) ? block() : to - from;
    uint64_t x_bytes = source_bytes((enum type)of(TYPE)) * distance(LOADS);
    uint64_t y_bytes = result_bytes((enum type)of(TYPE), (enum operation)of(OP)) * distance(STORES);
    uint64_t all = count / step(), last = of(ZERO_LINES) * LINE / source_bytes((enum type)of(TYPE)) / step();
    uint64_t first = !of(ZERO_LINES) ? all : all > last ? all - last : 0;
    const unsigned char *index = indices + at * source_bytes((enum type)of(TYPE));
    return (struct plan){
        .y = of(STORES) == INDIRECT ? y : y + at * y_bytes,
        .x1 = of(LOADS) == INDIRECT ? x1 : x1 + at * x_bytes,
        .x2 = of(LOADS) == INDIRECT ? x2 : x2 + at * x_bytes,
        .index = index,
        .blocks = to > from ? (to - from) / count : 0,
        .iterations = first,
        .last_iterations = all - first,
        .x_step = pitch() * x_bytes,
        .y_step = pitch() * y_bytes,
        .x_skip = first * step() * x_bytes,
        .y_skip = first * step() * y_bytes,
        .ahead = {of(ZERO_LINES) * LINE, of(L1_LINES) * LINE, of(L2_LINES) * LINE},
    };
}

static void pass(const struct plan *p)
{
    unsigned char *to = p->y;
    const unsigned char *from1 = p->x1, *from2 = p->x2;
    for (uint64_t left = p->blocks; left; left--) {
        if (p->iterations)
            run(to, from1, from2, p->index, p->iterations, of(STRIDE), &p->ahead);
        if (p->last_iterations)
            run_end(to + p->y_skip, from1 + p->x_skip, from2 + p->x_skip, p->index, p->last_iterations, of(STRIDE), &p->ahead);
        to += p->y_step, from1 += p->x_step, from2 += p->x_step;
    }
}

/* Indices of a part: `stride` times its elements, in ascending order or shuffled. */
static void put_index(uint64_t at, uint64_t value)
{
    if (source_bytes((enum type)of(TYPE)) == 8)
        ((uint64_t *)indices)[at] = value;
    else
        ((uint32_t *)indices)[at] = (uint32_t)value;
}

static uint64_t index_at(uint64_t at)
{
    return source_bytes((enum type)of(TYPE)) == 8 ? ((uint64_t *)indices)[at] : ((uint32_t *)indices)[at];
}

static void initialise_indices(uint64_t from, uint64_t to)
{
    uint64_t random = 1;
    for (uint64_t i = from; i < to; i++)
        put_index(i, i * of(STRIDE));
    for (uint64_t left = to - from; of(ORDER) == RANDOM && left > 1; left--) {
        random = random * 6364136223846793005 + 1442695040888963407;
        uint64_t other = from + (random >> 33) % left, last = from + left - 1, value = index_at(other);
        put_index(other, index_at(last));
        put_index(last, value);
    }
}

/* Contiguous elements repeat, so that whole vectors of an earlier period are copied. */
static void repeat(unsigned char *array, uint64_t from, uint64_t to, uint64_t period)
{
    svbool_t all = svptrue_b8();
    for (uint64_t at = from; at < to; at += period)
        for (uint64_t byte = 0; byte < period && at + byte < to; byte += svcntb()) {
            svbool_t p = svand_z(all, svwhilelt_b8(byte, period), svwhilelt_b8(at + byte, to));
            svst1(p, array + at + byte, svld1(p, array + from - period + byte));
        }
}

static void initialise_operand(unsigned char *array, unsigned which, uint64_t from, uint64_t to)
{
    enum type type = (enum type)of(TYPE);
    uint64_t first = position(from), end = position(to - 1) + 1, bytes = source_bytes(type);
    uint64_t spread = distance(LOADS) ? distance(LOADS) : 1, scalar = spread == 1 && end - first > PERIOD ? first + PERIOD : end;
    for (uint64_t i = first; i < scalar; i++)
        put_element(array, type, (enum operation)of(OP), which, i * spread, i);
    if (scalar < end)
        repeat(array, scalar * bytes, end * bytes, PERIOD * bytes);
}

static void clear(uint64_t from, uint64_t to)
{
    uint64_t bytes = result_bytes((enum type)of(TYPE), (enum operation)of(OP)) * distance(STORES);
    uint64_t end = (position(to - 1) + 1) * bytes;
    for (uint64_t at = position(from) * bytes; at < end; at += svcntb())
        svst1(svwhilelt_b8(at, end), y + at, svdup_u8(0));
}

/* Element of x1 and x2 from which position i of the loop is computed, and the place of its result in y. */
static uint64_t source_of(uint64_t i)
{
    if (!of(STRIDE))
        return 0;
    return of(LOADS) == INDIRECT ? index_at(i) / of(STRIDE) : i;
}

static uint64_t target_of(uint64_t i)
{
    return of(STORES) == INDIRECT ? index_at(i) : i * distance(STORES);
}

/* Checks at most some 1,000 elements, and the last ones. */
static bool correct(uint64_t from, uint64_t to)
{
    enum { SOME = 1000, LAST = 64 };
    bool ok = true;
    for (uint64_t i = from, skip = (to - from) / SOME | 1; i < to; i += i + LAST < to ? skip : 1) {
        uint64_t at = position(i);
        ok &= is_result(y, (enum type)of(TYPE), (enum operation)of(OP), target_of(at), source_of(at));
    }
    return ok;
}

static void family(unsigned thread)
{
    uint64_t from = part(thread), to = part(thread + 1);
    if (to > from) {
        initialise_operand(x1, 0, from, to);
        initialise_operand(x2, 1, from, to);
        clear(from, to);
        if (of(LOADS) == INDIRECT || of(STORES) == INDIRECT)
            initialise_indices(position(from), position(to - 1) + 1);
    }
    const struct plan plan = plan_of(from, to);
    meet(thread);
    pass(&plan);

    measure_begin_together(thread, "family");
    for (uint64_t i = 0; i < of(PASSES); i++)
        pass(&plan);
    measure_end_together(thread);
    wrong[thread] = to > from && !correct(from, to);
}

static void check_options(void)
{
    uint64_t bytes = source_bytes((enum type)of(TYPE));
    if (of(N) % step() || block() % step() || of(N) % block())
        cannot_run("n and block must be multiples of the elements of four vectors, and n of block");
    if (pitch() < block())
        cannot_run("pitch must not be smaller than block");
    if (of(BLOCK) && (of(LOADS) == INDIRECT || of(STORES) == INDIRECT))
        cannot_run("block is not for indirect access");
    if (of(OFFSET) % bytes && of(LOADS) != CONTIGUOUS)
        cannot_run("offset must be a multiple of the size of an element, unless loads are contiguous");
    if (of(ORDER) == RANDOM && of(LOADS) != INDIRECT && of(STORES) != INDIRECT)
        cannot_run("order=random is for indirect access");
    if (!of(STRIDE) && (of(LOADS) == CONTIGUOUS || of(STORES) != CONTIGUOUS))
        cannot_run("stride=0 (one element for all) is for gathers with contiguous stores");
    if (of(ZERO_LINES))
        require_line_zeroing();
    choose_loop();
}

/* x1, y, x2 and, for indirect access, the indices, one after the other, each from the start of a line or the offset behind one. */
static void place(void)
{
    uint64_t elements = of(N) / block() * pitch(), bytes = source_bytes((enum type)of(TYPE));
    uint64_t stride = of(STRIDE) > 1 ? of(STRIDE) : 1;
    uint64_t loads = elements * bytes * (distance(LOADS) == 1 ? 1 : stride);
    uint64_t stores = elements * result_bytes((enum type)of(TYPE), (enum operation)of(OP)) * (distance(STORES) == 1 ? 1 : stride);
    uint64_t largest = loads > stores ? loads : stores;
    double *arrays[4];
    if (largest > MAX_BYTES - SLACK)
        cannot_run("the arrays do not fit: 256 MiB each at most");
    place_arrays(pool, sizeof pool, largest + (of(OFFSET) || of(STORE_OFFSET) ? LINE : 0), 4, arrays);
    x1 = (unsigned char *)arrays[0] + of(OFFSET);
    y = (unsigned char *)arrays[1] + of(STORE_OFFSET);
    x2 = (unsigned char *)arrays[2] + of(OFFSET);
    indices = (unsigned char *)arrays[3];
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    check_options();
    place();
    run_threads((unsigned)of(THREADS), family);

    bool ok = true;
    for (unsigned t = 0; t < of(THREADS); t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
