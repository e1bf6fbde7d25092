/* All threads only synchronise, repeatedly: at a barrier that spins, at one that sleeps in the kernel, at the
 * hardware barrier of a CMG, at those of several CMGs, where one thread of each synchronises with the others in memory in between, or in
 * memory only. The algorithm in memory is an option. */
#include "blades.h"

enum { KIND, THREADS, ROUNDS, WAITING, MEETING };
enum { SPIN, FUTEX_BARRIER, HARDWARE, TWO_LEVELS, MEMORY };
enum { POLL, WFE };
enum { COUNT, FLAGS, PAIRS };

static struct option options[] = {
    [KIND] = {"kind", SPIN, 0, 0, "spin|futex|hardware|two-levels|memory"},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
    [ROUNDS] = {"rounds", 100, 1, 1000000000, NULL},
    [WAITING] = {"waiting", WFE, 0, 0, "poll|wfe"},
    [MEETING] = {"meeting", COUNT, 0, 0, "count|flags|pairs"},
};

enum { CHECKED_ROUNDS = 4 };

/* Last round in which each thread was at the barrier. */
static struct {
    _Alignas(LINE) uint64_t round;
} seen[MAX_THREADS];
static _Alignas(LINE) bool wrong[MAX_THREADS];

static _Alignas(LINE) uint32_t arrived;
static _Alignas(LINE) uint32_t generation;

static void futex_barrier(void)
{
    uint32_t mine = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) == options[THREADS].value) {
        __atomic_store_n(&arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&generation, mine + 1, __ATOMIC_RELEASE);
        futex_wake_all(&generation);
        return;
    }
    while (__atomic_load_n(&generation, __ATOMIC_ACQUIRE) == mine)
        futex_wait(&generation, mine);
}

static bool uses_hardware(void)
{
    return options[KIND].value == HARDWARE || options[KIND].value == TWO_LEVELS;
}

static void hardware_barrier(void)
{
    if (options[WAITING].value == WFE)
        hardware_barrier_wfe();
    else
        hardware_barrier_poll();
}

/* Whether it is the first thread of its CMG. */
static bool leads(unsigned thread)
{
    for (unsigned t = 0; t < thread; t++)
        if (cmg_of(t) == cmg_of(thread))
            return false;
    return true;
}

/* Threads that synchronise in memory are numbered from 0. Each word is on a separate line. */
struct word {
    _Alignas(LINE) uint32_t value;
};
static struct word my_meeting[MAX_THREADS];
static struct word over, come, come_of[MAX_THREADS];

/* Each adds to one count; the last one releases the others. */
static void meet_at_count(uint32_t meeting, uint32_t count)
{
    if (__atomic_add_fetch(&come.value, 1, __ATOMIC_ACQ_REL) == count) {
        __atomic_store_n(&come.value, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&over.value, meeting, __ATOMIC_RELEASE);
        return;
    }
    while (__atomic_load_n(&over.value, __ATOMIC_ACQUIRE) != meeting)
        ;
}

/* Each has a flag; thread 0 waits for all of them and releases the others. */
static void meet_at_flags(unsigned me, uint32_t meeting, uint32_t count)
{
    if (me) {
        __atomic_store_n(&come_of[me].value, meeting, __ATOMIC_RELEASE);
        while (__atomic_load_n(&over.value, __ATOMIC_ACQUIRE) != meeting)
            ;
        return;
    }
    for (unsigned t = 1; t < count; t++)
        while (__atomic_load_n(&come_of[t].value, __ATOMIC_ACQUIRE) != meeting)
            ;
    __atomic_store_n(&over.value, meeting, __ATOMIC_RELEASE);
}

/* Each signals the 1st, 2nd, 4th, … thread after it, and waits for the one at the same distance before it. */
enum { STEPS = 6 };
static struct word told[STEPS][MAX_THREADS];

static void meet_in_pairs(unsigned me, uint32_t meeting, uint32_t count)
{
    for (unsigned step = 0, distance = 1; distance < count; step++, distance *= 2) {
        __atomic_store_n(&told[step][(me + distance) % count].value, meeting, __ATOMIC_RELEASE);
        /* The signalling thread may be in the next round already. */
        while ((int32_t)(__atomic_load_n(&told[step][me].value, __ATOMIC_ACQUIRE) - meeting) < 0)
            ;
    }
}

/* Thread `me` of `count` synchronises with the others in memory. */
static void meet_in_memory(unsigned me, uint32_t count)
{
    uint32_t meeting = ++my_meeting[me].value;
    switch (options[MEETING].value) {
    case COUNT:
        meet_at_count(meeting, count);
        break;
    case FLAGS:
        meet_at_flags(me, meeting, count);
        break;
    default:
        meet_in_pairs(me, meeting, count);
    }
}

/* Number of CMGs with threads, the first thread of each, and their numbers. */
static uint32_t leaders;
static bool leading[MAX_THREADS];
static unsigned leader_number[MAX_THREADS];

/* A separate function, so that the other barriers need not save registers for it. */
static __attribute__((noinline)) void two_levels(unsigned thread)
{
    hardware_barrier();
    if (leading[thread])
        meet_in_memory(leader_number[thread], leaders);
    hardware_barrier();
}

static __attribute__((noinline)) void memory_barrier(unsigned thread)
{
    meet_in_memory(thread, (uint32_t)options[THREADS].value);
}

static void one_round(unsigned thread)
{
    switch (options[KIND].value) {
    case SPIN:
        meet(thread);
        break;
    case FUTEX_BARRIER:
        futex_barrier();
        break;
    case TWO_LEVELS:
        two_levels(thread);
        break;
    case MEMORY:
        memory_barrier(thread);
        break;
    default:
        hardware_barrier();
    }
}

/* Whether all threads have reached the barrier in a round when it releases a thread, and none is further. */
static bool all_there(unsigned thread, uint64_t round)
{
    bool ok = true;
    __atomic_store_n(&seen[thread].round, round, __ATOMIC_RELAXED);
    /* The hardware barrier is not a memory barrier. */
    __asm__ volatile("dsb ish" : : : "memory");
    one_round(thread);
    __asm__ volatile("dsb ish" : : : "memory");
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= __atomic_load_n(&seen[t].round, __ATOMIC_RELAXED) == round;
    one_round(thread);
    return ok;
}

static void rounds(unsigned thread)
{
    bool ok = true, hardware = uses_hardware();
    if (hardware)
        assign_window(thread);
    meet(thread);
    for (uint64_t i = 1; i <= CHECKED_ROUNDS; i++)
        ok &= all_there(thread, i);

    measure_begin_together(thread, "barrier");
    for (uint64_t i = 0; i < options[ROUNDS].value; i++)
        one_round(thread);
    measure_end_together(thread);
    ok &= all_there(thread, CHECKED_ROUNDS + 1);
    meet(thread);
    if (hardware)
        unassign_window(thread);
    wrong[thread] = !ok;
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    bool hardware = uses_hardware();
    if (hardware) {
        allocate_blades((unsigned)options[THREADS].value);
        if (options[KIND].value == HARDWARE && threads_of[cmg_of(0)] != options[THREADS].value)
            cannot_run("kind=hardware is for threads of one CMG; kind=two-levels for more");
    }
    for (unsigned t = 0; t < options[THREADS].value; t++) {
        leader_number[t] = leaders;
        leaders += leading[t] = leads(t);
    }
    run_threads((unsigned)options[THREADS].value, rounds);
    if (hardware)
        free_blades();

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
