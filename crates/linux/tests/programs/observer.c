// What a process sees of itself and of others in /proc.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHOW(call)                                                             \
    do {                                                                       \
        errno = 0;                                                             \
        long result_ = (long)(call);                                           \
        printf("%s: %ld %s\n", #call, result_, result_ < 0 ? strerrorname_np(errno) : ""); \
        fflush(stdout);                                                        \
    } while (0)

static char text[1 << 16];

static const char *file(int pid, const char *name) {
    char path[100];
    if (pid)
        snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    else
        snprintf(path, sizeof path, "%s", name);
    int fd = open(path, O_RDONLY);
    int n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[n < 0 ? 0 : n] = 0;
    close(fd);
    return text;
}

static const char *line(int pid, const char *name, const char *key) {
    static char found[200];
    const char *at = strstr(file(pid, name), key);
    snprintf(found, sizeof found, "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
    for (char *c = found; *c; c++)
        if (*c == '\t')
            *c = ' ';
    return found;
}

// A size of the mapping at an address, in KiB, as smaps has it.
static int size_of(const void *mapping, const char *key) {
    char start[20];
    snprintf(start, sizeof start, "%08lx-", (unsigned long)mapping);
    const char *at = strstr(file(getpid(), "smaps"), start);
    at = at ? strstr(at, key) : NULL;
    int kib = -1;
    return at && sscanf(at + strlen(key), " %d kB", &kib) == 1 ? kib : -1;
}

static void show_sizes(const char *when, const void *mapping) {
    printf("%s: %d resident, %d proportional, shared %d, alone %d\n", when, size_of(mapping, "Rss:"),
           size_of(mapping, "Pss:"), size_of(mapping, "Shared_Dirty:"), size_of(mapping, "Private_Dirty:"));
    fflush(stdout);
}

// Pages are shared with a child until one of the two writes to them.
static void show_sharing(void) {
    size_t page = sysconf(_SC_PAGESIZE);
    char *mapping = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // So that it is no part of another mapping.
    mprotect(mapping, page, PROT_NONE);
    mprotect(mapping + 3 * page, page, PROT_NONE);
    mapping += page;
    mapping[0] = mapping[page] = 1;
    show_sizes("before fork", mapping);
    int child = fork();
    if (!child) {
        show_sizes("in the child", mapping);
        mapping[0] = 2;
        show_sizes("after a store", mapping);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    show_sizes("after the child", mapping);
}

// A field of /proc/PID/stat, numbered as in the manual.
static long long field(int pid, int number) {
    const char *at = strrchr(file(pid, "stat"), ')');
    if (!at)
        return -1;
    at += 2;
    for (int i = 3; i < number; i++)
        at = strchr(at, ' ') + 1;
    return number == 3 ? *at : atoll(at);
}

static int listed(const char *folder, int number) {
    DIR *d = opendir(folder);
    int found = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        found |= atoi(e->d_name) == number;
    if (d)
        closedir(d);
    return found;
}

static volatile int tid;
static void *thread(void *unused) {
    prctl(PR_SET_NAME, "second");
    tid = syscall(SYS_gettid);
    for (;;)
        pause();
    return unused;
}

int main(void) {
    int pipes[2];
    if (pipe(pipes))
        return 1;
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_NAME, "first");
        pthread_t t;
        pthread_create(&t, 0, thread, 0);
        while (!tid)
            usleep(100);
        static volatile int work;
        for (int i = 0; i < 20000000; i++)
            work += i;
        int seen = tid;
        if (write(pipes[1], &seen, sizeof seen) < 0)
            return 1;
        for (;;)
            pause();
    }
    int other;
    if (read(pipes[0], &other, sizeof other) != sizeof other)
        return 1;
    usleep(1000);
    SHOW(listed("/proc", child) && listed("/proc", getpid()) && !listed("/proc", other));
    char path[100];
    snprintf(path, sizeof path, "/proc/%d/task", child);
    SHOW(listed(path, child) && listed(path, other) && !listed(path, getpid()));
    printf("%s\n", line(child, "comm", ""));
    snprintf(path, sizeof path, "task/%d/comm", other);
    printf("%s\n", line(child, path, ""));
    printf("%s\n", line(other, "comm", ""));
    printf("%s\n", line(child, "status", "State:"));
    printf("%s\n", line(child, "status", "Threads:"));
    SHOW(field(child, 4) == getpid());
    SHOW(field(child, 5) == getpgrp() && field(child, 6) == getsid(0));
    SHOW((char)field(child, 3) == 'S' && (char)field(getpid(), 3) == 'R');
    // Twenty million instructions at 1 ns each, in ticks of 10 ms.
    SHOW(field(child, 14) >= 2);
    SHOW(field(child, 22) >= 4 * 3600 * 100 && field(child, 22) < 4 * 3600 * 100 + 100);
    SHOW(field(child, 20));
    SHOW(!strcmp(file(child, "cmdline"), file(getpid(), "cmdline")));
    snprintf(path, sizeof path, "/proc/%d/exe", child);
    char a[200] = "", b[200] = "";
    SHOW(readlink(path, a, sizeof a) > 0 && readlink("/proc/self/exe", b, sizeof b) > 0 && !strcmp(a, b));
    snprintf(path, sizeof path, "/proc/%d/fd/%d", child, pipes[0]);
    SHOW(readlink(path, a, sizeof a) > 0 && !strncmp(a, "pipe:[", 6));
    printf("%s\n", line(child, "maps", "[stack]"));
    show_sharing();
    SHOW(strlen(line(child, "smaps_rollup", "Rss:")) > 0);
    SHOW(access("/proc/999999", F_OK));

    // Stopped, continued, ended.
    kill(child, SIGSTOP);
    int status;
    waitpid(child, &status, WUNTRACED);
    printf("%s\n", line(child, "status", "State:"));
    kill(child, SIGKILL);
    siginfo_t info;
    waitid(P_PID, child, &info, WEXITED | WNOWAIT);
    printf("%s\n", line(child, "status", "State:"));
    SHOW((char)field(child, 3));
    SHOW(listed("/proc", child) && !*file(child, "cmdline") && !*file(child, "maps"));
    waitpid(child, &status, 0);
    SHOW(listed("/proc", child));

    // The machine counts the time of all.
    long long user, idle, idle_centi;
    double up, down;
    SHOW(sscanf(file(0, "/proc/stat"), "cpu %lld 0 0 %lld", &user, &idle));
    SHOW(user >= 2 && user < 100);
    SHOW(sscanf(file(0, "/proc/uptime"), "%lf %lf", &up, &down));
    idle_centi = down * 100;
    SHOW(up >= 14400 && up < 14410 && llabs(idle_centi - idle) < 100);
    printf("%s\n", line(0, "/proc/stat", "btime"));
    printf("%s\n", line(0, "/proc/loadavg", ""));

    // Itself: descriptors, memory, pages, signals, users.
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    snprintf(path, sizeof path, "fdinfo/%d", timer);
    printf("%s\n", line(getpid(), path, "flags:"));
    printf("%s\n", line(getpid(), path, "ticks:"));
    snprintf(path, sizeof path, "/proc/self/fd/%d", timer);
    memset(a, 0, sizeof a);
    SHOW(readlink(path, a, sizeof a));
    printf("%s\n", a);
    int own = open("/proc/self/comm", O_RDONLY);
    lseek(own, 3, SEEK_SET);
    snprintf(path, sizeof path, "fdinfo/%d", own);
    printf("%s\n", line(getpid(), path, "pos:"));
    char *page = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t entry = 0;
    int map = open("/proc/self/pagemap", O_RDONLY);
    off_t at = (uintptr_t)page / 65536 * 8;
    SHOW(pread(map, &entry, 8, at));
    SHOW(entry >> 63);
    strcpy(page, "before");
    SHOW(pread(map, &entry, 8, at));
    SHOW(entry >> 63);
    SHOW(pread(map, &entry, 7, at));
    mprotect(page, 65536, PROT_READ);
    int mem = open("/proc/self/mem", O_RDWR);
    SHOW(pwrite(mem, "after", 6, (uintptr_t)page));
    SHOW(pread(mem, a, 6, (uintptr_t)page));
    printf("%s %s\n", page, a);
    SHOW(pread(mem, a, 6, 4096));
    SHOW(lseek(mem, (uintptr_t)page, SEEK_SET) == (intptr_t)page && read(mem, a, 2) == 2 && read(mem, b, 4) == 4 && !memcmp(b, "ter", 4));
    SHOW(open("/proc/self/maps", O_RDWR));
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, (void (*)(int))main);
    printf("%s\n", line(getpid(), "status", "SigIgn:"));
    printf("%s\n", line(getpid(), "status", "SigCgt:"));
    printf("%s\n", line(getpid(), "status", "Cpus_allowed_list:"));
    SHOW(strstr(file(getpid(), "io"), "wchar: ") != 0);
    printf("%s\n", line(getpid(), "cgroup", "0::"));
    printf("%s\n", line(getpid(), "mountinfo", "cgroup2"));
    return 0;
}
