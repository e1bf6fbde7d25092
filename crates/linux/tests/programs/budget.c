/* Requests objects of one kind until the kernel refuses. The argument selects the kind; prints the number obtained and the error. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1l << 20)
#define PAGE 65536ul

static void got(const char *what, long count)
{
    printf("%s: %ld, then %s\n", what, count, strerrorname_np(errno));
    fflush(stdout);
}

static long processes(void)
{
    long count = 0;
    signal(SIGTERM, SIG_DFL);
    for (pid_t child; (child = fork()) >= 0; count++)
        if (child == 0) pause();
    got("processes", count);
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    while (wait(0) > 0)
        ;
    return count;
}

static void *wait_for_ever(void *unused)
{
    pause();
    return unused;
}

static void threads(void)
{
    long count = 0;
    pthread_attr_t small;
    pthread_attr_init(&small), pthread_attr_setstacksize(&small, 131072);
    for (pthread_t id; (errno = pthread_create(&id, &small, wait_for_ever, 0)) == 0;)
        count++;
    got("threads", count);
}

static long names(void)
{
    char name[64], text[4000];
    long count = 0;
    memset(text, 'x', sizeof text), text[sizeof text - 1] = 0;
    for (;; count++) {
        sprintf(name, "/dev/shm/%ld", count);
        if (count % 4 == 0 ? mkdir(name, 0700) : count % 4 == 1 ? mknod(name, S_IFREG | 0600, 0) : symlink(text, name)) break;
    }
    got("names", count);
    return count;
}

static void descriptors(const char *what)
{
    long count = 0;
    struct rlimit most = { 4096, 4096 };
    setrlimit(RLIMIT_NOFILE, &most);
    for (;; count++) {
        int pair[2], failed;
        if (!strcmp(what, "pipes")) failed = pipe(pair) || fcntl(pair[0], F_SETPIPE_SZ, MIB) < 0;
        else if (!strcmp(what, "sockets")) failed = socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        else if (!strcmp(what, "epolls")) failed = epoll_create1(0) < 0;
        else failed = eventfd(0, 0) < 0;
        if (failed) break;
    }
    got(what, count);
}

static void timers(void)
{
    long count = 0;
    for (timer_t timer; timer_create(CLOCK_MONOTONIC, 0, &timer) == 0;)
        count++;
    got("timers", count);
}

static void signals(void)
{
    long count = 0;
    sigset_t all;
    sigfillset(&all), sigprocmask(SIG_BLOCK, &all, 0);
    while (sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 }) == 0)
        count++;
    got("signals", count);
}

static void regions(void)
{
    /* Every other page of one mapping first: finding places for as many mappings would take long. */
    const long first = 64000;
    long count = 0;
    char *all = mmap(0, first * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) got("reserve", 0), exit(1);
    while (count < first && mprotect(all + count * PAGE, PAGE, PROT_READ) == 0)
        count += 2;
    for (;; count += 2) {
        char *at = mmap(0, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED || mprotect(at, PAGE, PROT_READ)) break;
    }
    got("regions", count);
}

static void tables(void)
{
    const unsigned long step = 1ul << 32;
    char *at = mmap(0, 1024 * step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) got("reserve", 0), exit(1);
    long count = 0;
    for (unsigned long i = 0; i < 1024; i++, count++)
        if (read(0, at + i * step, 1) != 0) break;
    got("pages far apart", count);
}

static void arguments(char *program)
{
    static char *list[400];
    char *word = malloc(100001);
    memset(word, 'x', 100000), word[100000] = 0;
    list[0] = program, list[1] = "none";
    for (int i = 2; i < 399; i++)
        list[i] = word;
    execv(program, list);
    got("arguments", 0);
    list[12] = 0;
    execv(program, list);
    got("fewer arguments", 0);
}

static void calls(void)
{
    for (long i = 0; i < 300000; i++)
        syscall(100000 + i);
    printf("calls: done\n");
}

static void channels(void)
{
    for (long i = 0; i < 100000; i++) {
        int pair[2];
        if (pipe(pair)) break;
        close(pair[0]), close(pair[1]);
    }
    printf("channels: done\n");
}

static void touch(void)
{
    char *at = mmap(0, 1024 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (long i = 0; i < 1024 * MIB; i += PAGE)
        at[i] = 1;
}

int main(int argc, char **argv)
{
    const char *what = argv[1];
    (void)argc;
    if (!strcmp(what, "processes")) printf("again: %s\n", processes() == processes() ? "as many" : "fewer");
    else if (!strcmp(what, "threads")) threads();
    else if (!strcmp(what, "names")) names(), unlink("/dev/shm/2"), printf("again: %d\n", symlink("x", "/dev/shm/x"));
    else if (!strcmp(what, "timers")) timers();
    else if (!strcmp(what, "signals")) signals();
    else if (!strcmp(what, "regions")) regions();
    else if (!strcmp(what, "tables")) tables();
    else if (!strcmp(what, "arguments")) arguments(argv[0]);
    else if (!strcmp(what, "calls")) calls();
    else if (!strcmp(what, "channels")) channels();
    else if (!strcmp(what, "touch")) touch();
    else if (!strcmp(what, "none")) printf("started\n");
    else descriptors(what);
    return 0;
}
