// Descriptors of timers, signals and processes; transfers between pipes; record locks. Prints what each call returns.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SHOW(call)                                                             \
    do {                                                                       \
        errno = 0;                                                             \
        long result_ = (long)(call);                                           \
        printf("%s: %ld %s\n", #call, result_, result_ < 0 ? strerrorname_np(errno) : ""); \
        fflush(stdout);                                                        \
    } while (0)

static int polled(int fd, short events, int ms) {
    struct pollfd p = {fd, events, 0};
    int n = poll(&p, 1, ms);
    return n > 0 ? p.revents : n;
}

static long long now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static long long number(int fd) {
    uint64_t n = 0;
    return read(fd, &n, 8) == 8 ? (long long)n : -errno;
}

static struct itimerspec in(long ns, long interval) {
    return (struct itimerspec){{0, interval}, {0, ns}};
}

static void timers(void) {
    SHOW(timerfd_create(99, 0));
    SHOW(timerfd_create(CLOCK_MONOTONIC, 1));
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    SHOW(number(fd) == -EAGAIN);
    SHOW(fcntl(fd, F_GETFD));
    SHOW(fcntl(fd, F_GETFL) & O_NONBLOCK);
    SHOW(polled(fd, POLLIN | POLLOUT, 0));
    struct itimerspec set = in(20000000, 10000000), old;
    SHOW(timerfd_settime(fd, 0, &set, &old));
    SHOW(old.it_value.tv_nsec + old.it_interval.tv_nsec);
    SHOW(timerfd_gettime(fd, &old));
    SHOW(old.it_interval.tv_nsec);
    SHOW(old.it_value.tv_nsec > 0 && old.it_value.tv_nsec <= 20000000);
    long long start = now(CLOCK_MONOTONIC);
    SHOW(polled(fd, POLLIN, -1));
    SHOW(now(CLOCK_MONOTONIC) - start >= 10000000);
    struct timespec pause = {0, 25000000};
    nanosleep(&pause, 0);
    SHOW(number(fd) >= 3);
    set = in(0, 0);
    SHOW(timerfd_settime(fd, 0, &set, &old));
    SHOW(old.it_interval.tv_nsec);
    SHOW(polled(fd, POLLIN, 30));
    set.it_value.tv_nsec = 1000000000;
    SHOW(timerfd_settime(fd, 0, &set, 0));
    SHOW(timerfd_settime(0, 0, &old, 0));
    SHOW(timerfd_settime(fd, 8, &old, 0));
    SHOW(write(fd, &set, 8));
    char small[4];
    SHOW(read(fd, small, 4));
    close(fd);

    // Absolute times, on both clocks; a time that has passed expires at once.
    clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME};
    for (int i = 0; i < 3; i++) {
        fd = timerfd_create(clocks[i], 0);
        long long at = now(clocks[i]) + 5000000;
        set = (struct itimerspec){{0, 0}, {at / 1000000000, at % 1000000000}};
        SHOW(timerfd_settime(fd, TFD_TIMER_ABSTIME, &set, 0));
        SHOW(number(fd));
        SHOW(now(clocks[i]) >= at);
        set = (struct itimerspec){{0, 0}, {1, 0}};
        SHOW(timerfd_settime(fd, TFD_TIMER_ABSTIME, &set, 0));
        SHOW(number(fd));
        close(fd);
    }

    // In epoll with a pipe, shared with a child.
    fd = timerfd_create(CLOCK_MONOTONIC, 0);
    int set_ = epoll_create1(0), pipes[2];
    if (pipe(pipes))
        return;
    struct epoll_event e = {EPOLLIN | EPOLLOUT, {.u32 = 1}}, got[2];
    SHOW(epoll_ctl(set_, EPOLL_CTL_ADD, fd, &e));
    e = (struct epoll_event){EPOLLIN, {.u32 = 2}};
    SHOW(epoll_ctl(set_, EPOLL_CTL_ADD, pipes[0], &e));
    SHOW(epoll_wait(set_, got, 2, 0));
    set = in(5000000, 0);
    SHOW(timerfd_settime(fd, 0, &set, 0));
    SHOW(epoll_wait(set_, got, 2, -1));
    SHOW(got[0].data.u32 * 100 + got[0].events);
    fd_set wanted;
    FD_ZERO(&wanted);
    FD_SET(fd, &wanted);
    SHOW(select(fd + 1, &wanted, 0, 0, 0));
    pid_t child = fork();
    if (!child)
        _exit(number(fd));
    int status;
    waitpid(child, &status, 0);
    SHOW(WEXITSTATUS(status));
    SHOW(epoll_wait(set_, got, 2, 1));
    close(fd);
    close(set_);
}

static void *raise_later(void *thread) {
    usleep(50000);
    kill(getpid(), SIGUSR2);
    usleep(50000);
    union sigval value = {.sival_int = 77};
    sigqueue(getpid(), SIGRTMIN, value);
    return thread;
}

static void signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGRTMIN);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGKILL);
    sigprocmask(SIG_BLOCK, &set, 0);
    SHOW(signalfd(0, &set, 0));
    SHOW(signalfd(-1, &set, 1));
    int fd = signalfd(-1, &set, SFD_NONBLOCK);
    struct signalfd_siginfo info[4];
    SHOW(read(fd, info, sizeof *info));
    SHOW(read(fd, info, 100));
    SHOW(polled(fd, POLLIN | POLLOUT, 0));
    raise(SIGUSR1);
    kill(getpid(), SIGUSR2);
    SHOW(polled(fd, POLLIN, 0));
    SHOW(read(fd, info, sizeof info) / sizeof *info);
    SHOW(info[0].ssi_signo);
    SHOW(info[1].ssi_signo);
    SHOW(info[0].ssi_code == SI_TKILL && info[1].ssi_code == SI_USER);
    SHOW(info[1].ssi_pid == (unsigned)getpid());
    SHOW(polled(fd, POLLIN, 0));

    // A reader that waits; another thread sends.
    fcntl(fd, F_SETFL, 0);
    pthread_t thread;
    pthread_create(&thread, 0, raise_later, 0);
    SHOW(read(fd, info, sizeof info) / sizeof *info);
    SHOW(info[0].ssi_signo);
    SHOW(polled(fd, POLLIN, -1));
    SHOW(read(fd, info, sizeof info) / sizeof *info);
    SHOW(info[0].ssi_int);
    pthread_join(thread, 0);

    // The end of a child, in epoll; the child has its own pending signals.
    int poll_set = epoll_create1(0);
    struct epoll_event e = {EPOLLIN, {.u32 = 5}}, got[2];
    epoll_ctl(poll_set, EPOLL_CTL_ADD, fd, &e);
    pid_t child = fork();
    if (!child) {
        raise(SIGUSR1);
        int ready = polled(fd, POLLIN, 0);
        usleep(50000);
        _exit(ready);
    }
    SHOW(epoll_wait(poll_set, got, 2, 1));
    SHOW(epoll_wait(poll_set, got, 2, -1));
    SHOW(read(fd, info, sizeof info) / sizeof *info);
    SHOW(info[0].ssi_signo == SIGCHLD && info[0].ssi_pid == (unsigned)child && info[0].ssi_code == CLD_EXITED);
    SHOW(info[0].ssi_status);
    int status;
    SHOW(waitpid(child, &status, 0) == child);
    sigemptyset(&set);
    SHOW(signalfd(fd, &set, 0) == fd);
    raise(SIGUSR1);
    SHOW(polled(fd, POLLIN, 0));
    close(fd);
    signal(SIGUSR1, SIG_IGN);
    sigfillset(&set);
    sigprocmask(SIG_UNBLOCK, &set, 0);
}

static int got_signal;
static void note(int n, siginfo_t *info, void *context) {
    (void)context;
    got_signal = n * 1000 + info->si_value.sival_int;
}

static void processes(void) {
    SHOW(syscall(SYS_pidfd_open, 0, 0));
    SHOW(syscall(SYS_pidfd_open, getpid(), 1));
    SHOW(syscall(SYS_pidfd_open, 999999, 0));
    SHOW(syscall(SYS_pidfd_send_signal, 0, SIGTERM, 0, 0));
    int pipes[2];
    if (pipe(pipes))
        return;
    pid_t child = fork();
    if (!child) {
        char c;
        close(pipes[1]);
        _exit(read(pipes[0], &c, 1) == 1 ? c : 1);
    }
    int fd = syscall(SYS_pidfd_open, child, 0);
    SHOW(fcntl(fd, F_GETFD));
    SHOW(polled(fd, POLLIN, 0));
    SHOW(syscall(SYS_pidfd_send_signal, fd, 0, 0, 0));
    siginfo_t info;
    SHOW(waitid(P_PIDFD, fd, &info, WEXITED | WNOHANG));
    SHOW(info.si_pid);
    char c;
    SHOW(read(fd, &c, 1));
    SHOW(write(pipes[1], "*", 1));
    SHOW(polled(fd, POLLIN, -1));
    SHOW(syscall(SYS_pidfd_open, child, 0) > 0);
    SHOW(waitid(P_PIDFD, fd, &info, WEXITED));
    SHOW(info.si_pid == child && info.si_status == '*');
    SHOW(syscall(SYS_pidfd_send_signal, fd, SIGTERM, 0, 0));
    SHOW(waitid(P_PIDFD, fd, &info, WEXITED));
    SHOW(waitid(P_PIDFD, 0, &info, WEXITED));
    close(fd);

    // A signal with a value to itself.
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, 0);
    fd = syscall(SYS_pidfd_open, getpid(), 0);
    siginfo_t queued = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    queued.si_value.sival_int = 5;
    SHOW(syscall(SYS_pidfd_send_signal, fd, SIGUSR1, &queued, 0));
    SHOW(got_signal);
    close(fd);
}

// `CLONE_PIDFD`, which QEMU does not have, and a descriptor of another process.
static void clone_with_descriptor(void) {
    siginfo_t info;
    pid_t child;
    int own = 0;
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    } args = {.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&own, .exit_signal = SIGCHLD};
    child = syscall(SYS_clone3, &args, sizeof args);
    if (!child) {
        int counter = eventfd(42, 0);
        dup2(counter, 100);
        pause();
    }
    usleep(50000);
    int counter = syscall(SYS_pidfd_getfd, own, 100, 0);
    SHOW(number(counter));
    SHOW(fcntl(counter, F_GETFD));
    SHOW(syscall(SYS_pidfd_getfd, own, 101, 0));
    SHOW(syscall(SYS_pidfd_send_signal, own, SIGKILL, 0, 0));
    SHOW(polled(own, POLLIN, -1));
    SHOW(waitid(P_PIDFD, own, &info, WEXITED));
    SHOW(info.si_code == CLD_KILLED && info.si_status == SIGKILL);
}

static int writer;
static void *write_later(void *text) {
    usleep(50000);
    if (write(writer, text, strlen(text)) < 0)
        perror("write");
    return 0;
}

static void transfers(const char *folder) {
    int a[2], b[2], s[2];
    if (pipe(a) || pipe(b) || socketpair(AF_UNIX, SOCK_STREAM, 0, s))
        return;
    char text[100] = "";
    SHOW(write(a[1], "hello world", 11));
    SHOW(tee(a[0], b[1], 5, 0));
    SHOW(splice(a[0], 0, b[1], 0, 100, SPLICE_F_MOVE));
    SHOW(read(b[0], text, sizeof text));
    printf("%s\n", text);
    SHOW(splice(a[0], 0, b[1], 0, 1, SPLICE_F_NONBLOCK));
    SHOW(splice(a[0], 0, a[1], 0, 1, 0));
    SHOW(splice(s[0], 0, s[1], 0, 1, 0));
    SHOW(splice(a[1], 0, b[1], 0, 1, 0));
    SHOW(splice(a[0], 0, b[1], 0, 1, 64));
    loff_t at = 3;
    SHOW(splice(a[0], &at, b[1], 0, 1, 0));
    SHOW(tee(a[0], s[0], 1, 0));

    // It waits for a writer.
    pthread_t thread;
    writer = a[1];
    pthread_create(&thread, 0, write_later, "later");
    SHOW(splice(a[0], 0, b[1], 0, 100, 0));
    pthread_join(thread, 0);
    SHOW(read(b[0], text, sizeof text));

    // From a file, to a file, from and to a socket.
    char name[300];
    snprintf(name, sizeof name, "%s/spliced", folder);
    int file = open(name, O_RDWR | O_CREAT, 0600);
    SHOW(write(file, "0123456789", 10));
    SHOW(splice(file, &at, a[1], 0, 4, 0));
    SHOW(at);
    SHOW(splice(a[0], 0, file, 0, 100, 0));
    at = 1;
    SHOW(write(a[1], "xy", 2));
    SHOW(splice(a[0], 0, file, &at, 100, 0));
    SHOW(at);
    memset(text, 0, sizeof text);
    SHOW(pread(file, text, sizeof text, 0));
    printf("%s\n", text);
    SHOW(splice(file, 0, a[1], 0, 100, 0));
    SHOW(write(s[0], "socket", 6));
    SHOW(splice(s[1], 0, a[1], 0, 100, 0));
    SHOW(splice(a[0], 0, s[1], 0, 4, 0));
    memset(text, 0, sizeof text);
    SHOW(read(s[0], text, sizeof text));
    printf("%s\n", text);
    SHOW(splice(s[1], 0, a[1], 0, 100, SPLICE_F_NONBLOCK));
    struct iovec pieces[2] = {{"vm", 2}, {"splice", 6}};
    SHOW(vmsplice(b[1], pieces, 2, 0));
    memset(text, 0, sizeof text);
    struct iovec room = {text, 5};
    SHOW(vmsplice(b[0], &room, 1, 0));
    printf("%s\n", text);
    SHOW(vmsplice(file, &room, 1, 0));
    close(a[0]);
    signal(SIGPIPE, SIG_IGN);
    SHOW(splice(b[0], 0, a[1], 0, 10, 0));
    close(file);
}

static struct flock range(short kind, long start, long len) {
    return (struct flock){.l_type = kind, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
}

static int set(int fd, int command, short kind, long start, long len) {
    struct flock f = range(kind, start, len);
    return fcntl(fd, command, &f) ? -errno : 0;
}

static void show_obstacle(int fd, short kind, long start, long len, pid_t owner) {
    struct flock f = range(kind, start, len);
    if (fcntl(fd, F_GETLK, &f))
        perror("F_GETLK");
    if (f.l_type == F_UNLCK)
        printf("free\n");
    else
        printf("type %d from %ld, %ld bytes, owner %s\n", f.l_type, (long)f.l_start, (long)f.l_len,
               f.l_pid == owner ? "known" : f.l_pid == -1 ? "none" : "unknown");
    fflush(stdout);
}

static int in_child(int (*what)(int, pid_t), int fd) {
    fflush(stdout);
    pid_t parent = getpid(), child = fork();
    if (!child)
        exit(what(fd, parent));
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static int examine(int fd, pid_t parent) {
    show_obstacle(fd, F_WRLCK, 0, 0, parent);
    show_obstacle(fd, F_RDLCK, 0, 0, parent);
    show_obstacle(fd, F_RDLCK, 50, 5, parent);
    SHOW(set(fd, F_SETLK, F_WRLCK, 0, 100));
    SHOW(set(fd, F_SETLK, F_RDLCK, 0, 10));
    SHOW(set(fd, F_SETLK, F_WRLCK, 30, 10));
    return 3;
}

static int lock_all(int fd, pid_t parent) {
    (void)parent;
    return -set(fd, F_SETLK, F_WRLCK, 0, 0);
}

static void locks(const char *folder) {
    char name[300];
    snprintf(name, sizeof name, "%s/locked", folder);
    int fd = open(name, O_RDWR | O_CREAT, 0600), reader = open(name, O_RDONLY);
    SHOW(write(fd, "0123456789", 10));
    SHOW(set(fd, F_SETLK, 7, 0, 1));
    SHOW(set(fd, F_SETLK, F_RDLCK, -1, 1));
    SHOW(set(reader, F_SETLK, F_WRLCK, 0, 1));
    SHOW(set(99, F_SETLK, F_WRLCK, 0, 1));
    SHOW(set(fd, F_SETLK, F_RDLCK, 0, 20));
    SHOW(set(fd, F_SETLK, F_WRLCK, 50, 50));
    struct flock end = {.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = 100, .l_len = -5};
    SHOW(fcntl(fd, F_SETLK, &end));
    SHOW(in_child(examine, fd));
    SHOW(set(fd, F_SETLK, F_WRLCK, 60, 5));
    SHOW(set(fd, F_SETLK, F_UNLCK, 60, 10));
    SHOW(in_child(examine, fd));
    // Closing any descriptor of the file ends them all.
    close(reader);
    SHOW(in_child(lock_all, fd));
    SHOW(set(fd, F_SETLK, F_WRLCK, 0, 0));
    SHOW(in_child(lock_all, fd));
    close(dup(fd));
    SHOW(in_child(lock_all, fd));

    // A child that waits until its parent unlocks, and one that a signal interrupts.
    int pipes[2];
    if (pipe(pipes))
        return;
    set(fd, F_SETLK, F_WRLCK, 0, 10);
    pid_t child = fork();
    if (!child) {
        int result = set(fd, F_SETLKW, F_WRLCK, 5, 1);
        if (write(pipes[1], "c", 1) < 0)
            result = 9;
        _exit(-result);
    }
    usleep(50000);
    SHOW(polled(pipes[0], POLLIN, 0));
    SHOW(set(fd, F_SETLK, F_UNLCK, 0, 10));
    int status;
    SHOW(waitpid(child, &status, 0) == child && status == 0);
    SHOW(polled(pipes[0], POLLIN, 0));
    set(fd, F_SETLK, F_WRLCK, 0, 10);
    child = fork();
    if (!child) {
        struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
        sigaction(SIGALRM, &action, 0);
        ualarm(50000, 0);
        _exit(-set(fd, F_SETLKW, F_WRLCK, 5, 1));
    }
    waitpid(child, &status, 0);
    SHOW(WEXITSTATUS(status) == EINTR);

    // Each waits for the other: the second one fails.
    child = fork();
    if (!child) {
        set(fd, F_SETLK, F_WRLCK, 20, 1);
        set(fd, F_SETLKW, F_WRLCK, 0, 1);
        _exit(0);
    }
    usleep(50000);
    SHOW(set(fd, F_SETLKW, F_WRLCK, 20, 1) == -EDEADLK);
    set(fd, F_SETLK, F_UNLCK, 0, 0);
    waitpid(child, &status, 0);
    // The end of a process ends its locks.
    SHOW(set(fd, F_SETLK, F_WRLCK, 0, 0));
    set(fd, F_SETLK, F_UNLCK, 0, 0);

    // Locks of open file descriptions are shared with children and duplicates, not with another `open`.
    int other = open(name, O_RDWR);
    SHOW(set(fd, F_OFD_SETLK, F_WRLCK, 0, 10));
    SHOW(set(fd, F_OFD_SETLK, F_WRLCK, 0, 10));
    SHOW(set(other, F_OFD_SETLK, F_WRLCK, 5, 10) == -EAGAIN);
    SHOW(set(other, F_SETLK, F_WRLCK, 5, 10) == -EAGAIN);
    show_obstacle(other, F_WRLCK, 0, 0, 1);
    struct flock with_pid = range(F_WRLCK, 0, 1);
    with_pid.l_pid = 1;
    SHOW(fcntl(fd, F_OFD_SETLK, &with_pid));
    int copy = dup(fd);
    close(fd);
    SHOW(set(other, F_OFD_SETLK, F_WRLCK, 5, 10) == -EAGAIN);
    close(copy);
    SHOW(set(other, F_OFD_SETLK, F_WRLCK, 5, 10));
}

static void show_events(int fd) {
    char buffer[4096] __attribute__((aligned(8)));
    errno = 0;
    int n = read(fd, buffer, sizeof buffer);
    if (n < 0)
        printf("%s\n", strerrorname_np(errno));
    for (char *at = buffer; n > 0 && at < buffer + n;) {
        struct inotify_event *e = (struct inotify_event *)at;
        printf("watch %d mask %x %s\n", e->wd, e->mask, e->len ? e->name : "");
        at += sizeof *e + e->len;
    }
    fflush(stdout);
}

static void changes(const char *folder) {
    char name[300], other[300];
    snprintf(name, sizeof name, "%s/watched", folder);
    snprintf(other, sizeof other, "%s/renamed", folder);
    SHOW(inotify_init1(1));
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    SHOW(fcntl(fd, F_GETFD));
    SHOW(inotify_add_watch(fd, "/no/such/file", IN_CREATE));
    SHOW(inotify_add_watch(fd, folder, 0));
    SHOW(inotify_add_watch(1, folder, IN_CREATE));
    SHOW(inotify_add_watch(fd, folder, IN_CREATE | IN_MOVE | IN_DELETE));
    SHOW(polled(fd, POLLIN, 0));
    int file = open(name, O_CREAT | O_RDWR, 0600);
    SHOW(polled(fd, POLLIN, 0));
    show_events(fd);
    SHOW(inotify_add_watch(fd, name, IN_MODIFY | IN_CLOSE_WRITE));
    SHOW(write(file, "x", 1));
    close(file);
    show_events(fd);
    SHOW(rename(name, other));
    SHOW(unlink(other));
    SHOW(inotify_rm_watch(fd, 1));
    SHOW(inotify_rm_watch(fd, 99));
    for (int i = 0; i < 2; i++)
        show_events(fd);
    fcntl(fd, F_SETFL, 0);
    SHOW(inotify_add_watch(fd, folder, IN_CREATE));
    pid_t child = fork();
    if (!child) {
        usleep(50000);
        _exit(mkdir(name, 0700));
    }
    show_events(fd);
    waitpid(child, 0, 0);
    rmdir(name);
}

static void direct(const char *folder) {
    char name[300];
    snprintf(name, sizeof name, "%s/direct", folder);
    int fd = open(name, O_CREAT | O_RDWR | O_TRUNC | O_DIRECT, 0600);
    SHOW(fd >= 0);
    char *block = aligned_alloc(4096, 16384), *other = aligned_alloc(4096, 16384);
    memset(block, 'a', 8192);
    SHOW(write(fd, block, 8192));
    SHOW(pwrite(fd, block, 4096, 8192));
    SHOW(pread(fd, other, 16384, 0));
    SHOW(memcmp(block, other, 8192));
    SHOW(lseek(fd, 0, SEEK_SET));
    SHOW(read(fd, other, 4096));
    SHOW(fcntl(fd, F_SETFL, 0));
    SHOW(fcntl(fd, F_GETFL) & O_DIRECT);
    SHOW(read(fd, other + 1, 100));
    SHOW(fcntl(fd, F_SETFL, O_DIRECT));
    SHOW((fcntl(fd, F_GETFL) & O_DIRECT) == O_DIRECT);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "timers"))
        timers();
    else if (!strcmp(what, "signals"))
        signals();
    else if (!strcmp(what, "processes"))
        processes();
    else if (!strcmp(what, "clone"))
        clone_with_descriptor();
    else if (!strcmp(what, "transfers"))
        transfers(argv[2]);
    else if (!strcmp(what, "changes"))
        changes(argv[2]);
    else if (!strcmp(what, "direct"))
        direct(argv[2]);
    else if (!strcmp(what, "locks"))
        locks(argv[2]);
    return 0;
}
