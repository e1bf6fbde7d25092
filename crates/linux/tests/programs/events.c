// Performance events: what they count, in groups, of children and threads, and across execve.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
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

static int open_event(unsigned type, uint64_t config, int pid, int leader, uint64_t format, const char *how) {
    struct perf_event_attr attr = {.type = type, .size = sizeof attr, .config = config, .read_format = format};
    attr.disabled = strchr(how, 'd') != 0;
    attr.inherit = strchr(how, 'i') != 0;
    attr.enable_on_exec = strchr(how, 'x') != 0;
    attr.exclude_kernel = 1;
    attr.exclude_user = strchr(how, 'u') != 0;
    if (strchr(how, 's'))
        attr.sample_period = 1000;
    return syscall(SYS_perf_event_open, &attr, pid, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

static int instructions(const char *how) {
    return open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0, -1, 0, how);
}

static uint64_t value(int fd) {
    uint64_t n = 0;
    return read(fd, &n, sizeof n) == sizeof n ? n : (uint64_t)-errno;
}

// A million additions, or a hundredth of that where they are timed; an addition takes three instructions.
static uint64_t additions = 1000000;
static void work(void) {
    uint64_t n = additions;
    __asm__ volatile("1: add x9, x9, #1\n subs %0, %0, #1\n b.ne 1b" : "+r"(n)::"x9", "cc");
}

// Returns whether n is the number of instructions of some calls of work, and of little else.
static int about(uint64_t n, int calls) {
    uint64_t expected = 3 * additions * calls;
    if (n >= expected && n < expected + 200000)
        return 1;
    fprintf(stderr, "%llu, not %llu\n", (unsigned long long)n, (unsigned long long)expected);
    return 0;
}

static void *worker(void *unused) {
    work();
    return unused;
}

int main(int argc, char **argv) {
    if (argc > 2) {
        additions = atoi(argv[2]);
        work();
        return 0;
    }
    int timed = argc > 1;
    if (timed)
        additions /= 100;
    // What cannot be opened.
    SHOW(open_event(99, 0, 0, -1, 0, ""));
    SHOW(open_event(PERF_TYPE_HARDWARE, 99, 0, -1, 0, ""));
    SHOW(open_event(PERF_TYPE_RAW, 0x4444, 0, -1, 0, ""));
    SHOW(open_event(PERF_TYPE_SOFTWARE, 99, 0, -1, 0, ""));
    // Only timed runs have samples.
    int sampling = open_event(PERF_TYPE_HARDWARE, 1, 0, -1, 0, "s");
    int is_refused = sampling < 0 && errno == EOPNOTSUPP;
    SHOW(timed ? sampling >= 0 : is_refused);
    SHOW(open_event(PERF_TYPE_HARDWARE, 1, 0, -1, 1 << 10, ""));
    SHOW(open_event(PERF_TYPE_HARDWARE, 1, 999999, -1, 0, ""));
    SHOW(open_event(PERF_TYPE_HARDWARE, 1, -1, -1, 0, ""));
    SHOW(open_event(PERF_TYPE_HARDWARE, 1, 0, 0, 0, ""));
    SHOW(syscall(SYS_perf_event_open, 1, 0, -1, -1, 0));

    // Enabled, disabled, reset.
    int fd = instructions("d");
    SHOW(fd >= 0);
    work();
    SHOW(value(fd));
    SHOW(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
    work();
    SHOW(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
    SHOW(about(value(fd), 1));
    work();
    SHOW(about(value(fd), 1));
    SHOW(ioctl(fd, PERF_EVENT_IOC_RESET, 0));
    SHOW(value(fd));
    SHOW(prctl(PR_TASK_PERF_EVENTS_ENABLE));
    work();
    SHOW(prctl(PR_TASK_PERF_EVENTS_DISABLE));
    SHOW(about(value(fd), 1));
    uint64_t id = 0;
    SHOW(ioctl(fd, PERF_EVENT_IOC_ID, &id));
    SHOW(id > 0);
    SHOW(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
    SHOW(write(fd, &id, 8));
    char small[4];
    SHOW(read(fd, small, 4));
    char *buffer = mmap(0, 3 * 65536, PROT_READ, MAP_SHARED, fd, 0);
    SHOW(mmap(0, 3 * 65536, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
    SHOW(munmap(buffer, 3 * 65536));
    SHOW(mmap(0, 4 * 65536, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
    SHOW(mmap(0, 65536, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED);
    struct perf_event_mmap_page *page = mmap(0, 2 * 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    SHOW(page->cap_user_rdpmc == 0 && page->data_head == 0 && page->data_offset == 65536 && page->data_size == 65536);
    close(fd);

    // A group with the times.
    uint64_t format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int leader = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0, -1, format, "d");
    int clock = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0, leader, format, "");
    int nothing = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0, leader, format, "u");
    SHOW(open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0, clock, format, ""));
    work();
    ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
    work();
    ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
    work();
    uint64_t words[9];
    SHOW(read(leader, words, sizeof words));
    SHOW(words[0]);
    SHOW(words[1] == words[2] && words[1] > 0);
    SHOW(about(words[3], 1));
    SHOW(words[5] > 0 && words[5] == words[1]);
    SHOW(words[7]);
    SHOW(words[4] != words[6] && words[6] != words[8]);
    close(nothing);
    close(clock);
    close(leader);

    // Page faults: a page is touched first only once.
    int faults = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, -1, 0, "");
    char *fresh = mmap(0, 10 * 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int twice = 0; twice < 2; twice++)
        for (int i = 0; i < 10; i++)
            fresh[i * 65536] = 1;
    uint64_t count = value(faults);
    // In timed runs, pages are larger, and other mappings may have touched the same one.
    uint64_t least = timed ? 0 : 10;
    SHOW(count >= least && count < 20);
    close(faults);

    // Switches: also to a CPU that is idle until the thread continues.
    int switches = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 0, -1, 0, "");
    for (int i = 0; i < 3; i++)
        usleep(10);
    SHOW(value(switches));
    close(switches);

    // Children and threads, with and without inheritance.
    int with = instructions("i"), without = instructions("");
    pid_t child = fork();
    if (!child) {
        work();
        _exit(0);
    }
    waitpid(child, 0, 0);
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    pthread_join(thread, 0);
    SHOW(about(value(with), 2));
    SHOW(value(without) < 200000);
    close(with);
    close(without);

    // As perf stat does it: a child that waits, then executes a program.
    int go[2];
    if (pipe(go))
        return 1;
    child = fork();
    if (!child) {
        char c;
        if (read(go[0], &c, 1) == 1)
            execl("/proc/self/exe", argv[0], "exec", timed ? "10000" : "1000000", NULL);
        _exit(1);
    }
    fd = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, child, -1, 0, "dix");
    SHOW(value(fd));
    if (write(go[1], "x", 1) != 1)
        return 1;
    int status;
    waitpid(child, &status, 0);
    SHOW(status);
    SHOW(about(value(fd), 1));

    // What only a timed run counts.
    int cycles = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, -1, 0, "");
    SHOW((cycles >= 0) == timed);
    if (!timed)
        return 0;
    int raw = open_event(8, 0x11, 0, -1, 0, ""), loads = open_event(PERF_TYPE_HW_CACHE, 0, 0, -1, 0, "");
    work();
    uint64_t some = value(cycles), same = value(raw);
    // The loop takes at least a cycle for each addition.
    SHOW(some >= additions && some < additions + 200000);
    SHOW(same <= some && same >= additions);
    SHOW(value(loads) < 100000);
    return 0;
}
