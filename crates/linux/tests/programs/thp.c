/* Transparent huge pages: `thp CASE` prints what is resident after touches, advice and pauses. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KIB (1ul << 10)
#define MIB (1ul << 20)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* `len` bytes that begin `offset` bytes behind a multiple of `unit`, with nothing mapped next to them. */
static char *map(size_t unit, size_t offset, size_t len)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    size_t all = len + offset + 2 * unit;
    char *start = mmap(NULL, all, PROT_READ | PROT_WRITE, flags, -1, 0);
    char *at = (char *)(((uintptr_t)start + unit - 1) / unit * unit + offset);
    munmap(start, at - start);
    munmap(at + len, start + all - (at + len));
    return at;
}

/* The number behind `word` of `smaps` for the mapping with `at`, kB. */
static long of_mapping(const char *at, const char *word)
{
    char line[512];
    long n = -1;
    int is_here = 0;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, f)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx", &start, &end) == 2)
            is_here = start <= (uintptr_t)at && (uintptr_t)at < end;
        if (is_here && !strncmp(line, word, strlen(word)))
            sscanf(line + strlen(word), ": %ld", &n);
    }
    fclose(f);
    return n;
}

static void show(const char *what, const char *at)
{
    printf("%s: %ld\n", what, of_mapping(at, "Rss"));
}

static void show_line(const char *path, const char *word)
{
    char line[512];
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, word, strlen(word)))
            printf("%s: %s", *word ? "line" : path, line);
    if (f)
        fclose(f);
    else
        printf("%s: not there\n", path);
}

static void pause_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* 64 KiB + 6 MiB, from 64 KiB behind a multiple of 4 MiB. */
static void fault(void)
{
    char *a = map(4 * MIB, 64 * KIB, 6 * MIB + 64 * KIB), *first = a - 64 * KIB;
    first[3 * MIB] = 1;
    show("inside", a);
    a[0] = 1;
    show("at the start", a);
    first[300 * KIB] = 1;
    show("behind it", a);
    first[6 * MIB + 100 * KIB] = 1;
    show("at the end", a);
    printf("eligible: %ld\n", of_mapping(a, "THPeligible"));
    printf("page: %ld\n", of_mapping(a, "KernelPageSize"));
}

static void advice(void)
{
    char *a = map(4 * MIB, 0, 8 * MIB);
    printf("eligible before: %ld\n", of_mapping(a, "THPeligible"));
    a[2 * MIB] = 1;
    show("without advice", a);
    printf("advised: %d\n", madvise(a, 8 * MIB, MADV_HUGEPAGE));
    a[3 * MIB] = 1;
    show("next to a page", a);
    a[5 * MIB] = 1;
    show("with advice", a);
    printf("taken back: %d\n", madvise(a + 6 * MIB, 2 * MIB, MADV_NOHUGEPAGE));
    a[7 * MIB] = 1;
    show("without again", a);
    printf("eligible after: %ld\n", of_mapping(a, "THPeligible"));
    show_line("/proc/self/smaps", "VmFlags: rd wr mr mw me hg");
}

/* A folio of which a part is released, and one that moves by less than its size. */
static void split(void)
{
    char *a = map(4 * MIB, 0, 4 * MIB), *to = map(4 * MIB, 64 * KIB, 4 * MIB);
    a[0] = 1;
    show("whole", a);
    madvise(a + 64 * KIB, 64 * KIB, MADV_DONTNEED);
    show("in part", a);
    a[64 * KIB] = 1;
    show("again", a);
    show_line("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/split_deferred", "");
    a[2 * MIB] = 1;
    mremap(a, 4 * MIB, 4 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    show("moved", to);
    show_line("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/split_deferred", "");
    show_line("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/anon_fault_alloc", "");
}

/* A heap that grows by single pages is one mapping. */
static void heap(void)
{
    char *start = sbrk(0), *first = (char *)(((uintptr_t)start + 2 * MIB - 1) / (2 * MIB) * (2 * MIB));
    while ((char *)sbrk(0) < first + 2 * MIB)
        sbrk(64 * KIB);
    first[MIB] = 1;
    char line[512];
    unsigned long rss = 0, n, from = 0, to = 0;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, f)) {
        sscanf(line, "%lx-%lx", &from, &to);
        if ((char *)from >= first && (char *)to <= first + 2 * MIB && sscanf(line, "Rss: %lu", &n) == 1)
            rss += n;
    }
    printf("of the heap: %lu\n", rss);
}

static void disabled(void)
{
    printf("off: %d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    printf("set: %d\n", prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
    printf("on: %d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    char *a = map(4 * MIB, 0, 4 * MIB);
    a[0] = 1;
    show("touched", a);
    printf("eligible: %ld\n", of_mapping(a, "THPeligible"));
    printf("collapsed: %d\n", madvise(a, 2 * MIB, MADV_COLLAPSE) ? errno == EINVAL : -1);
    fflush(stdout);
    if (!fork()) {
        printf("in a child: %d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    printf("wrong: %d\n", prctl(PR_SET_THP_DISABLE, 1, 1, 0, 0) == -1 && errno == EINVAL);
}

static void show_progress(void)
{
    show_line("/sys/kernel/mm/transparent_hugepage/khugepaged/pages_collapsed", "");
    show_line("/proc/vmstat", "thp_collapse_alloc ");
    show_line("/proc/meminfo", "AnonHugePages");
}

/* Four ranges of 2 MiB with 32, 16, 1 and no pages of 64 KiB, for a system whose huge pages have 2 MiB. */
static void khugepaged(void)
{
    char *a = map(2 * MIB, 0, 8 * MIB);
    for (int i = 0; i < 32; i++)
        a[i * 64 * KIB] = 1;
    for (int i = 0; i < 16; i++)
        a[2 * MIB + i * 128 * KIB] = 2;
    a[4 * MIB] = 3;
    show("before", a);
    madvise(a, 8 * MIB, MADV_HUGEPAGE);
    pause_ms(25);
    show("after", a);
    printf("huge: %ld\n", of_mapping(a, "AnonHugePages"));
    printf("kept: %d %d %d\n", a[31 * 64 * KIB], a[2 * MIB + 15 * 128 * KIB], a[4 * MIB]);
    show_progress();
}

/* The same range in two processes that do not share it, and one that they do. */
static void khugepaged_of_two(void)
{
    char *both = map(2 * MIB, 0, 2 * MIB);
    memset(both, 1, 2 * MIB);
    int child = fork();
    char *own = map(2 * MIB, 0, 2 * MIB);
    own[0] = 1;
    madvise(own, 2 * MIB, MADV_HUGEPAGE);
    madvise(both, 2 * MIB, MADV_HUGEPAGE);
    pause_ms(25);
    if (child)
        wait(NULL);
    printf("%s: own %ld both %ld\n", child ? "parent" : "child", of_mapping(own, "AnonHugePages"),
           of_mapping(both, "AnonHugePages"));
    fflush(stdout);
    if (child)
        show_progress();
}

static void now(void)
{
    char *a = map(2 * MIB, 0, 6 * MIB);
    a[0] = 1;
    printf("collapsed: %d\n", madvise(a, 2 * MIB, MADV_COLLAPSE));
    printf("again: %d\n", madvise(a, 2 * MIB, MADV_COLLAPSE));
    printf("without pages: %d\n", madvise(a, 4 * MIB, MADV_COLLAPSE) ? errno == EINVAL : -1);
    a[4 * MIB] = 1;
    madvise(a + 4 * MIB, 2 * MIB, MADV_NOHUGEPAGE);
    printf("refused: %d\n", madvise(a + 4 * MIB, 2 * MIB, MADV_COLLAPSE) ? errno == EINVAL : -1);
    printf("huge: %ld\n", of_mapping(a, "AnonHugePages"));
}

static void run_on(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* The halves of 4 MiB, touched from two nodes. */
static void nodes(void)
{
    char *a = map(4 * MIB, 0, 4 * MIB);
    void *pages[2] = {a, a + 3 * MIB};
    int status[2] = {-1, -1};
    run_on(12);
    a[0] = 1;
    run_on(24);
    a[3 * MIB] = 1;
    syscall(SYS_move_pages, 0, 2ul, pages, NULL, status, 0);
    printf("first half: %d\nsecond half: %d\n", status[0], status[1]);
}

static void files(void)
{
    static const char *names[] = {
        "enabled",
        "hpage_pmd_size",
        "hugepages-128kB/enabled",
        "hugepages-256kB/enabled",
        "hugepages-2048kB/enabled",
        "hugepages-524288kB/enabled",
        "hugepages-1048576kB/enabled",
        "khugepaged/pages_to_scan",
        "khugepaged/max_ptes_none",
        "khugepaged/scan_sleep_millisecs",
        "khugepaged/full_scans",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[200];
        snprintf(path, sizeof path, "/sys/kernel/mm/transparent_hugepage/%s", names[i]);
        show_line(path, "");
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"fault", fault}, {"advice", advice}, {"split", split}, {"heap", heap}, {"disabled", disabled},
        {"khugepaged", khugepaged}, {"two", khugepaged_of_two}, {"now", now}, {"files", files}, {"nodes", nodes},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && !strcmp(cases[i].name, argv[1]))
            cases[i].run();
    return 0;
}
