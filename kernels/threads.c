#include "threads.h"

/* clone: everything shared, as for threads of the C library; at the end the word at child_tid is set to 0 and
 * woken. */
enum {
    SAME_MEMORY = 0x100,
    SAME_FILE_SYSTEM = 0x200,
    SAME_FILES = 0x400,
    SAME_SIGNAL_HANDLERS = 0x800,
    THREAD = 0x10000,
    SAME_SEMAPHORES = 0x40000,
    CLEAR_TID_AT_END = 0x200000,
};

/* futex: the operations. The word that a thread leaves behind is woken without FUTEX_PRIVATE_FLAG. */
enum { WAIT = 0, WAKE = 1 };

enum { STACK_BYTES = 16384, POLLS_BEFORE_YIELD = 10000 };

long linux_start_thread(unsigned long flags, void *stack, uint32_t *parent_tid, unsigned long tls, uint32_t *child_tid,
                        void (*body)(unsigned long), unsigned long argument);

static _Alignas(LINE) unsigned char stacks[MAX_THREADS][STACK_BYTES];

static unsigned cpus[MAX_THREADS];
static unsigned cpu_count;

static unsigned thread_count;
static void (*thread_body)(unsigned thread);

/* Each on a separate line, so that threads only disturb each other through the barrier itself. */
static struct {
    _Alignas(LINE) uint32_t value;
} running[MAX_THREADS], my_round[MAX_THREADS];
static _Alignas(LINE) uint32_t arrived;
static _Alignas(LINE) uint32_t rounds_done;

static void add_cpu(uint64_t cpu)
{
    if (cpu >= 8 * sizeof(struct cpu_mask))
        cannot_run("cpus: there are CPUs 0 to 1023 at most");
    if (cpu_count < MAX_THREADS)
        cpus[cpu_count++] = (unsigned)cpu;
}

/* Reads a number at `*text`, and moves the pointer past it. */
static uint64_t take_number(const char **text)
{
    if (**text < '0' || **text > '9')
        cannot_run("cpus: expected a list of numbers and ranges, as in cpus=12-23,36");
    uint64_t number = 0;
    for (; **text >= '0' && **text <= '9'; ++*text)
        number = number < 10000 ? number * 10 + (uint64_t)(**text - '0') : number;
    return number;
}

static void add_list(const char *list)
{
    for (;;) {
        uint64_t first = take_number(&list), last = first;
        if (*list == '-') {
            list++;
            last = take_number(&list);
        }
        if (last < first)
            cannot_run("cpus: a range ends before it begins");
        for (uint64_t cpu = first; cpu <= last; cpu++)
            add_cpu(cpu);
        if (!*list)
            return;
        if (*list++ != ',')
            cannot_run("cpus: expected a list of numbers and ranges, as in cpus=12-23,36");
    }
}

static void add_allowed(void)
{
    struct cpu_mask mask = {{0}};
    long bytes = linux_call(0, sizeof mask, (long)&mask, 0, 0, 0, GET_AFFINITY);
    for (long cpu = 0; cpu < 8 * bytes; cpu++)
        if (mask.words[cpu / 64] >> cpu % 64 & 1)
            add_cpu((uint64_t)cpu);
    if (!cpu_count)
        cannot_run("the system does not tell on which CPUs the program may run");
}

int choose_cpus(int argc, char **argv)
{
    int left = 0;
    for (int i = 0; i < argc; i++) {
        const char *t = argv[i];
        if (t[0] == 'c' && t[1] == 'p' && t[2] == 'u' && t[3] == 's' && t[4] == '=')
            add_list(t + 5);
        else
            argv[left++] = argv[i];
    }
    if (!cpu_count)
        add_allowed();
    return left;
}

unsigned cpu_of(unsigned thread)
{
    return cpus[thread % cpu_count];
}

static void pin(unsigned thread)
{
    struct cpu_mask mask = {{0}};
    unsigned cpu = cpu_of(thread);
    mask.words[cpu / 64] = (uint64_t)1 << cpu % 64;
    if (linux_call(0, sizeof mask, (long)&mask, 0, 0, 0, SET_AFFINITY) < 0)
        cannot_run("cpus: the program may not run on one of these CPUs");
}

static void begin_thread(unsigned long thread)
{
    pin((unsigned)thread);
    thread_body((unsigned)thread);
}

void futex_wait(uint32_t *word, uint32_t value)
{
    linux_call((long)word, WAIT, value, 0, 0, 0, FUTEX);
}

void futex_wake_all(uint32_t *word)
{
    linux_call((long)word, WAKE, MAX_THREADS, 0, 0, 0, FUTEX);
}

void run_threads(unsigned count, void (*body)(unsigned thread))
{
    const unsigned long flags = SAME_MEMORY | SAME_FILE_SYSTEM | SAME_FILES | SAME_SIGNAL_HANDLERS | THREAD |
                                SAME_SEMAPHORES | CLEAR_TID_AT_END;
    thread_count = count;
    thread_body = body;
    for (unsigned t = 1; t < count; t++) {
        running[t].value = 1;
        if (linux_start_thread(flags, stacks[t] + STACK_BYTES, NULL, 0, &running[t].value, begin_thread, t) < 0)
            cannot_run("the system starts no more threads");
    }
    begin_thread(0);
    for (unsigned t = 1; t < count; t++)
        while (__atomic_load_n(&running[t].value, __ATOMIC_ACQUIRE))
            futex_wait(&running[t].value, 1);
}

void meet(unsigned thread)
{
    uint32_t round = ++my_round[thread].value;
    if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) == thread_count) {
        __atomic_store_n(&arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&rounds_done, round, __ATOMIC_RELEASE);
        return;
    }
    for (unsigned polls = 1; __atomic_load_n(&rounds_done, __ATOMIC_ACQUIRE) != round; polls++)
        if (polls % POLLS_BEFORE_YIELD == 0)
            linux_call(0, 0, 0, 0, 0, 0, YIELD);
}

void measure_begin_together(unsigned thread, const char *region)
{
    meet(thread);
    if (thread == 0)
        measure_begin(region);
    meet(thread);
}

void measure_end_together(unsigned thread)
{
    meet(thread);
    if (thread == 0)
        measure_end();
    meet(thread);
}
