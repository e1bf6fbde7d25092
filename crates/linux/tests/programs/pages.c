/* The nodes of pages, and memory policies: `pages CASE` prints the results of the calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEFAULT, PREFERRED, BIND, INTERLEAVE, LOCAL };
enum { F_NODE = 1, F_ADDR = 2, F_MEMS_ALLOWED = 4 };
enum { MF_STRICT = 1, MF_MOVE = 2 };
#define MIB (1ul << 20)

static long set_policy(int mode, unsigned long nodes)
{
    return syscall(SYS_set_mempolicy, mode, nodes ? &nodes : NULL, 65ul);
}

static long bind_range(void *at, size_t len, int mode, unsigned long nodes, unsigned flags)
{
    return syscall(SYS_mbind, at, len, mode, nodes ? &nodes : NULL, 65ul, flags);
}

__attribute__((always_inline)) static inline char *map(size_t len)
{
    return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* The nodes of `count` pages `pitch` bytes apart, as reported by move_pages. */
static void show_nodes(const char *what, char *at, size_t pitch, int count)
{
    printf("%s:", what);
    for (int i = 0; i < count; i++) {
        void *page = at + i * pitch;
        int status = -1000;
        syscall(SYS_move_pages, 0, 1ul, &page, NULL, &status, 0);
        printf(" %d", status);
    }
    printf("\n");
}

static void show_policy(const char *what, void *at)
{
    int mode = -1;
    unsigned long nodes = 0;
    long r = syscall(SYS_get_mempolicy, &mode, &nodes, 64ul, at, at ? F_ADDR : 0);
    printf("%s: %ld mode %d nodes %#lx\n", what, r, mode, nodes);
}

/* Prints the lines of a file of /proc/self about the mapping at `at` that contain `word`. */
static void show_lines(const char *file, void *at, const char *word)
{
    char line[512], start[32];
    FILE *f = fopen(file, "r");
    int inside = 0;
    snprintf(start, sizeof start, "%08lx", (unsigned long)at);
    while (f && fgets(line, sizeof line, f)) {
        if (line[0] >= '0' && line[0] <= 'f' && !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ", line[0]))
            inside = strncmp(line, start, strlen(start)) == 0;
        if (inside && strstr(line, word))
            printf("%s", strncmp(line, start, strlen(start)) ? line : line + strlen(start) + 1);
    }
    fclose(f);
}

/* The line of a file that contains `word`. */
static void show_line_with(const char *file, const char *word)
{
    char line[512];
    FILE *f = fopen(file, "r");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, word))
            printf("%s", line);
    fclose(f);
}

/* 64 MiB on node 7, as shown in the files about memory. */
static void files(void)
{
    show_line_with("/sys/devices/system/node/node7/meminfo", "HugePages_Total");
    set_policy(BIND, 0x80);
    memset(map(64 * MIB), 1, 64 * MIB);
    show_line_with("/sys/devices/system/node/node7/meminfo", "HugePages_Total");
    show_line_with("/sys/devices/system/node/node7/meminfo", "MemUsed");
    show_line_with("/proc/meminfo", "Hugepagesize");
}

static void first_touch(void)
{
    char *a = map(8 * MIB);
    show_nodes("mapped", a, 2 * MIB, 4);
    a[3 * MIB] = 1;
    show_nodes("touched", a, 2 * MIB, 4);
    show_nodes("unmapped", (char *)0x1000, 0, 1);
    show_lines("/proc/self/numa_maps", a, "anon");
    show_lines("/proc/self/smaps", a, "KernelPageSize");
    show_lines("/proc/self/smaps", a, "Rss");
    printf("start %% 2 MiB: %lu\n", (unsigned long)a % (2 * MIB));
}

static void policies(void)
{
    show_policy("at first", NULL);
    set_policy(BIND, 0x60);
    show_policy("bound", NULL);
    printf("node of nothing interleaved: %ld\n", syscall(SYS_get_mempolicy, NULL, NULL, 0ul, NULL, F_NODE));
    fflush(stdout);
    if (fork() == 0) {
        show_policy("child", NULL);
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    printf("no such nodes: %ld\n", set_policy(BIND, 0xf));
    printf("errno %d\n", errno == EINVAL);
    set_policy(DEFAULT, 0);
    show_policy("default", NULL);
    unsigned long allowed = 0;
    syscall(SYS_get_mempolicy, NULL, &allowed, 64ul, NULL, F_MEMS_ALLOWED);
    printf("allowed %#lx\n", allowed);
}

static void ranges(void)
{
    char *a = map(8 * MIB);
    bind_range(a, 2 * MIB, BIND, 0x80, 0);
    bind_range(a + 2 * MIB, 4 * MIB, INTERLEAVE, 0x60, 0);
    show_policy("bound", a);
    show_policy("interleaved", a + 5 * MIB);
    show_policy("untold", a + 7 * MIB);
    memset(a, 1, 8 * MIB);
    show_nodes("nodes", a, 2 * MIB, 4);
    int node = -1;
    syscall(SYS_get_mempolicy, &node, NULL, 0ul, a + 1, F_NODE | F_ADDR);
    printf("node of an address: %d\n", node);
    printf("strict: %ld\n", bind_range(a, 8 * MIB, BIND, 0x80, MF_STRICT));
    printf("errno %d\n", errno == EIO);
    printf("moved: %ld\n", bind_range(a, 8 * MIB, BIND, 0x80, MF_STRICT | MF_MOVE));
    show_nodes("nodes", a, 2 * MIB, 4);
    munmap(a + 2 * MIB, 2 * MIB);
    printf("with a hole: %ld\n", bind_range(a, 8 * MIB, BIND, 0x80, 0));
    printf("errno %d\n", errno == EFAULT);
    unsigned long from = 0x80, to = 0x20;
    printf("migrated: %ld\n", syscall(SYS_migrate_pages, 0, 65ul, &from, &to));
    show_nodes("nodes", a, 2 * MIB, 4);
    void *page = a;
    int wanted = 6, status = -1;
    syscall(SYS_move_pages, 0, 1ul, &page, &wanted, &status, MF_MOVE);
    printf("one page: %d\n", status);
    show_nodes("nodes", a, 1 * MIB, 2);
}

/* So that .bss has separate pages. */
static volatile char zeros[1 << 20];

static char *shared_array;

static void *touch(void *unused)
{
    (void)unused;
    memset(shared_array + 4 * MIB, 1, 4 * MIB);
    return NULL;
}

/* The second thread of the process runs on another node, by its affinity. */
static void threads(void)
{
    shared_array = map(8 * MIB);
    memset(shared_array, 1, 4 * MIB);
    pthread_attr_t attributes;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(36, &cpus);
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
    pthread_t thread;
    pthread_create(&thread, &attributes, touch, NULL);
    pthread_join(thread, NULL);
    show_nodes("nodes", shared_array, 2 * MIB, 4);
}

/* Whether 16 MiB allocated in four blocks are on the heap, and whether it is as large after they are freed. */
static void blocks(void)
{
    void *block[4];
    free(malloc(1));
    char *before = sbrk(0);
    for (int i = 0; i < 4; i++)
        block[i] = malloc(4 * MIB);
    long grown = (char *)sbrk(0) - before;
    for (int i = 0; i < 4; i++)
        free(block[i]);
    long kept = (char *)sbrk(0) - before;
    /* A part of the first block existed already. */
    printf("heap: %d %d\n", grown > (long)(15 * MIB), kept > (long)(15 * MIB));
}

/* Whether a block of a thread other than the first is on the first heap, and the node of the page 32 MiB after it. */
static void *allocate(void *unused)
{
    (void)unused;
    char *block = malloc(100);
    printf("shared: %d\n", block < (char *)sbrk(0) && block > (char *)zeros);
    show_nodes("behind", (char *)((uintptr_t)block & -(2 * MIB)) + 32 * MIB, 0, 1);
    free(block);
    return NULL;
}

static void arenas(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, allocate, NULL);
    pthread_join(thread, NULL);
}

/* Maps, touches and releases 16 MiB three times. */
static void churn(void)
{
    for (int i = 0; i < 3; i++) {
        char *a = map(16 * MIB);
        memset(a, 1, 16 * MIB);
        munmap(a, 16 * MIB);
    }
}

/* Where transparent huge pages of 512 MiB fit into 1.5 GiB, none of which has been touched: at least two of them. */
static char *map_huge(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    uintptr_t start = (uintptr_t)mmap(NULL, 1536 * MIB, PROT_READ | PROT_WRITE, flags, -1, 0);
    return (char *)((start + 512 * MIB - 1) & -(512 * MIB));
}

/* Pages that a program requests itself. */
static void own(void)
{
    const int huge = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, rights = PROT_READ | PROT_WRITE;
    char *a = mmap(NULL, 3 * MIB, rights, huge | 21 << 26, -1, 0);
    printf("on a page: %d\n", (uintptr_t)a % (2 * MIB) == 0);
    show_nodes("asked for", a, 2 * MIB, 2);
    a[3 * MIB] = 1;
    show_nodes("touched", a, 2 * MIB, 2);
    show_lines("/proc/self/smaps", a, "KernelPageSize");
    printf("no such size: %d\n", mmap(NULL, 4 * MIB, rights, huge | 25 << 26, -1, 0) == MAP_FAILED);
    printf("huge page of hugetlbfs: %d\n", madvise(a, 4 * MIB, MADV_HUGEPAGE));

    char *b = map_huge();
    printf("advised: %d\n", madvise(b, 1024 * MIB, MADV_HUGEPAGE));
    b[300 * MIB] = 1;
    show_nodes("one huge page", b, 256 * MIB, 4);

    char *c = map_huge();
    c[MIB] = 1;
    madvise(c, 1024 * MIB, MADV_HUGEPAGE);
    c[2 * MIB] = c[600 * MIB] = 1;
    show_nodes("not where pages are", c, 256 * MIB, 4);

    char *d = map_huge();
    madvise(d, 1024 * MIB, MADV_HUGEPAGE);
    madvise(d, 512 * MIB, MADV_NOHUGEPAGE);
    d[MIB] = d[600 * MIB] = 1;
    show_nodes("taken back", d, 256 * MIB, 4);
}

/* Maps 4 MiB each from two calls. */
__attribute__((noipa)) static char *one_call(void)
{
    char *a = map(4 * MIB);
    show_lines("/proc/self/smaps", a, "KernelPageSize");
    return a;
}

__attribute__((noipa)) static void calls(void)
{
    one_call();
    mprotect(map(2 * MIB), 2 * MIB, PROT_NONE);
    char *b = map(4 * MIB);
    show_lines("/proc/self/smaps", b, "KernelPageSize");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = { { "first_touch", first_touch }, { "policies", policies }, { "ranges", ranges },
                  { "threads", threads }, { "churn", churn }, { "files", files }, { "blocks", blocks },
                  { "arenas", arenas }, { "own", own }, { "calls", calls } };
    for (unsigned i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            cases[i].run();
    return zeros[1];
}
