/* All threads meet again and again, and do nothing else: at a barrier that spins, at one that sleeps in the kernel, or at
 * the hardware barrier of a CMG. */
#include "threads.h"

enum { KIND, THREADS, ROUNDS, WAITING };
enum { SPIN, FUTEX_BARRIER, HARDWARE };
enum { POLL, WFE };

static struct option options[] = {
    [KIND] = {"kind", SPIN, 0, 0, "spin|futex|hardware"},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
    [ROUNDS] = {"rounds", 100, 1, 1000000000, NULL},
    [WAITING] = {"waiting", WFE, 0, 0, "poll|wfe"},
};

enum { CHECKED_ROUNDS = 4 };

/* When each thread was at the barrier last. */
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

/* The driver of the hardware barrier: device file, structures and numbers of its ioctls. */
struct blade {
    uint8_t cmg, number, unused[2];
    uint32_t mask_bytes;
    const uint64_t *mask;
};
struct window {
    uint8_t blade;
    int8_t number;
};
enum {
    HERE = -100,
    ALLOCATE_BLADE = (int)0xc0104600,
    ASSIGN_WINDOW = (int)0xc0024601,
    UNASSIGN_WINDOW = 0x40024602,
    FREE_BLADE = 0x40104603,
};

static long driver;
static struct blade blade;

static void allocate_blade(void)
{
    driver = linux_call(HERE, (long)"/dev/fujitsu_hwb", 0, 0, 0, 0, OPENAT);
    if (driver < 0)
        cannot_run("no /dev/fujitsu_hwb: the system has no driver for the hardware barrier");
    static struct cpu_mask mask;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        mask.words[cpu_of(t) / 64] |= (uint64_t)1 << cpu_of(t) % 64;
    blade.mask_bytes = sizeof mask;
    blade.mask = mask.words;
    if (linux_call(driver, ALLOCATE_BLADE, (long)&blade, 0, 0, 0, IOCTL) < 0)
        cannot_run("no barrier blade: threads need CPUs of their own on one CMG, and a blade that is free");
}

static void free_blade(void)
{
    if (linux_call(driver, FREE_BLADE, (long)&blade, 0, 0, 0, IOCTL) < 0)
        cannot_run("the barrier blade cannot be freed");
    linux_call(driver, 0, 0, 0, 0, 0, CLOSE);
}

/* Every thread uses window 0. */
static void assign_window(void)
{
    struct window window = {blade.number, 0};
    if (linux_call(driver, ASSIGN_WINDOW, (long)&window, 0, 0, 0, IOCTL) < 0)
        cannot_run("no barrier window for a thread");
}

static void unassign_window(void)
{
    struct window window = {blade.number, 0};
    if (linux_call(driver, UNASSIGN_WINDOW, (long)&window, 0, 0, 0, IOCTL) < 0)
        cannot_run("a barrier window cannot be given back");
}

/* barrier.S */
void hardware_barrier_poll(void);
void hardware_barrier_wfe(void);

static void one_round(unsigned thread)
{
    switch (options[KIND].value) {
    case SPIN:
        meet(thread);
        break;
    case FUTEX_BARRIER:
        futex_barrier();
        break;
    default:
        if (options[WAITING].value == WFE)
            hardware_barrier_wfe();
        else
            hardware_barrier_poll();
    }
}

/* Whether everybody has been at the barrier in a round when it lets a thread through, and nobody further. */
static bool all_there(unsigned thread, uint64_t round)
{
    bool ok = true;
    __atomic_store_n(&seen[thread].round, round, __ATOMIC_RELAXED);
    /* The hardware barrier is no barrier of memory. */
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
    bool ok = true, hardware = options[KIND].value == HARDWARE;
    if (hardware)
        assign_window();
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
        unassign_window();
    wrong[thread] = !ok;
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    bool hardware = options[KIND].value == HARDWARE;
    if (hardware)
        allocate_blade();
    run_threads((unsigned)options[THREADS].value, rounds);
    if (hardware)
        free_blade();

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
