/* Processes: fork, pipes, wait, signals between them, vfork, exec, spawn. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static int counter = 5;
static volatile sig_atomic_t children, usr1;

static void on_child(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    children += info->si_code == CLD_EXITED ? 1 : 100;
}

static void on_usr1(int signal)
{
    (void)signal;
    usr1++;
}

static void report(const char *name, int status)
{
    if (WIFEXITED(status))
        printf("%s: exit %d\n", name, WEXITSTATUS(status));
    else
        printf("%s: signal %d\n", name, WTERMSIG(status));
    fflush(stdout);
}

static void forks(void)
{
    struct sigaction action = { .sa_sigaction = on_child, .sa_flags = SA_SIGINFO };
    sigaction(SIGCHLD, &action, NULL);
    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd[2], status;
    pipe(fd);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        char buffer[100];
        counter = 77;
        *shared = 42;
        int n = read(fd[0], buffer, sizeof buffer);
        _exit(getppid() == parent && n == 5 && !memcmp(buffer, "hello", 5) && getpid() != parent ? 3 : 4);
    }
    write(fd[1], "hello", 5);
    pid_t got = waitpid(child, &status, 0);
    report("child", status);
    printf("right child %d counter %d shared %d handler %d\n", got == child, counter, *shared, (int)children);
    printf("no more: %d %s\n", (int)wait(NULL), strerror(errno));

    /* More than a pipe holds, read slowly. */
    if (fork() == 0) {
        close(fd[0]);
        static char block[300000];
        memset(block, 'x', sizeof block);
        write(fd[1], block, sizeof block);
        _exit(0);
    }
    close(fd[1]);
    static char block[7000];
    long total = 0;
    for (ssize_t n; (n = read(fd[0], block, sizeof block)) > 0;)
        total += n;
    close(fd[0]);
    wait(&status);
    report("writer", status);
    printf("read %ld\n", total);

    child = fork();
    if (child == 0)
        for (;;)
            pause();
    printf("none yet %d\n", (int)waitpid(child, &status, WNOHANG));
    kill(child, SIGTERM);
    siginfo_t info;
    waitid(P_PID, child, &info, WEXITED | WNOWAIT);
    printf("waitid %d %d %d\n", info.si_pid == child, info.si_code == CLD_KILLED, info.si_status);
    wait(&status);
    report("killed", status);

    signal(SIGUSR1, on_usr1);
    if (fork() == 0) {
        kill(parent, SIGUSR1);
        _exit(0);
    }
    wait(&status);
    printf("from child %d\n", (int)usr1);
    child = fork();
    if (child == 0)
        abort();
    waitpid(child, &status, 0);
    report("abort", status);
    signal(SIGCHLD, SIG_IGN);
    if (fork() == 0)
        _exit(1);
    printf("ignored: %d %s\n", (int)wait(NULL), strerror(errno));
    signal(SIGCHLD, SIG_DFL);
    /* A reader without writers, a writer without readers. */
    signal(SIGPIPE, SIG_IGN);
    pipe(fd);
    close(fd[0]);
    printf("broken: %d %s\n", (int)write(fd[1], "x", 1), strerror(errno));
    fflush(stdout);
}

static void *post(void *fd)
{
    usleep(2000);
    write(*(int *)fd, "abc", 3);
    return NULL;
}

static void polls(void)
{
    int fd[2];
    pipe(fd);
    struct pollfd p[2] = { { .fd = fd[0], .events = POLLIN }, { .fd = fd[1], .events = POLLOUT } };
    printf("poll %d", poll(p, 2, 0));
    printf(" %x %x\n", p[0].revents, p[1].revents);
    printf("poll time out %d\n", poll(p, 1, 20));
    pthread_t thread;
    pthread_create(&thread, NULL, post, &fd[1]);
    int n = poll(p, 1, -1);
    printf("poll %d %x\n", n, p[0].revents);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd[0], &set);
    struct timeval t = { 1, 0 };
    n = select(fd[0] + 1, &set, NULL, NULL, &t);
    printf("select %d %d\n", n, FD_ISSET(fd[0], &set));
    char buffer[8];
    printf("read %d\n", (int)read(fd[0], buffer, 8));
    pthread_join(thread, NULL);
    close(fd[1]);
    printf("end %d\n", (int)read(fd[0], buffer, 8));
    fflush(stdout);
}

static void execs(char *self, char *path)
{
    int status;
    pid_t child;
    char *arguments[] = { self, "child", "a b", NULL };
    if (posix_spawn(&child, self, NULL, NULL, arguments, environ))
        exit(1);
    waitpid(child, &status, 0);
    report("spawned", status);
    printf("spawn of nothing: %s\n", strerror(posix_spawn(&child, "/nonexistent", NULL, NULL, arguments, environ)));
    child = vfork();
    if (child == 0) {
        counter++;
        execv(self, arguments);
        _exit(9);
    }
    waitpid(child, &status, 0);
    printf("counter %d\n", counter);
    report("vfork", status);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        execl("/dev/null", "null", NULL);
        _exit(errno == EACCES ? 5 : 6);
    }
    waitpid(child, &status, 0);
    report("no program", status);
    printf("system %d\n", WEXITSTATUS(system("seven")));
    FILE *pipe = popen("echo", "r");
    char line[100] = "";
    fgets(line, sizeof line, pipe);
    printf("popen %s", line);
    printf("status %d\n", WEXITSTATUS(pclose(pipe)));
    fflush(stdout);
    char *script[] = { "script", "more", NULL };
    execv(path, script);
    printf("no script: %s\n", strerror(errno));
}

static long faults_in(const char *file, int field)
{
    char line[1000], *at;
    FILE *f = fopen(file, "r");
    fgets(line, sizeof line, f);
    fclose(f);
    at = strrchr(line, ')') + 2;
    for (int i = 3; i < field; i++)
        at = strchr(at, ' ') + 1;
    return atol(at);
}

/* Touches `pages` pages of 64 KiB, each an area of its own. */
static void touch(int pages)
{
    for (int i = 0; i < pages; i++)
        *(volatile char *)mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1;
}

static void *touches(void *arg)
{
    struct rusage before, after;
    getrusage(RUSAGE_THREAD, &before);
    touch(20);
    usleep(1000);
    getrusage(RUSAGE_THREAD, &after);
    printf("thread: faults %d waits %d\n", after.ru_minflt - before.ru_minflt >= 20, after.ru_nvcsw > before.ru_nvcsw);
    return arg;
}

/* What getrusage, wait4 and /proc say of page faults, waits and memory. */
static void usage(void)
{
    struct rusage before, after, child;
    getrusage(RUSAGE_SELF, &before);
    pthread_t thread;
    pthread_create(&thread, NULL, touches, NULL);
    pthread_join(thread, NULL);
    touch(30);
    getrusage(RUSAGE_SELF, &after);
    /* Those of the thread that has ended, too. */
    printf("process: faults %d waits %d memory %d\n", after.ru_minflt - before.ru_minflt >= 50,
           after.ru_nvcsw >= before.ru_nvcsw + 2, after.ru_maxrss >= before.ru_maxrss && after.ru_maxrss >= 50 * 4);
    printf("stat: %d\n", faults_in("/proc/self/stat", 10) >= after.ru_minflt);
    void *large = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(large, 1, 8 << 20);
    munmap(large, 8 << 20);
    getrusage(RUSAGE_SELF, &after);
    printf("the most: %d\n", after.ru_maxrss >= 8 << 10);
    getrusage(RUSAGE_CHILDREN, &before);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        touch(200);
        usleep(1000);
        _exit(0);
    }
    wait4(pid, NULL, 0, &child);
    getrusage(RUSAGE_CHILDREN, &after);
    printf("child: faults %d waits %d memory %d\n", child.ru_minflt >= 200, child.ru_nvcsw >= 1, child.ru_maxrss >= 200 * 4);
    printf("children: faults %d memory %d stat %d\n", after.ru_minflt == before.ru_minflt + child.ru_minflt,
           after.ru_maxrss >= child.ru_maxrss, faults_in("/proc/self/stat", 11) == after.ru_minflt);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "-c")) {
        /* Runs as a shell. */
        if (!strcmp(argv[2], "echo"))
            puts("echoed");
        return !strcmp(argv[2], "seven") ? 7 : 0;
    }
    if (argc > 2 && !strcmp(argv[1], "child")) {
        printf("child of spawn: %s\n", argv[2]);
        return 6;
    }
    if (argc > 2 && !strcmp(argv[1], "script")) {
        argv[2] = strrchr(argv[2], '/') + 1;
        for (int i = 1; i < argc; i++)
            printf("%s%s", argv[i], i + 1 < argc ? " " : "\n");
        return 11;
    }
    if (argc > 2 && !strcmp(argv[1], "exec"))
        execs(argv[0], argv[2]);
    else if (argc > 1 && !strcmp(argv[1], "poll"))
        polls();
    else if (argc > 1 && !strcmp(argv[1], "usage"))
        usage();
    else
        forks();
    return 0;
}
