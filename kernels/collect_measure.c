/* Repetitions of a loop on its threads, timed by the system's counter and counted by the PMU. */
#include "collect.h"

enum { PERF_EVENT_OPEN = 241, READ = 63 };
/* ioctl requests of events; the argument applies them to the whole group. */
enum { ENABLE = 0x2400, DISABLE = 0x2401, RESET = 0x2403, GROUP = 1 };
/* attr: type, read_format, flags */
enum { RAW = 4, TIMES_AND_GROUP = 1 | 2 | 8, DISABLED = 1, USER_ONLY = 1 << 5 | 1 << 6 };

struct setting setting;

static const struct work *work;
static long leader = -1;

uint64_t counter_now(void)
{
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
    return ticks;
}

uint64_t counter_hz(void)
{
    uint64_t hz;
    __asm__("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz;
}

void stay_on(unsigned cpu)
{
    struct cpu_mask mask = {{0}};
    mask.words[cpu / 64] = (uint64_t)1 << cpu % 64;
    if (linux_call(0, sizeof mask, (long)&mask, 0, 0, 0, SET_AFFINITY) < 0)
        no_result("the system does not let the program run on a CPU that it needs");
}

/* An event of the running thread in user mode; a negative number: an error of Linux. */
static long open_event(uint64_t number, long group)
{
    struct {
        uint32_t type, size;
        uint64_t config, period, sample, format, flags;
        uint64_t others[2];
    } attributes = {RAW, sizeof attributes, number, 0, 0, TIMES_AND_GROUP, USER_ONLY, {0, 0}};
    if (group < 0)
        attributes.flags |= DISABLED;
    return linux_call((long)&attributes, 0, -1, group, 0, 0, PERF_EVENT_OPEN);
}

/* Opens the cycles and the benchmark's events as one group. Without one of them nothing is counted. */
static void open_events(void)
{
    leader = open_event(CPU_CYCLES, -1);
    long last = leader;
    for (unsigned i = 0; i < setting.event_count && last >= 0; i++)
        last = open_event(setting.events[i], leader);
    if (last < 0) {
        setting.result->counter_error = -last;
        leader = -1;
    }
}

static void group_call(long request)
{
    if (leader >= 0)
        linux_call(leader, request, GROUP, 0, 0, 0, IOCTL);
}

/* Stores the counts of a repetition, unless the group shared the counters with others. */
static void read_events(unsigned repetition)
{
    struct {
        uint64_t events, enabled, running, counts[1 + MOST_EVENTS];
    } group;
    if (leader < 0)
        return;
    unsigned events = 1 + setting.event_count;
    long bytes = linux_call(leader, (long)&group, sizeof group, 0, 0, 0, READ);
    if (bytes != (long)((3 + events) * sizeof(uint64_t)) || group.running < group.enabled)
        return;
    for (unsigned i = 0; i < events; i++)
        setting.result->counts[i][repetition] = group.counts[i];
    setting.result->counted++;
}

static void repeat(unsigned thread, bool keep, unsigned repetition)
{
    uint64_t begin = 0;
    if (thread == 0 && work->prepare)
        work->prepare();
    meet(thread);
    if (thread == 0 && keep) {
        group_call(RESET);
        group_call(ENABLE);
        begin = counter_now();
    }
    work->body(thread);
    meet(thread);
    if (thread == 0 && keep) {
        setting.result->ticks[repetition] = counter_now() - begin;
        group_call(DISABLE);
        read_events(repetition);
    }
    meet(thread);
}

static void run_thread(unsigned thread)
{
    if (setting.memory_cpu < 0 && work->touch)
        work->touch(thread);
    if (thread == 0)
        open_events();
    repeat(thread, false, 0);
    for (unsigned i = 0; i < setting.repetitions; i++)
        repeat(thread, true, i);
}

void measure(const struct work *what)
{
    work = what;
    if (setting.memory_cpu >= 0 && work->touch) {
        stay_on((unsigned)setting.memory_cpu);
        for (unsigned t = 0; t < setting.threads; t++)
            work->touch(t);
    }
    run_threads(setting.threads, run_thread);
    setting.result->operations = work->operations;
}
