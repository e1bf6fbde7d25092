// Errors of sockets of the run's own network, as `poll`, `select` and `epoll` show them. What it prints is the same on every Linux.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void report(const char *what, long result) {
    if (result < 0)
        printf("%s: %s\n", what, strerrorname_np(errno));
    else
        printf("%s: %ld\n", what, result);
    fflush(stdout);
}

static struct sockaddr_in v4(const char *host, int port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, host, &name.sin_addr);
    return name;
}

static int port_of(int fd) {
    struct sockaddr_in6 name;
    socklen_t len = sizeof name;
    getsockname(fd, (void *)&name, &len);
    return ntohs(name.sin6_port);
}

static int listener4(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in name = v4("127.0.0.1", 0);
    bind(fd, (void *)&name, sizeof name);
    listen(fd, 8);
    return fd;
}

// Returns a set for `select` with one descriptor.
static fd_set set_of(int fd) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    return set;
}

// A non-blocking connection to a port at which nobody listens, as `poll`, `select` and `epoll` show it; with or without a call that
// takes the error. Afterwards the socket, of which another process has a descriptor, too, connects to one that does listen.
static void refused(struct sockaddr_in name, int takes) {
    int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.u32 = 7};
    report("non-blocking, refused", connect(client, (void *)&name, sizeof name));
    struct pollfd w = {.fd = client, .events = POLLIN | POLLOUT};
    poll(&w, 1, 1000);
    report("events", w.revents);
    epoll_ctl(set, EPOLL_CTL_ADD, client, &event);
    report("epoll", epoll_wait(set, &event, 1, 1000));
    report("events", event.events);
    report("select", select(client + 1, (fd_set[]){set_of(client)}, (fd_set[]){set_of(client)}, NULL, &(struct timeval){1}));
    if (takes) {
        int error = -1;
        socklen_t len = sizeof error;
        getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &len);
        report("error", error);
        getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &len);
        report("error", error);
        poll(&w, 1, 1000);
        report("events", w.revents);
    }
    report("connect, the error", connect(client, (void *)&name, sizeof name));
    int listener = listener4(), copy = dup(client);
    name = v4("127.0.0.1", port_of(listener));
    pid_t child = fork();
    if (child == 0) {
        report("connect", connect(copy, (void *)&name, sizeof name));
        _exit(0);
    }
    waitpid(child, NULL, 0);
    int server = accept(listener, NULL, NULL);
    report("write", write(client, "x", 1));
    char byte;
    report("read", read(server, &byte, 1));
    close(listener), close(client), close(copy), close(server), close(set);
}

// What threads that wait see: `poll`, `select` and the next calls report the error once.
static void *polls(void *fd) {
    struct pollfd w = {.fd = *(int *)fd, .events = POLLIN};
    report("poll", poll(&w, 1, 5000));
    report("events", w.revents);
    return NULL;
}

// What `epoll` shows of an error, to a thread that waits and afterwards.
static void *waits_in_epoll(void *set) {
    struct epoll_event event = {0};
    report("epoll", epoll_wait(*(int *)set, &event, 1, 5000));
    report("events", event.events);
    report("data", event.data.u32);
    return NULL;
}

static void pending_error_in_epoll(int port, unsigned flags) {
    int a = socket(AF_INET, SOCK_DGRAM, 0), set = epoll_create1(0);
    struct sockaddr_in to = v4("127.0.0.1", port);
    connect(a, (void *)&to, sizeof to);
    struct epoll_event event = {.events = EPOLLIN | flags, .data.u32 = 5};
    epoll_ctl(set, EPOLL_CTL_ADD, a, &event);
    pthread_t waits;
    pthread_create(&waits, NULL, waits_in_epoll, &set);
    usleep(20000);
    long sent = send(a, "x", 1, 0);
    pthread_join(waits, NULL);
    report("to nobody", sent);
    report("again", epoll_wait(set, &event, 1, 0));
    report("poll", poll(&(struct pollfd){.fd = set, .events = POLLIN}, 1, 0));
    event.events = EPOLLIN | EPOLLOUT | flags;
    epoll_ctl(set, EPOLL_CTL_MOD, a, &event);
    report("with others", epoll_wait(set, &event, 1, 0));
    report("events", event.events);
    int error = -1;
    socklen_t len = sizeof error;
    getsockopt(a, SOL_SOCKET, SO_ERROR, &error, &len);
    event.events = EPOLLIN;
    epoll_ctl(set, EPOLL_CTL_MOD, a, &event);
    report("without", epoll_wait(set, &event, 1, 0));
    send(a, "x", 1, 0);
    epoll_ctl(set, EPOLL_CTL_DEL, a, &event);
    report("removed", epoll_wait(set, &event, 1, 0));
    close(a), close(set);
}

static void pending_error(int port) {
    int a = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to = v4("127.0.0.1", port);
    connect(a, (void *)&to, sizeof to);
    pthread_t waits;
    pthread_create(&waits, NULL, polls, &a);
    usleep(20000);
    long sent = send(a, "x", 1, 0);
    pthread_join(waits, NULL);
    report("to nobody", sent);
    struct pollfd w = {.fd = a, .events = POLLIN | POLLOUT};
    report("poll", poll(&w, 1, 0));
    report("events", w.revents);
    report("select", select(a + 1, (fd_set[]){set_of(a)}, (fd_set[]){set_of(a)}, NULL, &(struct timeval){0}));
    int error = -1;
    socklen_t len = sizeof error;
    getsockopt(a, SOL_SOCKET, SO_ERROR, &error, &len);
    report("error", error);
    report("poll", poll(&w, 1, 0));
    report("events", w.revents);
    close(a);
}

int main(void) {
    int listener = listener4();
    struct sockaddr_in name = v4("127.0.0.1", port_of(listener));
    close(listener);
    refused(name, 1);
    refused(name, 0);
    pending_error(ntohs(name.sin_port));
    pending_error_in_epoll(ntohs(name.sin_port), 0);
    pending_error_in_epoll(ntohs(name.sin_port), EPOLLET);
    pending_error_in_epoll(ntohs(name.sin_port), EPOLLONESHOT);
    return 0;
}
