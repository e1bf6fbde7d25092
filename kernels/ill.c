/* Small loops with one known illness each (ill=1), and the same work without it (ill=0). Verdicts are tested on them: each loop is as
 * short as its illness allows. The measured part is a region of the illness's name; the loops are functions of that name. */
#include "threads.h"

enum { ILLNESS, ILL, THREADS, PASSES };
enum {
    STRIDE, GATHER, FALSE_SHARING, TLB, SMALL_PAGES, ALIASING, INTERLOCK, IMBALANCE, FIRST_TOUCH, REMOTE, DENORMALS, DIVISION, STREAMS,
    LOCK, SCALAR, CHAIN, BRANCHES
};

static struct option options[] = {
    [ILLNESS] = {"illness", STRIDE, 0, 0,
                 "stride|gather|false-sharing|tlb|small-pages|aliasing|interlock|imbalance|first-touch|remote|denormals|division|streams|"
                 "lock|scalar|chain|branches"},
    [ILL] = {"ill", 1, 0, 1, NULL},
    [THREADS] = {"threads", 0, 0, MAX_THREADS, NULL}, /* 0: as many as the illness needs */
    [PASSES] = {"passes", 1, 1, 1000000, NULL},
};

static bool ill;

/* ---- memory ---- */

enum { MMAP = 222, PROT_READ_WRITE = 3, MAP_SHARED_ANONYMOUS = 0x21, MAP_PRIVATE_ANONYMOUS = 0x22 };

/* Zeroed memory. Shared memory has normal pages (64 KiB), private memory large ones. */
static unsigned char *map(size_t bytes, int flags)
{
    long block = linux_call(0, (long)bytes, PROT_READ_WRITE, flags, -1, 0, MMAP);
    if (block < 0 && block > -4096)
        cannot_run("the system has no memory");
    return (unsigned char *)block;
}

enum { POOL = 13 << 20 };
static _Alignas(65536) unsigned char pool[POOL];

/* Pseudo-random numbers (xorshift). */
static uint64_t random_state = 88172645463325252;
static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

/* ---- loops of one thread; each returns whether its result is right ---- */

/* Sums a matrix column by column; without the illness row by row. */
enum { ROWS = 512, COLUMNS = 1024, ROW = COLUMNS + 32, USED_COLUMNS = 64 };

static double __attribute__((noinline)) stride_loop(const double *a, uint64_t outer, uint64_t outer_step, uint64_t inner,
                                                    uint64_t inner_step)
{
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
    for (uint64_t i = 0; i < outer; i++) {
        const double *x = a + i * outer_step;
        for (uint64_t j = 0; j < inner; j += 8) {
#define SUM(k) s##k += *x, x += inner_step
            SUM(0), SUM(1), SUM(2), SUM(3), SUM(4), SUM(5), SUM(6), SUM(7);
#undef SUM
        }
    }
    return s0 + s1 + (s2 + s3) + (s4 + s5 + (s6 + s7));
}

static bool stride(void)
{
    double *a = (double *)pool;
    for (uint64_t i = 0; i < (uint64_t)ROWS * ROW; i++)
        a[i] = 1;
    double sum = 0;
    measure_begin("stride");
    for (uint64_t pass = 0; pass < options[PASSES].value; pass++)
        sum += ill ? stride_loop(a, USED_COLUMNS, 1, ROWS, ROW) : stride_loop(a, ROWS, ROW, USED_COLUMNS, 1);
    measure_end();
    return sum == (double)(options[PASSES].value * ROWS * USED_COLUMNS);
}

/* Sums vectors from L1 in the order of a list of indices; without the illness in their own order. */
enum { ELEMENTS = 2048, ROUNDS = 40 };

static double __attribute__((noinline)) gather_loop(const double *a, const uint64_t *index, uint64_t rounds, bool indexed)
{
    svbool_t all = svptrue_b64();
    svfloat64_t s0 = svdup_f64(0), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    uint64_t vector = svcntd();
#define SUM(s, k) \
    s = svadd_x(all, s, indexed ? svld1_gather_index(all, a, svld1(all, index + i + (k) * vector)) : svld1(all, a + i + (k) * vector))
    for (uint64_t round = 0; round < rounds; round++)
        for (uint64_t i = 0; i < ELEMENTS; i += 8 * vector) {
            SUM(s0, 0), SUM(s1, 1), SUM(s2, 2), SUM(s3, 3), SUM(s4, 4), SUM(s5, 5), SUM(s6, 6), SUM(s7, 7);
        }
#undef SUM
    s0 = svadd_x(all, svadd_x(all, svadd_x(all, s0, s1), svadd_x(all, s2, s3)), svadd_x(all, svadd_x(all, s4, s5), svadd_x(all, s6, s7)));
    return svaddv(all, s0);
}

static bool gather(void)
{
    double *a = (double *)pool;
    uint64_t *index = (uint64_t *)(a + ELEMENTS);
    for (uint64_t i = 0; i < ELEMENTS; i++) {
        a[i] = 1;
        index[i] = i;
    }
    for (uint64_t i = ELEMENTS - 1; i > 0; i--) {
        uint64_t j = random_number() % (i + 1), other = index[j];
        index[j] = index[i];
        index[i] = other;
    }
    uint64_t rounds = ROUNDS * options[PASSES].value;
    measure_begin("gather");
    double sum = gather_loop(a, index, rounds, ill);
    measure_end();
    return sum == (double)(rounds * ELEMENTS);
}

/* Visits a word in each of many pages, at lines that the L2 cache holds; without the illness the words are in adjacent lines or, for
 * small pages, the pages are large. */
enum { PAGES = 1536, PAGE_BYTES = 65536, VISITS = 8 };

static uint64_t __attribute__((noinline)) tlb_loop(const unsigned char *block, uint64_t page_bytes, uint64_t visits)
{
    uint64_t sum = 0;
    for (uint64_t visit = 0; visit < visits; visit++)
        for (uint64_t page = 0; page < PAGES; page++)
            sum += *(const uint64_t *)(block + page * page_bytes + page % (PAGE_BYTES / LINE) * LINE);
    return sum;
}

static bool pages(const char *name, uint64_t page_bytes, int flags)
{
    unsigned char *block = map((size_t)PAGES * PAGE_BYTES, flags);
    for (uint64_t p = 0; p < PAGES; p++)
        *(uint64_t *)(block + p * page_bytes + p % (PAGE_BYTES / LINE) * LINE) = 1;
    tlb_loop(block, page_bytes, 1);
    measure_begin(name);
    uint64_t sum = tlb_loop(block, page_bytes, VISITS * options[PASSES].value);
    measure_end();
    return page_bytes != PAGE_BYTES || sum == VISITS * options[PASSES].value * PAGES;
}

/* Follows a ring of elements in L1, and notes each step elsewhere, four steps in a line of L2. With the illness, the low 12 bits of that
 * address are those of the next element: the load of it seems to be of what the store writes, which waits for its line. */
enum { RING = 16, ELEMENT_BYTES = 64, STEPS = 4096, NOTES = 4, NOTE_BYTES = 4096 };

static void *__attribute__((noinline)) aliasing_loop(void **element, uint64_t to_note, uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++) {
        *(uint64_t *)((unsigned char *)element + to_note + i / NOTES * NOTE_BYTES) = i;
        element = *element;
    }
    return element;
}

static bool aliasing(void)
{
    uint64_t to_note = 65536 + (ill ? ELEMENT_BYTES : 2048);
    for (uint64_t i = 0; i < RING; i++)
        *(void **)(pool + i * ELEMENT_BYTES) = pool + (i + 1) % RING * ELEMENT_BYTES;
    void *end = aliasing_loop((void **)pool, to_note, STEPS);
    measure_begin("aliasing");
    for (uint64_t round = 0; round < options[PASSES].value; round++)
        end = aliasing_loop(end, to_note, STEPS);
    measure_end();
    return end == pool && *(uint64_t *)(pool + (STEPS - 1) % RING * ELEMENT_BYTES + to_note + (STEPS - 1) / NOTES * NOTE_BYTES) == STEPS - 1;
}

/* Adds to rows of six elements. With the illness, rows are adjacent, and the load of a row overlaps the store of the row before. */
void rowadd_kernel(double *y, const double *x1, uint64_t rows, uint64_t x, uint64_t pitch_bytes);
void rowadd_padded_kernel(double *y, const double *x1, uint64_t rows, uint64_t x, uint64_t pitch_bytes);

static bool interlock(void)
{
    enum { X = 6, SUMS = 256, REPEATS = 20 };
    uint64_t x = X < svcntd() ? X : svcntd() - 1, pitch = ill ? x : svcntd(), rounds = REPEATS * options[PASSES].value;
    double *y = (double *)pool, *x1 = y + 8192;
    for (uint64_t i = 0; i < SUMS * pitch; i++)
        x1[i] = 1;
    measure_begin("interlock");
    for (uint64_t i = 0; i < rounds; i++)
        (ill ? rowadd_kernel : rowadd_padded_kernel)(y, x1, SUMS, x, pitch * sizeof(double));
    measure_end();
    return y[0] == (double)rounds && y[(SUMS - 1) * pitch] == (double)rounds;
}

/* Multiplies by a factor so often that results would become subnormal; without the illness they are normal numbers. */
static double __attribute__((noinline)) denormals_loop(double *a, uint64_t n, double factor, uint64_t rounds)
{
    svbool_t all = svptrue_b64();
    for (uint64_t round = 0; round < rounds; round++)
        for (uint64_t i = 0; i < n; i += svcntd())
            svst1(all, a + i, svmul_x(all, svld1(all, a + i), factor));
    return a[n - 1];
}

static bool denormals(void)
{
    double *a = (double *)pool;
    for (uint64_t i = 0; i < ELEMENTS; i++)
        a[i] = ill ? 1e-310 : 1;
    measure_begin("denormals");
    double last = denormals_loop(a, ELEMENTS, 1, 4 * options[PASSES].value);
    measure_end();
    return last == a[0];
}

/* Divides vectors from L1 by one number; without the illness, multiplies by its reciprocal. */
static void __attribute__((noinline)) division_loop(double *y, const double *x, uint64_t n, double divisor, uint64_t rounds, bool divide)
{
    svbool_t all = svptrue_b64();
    double reciprocal = 1 / divisor;
    for (uint64_t round = 0; round < rounds; round++)
        for (uint64_t i = 0; i < n; i += svcntd())
            svst1(all, y + i, divide ? svdiv_x(all, svld1(all, x + i), divisor) : svmul_x(all, svld1(all, x + i), reciprocal));
}

static bool division(void)
{
    double *x = (double *)pool, *y = x + ELEMENTS;
    for (uint64_t i = 0; i < ELEMENTS; i++)
        x[i] = (double)i;
    measure_begin("division");
    division_loop(y, x, ELEMENTS, 4, 10 * options[PASSES].value, ill);
    measure_end();
    return y[ELEMENTS - 1] == (ELEMENTS - 1) / 4.0;
}

/* Sums 24 arrays in one loop: more streams than the prefetch queue has entries. Without the illness, six at a time. */
enum { ARRAYS = 24, AT_ONCE = 6, LENGTH = 61440, PITCH = LENGTH + 160 };

/* Six neighbouring arrays, `next` elements after each other four such groups: other arrays, or the next vectors of the same ones. */
static double __attribute__((noinline)) streams_loop(const double *a, uint64_t next, uint64_t step)
{
    svbool_t all = svptrue_b64();
    svfloat64_t s0 = svdup_f64(0), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0, t4 = s0, t5 = s0;
    svfloat64_t u0 = s0, u1 = s0, u2 = s0, u3 = s0, u4 = s0, u5 = s0, v0 = s0, v1 = s0, v2 = s0, v3 = s0, v4 = s0, v5 = s0;
    for (const double *x = a; x < a + LENGTH; x += step) {
#define SUM(s, k, g) s = svadd_x(all, s, svld1(all, x + (k) * PITCH + (g) * next))
#define GROUP(s, g) SUM(s##0, 0, g), SUM(s##1, 1, g), SUM(s##2, 2, g), SUM(s##3, 3, g), SUM(s##4, 4, g), SUM(s##5, 5, g)
        GROUP(s, 0), GROUP(t, 1), GROUP(u, 2), GROUP(v, 3);
#undef SUM
#undef GROUP
    }
#define ADD(a, b) svadd_x(all, a, b)
#define SIX(s) ADD(ADD(ADD(s##0, s##1), ADD(s##2, s##3)), ADD(s##4, s##5))
    return svaddv(all, ADD(ADD(SIX(s), SIX(t)), ADD(SIX(u), SIX(v))));
#undef SIX
#undef ADD
}

static bool streams(void)
{
    double *a = (double *)pool, sum = 0;
    for (uint64_t i = 0; i < (uint64_t)ARRAYS * PITCH; i += svcntd())
        svst1(svptrue_b64(), a + i, svdup_f64(1));
    measure_begin("streams");
    for (uint64_t pass = 0; pass < options[PASSES].value; pass++) {
        if (ill)
            sum += streams_loop(a, AT_ONCE * PITCH, svcntd());
        for (uint64_t k = 0; !ill && k < ARRAYS; k += AT_ONCE)
            sum += streams_loop(a + k * PITCH, svcntd(), 4 * svcntd());
    }
    measure_end();
    return sum == (double)((uint64_t)ARRAYS * LENGTH * options[PASSES].value);
}

/* Scalar products from L1, one element at a time; without the illness in vectors. Several sums hide the latency of additions. */
static double __attribute__((noinline)) scalar_loop(const double *x, const double *y, uint64_t n, uint64_t rounds)
{
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
    for (uint64_t round = 0; round < rounds; round++)
        for (uint64_t i = 0; i < n; i += 8) {
#define SUM(k) s##k += x[i + (k)] * y[i + (k)]
            SUM(0), SUM(1), SUM(2), SUM(3), SUM(4), SUM(5), SUM(6), SUM(7);
#undef SUM
        }
    return (s0 + s1) + (s2 + s3) + ((s4 + s5) + (s6 + s7));
}

static double __attribute__((noinline)) vector_loop(const double *x, const double *y, uint64_t n, uint64_t rounds)
{
    svbool_t all = svptrue_b64();
    svfloat64_t s0 = svdup_f64(0), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    svfloat64_t t0 = s0, t1 = s0, t2 = s0, t3 = s0, t4 = s0, t5 = s0, t6 = s0, t7 = s0;
    uint64_t vector = svcntd();
#define SUM(s, k) s = svmla_x(all, s, svld1(all, x + i + (k) * vector), svld1(all, y + i + (k) * vector))
    for (uint64_t round = 0; round < rounds; round++)
        for (uint64_t i = 0; i < n; i += 16 * vector) {
            SUM(s0, 0), SUM(s1, 1), SUM(s2, 2), SUM(s3, 3), SUM(s4, 4), SUM(s5, 5), SUM(s6, 6), SUM(s7, 7);
            SUM(t0, 8), SUM(t1, 9), SUM(t2, 10), SUM(t3, 11), SUM(t4, 12), SUM(t5, 13), SUM(t6, 14), SUM(t7, 15);
        }
#undef SUM
#define ADD(a, b) svadd_x(all, a, b)
    s0 = ADD(ADD(ADD(s0, s1), ADD(s2, s3)), ADD(ADD(s4, s5), ADD(s6, s7)));
    t0 = ADD(ADD(ADD(t0, t1), ADD(t2, t3)), ADD(ADD(t4, t5), ADD(t6, t7)));
    return svaddv(all, ADD(s0, t0));
#undef ADD
}

static bool scalar(void)
{
    double *x = (double *)pool, *y = x + ELEMENTS;
    for (uint64_t i = 0; i < 2 * ELEMENTS; i++)
        x[i] = 1;
    uint64_t rounds = 20 * options[PASSES].value;
    measure_begin("scalar");
    double sum = ill ? scalar_loop(x, y, ELEMENTS, rounds) : vector_loop(x, y, ELEMENTS, rounds);
    measure_end();
    return sum == (double)(rounds * ELEMENTS);
}

/* A sum in which each addition waits for the one before; without the illness as above. */
static double __attribute__((noinline)) chain_loop(const double *x, const double *y, uint64_t n, uint64_t rounds)
{
    svbool_t all = svptrue_b64();
    svfloat64_t s = svdup_f64(0);
    for (uint64_t round = 0; round < rounds; round++)
        for (uint64_t i = 0; i < n; i += svcntd())
            s = svmla_x(all, s, svld1(all, x + i), svld1(all, y + i));
    return svaddv(all, s);
}

static bool chain(void)
{
    double *x = (double *)pool, *y = x + ELEMENTS;
    for (uint64_t i = 0; i < 2 * ELEMENTS; i++)
        x[i] = 1;
    uint64_t rounds = 20 * options[PASSES].value;
    measure_begin("chain");
    double sum = (ill ? chain_loop : vector_loop)(x, y, ELEMENTS, rounds);
    measure_end();
    return sum == (double)(rounds * ELEMENTS);
}

/* Adds numbers, or subtracts odd ones, with a branch on random numbers; without the illness numbers are sorted: first even, then odd. */
static int64_t __attribute__((noinline)) branches_loop(const uint64_t *x, uint64_t n)
{
    int64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        /* The compiler must not turn the branch into a selection. */
        if (x[i] & 1) {
            sum -= 3;
            __asm__ volatile("" : "+r"(sum));
        } else {
            sum += 7;
            __asm__ volatile("" : "+r"(sum));
        }
    }
    return sum;
}

static bool branches(void)
{
    uint64_t *x = (uint64_t *)pool, odd = 0;
    for (uint64_t i = 0; i < 4 * ELEMENTS; i++)
        odd += x[i] = random_number() >> 20 & 1;
    for (uint64_t i = 0; !ill && i < 4 * ELEMENTS; i++)
        x[i] = i >= 4 * ELEMENTS - odd;
    uint64_t rounds = 2 * options[PASSES].value;
    int64_t sum = 0;
    measure_begin("branches");
    for (uint64_t round = 0; round < rounds; round++)
        sum += branches_loop(x, 4 * ELEMENTS);
    measure_end();
    return sum == (int64_t)rounds * (7 * (int64_t)(4 * ELEMENTS - odd) - 3 * (int64_t)odd);
}

/* Follows pointers through lines in the first CMG's memory, and no longer in its cache, on the second CMG; without the illness on the first. */
enum { REMOTE_LINES = 16384, OTHER_LINES = 49152, HOPS = 4000 };

static void run_on(unsigned cpu)
{
    struct cpu_mask mask = {{0}};
    mask.words[cpu / 64] = (uint64_t)1 << cpu % 64;
    if (linux_call(0, sizeof mask, (long)&mask, 0, 0, 0, SET_AFFINITY) < 0)
        cannot_run("this illness needs CPUs of two CMGs, as in cpus=12,24");
}

static void *__attribute__((noinline)) remote_loop(void **at, uint64_t hops)
{
    for (uint64_t i = 0; i < hops; i++)
        at = *at;
    return at;
}

static bool remote(void)
{
    unsigned char *block = map((size_t)(REMOTE_LINES + OTHER_LINES) * LINE, MAP_PRIVATE_ANONYMOUS);
    /* One cycle through all lines: the step is prime to their number. */
    const uint64_t step = 15013;
    for (uint64_t i = 0; i < REMOTE_LINES; i++)
        *(void **)(block + i * LINE) = block + (i + step) % REMOTE_LINES * LINE;
    for (uint64_t i = 0; i < OTHER_LINES; i++)
        block[(REMOTE_LINES + i) * LINE] = 1;
    run_on(cpu_of(ill ? 1 : 0));
    uint64_t hops = HOPS * options[PASSES].value;
    measure_begin("remote");
    void *end = remote_loop((void **)block, hops);
    measure_end();
    return end == block + hops % REMOTE_LINES * step % REMOTE_LINES * LINE;
}

/* ---- loops of several threads ---- */

static _Alignas(LINE) uint64_t words[MAX_THREADS * LINE / sizeof(uint64_t)];
static double *parts[MAX_THREADS];
static _Alignas(LINE) double sums[MAX_THREADS * LINE / sizeof(double)];
static struct {
    _Alignas(LINE) uint64_t next_ticket;
    _Alignas(LINE) uint64_t now_served;
} lock;

static unsigned thread_count(void)
{
    uint64_t usual = options[ILLNESS].value == FIRST_TOUCH ? 8 : 4;
    return (unsigned)(options[THREADS].value ? options[THREADS].value : usual);
}

/* Each thread increments a word: words of one line, or each in a line of its own. */
enum { INCREMENTS = 1000 };

static void __attribute__((noinline)) false_sharing_loop(volatile uint64_t *word, uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++)
        ++*word;
}

static void false_sharing(unsigned thread)
{
    volatile uint64_t *word = words + thread * (ill ? 1 : LINE / sizeof(uint64_t));
    measure_begin_together(thread, "false-sharing");
    false_sharing_loop(word, INCREMENTS * options[PASSES].value);
    measure_end_together(thread);
    sums[thread * LINE / sizeof(double)] = (double)*word / (double)options[PASSES].value / INCREMENTS;
}

/* Each thread sums as often as its number says; without the illness all threads equally often, and as often in all. */
static double __attribute__((noinline)) imbalance_loop(const double *x, uint64_t n, uint64_t rounds)
{
    return vector_loop(x, x, n, rounds) / (double)rounds;
}

static void imbalance(unsigned thread)
{
    double *x = (double *)pool + thread * ELEMENTS;
    for (uint64_t i = 0; i < ELEMENTS; i++)
        x[i] = 1;
    uint64_t rounds = ill ? 20 + 400 * thread : 20 + 200 * (thread_count() - 1);
    measure_begin_together(thread, "imbalance");
    double sum = imbalance_loop(x, ELEMENTS, rounds * options[PASSES].value);
    measure_end_together(thread);
    sums[thread * LINE / sizeof(double)] = sum / ELEMENTS;
}

/* Each thread touches all pages of its part of an array first, and then sums it from memory. With the illness, the first thread has mapped
 * the array: if pages are allocated at once, all are on its CMG. Without it, each thread maps its part. A part is a large page. */
enum { PART_BYTES = 2 << 20, PART_PAGES = PART_BYTES / PAGE_BYTES };

static double __attribute__((noinline)) first_touch_loop(const double *x, uint64_t n)
{
    return vector_loop(x, x + n / 2, n / 2, 1);
}

static void touch_pages(double *x)
{
    for (uint64_t page = 0; page < PART_PAGES; page++)
        x[page * (PAGE_BYTES / sizeof(double))] = 1;
}

static void first_touch(unsigned thread)
{
    if (ill && thread == 0) {
        unsigned char *all = map((size_t)thread_count() * PART_BYTES, MAP_PRIVATE_ANONYMOUS);
        for (unsigned t = 0; t < thread_count(); t++)
            parts[t] = (double *)(all + t * PART_BYTES);
    }
    meet(thread);
    if (!ill)
        parts[thread] = (double *)map(PART_BYTES, MAP_PRIVATE_ANONYMOUS);
    touch_pages(parts[thread]);
    measure_begin_together(thread, "first-touch");
    double sum = 0;
    for (uint64_t pass = 0; pass < options[PASSES].value; pass++)
        sum += first_touch_loop(parts[thread], PART_BYTES / sizeof(double));
    measure_end_together(thread);
    sums[thread * LINE / sizeof(double)] = sum / (double)options[PASSES].value / (PART_PAGES / 2);
}

/* Each thread adds to a number that all share, under a lock each time; without the illness once at the end. */
static void __attribute__((noinline)) lock_acquire(void)
{
    uint64_t ticket = __atomic_fetch_add(&lock.next_ticket, 1, __ATOMIC_ACQUIRE);
    while (__atomic_load_n(&lock.now_served, __ATOMIC_ACQUIRE) != ticket)
        ;
}

static void lock_release(void)
{
    __atomic_store_n(&lock.now_served, lock.now_served + 1, __ATOMIC_RELEASE);
}

static uint64_t __attribute__((noinline)) lock_loop(volatile uint64_t *shared, uint64_t rounds)
{
    uint64_t own = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        if (ill) {
            lock_acquire();
            ++*shared;
            lock_release();
        } else {
            __asm__ volatile("" : "+r"(own));
            own++;
        }
    }
    return own;
}

static void locking(unsigned thread)
{
    uint64_t rounds = 500 * options[PASSES].value;
    measure_begin_together(thread, "lock");
    uint64_t own = lock_loop(words, rounds);
    lock_acquire();
    *words += own;
    lock_release();
    measure_end_together(thread);
    sums[thread * LINE / sizeof(double)] = (double)*words / (double)rounds / thread_count();
}

static bool together(void (*body)(unsigned thread))
{
    run_threads(thread_count(), body);
    bool ok = true;
    for (unsigned t = 0; t < thread_count(); t++)
        ok &= sums[t * LINE / sizeof(double)] == 1;
    return ok;
}

static bool run(void)
{
    switch (options[ILLNESS].value) {
    case STRIDE: return stride();
    case GATHER: return gather();
    case FALSE_SHARING: return together(false_sharing);
    case TLB: return pages("tlb", ill ? PAGE_BYTES : LINE, MAP_SHARED_ANONYMOUS);
    case SMALL_PAGES: return pages("small-pages", PAGE_BYTES, ill ? MAP_SHARED_ANONYMOUS : MAP_PRIVATE_ANONYMOUS);
    case ALIASING: return aliasing();
    case INTERLOCK: return interlock();
    case IMBALANCE: return together(imbalance);
    case FIRST_TOUCH: return together(first_touch);
    case REMOTE: return remote();
    case DENORMALS: return denormals();
    case DIVISION: return division();
    case STREAMS: return streams();
    case LOCK: return together(locking);
    case SCALAR: return scalar();
    case CHAIN: return chain();
    default: return branches();
    }
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    ill = options[ILL].value;
    return finish(run(), options, COUNT_OF(options));
}
