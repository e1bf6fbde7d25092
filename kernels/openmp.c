/* The cost of OpenMP's constructs in libgomp, by the method of the EPCC micro-benchmarks: each construct many times, around next to no
 * work. With barrier=hardware, constructs that end with a barrier leave out the library's and meet at that of their CMG. */
#include "blades.h"

#include <omp.h>

enum { PARALLEL, FOR, PARALLEL_FOR, BARRIER, SINGLE, CRITICAL, LOCK, ORDERED, ATOMIC, REDUCTION };
enum { LIBRARY, HARDWARE };
enum { CONSTRUCT, THREADS, ROUNDS, MEETING };

static struct option options[] = {
    [CONSTRUCT] = {"construct", BARRIER, 0, 0, "parallel|for|parallel-for|barrier|single|critical|lock|ordered|atomic|reduction"},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
    [ROUNDS] = {"rounds", 96, 1, 1000000000, NULL},
    [MEETING] = {"barrier", LIBRARY, 0, 0, "library|hardware"},
};

/* What the constructs do: each counts its executions. */
static struct {
    _Alignas(LINE) uint64_t value;
} own[MAX_THREADS];
static _Alignas(LINE) uint64_t shared;

static void count_own(void)
{
    own[omp_get_thread_num()].value++;
}

static void meet_at_hardware(void)
{
    hardware_barrier_wfe();
}

static void parallel(uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) {
#pragma omp parallel
        count_own();
    }
}

static void parallel_for(uint64_t rounds)
{
    int threads = (int)options[THREADS].value;
    for (uint64_t i = 0; i < rounds; i++) {
#pragma omp parallel for schedule(static)
        for (int t = 0; t < threads; t++)
            count_own();
    }
}

static void reduction(uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t sum = 0;
#pragma omp parallel reduction(+ : sum)
        sum++;
        shared += sum;
    }
}

/* Within one parallel region, all threads. */
static void loop(uint64_t rounds, bool hardware)
{
    int threads = (int)options[THREADS].value;
    for (uint64_t i = 0; i < rounds; i++) {
#pragma omp for schedule(static) nowait
        for (int t = 0; t < threads; t++)
            count_own();
        if (hardware) {
            meet_at_hardware();
        } else {
#pragma omp barrier
        }
    }
}

static void barrier(uint64_t rounds, bool hardware)
{
    for (uint64_t i = 0; i < rounds; i++) {
        if (hardware) {
            meet_at_hardware();
        } else {
#pragma omp barrier
        }
    }
    own[omp_get_thread_num()].value += rounds;
}

static void single(uint64_t rounds, bool hardware)
{
    for (uint64_t i = 0; i < rounds; i++) {
#pragma omp single nowait
        shared++;
        if (hardware) {
            meet_at_hardware();
        } else {
#pragma omp barrier
        }
    }
}

static void critical(uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) {
#pragma omp critical
        shared++;
    }
}

static omp_lock_t lock;

static void locked(uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) {
        omp_set_lock(&lock);
        shared++;
        omp_unset_lock(&lock);
    }
}

static void atomic(uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) {
#pragma omp atomic
        shared++;
    }
}

static void ordered(uint64_t rounds)
{
#pragma omp for ordered schedule(static, 1)
    for (uint64_t i = 0; i < rounds; i++) {
#pragma omp ordered
        shared++;
    }
}

/* Rounds of constructs that threads execute one after the other are divided among them. */
static uint64_t rounds_of_thread(uint64_t rounds)
{
    return rounds / options[THREADS].value;
}

static void construct_in_region(uint64_t rounds)
{
    bool hardware = options[MEETING].value == HARDWARE;
    switch (options[CONSTRUCT].value) {
    case FOR: loop(rounds, hardware); break;
    case BARRIER: barrier(rounds, hardware); break;
    case SINGLE: single(rounds, hardware); break;
    case CRITICAL: critical(rounds_of_thread(rounds)); break;
    case LOCK: locked(rounds_of_thread(rounds)); break;
    case ORDERED: ordered(rounds); break;
    default: atomic(rounds_of_thread(rounds));
    }
}

static bool opens_region(void)
{
    uint64_t construct = options[CONSTRUCT].value;
    return construct == PARALLEL || construct == PARALLEL_FOR || construct == REDUCTION;
}

/* The measured part begins and ends outside of the constructs, or while all threads of the region wait. */
static void measure(uint64_t rounds, const char *region)
{
    if (opens_region()) {
        measure_begin(region);
        switch (options[CONSTRUCT].value) {
        case PARALLEL: parallel(rounds); break;
        case PARALLEL_FOR: parallel_for(rounds); break;
        default: reduction(rounds);
        }
        measure_end();
        return;
    }
#pragma omp parallel
    {
#pragma omp single
        measure_begin(region);
        construct_in_region(rounds);
#pragma omp barrier
#pragma omp master
        measure_end();
    }
}

/* Each thread on a CPU of its own, in ascending order, and with a window of the hardware barrier. */
static void begin_thread(void)
{
    unsigned thread = (unsigned)omp_get_thread_num(), cpu = cpu_of(thread);
    struct cpu_mask mask = {{0}};
    mask.words[cpu / 64] = (uint64_t)1 << cpu % 64;
    linux_call(0, sizeof mask, (long)&mask, 0, 0, 0, SET_AFFINITY);
    if (options[MEETING].value == HARDWARE)
        assign_window(thread);
}

static void prepare(int threads)
{
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
    omp_init_lock(&lock);
    if (options[MEETING].value == HARDWARE) {
        allocate_blades((unsigned)threads);
        if (threads_of[cmg_of(0)] != (unsigned)threads)
            cannot_run("barrier=hardware is for threads of one CMG");
    }
#pragma omp parallel
    begin_thread();
}

static void give_back(void)
{
    if (options[MEETING].value != HARDWARE)
        return;
#pragma omp parallel
    unassign_window((unsigned)omp_get_thread_num());
    free_blades();
}

/* Executions that were counted, by all threads or by each. */
static bool has_counted(uint64_t rounds)
{
    uint64_t threads = options[THREADS].value, sum = 0;
    for (unsigned t = 0; t < threads; t++)
        sum += own[t].value;
    switch (options[CONSTRUCT].value) {
    case PARALLEL: case FOR: case PARALLEL_FOR: case BARRIER: return sum == rounds * threads;
    case REDUCTION: return shared == rounds * threads;
    case SINGLE: case ORDERED: return shared == rounds;
    default: return shared == rounds_of_thread(rounds) * threads;
    }
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t rounds = options[ROUNDS].value;
    if (options[MEETING].value == HARDWARE && options[CONSTRUCT].value != BARRIER && options[CONSTRUCT].value != FOR &&
        options[CONSTRUCT].value != SINGLE)
        cannot_run("barrier=hardware is for construct=barrier, for and single");
    if (rounds % options[THREADS].value)
        cannot_run("rounds must be a multiple of threads");
    prepare((int)options[THREADS].value);
    measure(rounds, "warm-up");
    shared = 0;
    for (unsigned t = 0; t < MAX_THREADS; t++)
        own[t].value = 0;
    measure(rounds, "openmp");
    give_back();
    return finish(has_counted(rounds), options, COUNT_OF(options));
}
