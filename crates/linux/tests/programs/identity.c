// Users, groups, capabilities, process groups, scheduling and prctl: what each call returns.

#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
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

static int ids(uid_t a, uid_t b, uid_t c) {
    uid_t x, y, z;
    return getresuid(&x, &y, &z) == 0 && x == a && y == b && z == c;
}

static void ordinary(void) {
    SHOW(ids(1000, 1000, 1000));
    SHOW(setuid(1000));
    SHOW(setuid(0));
    SHOW(seteuid(0));
    SHOW(setreuid(-1, 7));
    SHOW(setresuid(1000, -1, 1000));
    SHOW(setresuid(1000, 7, 1000));
    SHOW(setgid(2000));
    SHOW(setgid(0));
    SHOW(setregid(2000, 2000));
    SHOW(setfsuid(0) == 1000 && setfsuid(-1) == 1000);
    gid_t group = 5;
    SHOW(setgroups(1, &group));
    struct sched_param p = {1};
    SHOW(sched_setscheduler(0, SCHED_RR, &p));
    SHOW(setpriority(PRIO_PROCESS, 0, -5));
    SHOW(prctl(PR_CAPBSET_DROP, 1));
}

static void groups(void) {
    SHOW(setpgid(0, -1));
    SHOW(setpgid(999999, 0));
    SHOW(getpgid(999999));
    int pipes[2];
    if (pipe(pipes))
        return;
    pid_t child = fork();
    if (!child) {
        char c;
        exit(read(pipes[0], &c, 1) == 1 && getpgrp() == getpid() ? 3 : 4);
    }
    SHOW(getpgid(child) == getpgrp() && getsid(child) == getsid(0));
    SHOW(setpgid(child, 999999));
    SHOW(setpgid(child, child));
    SHOW(getpgid(child) == child);
    if (write(pipes[1], "x", 1) < 0)
        return;
    int status;
    waitpid(child, &status, 0);
    SHOW(WEXITSTATUS(status));
    child = fork();
    if (!child) {
        SHOW(setsid() == getpid());
        SHOW(setsid());
        SHOW(setpgid(0, 0));
        SHOW(getsid(0) == getpid() && getpgrp() == getpid());
        SHOW(tcgetpgrp(0));
        exit(0);
    }
    waitpid(child, &status, 0);
}

struct attributes {
    unsigned size, policy;
    unsigned long flags;
    int nice;
    unsigned priority;
    unsigned long rest[3];
};

static void scheduling(void) {
    struct sched_param p = {0};
    struct timespec t;
    struct attributes attr = {.size = sizeof attr};
    SHOW(sched_getscheduler(0));
    SHOW(sched_getscheduler(-1));
    SHOW(sched_getscheduler(999999));
    SHOW(sched_setscheduler(0, SCHED_BATCH, &p));
    SHOW(sched_getscheduler(0));
    SHOW(sched_setscheduler(0, SCHED_OTHER, &p));
    p.sched_priority = 1;
    SHOW(sched_setscheduler(0, SCHED_OTHER, &p));
    SHOW(sched_setscheduler(0, 77, &p));
    SHOW(sched_getparam(0, &p));
    SHOW(p.sched_priority);
    SHOW(sched_rr_get_interval(0, &t));
    SHOW(t.tv_sec == 0 && t.tv_nsec >= 0);
    SHOW(syscall(SYS_sched_getattr, 0, &attr, sizeof attr, 0));
    SHOW(attr.policy * 100 + attr.nice);
    SHOW(syscall(SYS_sched_getattr, 0, &attr, 8, 0));
    errno = 0;
    SHOW(getpriority(PRIO_PROCESS, 0));
    SHOW(setpriority(PRIO_PROCESS, 0, 5));
    SHOW(getpriority(PRIO_PROCESS, 0));
    SHOW(getpriority(PRIO_PROCESS, 999999));
    SHOW(getpriority(9, 0));
    attr = (struct attributes){.size = sizeof attr, .policy = SCHED_BATCH, .nice = 6};
    SHOW(syscall(SYS_sched_setattr, 0, &attr, 0));
    SHOW(getpriority(PRIO_PROCESS, 0) * 10 + sched_getscheduler(0));
    SHOW(sched_get_priority_max(SCHED_FIFO) * 1000 + sched_get_priority_min(SCHED_RR) * 10 + sched_get_priority_max(0));
    SHOW(sched_get_priority_max(99));
}

static void settings(void) {
    int value = 0;
    SHOW(prctl(PR_GET_DUMPABLE));
    SHOW(prctl(PR_SET_DUMPABLE, 7));
    SHOW(prctl(PR_SET_DUMPABLE, 0));
    SHOW(prctl(PR_GET_DUMPABLE));
    SHOW(prctl(PR_SET_PDEATHSIG, 65));
    SHOW(prctl(PR_SET_PDEATHSIG, SIGHUP));
    SHOW(prctl(PR_GET_PDEATHSIG, &value));
    SHOW(value);
    SHOW(prctl(PR_GET_TIMERSLACK));
    SHOW(prctl(PR_SET_TIMERSLACK, 1000));
    SHOW(prctl(PR_GET_TIMERSLACK));
    SHOW(prctl(PR_SET_TIMERSLACK, 0));
    SHOW(prctl(PR_GET_TIMERSLACK));
    SHOW(prctl(PR_GET_KEEPCAPS));
    SHOW(prctl(PR_SET_KEEPCAPS, 2));
    SHOW(prctl(PR_CAPBSET_READ, 0));
    SHOW(prctl(PR_CAPBSET_READ, 1000));
    SHOW(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    SHOW(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    SHOW(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    SHOW(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    SHOW(prctl(12345));
    struct {
        unsigned version;
        int pid;
    } header = {0, 0};
    struct {
        unsigned effective, permitted, inheritable;
    } data[2];
    SHOW(syscall(SYS_capget, &header, 0));
    SHOW(header.version == 0x20080522);
    SHOW(syscall(SYS_capget, &header, data));
    SHOW(syscall(SYS_capset, &header, data));
    data[0].effective &= ~1u;
    SHOW(syscall(SYS_capset, &header, data));
    data[0].permitted |= ~0u;
    data[0].permitted &= ~1u;
    SHOW(syscall(SYS_capget, &header, data));
    SHOW(data[0].effective & 1);
    header.pid = 999999;
    SHOW(syscall(SYS_capget, &header, data));
    static char big[3 << 20];
    SHOW(getrandom(big, sizeof big, 0));
    int filled = 0;
    for (unsigned i = sizeof big - 64; i < sizeof big; i++)
        filled += big[i] != 0;
    SHOW(filled > 32);
    SHOW(getrandom(big, 1, 0x100));
    SHOW(syscall(SYS_futex, 4096, 129, 1, 0, 0, 0));
}

int main(void) {
    if (getuid() == 0) {
        pid_t child = fork();
        if (!child) {
            gid_t list[3] = {5, 6, 7}, got[3] = {0};
            if (setgroups(3, list) || getgroups(0, 0) != 3 || getgroups(1, got) != -1 || getgroups(3, got) != 3 || got[2] != 7)
                exit(1);
            if (setresgid(2000, 2000, 2000) || setresuid(-1, 1000, -1) || !ids(0, 1000, 0) || seteuid(0) || setuid(1000))
                exit(2);
            ordinary();
            exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        if (status)
            return 100 + WEXITSTATUS(status);
    }
    groups();
    scheduling();
    settings();
    return 0;
}
