/* Uses what a snapshot must store of files that are more than their contents: a FIFO that two processes open and use, a
 * lock that one holds and the other waits for, an event counter, and an epoll instance that watches it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PARTS = 20 };

static uint32_t state = 1;

/* Takes a while. */
static void work(void) {
    for (int i = 0; i < 20000; i++)
        state = state * 1664525 + 1013904223;
}

static int child(void) {
    int own = open("lock", O_RDWR), held = flock(own, LOCK_SH);
    int from = open("fifo", O_RDONLY), sum = 0;
    unsigned char part[7];
    ssize_t bytes;
    while ((bytes = read(from, part, sizeof part)) > 0) {
        for (ssize_t i = 0; i < bytes; i++)
            sum += part[i];
        work();
    }
    return held == 0 ? sum % 251 : 255;
}

int main(int argc, char **argv) {
    if (argc != 2 || chdir(argv[1]) != 0)
        return 1;
    int events = eventfd(3, EFD_SEMAPHORE | EFD_NONBLOCK), set = epoll_create1(0);
    struct epoll_event want = {.events = EPOLLIN, .data.u64 = 0x123456789abcdef}, got;
    int added = epoll_ctl(set, EPOLL_CTL_ADD, events, &want);
    int lock = open("lock", O_RDWR), held = flock(lock, LOCK_EX);
    pid_t pid = fork();
    if (pid == 0)
        return child();
    for (int i = 0; i < 5; i++)
        work();
    flock(lock, LOCK_UN);
    for (int i = 0; i < 5; i++)
        work();
    int to = open("fifo", O_WRONLY);
    for (int i = 0; i < PARTS; i++) {
        char part[20];
        memset(part, i, sizeof part);
        if (write(to, part, sizeof part) != sizeof part)
            return 2;
        work();
    }
    close(to);
    int times = 0;
    uint64_t value = 0, data = 0;
    while (epoll_wait(set, &got, 1, 0) == 1 && read(events, &value, sizeof value) == sizeof value) {
        times += (int)value;
        data = got.data.u64;
        work();
    }
    int status = 0;
    waitpid(pid, &status, 0);
    /* The buffer of standard output would depend on the file behind it. */
    char text[100];
    int length = snprintf(text, sizeof text, "%d %d, %d times %#lx, child %d\n", added, held, times,
                          (unsigned long)data, WEXITSTATUS(status));
    return write(1, text, length) != length;
}
