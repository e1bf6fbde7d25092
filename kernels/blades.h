/* The hardware barrier of CMGs for threaded programs: one blade per CMG with threads, window 0 for each thread. */
#ifndef FXSCOPE_KERNELS_BLADES_H
#define FXSCOPE_KERNELS_BLADES_H

#include "threads.h"

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

/* CPUs of a CMG, and the first one's number. */
enum { CMGS = 4, CMG_CPUS = 12, FIRST_CPU = 12 };

static long driver;

/* The blade of each CMG with threads, its CPUs, and the number of threads. */
static struct blade blades[CMGS];
static struct cpu_mask masks[CMGS];
static unsigned threads_of[CMGS];

static unsigned cmg_of(unsigned thread)
{
    return ((unsigned)cpu_of(thread) - FIRST_CPU) / CMG_CPUS % CMGS;
}

static void allocate_blades(unsigned count)
{
    driver = linux_call(HERE, (long)"/dev/fujitsu_hwb", 0, 0, 0, 0, OPENAT);
    if (driver < 0)
        cannot_run("no /dev/fujitsu_hwb: the system has no driver for the hardware barrier");
    for (unsigned t = 0; t < count; t++) {
        masks[cmg_of(t)].words[cpu_of(t) / 64] |= (uint64_t)1 << cpu_of(t) % 64;
        threads_of[cmg_of(t)]++;
    }
    for (unsigned cmg = 0; cmg < CMGS; cmg++) {
        blades[cmg].mask_bytes = sizeof masks[cmg];
        blades[cmg].mask = masks[cmg].words;
        if (threads_of[cmg] && linux_call(driver, ALLOCATE_BLADE, (long)&blades[cmg], 0, 0, 0, IOCTL) < 0)
            cannot_run("no barrier blade: threads need CPUs of their own, two or more on a CMG, and a blade that is free");
    }
}

static void free_blades(void)
{
    for (unsigned cmg = 0; cmg < CMGS; cmg++)
        if (threads_of[cmg] && linux_call(driver, FREE_BLADE, (long)&blades[cmg], 0, 0, 0, IOCTL) < 0)
            cannot_run("a barrier blade cannot be freed");
    linux_call(driver, 0, 0, 0, 0, 0, CLOSE);
}

/* Every thread uses window 0. */
static void assign_window(unsigned thread)
{
    struct window window = {blades[cmg_of(thread)].number, 0};
    if (linux_call(driver, ASSIGN_WINDOW, (long)&window, 0, 0, 0, IOCTL) < 0)
        cannot_run("no barrier window for a thread");
}

static void unassign_window(unsigned thread)
{
    struct window window = {blades[cmg_of(thread)].number, 0};
    if (linux_call(driver, UNASSIGN_WINDOW, (long)&window, 0, 0, 0, IOCTL) < 0)
        cannot_run("a barrier window cannot be given back");
}

/* barrier.S: one round, by polling, or asleep until an event. */
void hardware_barrier_poll(void);
void hardware_barrier_wfe(void);

#endif
