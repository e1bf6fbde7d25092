// Processes that stop and continue, and what their parents learn.

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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

static volatile int notes;
static volatile int last_code, last_status;

static void note(int n, siginfo_t *info, void *context) {
    (void)n;
    (void)context;
    last_code = info->si_code;
    last_status = info->si_status;
    notes++;
}

static volatile int continued;
static void on_continue(int n) {
    (void)n;
    continued++;
}

static int shown(int status) {
    if (WIFEXITED(status))
        return 1000 + WEXITSTATUS(status);
    if (WIFSIGNALED(status))
        return 2000 + WTERMSIG(status);
    if (WIFSTOPPED(status))
        return 3000 + WSTOPSIG(status);
    return WIFCONTINUED(status) ? 4000 : 0;
}

static void *spin(void *counter) {
    for (;;) {
        ++*(volatile long *)counter;
        usleep(100);
    }
    return 0;
}

// A child with two threads that stops by itself and counts while it runs.
static pid_t stopped_child(int signal_) {
    pid_t child = fork();
    if (child)
        return child;
    // A group of its own, which its parent could continue.
    setpgid(0, 0);
    static long counter;
    pthread_t thread;
    signal(SIGCONT, on_continue);
    pthread_create(&thread, 0, spin, &counter);
    usleep(1000);
    kill(getpid(), signal_);
    usleep(1000);
    exit(continued == 1 && counter > 0 ? 7 : 8);
}

// What QEMU does not do as Linux does.
static int not_in_qemu(void) {
    int status = 0;
    pid_t child;
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART};
    // Without SIGCHLD for stops; a handler learns of the end only.
    action.sa_flags |= SA_NOCLDSTOP;
    sigaction(SIGCHLD, &action, 0);
    notes = 0;
    child = stopped_child(SIGSTOP);
    SHOW(waitpid(child, &status, WUNTRACED) == child);
    SHOW(notes);
    kill(child, SIGCONT);
    SHOW(waitpid(child, &status, 0) == child);
    SHOW(notes);
    SHOW(last_code == CLD_EXITED && last_status == 7);

    // The end of a parent: a signal for its child, which the nearest ancestor that asked for it adopts.
    SHOW(prctl(PR_SET_CHILD_SUBREAPER, 1));
    int pipes[2];
    if (pipe(pipes))
        return 1;
    child = fork();
    if (!child) {
        if (!fork()) {
            prctl(PR_SET_PDEATHSIG, SIGUSR1);
            sigset_t set;
            sigemptyset(&set);
            sigaddset(&set, SIGUSR1);
            sigprocmask(SIG_BLOCK, &set, 0);
            if (write(pipes[1], "r", 1) < 0)
                exit(1);
            int got;
            sigwait(&set, &got);
            exit(got);
        }
        char c;
        exit(read(pipes[0], &c, 1) == 1 ? 0 : 1);
    }
    SHOW(waitpid(child, &status, 0) == child);
    SHOW(waitpid(-1, &status, 0) > 0);
    SHOW(shown(status));
    SHOW(waitpid(-1, &status, 0));
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1)
        return strcmp(argv[1], "alone") ? not_in_qemu() : raise(SIGSTOP);
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGCHLD, &action, 0);
    int status = 0;
    siginfo_t info;
    SHOW(waitpid(-1, &status, WUNTRACED));
    SHOW(waitid(P_ALL, 0, &info, WNOHANG));
    SHOW(waitid(P_ALL, 0, &info, 0x40));
    SHOW(syscall(260, -1, &status, 4, 0));

    pid_t child = stopped_child(SIGSTOP);
    SHOW(waitpid(child, &status, WUNTRACED) == child);
    SHOW(shown(status));
    SHOW(notes);
    SHOW(last_code == CLD_STOPPED && last_status == SIGSTOP);
    SHOW(waitpid(child, &status, WUNTRACED | WNOHANG));
    // Other signals wait until it continues.
    SHOW(waitpid(child, &status, WNOHANG));
    kill(child, SIGCONT);
    SHOW(waitpid(child, &status, WCONTINUED) == child);
    SHOW(shown(status));
    SHOW(waitpid(child, &status, 0) == child);
    SHOW(shown(status));

    // waitid, without taking the news; a stop that is continued before anybody asked.
    child = stopped_child(SIGTSTP);
    SHOW(waitid(P_PID, child, &info, WSTOPPED | WNOWAIT));
    SHOW(info.si_code == CLD_STOPPED && info.si_status == SIGTSTP && info.si_pid == child && info.si_signo == SIGCHLD);
    SHOW(waitid(P_PID, child, &info, WSTOPPED));
    info.si_pid = 1;
    SHOW(waitid(P_PID, child, &info, WSTOPPED | WEXITED | WNOHANG));
    SHOW(info.si_pid);
    kill(child, SIGCONT);
    SHOW(waitid(P_PID, child, &info, WSTOPPED | WCONTINUED));
    SHOW(info.si_code == CLD_CONTINUED && info.si_status == SIGCONT);
    SHOW(waitid(P_PID, child, &info, WEXITED | WSTOPPED));
    SHOW(info.si_status);

    // A stopped process takes no time, and SIGKILL ends it.
    child = stopped_child(SIGSTOP);
    waitpid(child, &status, WUNTRACED);
    kill(child, SIGTERM);
    usleep(2000);
    SHOW(waitpid(child, &status, WNOHANG));
    kill(child, SIGKILL);
    SHOW(waitpid(child, &status, WCONTINUED) == child);
    SHOW(shown(status));

    // SIGTERM arrives when it continues.
    child = stopped_child(SIGSTOP);
    waitpid(child, &status, WUNTRACED);
    kill(child, SIGTERM);
    kill(child, SIGCONT);
    SHOW(waitpid(child, &status, 0) == child);
    SHOW(shown(status));

    // Stops that are blocked, dropped by SIGCONT, ignored, and handled.
    child = fork();
    if (!child) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGTSTP);
        sigprocmask(SIG_BLOCK, &set, 0);
        raise(SIGTSTP);
        sigpending(&set);
        int before = sigismember(&set, SIGTSTP);
        kill(getpid(), SIGCONT);
        sigpending(&set);
        int after = sigismember(&set, SIGTSTP);
        sigemptyset(&set);
        sigprocmask(SIG_SETMASK, &set, 0);
        signal(SIGTTIN, SIG_IGN);
        raise(SIGTTIN);
        signal(SIGTTOU, on_continue);
        raise(SIGTTOU);
        exit(before * 100 + after * 10 + continued);
    }
    SHOW(waitpid(child, &status, WUNTRACED) == child);
    SHOW(shown(status));

    // A group that nobody could continue does not stop at a terminal's signal.
    child = fork();
    if (!child) {
        setsid();
        raise(SIGTSTP);
        exit(5);
    }
    SHOW(waitpid(child, &status, WUNTRACED) == child);
    SHOW(shown(status));

    // A parent stops its children's whole group, from a process that continues.
    child = fork();
    if (!child) {
        setpgid(0, 0);
        pid_t inner = fork();
        for (;;)
            pause();
        exit(inner);
    }
    setpgid(child, child);
    usleep(2000);
    SHOW(kill(-child, SIGSTOP));
    SHOW(waitpid(-child, &status, WUNTRACED) == child);
    SHOW(kill(-child, SIGCONT));
    SHOW(waitpid(child, &status, WCONTINUED) == child);
    SHOW(kill(-child, SIGKILL));
    SHOW(waitpid(child, &status, 0) == child);

    return 0;
}
