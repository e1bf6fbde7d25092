/* Job control on a pseudoterminal: what processes in the background may do with it, and who learns that it is gone. All that
 * processes of the sessions say comes through a pipe, in an order that follows from waits. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int master, tty, out;
static char name[64];
static volatile sig_atomic_t seen[65];

static void say(const char *what, long value) {
    char text[200];
    write(out, text, snprintf(text, sizeof text, "%s: %ld\n", what, value));
}

static void note(int signal) { seen[signal]++; }

static void handle(int signal) {
    struct sigaction action = {.sa_handler = note};
    sigaction(signal, &action, NULL);
}

static void block(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Starts a child in a group of its own. */
static pid_t start(void (*child)(void)) {
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        child();
        _exit(0);
    }
    setpgid(pid, pid);
    return pid;
}

/* Waits until a child stops or ends. */
static void wait_for(const char *what, pid_t pid) {
    int status;
    waitpid(pid, &status, WUNTRACED);
    say(what, WIFSTOPPED(status) ? WSTOPSIG(status) : WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : 100 + WEXITSTATUS(status));
}

static void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void to_foreground(pid_t group) {
    signal(SIGTTOU, SIG_IGN);
    say("tcsetpgrp", tcsetpgrp(tty, group));
    signal(SIGTTOU, SIG_DFL);
}

static long code(long result) { return result < 0 ? -errno : result; }

static void reads(void) {
    char text[10];
    _exit(read(tty, text, sizeof text));
}
static void reads_deaf(void) {
    char c;
    signal(SIGTTIN, SIG_IGN);
    say("ignored, read", code(read(tty, &c, 1)));
    signal(SIGTTIN, SIG_DFL);
    block(SIGTTIN);
    say("blocked, read", code(read(tty, &c, 1)));
}
static void reads_with_handler(void) {
    char c;
    handle(SIGTTIN);
    say("handled, read", code(read(tty, &c, 1)));
    say("SIGTTIN", seen[SIGTTIN]);
}
static void writes(void) { say("write", code(write(tty, "w", 1))); }
static void writes_deaf(void) {
    block(SIGTTOU);
    say("blocked, write", code(write(tty, "w", 1)));
}
static void changes(void) {
    struct termios modes;
    say("tcgetattr", tcgetattr(tty, &modes));
    say("tcsetattr", tcsetattr(tty, TCSANOW, &modes));
}
static void takes(void) { say("tcsetpgrp", tcsetpgrp(tty, getpgrp())); }

/* A process whose group nobody can continue. */
static int ready[2];
static void orphan(void) {
    pid_t parent = getpid(), pid = fork();
    if (pid > 0)
        _exit(0);
    while (getppid() == parent)
        usleep(1000);
    char c;
    read(ready[0], &c, 1);
    say("orphan, read", code(read(tty, &c, 1)));
}

static void jobs(void) {
    pid_t pid = start(reads);
    wait_for("reader", pid);
    to_foreground(pid);
    kill(-pid, SIGCONT);
    write(master, "line\n", 5);
    wait_for("reader", pid);
    to_foreground(getpgrp());
    wait_for("deaf reader", start(reads_deaf));
    wait_for("reader with handler", start(reads_with_handler));
    wait_for("writer", start(writes));
    struct termios modes;
    tcgetattr(tty, &modes);
    modes.c_lflag |= TOSTOP;
    tcsetattr(tty, TCSANOW, &modes);
    wait_for("writer with TOSTOP", pid = start(writes));
    to_foreground(pid);
    kill(-pid, SIGCONT);
    wait_for("writer with TOSTOP", pid);
    to_foreground(getpgrp());
    wait_for("deaf writer", start(writes_deaf));
    wait_for("changes", pid = start(changes));
    end(pid);
    wait_for("takes", pid = start(takes));
    end(pid);
    int gone[2];
    pipe(gone);
    pipe(ready);
    pid = start(orphan);
    close(gone[1]);
    wait_for("parent of orphan", pid);
    write(ready[1], "r", 1);
    char c;
    read(gone[0], &c, 1);
}

/* Processes that outlive the leader. */
static void tell_of_hangup(void) {
    handle(SIGHUP);
    handle(SIGCONT);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCONT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    write(ready[1], "r", 1);
    sigemptyset(&set);
    while (!seen[SIGHUP])
        sigsuspend(&set);
}
static void in_foreground(void) {
    close(master);
    tell_of_hangup();
    say("foreground, SIGHUP", seen[SIGHUP]);
}
static void stopped(void) {
    handle(SIGHUP);
    write(ready[1], "r", 1);
    raise(SIGSTOP);
    say("stopped, SIGHUP", seen[SIGHUP]);
}

static void leader_ends(void) {
    char c;
    pipe(ready);
    pid_t pid = start(in_foreground);
    tcsetpgrp(tty, pid);
    read(ready[0], &c, 1);
}
static void leader_leaves_stopped(void) {
    char c;
    pipe(ready);
    pid_t pid = start(stopped);
    read(ready[0], &c, 1);
    wait_for("stopped", pid);
}
static void leader_gives_up(void) {
    char c;
    pipe(ready);
    pid_t pid = start(in_foreground);
    tcsetpgrp(tty, pid);
    read(ready[0], &c, 1);
    signal(SIGTTOU, SIG_IGN);
    int result = ioctl(tty, TIOCNOTTY);
    waitpid(pid, NULL, 0);
    say("TIOCNOTTY", result);
    say("tcgetpgrp", code(tcgetpgrp(tty)));
}
static void master_closes(void) {
    char c;
    pipe(ready);
    pid_t pid = start(in_foreground);
    tcsetpgrp(tty, pid);
    read(ready[0], &c, 1);
    int leader[2];
    pipe(leader);
    ready[1] = leader[1];
    close(master);
    block(SIGHUP);
    block(SIGCONT);
    kill(getppid(), SIGUSR1);
    tell_of_hangup();
    say("leader, SIGHUP", seen[SIGHUP]);
    say("read", code(read(tty, &c, 1)));
    say("write", code(write(tty, "w", 1)));
    say("foreground still runs", waitpid(pid, NULL, WNOHANG));
}

/* Runs `leader` as the leader of a session with a terminal, and prints what all its processes say. */
static void session(const char *title, void (*leader)(void)) {
    int ends[2];
    char text[4096];
    ssize_t bytes;
    printf("-- %s\n", title);
    fflush(stdout);
    pipe(ends);
    master = posix_openpt(O_RDWR | O_NOCTTY);
    unlockpt(master);
    ptsname_r(master, name, sizeof name);
    seen[SIGUSR1] = 0;
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGUSR1, SIG_DFL);
        close(ends[0]);
        out = ends[1];
        setsid();
        tty = open(name, O_RDWR);
        leader();
        _exit(3);
    }
    close(ends[1]);
    if (leader == master_closes) {
        while (!seen[SIGUSR1])
            usleep(1000);
        close(master);
    }
    while ((bytes = read(ends[0], text, sizeof text)) != 0)
        if (bytes > 0) {
            fwrite(text, 1, bytes, stdout);
            fflush(stdout);
        }
    int status;
    waitpid(pid, &status, 0);
    printf("leader: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
    close(ends[0]);
    if (leader != master_closes)
        close(master);
}

int main(void) {
    handle(SIGUSR1);
    session("jobs", jobs);
    session("the leader ends", leader_ends);
    session("the leader leaves a stopped process", leader_leaves_stopped);
    session("the leader gives the terminal up", leader_gives_up);
    session("the master is closed", master_closes);
    return 0;
}
