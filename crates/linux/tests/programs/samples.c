// Samples of performance events, and what else is in their buffers: of threads and processes, in timed runs.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHOW(call)                                                             \
    do {                                                                       \
        errno = 0;                                                             \
        long result_ = (long)(call);                                           \
        printf("%s: %ld %s\n", #call, result_, result_ < 0 ? strerrorname_np(errno) : ""); \
        fflush(stdout);                                                        \
    } while (0)

#define PAGE 65536
#define FIELDS (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD)

typedef struct perf_event_attr Attr;

static Attr attr_of(unsigned type, uint64_t config, uint64_t period) {
    Attr attr = {.type = type, .size = sizeof attr, .config = config, .sample_period = period};
    attr.sample_type = FIELDS;
    attr.disabled = attr.exclude_kernel = attr.sample_id_all = 1;
    return attr;
}

static int open_attr(Attr attr, int pid, int cpu) { return syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0); }

typedef struct {
    int fd;
    struct perf_event_mmap_page *page;
} Event;

static Event open_mapped(Attr attr, int pid, int cpu, int pages) {
    Event event = {.fd = open_attr(attr, pid, cpu)};
    event.page = mmap(0, (1 + pages) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, event.fd, 0);
    if (event.fd < 0 || event.page == MAP_FAILED)
        perror("open_mapped");
    return event;
}

static void close_mapped(Event event, int pages) {
    munmap(event.page, (1 + pages) * PAGE);
    close(event.fd);
}

// A loop of three instructions, of which one keeps it from being taken for a wait: its first one is at hot_begin, its end at hot_end.
extern char hot_begin[], hot_end[];
__asm__(".text\n.globl hot, hot_begin, hot_end\n.type hot, %function\nhot:\nhot_begin: fadd d16, d16, d16\n subs x0, x0, #1\n b.ne hot_begin\nhot_end: ret\n.size hot, . - hot\n");
void hot(uint64_t n);

// Calls it, with a frame.
static uint64_t __attribute__((noinline)) caller(uint64_t n) {
    hot(n);
    return n + 1;
}

// What a buffer has.
typedef struct {
    int samples, inside, period, chained, lost, names, mappings, starts, ends, of_thread;
    uint64_t lost_records, last_ns;
    int ordered;
} Content;

static Content content(Event event, uint64_t period, int chain) {
    Content all = {.ordered = 1};
    char *data = (char *)event.page + event.page->data_offset;
    uint64_t head = __atomic_load_n(&event.page->data_head, __ATOMIC_ACQUIRE), tail = event.page->data_tail;
    while (tail < head) {
        // Records may continue at the start of the buffer.
        char copy[160];
        for (unsigned i = 0; i < sizeof copy; i += 8)
            memcpy(copy + i, data + (tail + i) % event.page->data_size, 8);
        struct perf_event_header *header = (void *)copy;
        uint64_t *words = (uint64_t *)(header + 1);
        switch (header->type) {
        case PERF_RECORD_SAMPLE:
            all.samples++;
            all.inside += words[0] >= (uint64_t)hot_begin && words[0] < (uint64_t)hot_end;
            all.of_thread += words[1] == ((uint64_t)gettid() << 32 | (uint64_t)getpid());
            all.ordered &= words[2] >= all.last_ns;
            all.last_ns = words[2];
            all.period += words[3] == period;
            if (chain)
                all.chained += words[4] >= 3 && words[5] == (uint64_t)PERF_CONTEXT_USER && words[6] == words[0] &&
                               words[7] > (uint64_t)caller && words[7] < (uint64_t)caller + 64;
            break;
        case PERF_RECORD_LOST:
            all.lost++;
            all.lost_records += words[1];
            break;
        case PERF_RECORD_COMM:
            all.names += !strcmp((char *)(words + 1), "renamed");
            break;
        case PERF_RECORD_MMAP2:
            all.mappings += !strcmp((char *)(words + 8), "//anon") && (words[7] & 0xffffffff) == (PROT_READ | PROT_EXEC);
            break;
        case PERF_RECORD_FORK:
            all.starts += (uint32_t)words[0] == (uint32_t)getpid() && words[0] >> 32 == (uint32_t)getpid();
            break;
        case PERF_RECORD_EXIT:
            all.ends++;
            break;
        }
        tail += header->size;
    }
    event.page->data_tail = tail;
    return all;
}

static uint64_t value(int fd) {
    uint64_t n = 0;
    return read(fd, &n, sizeof n) == sizeof n ? n : 0;
}

// Samples a loop of n rounds by an event. Returns whether every sample is right, and their number, too.
static int samples_are_right(unsigned type, uint64_t config, uint64_t period, uint64_t n) {
    Event event = open_mapped(attr_of(type, config, period), 0, -1, 1);
    ioctl(event.fd, PERF_EVENT_IOC_ENABLE, 0);
    hot(n);
    ioctl(event.fd, PERF_EVENT_IOC_DISABLE, 0);
    hot(n);
    Content all = content(event, period, 0);
    int64_t expected = value(event.fd) / period;
    close_mapped(event, 1);
    int right = all.samples >= expected - 1 && all.samples <= expected + 1 && expected >= 15 && all.inside * 20 >= all.samples * 19 &&
                all.period == all.samples && all.of_thread == all.samples && all.ordered;
    if (!right)
        fprintf(stderr, "%d samples, not %lld, %d inside, %d with the period, %d of the thread\n", all.samples,
                (long long)expected, all.inside, all.period, all.of_thread);
    return right;
}

static void *sampled_thread(void *right) {
    *(int *)right = samples_are_right(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 1000, 5000);
    return 0;
}

static void *nothing(void *unused) { return unused; }

int main(void) {
    Attr attr = attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1000);

    // What cannot be opened or set.
    attr.freq = 1, attr.sample_freq = 1000000;
    SHOW(open_attr(attr, 0, -1));
    attr = attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1ULL << 63);
    SHOW(open_attr(attr, 0, -1));
    attr = attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1000);
    attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
    SHOW(open_attr(attr, 0, -1));
    attr = attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1000);
    attr.sample_type |= PERF_SAMPLE_CALLCHAIN, attr.sample_max_stack = 1000;
    SHOW(open_attr(attr, 0, -1));
    int bare = open_attr(attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1000), 0, -1);
    uint64_t period = 0;
    SHOW(ioctl(bare, PERF_EVENT_IOC_PERIOD, &period));
    SHOW(ioctl(bare, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
    SHOW(ioctl(bare, PERF_EVENT_IOC_SET_OUTPUT, 999));
    close(bare);

    // Events of the core, and time.
    SHOW(samples_are_right(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 1000, 10000));
    SHOW(samples_are_right(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 2, 200));
    SHOW(samples_are_right(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 997, 10000));
    SHOW(samples_are_right(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 500, 10000));

    // Threads at the same time, each with its own buffer.
    pthread_t threads[3];
    int right[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, sampled_thread, &right[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    SHOW(right[0] + right[1] + right[2]);

    // Callers.
    attr = attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 1000);
    attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
    Event event = open_mapped(attr, 0, -1, 1);
    ioctl(event.fd, PERF_EVENT_IOC_ENABLE, 0);
    caller(5000);
    ioctl(event.fd, PERF_EVENT_IOC_DISABLE, 0);
    Content all = content(event, 1000, 1);
    SHOW(all.samples);
    SHOW(all.chained >= all.samples - 1);

    // A closed event has no samples.
    ioctl(event.fd, PERF_EVENT_IOC_ENABLE, 0);
    close(event.fd);
    hot(5000);
    SHOW(content(event, 1000, 1).samples < 3);
    munmap(event.page, 2 * PAGE);

    // A full buffer: records are lost, and the next one that has room says how many.
    event = open_mapped(attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 2), 0, -1, 1);
    ioctl(event.fd, PERF_EVENT_IOC_ENABLE, 0);
    hot(2000);
    ioctl(event.fd, PERF_EVENT_IOC_DISABLE, 0);
    all = content(event, 2, 0);
    SHOW(all.samples > PAGE / 48 && all.samples <= PAGE / 40 && all.lost == 0);
    int before = all.samples;
    ioctl(event.fd, PERF_EVENT_IOC_ENABLE, 0);
    hot(1);
    ioctl(event.fd, PERF_EVENT_IOC_DISABLE, 0);
    all = content(event, 2, 0);
    SHOW(all.lost);
    SHOW(llabs((long long)(before + all.lost_records + all.samples - value(event.fd) / 2)) <= 2);

    // As many samples as requested, with a period that is set.
    period = 500;
    SHOW(ioctl(event.fd, PERF_EVENT_IOC_PERIOD, &period));
    SHOW(ioctl(event.fd, PERF_EVENT_IOC_REFRESH, 3));
    hot(3000);
    all = content(event, 500, 0);
    SHOW(all.samples);
    close_mapped(event, 1);

    // A frequency, in time on a CPU: 90 us at 100 kHz, to which the period adapts.
    attr = attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 100000);
    attr.freq = 1;
    event = open_mapped(attr, 0, -1, 1);
    ioctl(event.fd, PERF_EVENT_IOC_ENABLE, 0);
    hot(20000);
    ioctl(event.fd, PERF_EVENT_IOC_DISABLE, 0);
    all = content(event, 0, 0);
    SHOW(all.samples >= 6 && all.samples <= 12);
    close_mapped(event, 1);

    // A child: its parent waits for samples, and for its end.
    int go[2];
    if (pipe(go))
        return 1;
    pid_t child = fork();
    if (!child) {
        char c;
        if (read(go[0], &c, 1) == 1)
            hot(100000);
        _exit(0);
    }
    attr = attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 5000);
    attr.wakeup_events = 10, attr.disabled = 0;
    event = open_mapped(attr, child, -1, 1);
    if (write(go[1], "x", 1) != 1)
        return 1;
    struct pollfd wanted = {.fd = event.fd, .events = POLLIN};
    SHOW(poll(&wanted, 1, -1));
    all = content(event, 5000, 0);
    SHOW(wanted.revents == POLLIN && all.samples >= 10 && all.samples < 40);
    int polls = 0;
    while (poll(&wanted, 1, -1) == 1 && !(wanted.revents & POLLHUP))
        polls++;
    SHOW(polls >= 2 && polls <= 5);
    SHOW(waitpid(child, 0, 0) == child);
    close_mapped(event, 1);

    // Names, mappings and threads; a second event writes to the same buffer.
    attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 0);
    attr.comm = attr.mmap = attr.mmap2 = attr.task = attr.inherit = 1;
    int cpu = sched_getcpu();
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    event = open_mapped(attr, 0, cpu, 1);
    int other = open_attr(attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 1000), 0, cpu);
    SHOW(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, event.fd));
    ioctl(event.fd, PERF_EVENT_IOC_ENABLE, 0);
    ioctl(other, PERF_EVENT_IOC_ENABLE, 0);
    prctl(PR_SET_NAME, "renamed");
    void *code = mmap(0, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(code, PAGE);
    pthread_create(&threads[0], 0, nothing, 0);
    pthread_join(threads[0], 0);
    hot(5000);
    ioctl(other, PERF_EVENT_IOC_DISABLE, 0);
    ioctl(event.fd, PERF_EVENT_IOC_DISABLE, 0);
    all = content(event, 1000, 0);
    SHOW(all.names);
    SHOW(all.mappings);
    SHOW(all.starts);
    SHOW(all.ends);
    SHOW(all.samples >= 14);
    return 0;
}
