// Instances of epoll in one another: readiness, flags, and what Linux refuses. Prints what each call returns.

#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHOW(call)                                                             \
    do {                                                                       \
        errno = 0;                                                             \
        long result_ = (long)(call);                                           \
        printf("%s: %ld %s\n", #call, result_, result_ < 0 ? strerrorname_np(errno) : ""); \
        fflush(stdout);                                                        \
    } while (0)

static int control(int set, int op, int fd, unsigned events, uint64_t data) {
    struct epoll_event event = {.events = events, .data.u64 = data};
    return epoll_ctl(set, op, fd, &event);
}

static int add(int set, int fd, unsigned events, uint64_t data) { return control(set, EPOLL_CTL_ADD, fd, events, data); }

// Prints the events of a wait.
static void show(const char *what, int set, int ms) {
    struct epoll_event events[8];
    int n = epoll_wait(set, events, 8, ms);
    printf("%s: %d", what, n);
    for (int i = 0; i < n; i++)
        printf(" %llu:%x", (unsigned long long)events[i].data.u64, events[i].events);
    puts("");
    fflush(stdout);
}

static int polled(int fd) {
    struct pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

static void put(int fd) { write(fd, &(uint64_t){1}, 8); }
static void take(int fd) { read(fd, &(uint64_t){0}, 8); }

static int counter;
static void *later(void *unused) {
    usleep(2000);
    put(counter);
    return unused;
}

// A chain of three, the innermost with a counter.
static void readiness(void) {
    int inner = epoll_create1(0), middle = epoll_create1(0), outer = epoll_create1(EPOLL_CLOEXEC);
    counter = eventfd(0, EFD_NONBLOCK);
    SHOW(add(inner, counter, EPOLLIN, 1));
    SHOW(add(middle, inner, EPOLLIN, 2));
    SHOW(add(outer, middle, EPOLLIN | EPOLLOUT, 3));
    show("nothing", outer, 0);
    put(counter);
    show("level", outer, 0);
    show("level again", outer, 0);
    printf("polled %x %x\n", polled(inner), polled(outer));
    show("inner", inner, 0);
    take(counter);
    show("taken", outer, 0);
    printf("polled %x\n", polled(outer));
    pthread_t thread;
    pthread_create(&thread, 0, later, 0);
    show("waited", outer, -1);
    pthread_join(thread, 0);
    take(counter);
    if (fork() == 0) {
        put(counter);
        _exit(0);
    }
    show("by a child", outer, -1);
    wait(0);
    show("of the middle", middle, 0);
    close(counter);
    show("closed", outer, 0);
    close(inner), close(middle), close(outer);
}

static void flags(void) {
    int inner = epoll_create1(0), outer = epoll_create1(0);
    counter = eventfd(0, 0);
    add(inner, counter, EPOLLIN, 1);
    add(outer, inner, EPOLLIN | EPOLLET, 2);
    put(counter);
    show("edge", outer, 0);
    show("no edge", outer, 0);
    put(counter);
    show("edge again", outer, 0);
    take(counter);
    SHOW(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | EPOLLONESHOT, 3));
    put(counter);
    show("once", outer, 0);
    put(counter);
    show("only once", outer, 0);
    SHOW(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | EPOLLONESHOT, 4));
    show("once more", outer, 0);
    SHOW(control(outer, EPOLL_CTL_MOD, inner, 0, 4));
    show("nothing wanted", outer, 0);
    SHOW(epoll_ctl(outer, EPOLL_CTL_DEL, inner, 0));
    SHOW(epoll_ctl(outer, EPOLL_CTL_DEL, inner, 0));
    SHOW(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN, 4));
    SHOW(add(outer, inner, EPOLLIN | EPOLLEXCLUSIVE, 5));
    SHOW(add(outer, inner, EPOLLIN, 5));
    SHOW(add(outer, inner, EPOLLIN, 5));
    int twice = dup(inner);
    SHOW(add(outer, twice, EPOLLIN, 6));
    show("twice", outer, 0);
    close(inner), close(twice);
    show("closed", outer, 0);
    close(outer), close(counter);
}

static void refused(void) {
    int sets[8];
    for (int i = 0; i < 8; i++) sets[i] = epoll_create1(0);
    SHOW(add(sets[0], sets[0], EPOLLIN, 0));
    SHOW(add(sets[1], sets[0], EPOLLIN, 0));
    SHOW(add(sets[0], sets[1], EPOLLIN, 0));
    SHOW(add(sets[2], sets[1], EPOLLIN, 0));
    SHOW(add(sets[0], sets[2], EPOLLIN, 0));
    SHOW(add(sets[3], sets[2], EPOLLIN, 0));
    SHOW(add(sets[4], sets[3], EPOLLIN, 0));
    SHOW(add(sets[5], sets[4], EPOLLIN, 0));
    SHOW(add(sets[6], sets[5], EPOLLIN, 0));
    SHOW(add(sets[7], sets[6], EPOLLIN, 0));
    int file = memfd_create("file", 0), plain = eventfd(0, 0);
    SHOW(add(sets[0], file, EPOLLIN, 0));
    SHOW(add(plain, sets[0], EPOLLIN, 0));
    SHOW(epoll_ctl(plain, EPOLL_CTL_DEL, sets[0], 0));
    SHOW(add(sets[0], 99, EPOLLIN, 0));
    SHOW(add(99, sets[0], EPOLLIN, 0));
    SHOW(epoll_ctl(sets[0], EPOLL_CTL_ADD, plain, (void *)1));
    SHOW(control(sets[0], 9, plain, EPOLLIN, 0));
    SHOW(epoll_wait(plain, (void *)sets, 1, 0));
    SHOW(epoll_wait(sets[0], (void *)sets, 0, 0));
    for (int i = 0; i < 8; i++) close(sets[i]);
    close(file), close(plain);
}

// The error of a socket shows through both.
static void errors(void) {
    int inner = epoll_create1(0), outer = epoll_create1(0), udp = socket(AF_INET, SOCK_DGRAM, 0), value = 0;
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    SHOW(connect(udp, (void *)&place, sizeof place));
    add(inner, udp, EPOLLIN, 1);
    add(outer, inner, EPOLLIN, 2);
    show("no error", outer, 0);
    SHOW(send(udp, "x", 1, 0));
    show("error", outer, 100);
    show("error inside", inner, 0);
    SHOW(getsockopt(udp, SOL_SOCKET, SO_ERROR, &value, &(socklen_t){4}));
    printf("%s\n", strerrorname_np(value));
    show("reported", outer, 0);
}

int main(void) {
    readiness();
    flags();
    refused();
    errors();
}
