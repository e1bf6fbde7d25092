// Pseudoterminals: opening, modes, line editing, windows, sessions and their ends.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define SHOW(call)                                                             \
    do {                                                                       \
        errno = 0;                                                             \
        long result_ = (long)(call);                                           \
        printf("%s: %ld %s\n", #call, result_, result_ < 0 ? strerrorname_np(errno) : ""); \
        fflush(stdout);                                                        \
    } while (0)

static void show_read(const char *what, int fd) {
    char text[300];
    errno = 0;
    int n = read(fd, text, sizeof text);
    printf("%s: %d %s \"", what, n, n < 0 ? strerrorname_np(errno) : "");
    for (int i = 0; i < n; i++)
        printf(text[i] < 32 || text[i] == 127 ? "\\x%02x" : "%c", text[i]);
    printf("\"\n");
    fflush(stdout);
}

static int polled(int fd, short events, int ms) {
    struct pollfd p = {fd, events, 0};
    int n = poll(&p, 1, ms);
    return n > 0 ? p.revents : n;
}

static void type(int fd, const char *text) {
    if (write(fd, text, strlen(text)) != (int)strlen(text))
        printf("short write\n");
}

static volatile int signals;
static void note(int n) {
    signals = signals * 100 + n;
}

int main(void) {
    SHOW(isatty(0));
    SHOW(open("/dev/pts/9999", O_RDWR));
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    SHOW(master >= 0);
    char name[100];
    SHOW(ptsname_r(master, name, sizeof name));
    SHOW(!strncmp(name, "/dev/pts/", 9));
    SHOW(open(name, O_RDWR | O_NOCTTY));
    SHOW(grantpt(master));
    SHOW(unlockpt(master));
    int terminal = open(name, O_RDWR | O_NOCTTY);
    SHOW(terminal >= 0);
    SHOW(isatty(master) * 10 + isatty(terminal));
    char other[100];
    SHOW(ttyname_r(terminal, other, sizeof other));
    SHOW(strcmp(name, other));
    struct stat s;
    SHOW(fstat(terminal, &s));
    SHOW(S_ISCHR(s.st_mode) && major(s.st_rdev) == 136);
    SHOW(stat("/dev/ptmx", &s));
    SHOW(S_ISCHR(s.st_mode) && major(s.st_rdev) == 5 && minor(s.st_rdev) == 2);

    // Canonical mode with echo.
    SHOW(polled(terminal, POLLIN | POLLOUT, 0) == POLLOUT);
    type(master, "hel");
    SHOW(polled(terminal, POLLIN, 0));
    type(master, "p\x7flo\n");
    SHOW(polled(terminal, POLLIN | POLLOUT, 0) == (POLLIN | POLLOUT));
    int waiting;
    SHOW(ioctl(terminal, FIONREAD, &waiting));
    SHOW(waiting);
    show_read("line", terminal);
    show_read("echo", master);
    type(master, "two\nlines\nend\x04");
    show_read("line", terminal);
    show_read("line", terminal);
    show_read("end", terminal);
    type(master, "\x04");
    show_read("end of file", terminal);
    show_read("echo", master);
    SHOW(write(terminal, "out\n", 4));
    show_read("output", master);

    // Without them.
    struct termios modes, raw;
    SHOW(tcgetattr(terminal, &modes));
    SHOW(modes.c_lflag & (ICANON | ECHO | ISIG));
    SHOW(cfgetospeed(&modes) == B38400);
    raw = modes;
    cfmakeraw(&raw);
    SHOW(tcsetattr(terminal, TCSANOW, &raw));
    type(master, "a\r\x03\x04");
    show_read("raw", terminal);
    SHOW(polled(master, POLLIN, 0));
    SHOW(write(terminal, "raw\n", 4));
    show_read("output", master);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(terminal, TCSANOW, &raw);
    show_read("nothing", terminal);
    raw.c_cc[VTIME] = 1;
    tcsetattr(terminal, TCSANOW, &raw);
    show_read("nothing in time", terminal);
    type(master, "dropped");
    SHOW(tcflush(terminal, TCIFLUSH));
    SHOW(polled(terminal, POLLIN, 0));
    tcsetattr(terminal, TCSAFLUSH, &modes);

    // Windows; what only the master understands.
    struct winsize size = {24, 80, 0, 0}, got = {0};
    SHOW(ioctl(master, TIOCSWINSZ, &size));
    SHOW(ioctl(terminal, TIOCGWINSZ, &got));
    SHOW(got.ws_row * 1000 + got.ws_col);
    int number;
    SHOW(ioctl(terminal, TIOCGPTN, &number));
    SHOW(tcgetpgrp(terminal));
    fcntl(terminal, F_SETFL, O_NONBLOCK);
    show_read("empty", terminal);
    fcntl(terminal, F_SETFL, 0);
    SHOW(fcntl(terminal, F_GETFL) & O_ACCMODE);

    // A session with this controlling terminal; its foreground group gets the signals.
    fflush(stdout);
    int seen[2];
    char byte;
    pipe(seen);
    pid_t child = fork();
    if (!child) {
        close(master);
        setsid();
        SHOW(open("/dev/tty", O_RDWR));
        SHOW(ioctl(terminal, TIOCSCTTY, 0));
        SHOW(tcgetpgrp(terminal) == getpid());
        int again = open("/dev/tty", O_RDWR);
        SHOW(again >= 0);
        SHOW(tcsetpgrp(again, 999999));
        SHOW(tcsetpgrp(again, getpid()));
        signal(SIGINT, note);
        signal(SIGQUIT, note);
        signal(SIGWINCH, note);
        /* The parent prints when it has read this line, so print before. */
        printf("ready\n");
        write(again, "ready\n", 6);
        while (signals < 100)
            usleep(1000);
        SHOW(signals);
        write(seen[1], "", 1);
        while (signals < 20000)
            usleep(1000);
        SHOW(signals);
        write(seen[1], "", 1);
        show_read("child's line", again);
        close(again);
        close(terminal);
        exit(3);
    }
    close(terminal);
    show_read("child", master);
    type(master, "lost\x03");
    usleep(50000);
    type(master, "\x1c");
    read(seen[0], &byte, 1);
    size.ws_row = 50;
    ioctl(master, TIOCSWINSZ, &size);
    read(seen[0], &byte, 1);
    type(master, "typed\n");
    int status;
    SHOW(waitpid(child, &status, 0) == child);
    SHOW(WEXITSTATUS(status));
    show_read("echo", master);
    show_read("closed", master);
    close(master);
    SHOW(open(name, O_RDWR | O_NOCTTY) < 0);

    // The end of the master.
    master = posix_openpt(O_RDWR | O_NOCTTY);
    unlockpt(master);
    terminal = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
    SHOW(terminal >= 0);
    close(master);
    show_read("hung up", terminal);
    SHOW(write(terminal, "x", 1));
    return 0;
}
