// Kernel objects between two processes, with data on their way while the program computes: pairs of sockets with descriptors in
// messages, connections that wait to be accepted, epoll instances, event counters, timers, a pseudoterminal, and files in /dev/shm.
// A run that is saved then and continued must print the same.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define CHECK(call)                                                            \
    ({                                                                         \
        long result_ = (long)(call);                                           \
        if (result_ < 0) {                                                     \
            printf("%d: %s: %s\n", __LINE__, #call, strerrorname_np(errno));   \
            exit(1);                                                           \
        }                                                                      \
        result_;                                                               \
    })

// Takes three instructions a round.
static void compute(uint64_t rounds) {
    __asm__ volatile("1: add x9, x9, #1\n subs %0, %0, #1\n b.ne 1b" : "+r"(rounds)::"x9", "cc");
}

static void give(int to, const char *text, size_t bytes, int fd) {
    struct iovec piece = {(void *)text, bytes};
    char room[CMSG_SPACE(sizeof fd)];
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = room, message.msg_controllen = sizeof room;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    CHECK(sendmsg(to, &message, 0));
}

// Receives at most `most` bytes and prints them; returns a descriptor that came with them.
static int get(const char *what, int from, size_t most) {
    char text[1000], room[256];
    struct iovec piece = {text, most};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    long bytes = recvmsg(from, &message, MSG_DONTWAIT);
    int fd = -1;
    struct cmsghdr *head = bytes >= 0 ? CMSG_FIRSTHDR(&message) : 0;
    if (head && head->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(head), sizeof fd);
    printf("%s: %ld %.*s%s%s\n", what, bytes, bytes > 0 ? (int)bytes : 0, text, fd >= 0 ? ", a file" : "",
           bytes < 0 ? strerrorname_np(errno) : "");
    fflush(stdout);
    return fd;
}

static void show(const char *what, int set) {
    struct epoll_event events[16];
    int n = epoll_wait(set, events, 16, 0);
    printf("%s:", what);
    for (int i = 0; i < n; i++) printf(" %llu:%x", (unsigned long long)events[i].data.u64, events[i].events);
    puts("");
    fflush(stdout);
}

static void add(int set, int op, int fd, unsigned events, uint64_t data) {
    struct epoll_event event = {.events = events, .data.u64 = data};
    CHECK(epoll_ctl(set, op, fd, &event));
}

static uint64_t number(int fd) {
    uint64_t n = 0;
    return read(fd, &n, 8) == 8 ? n : (uint64_t)-errno;
}

static int *shared;

// The other process: sums what comes through a pair, in turns with the first one, and answers in memory and through the pair.
static int other(int pair) {
    int set = epoll_create1(0), own = CHECK(open("/dev/shm/folder/file", O_RDWR)), sum = 0;
    int *memory = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    add(set, EPOLL_CTL_ADD, pair, EPOLLIN | EPOLLET, 1);
    for (;;) {
        struct epoll_event event;
        unsigned char bytes[100];
        CHECK(epoll_wait(set, &event, 1, -1));
        long n = 0;
        while ((n = recv(pair, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
            for (long i = 0; i < n; i++) sum += bytes[i];
        if (n == 0) return memory[1] + sum % 100;
        memory[0] = sum;
        compute(20000);
        CHECK(write(pair, &sum, sizeof sum));
    }
}

int main(void) {
    CHECK(mkdir("/dev/shm/folder", 0750));
    int file = CHECK(open("/dev/shm/folder/file", O_RDWR | O_CREAT | O_EXCL, 0640));
    CHECK(ftruncate(file, 70000));
    CHECK(pwrite(file, "far", 3, 69000));
    CHECK(link("/dev/shm/folder/file", "/dev/shm/second"));
    CHECK(symlink("folder/file", "/dev/shm/link"));
    int folder = CHECK(open("/dev/shm/folder", O_RDONLY | O_DIRECTORY));
    shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    int unnamed = CHECK(memfd_create("memory", 0));
    CHECK(write(unnamed, "unnamed", 7));

    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pid_t child = CHECK(fork());
    if (child == 0) {
        close(pair[0]);
        _exit(other(pair[1]));
    }
    close(pair[1]);

    // Streams with descriptors in the middle; one end of the second pair is only in a message of the first.
    int stream[2], inner[2], packets[2], datagrams[2], ended[2], reset[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, inner));
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packets));
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams));
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ended));
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, reset));
    give(inner[0], "hidden", 6, unnamed);
    give(stream[0], "first ", 6, -1);
    give(stream[0], "second ", 7, inner[1]);
    give(stream[0], "third", 5, -1);
    close(inner[1]);
    give(packets[0], "one", 3, -1);
    give(packets[0], "two!", 4, file);
    give(packets[0], "three", 5, -1);
    CHECK(shutdown(packets[0], SHUT_WR));
    give(datagrams[0], "a", 1, -1);
    give(datagrams[0], "bc", 2, -1);
    give(ended[0], "last words", 10, -1);
    close(ended[0]);
    give(reset[0], "unread", 6, -1);
    give(reset[1], "also", 4, -1);
    close(reset[0]);

    // A server with two connections that wait, one of which has ended.
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof place;
    int server = CHECK(socket(AF_INET, SOCK_STREAM, 0)), client = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(server, (void *)&place, len));
    CHECK(listen(server, 5));
    CHECK(getsockname(server, (void *)&place, &len));
    CHECK(connect(client, (void *)&place, len));
    CHECK(write(client, "hello", 5));
    int gone = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(gone, (void *)&place, len));
    CHECK(write(gone, "bye", 3));
    close(gone);
    int udp = CHECK(socket(AF_INET, SOCK_DGRAM, 0)), sender = CHECK(socket(AF_INET, SOCK_DGRAM, 0));
    CHECK(bind(udp, (void *)&place, len));
    CHECK(connect(sender, (void *)&place, len));
    CHECK(send(sender, "packet", 6, 0));
    CHECK(send(sender, "", 0, 0));
    CHECK(send(sender, "next", 4, 0));
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "/dev/shm/folder/name"};
    int local = CHECK(socket(AF_UNIX, SOCK_STREAM, 0)), caller = CHECK(socket(AF_UNIX, SOCK_STREAM, 0));
    CHECK(bind(local, (void *)&name, sizeof name));
    CHECK(listen(local, 5));
    int route = CHECK(socket(AF_NETLINK, SOCK_RAW, 0));
    struct { uint32_t len; uint16_t kind, flags; uint32_t sequence, port; uint8_t family; } ask = {20, 18, 0x301, 7, 0, 0};
    CHECK(send(route, &ask, 20, 0));

    // Objects, and instances with and without events.
    int counter = CHECK(eventfd(5, EFD_NONBLOCK)), semaphore = CHECK(eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK));
    int timer = CHECK(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK)), process = CHECK(syscall(SYS_pidfd_open, child, 0));
    CHECK(timerfd_settime(timer, 0, &(struct itimerspec){{0, 1000000}, {0, 2000000}}, 0));
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigprocmask(SIG_BLOCK, &mask, 0);
    int signals = CHECK(signalfd(-1, &mask, SFD_NONBLOCK));
    raise(SIGUSR1);
    int master, terminal, ends[2];
    CHECK(openpty(&master, &terminal, 0, 0, &(struct winsize){24, 80, 0, 0}));
    CHECK(write(terminal, "shown\n", 6));
    CHECK(write(master, "typed\nhalf", 10));
    CHECK(mkfifo("/dev/shm/folder/fifo", 0600));
    int fifo = CHECK(open("/dev/shm/folder/fifo", O_RDWR | O_NONBLOCK));
    CHECK(write(fifo, "named", 5));
    CHECK(mkfifo("/dev/shm/folder/new", 0600));
    int unopened = CHECK(open("/dev/shm/folder/new", O_RDONLY | O_NONBLOCK));
    CHECK(pipe(ends));
    CHECK(write(ends[1], "piped", 5));
    int set = CHECK(epoll_create1(0)), outer = CHECK(epoll_create1(0));
    add(set, EPOLL_CTL_ADD, ends[0], EPOLLIN, 1);
    add(set, EPOLL_CTL_ADD, counter, EPOLLIN | EPOLLET, 2);
    add(set, EPOLL_CTL_ADD, semaphore, EPOLLIN | EPOLLONESHOT, 3);
    show("events", set);
    add(set, EPOLL_CTL_ADD, master, EPOLLIN | EPOLLET, 4);
    add(set, EPOLL_CTL_ADD, server, EPOLLIN | EPOLLONESHOT, 5);
    add(set, EPOLL_CTL_ADD, stream[0], EPOLLIN, 6);
    add(set, EPOLL_CTL_ADD, ended[1], EPOLLRDHUP, 7);
    add(outer, EPOLL_CTL_ADD, set, EPOLLIN | EPOLLET, 8);

    // The other process answers meanwhile.
    for (int round = 0; round < 4; round++) {
        int sum;
        CHECK(write(pair[0], "some bytes", 10));
        compute(50000);
        CHECK(read(pair[0], &sum, sizeof sum));
        shared[1] = round;
        printf("sum %d %d\n", sum, shared[0]);
        fflush(stdout);
    }
    compute(200000);

    show("outer", outer);
    show("still", set);
    show("outer", outer);
    add(set, EPOLL_CTL_MOD, semaphore, EPOLLIN | EPOLLONESHOT, 9);
    CHECK(write(counter, &(uint64_t){1}, 8));
    show("more", set);
    printf("%llu %llu %llu\n", (unsigned long long)number(counter), (unsigned long long)number(semaphore),
           (unsigned long long)number(semaphore));
    int passed = get("stream", stream[1], 9), hidden = -1;
    if (passed < 0) passed = get("stream", stream[1], 100);
    get("stream", stream[1], 100);
    hidden = get("passed", passed, 100);
    printf("position %ld\n", (long)lseek(hidden, 0, SEEK_CUR));
    CHECK(write(inner[0], "again", 5));
    get("passed", passed, 100);
    get("packet", packets[1], 100);
    int second = get("packet", packets[1], 100);
    struct stat one, two, three;
    CHECK(fstat(second, &one) | fstat(file, &two) | stat("/dev/shm/second", &three));
    printf("same %d %d, links %d, mode %o\n", one.st_ino == two.st_ino, two.st_ino == three.st_ino, (int)two.st_nlink,
           (unsigned)two.st_mode);
    get("packet", packets[1], 100);
    get("packet", packets[1], 100);
    CHECK(write(packets[1], "back", 4));
    get("packet", packets[0], 100);
    printf("%s\n", send(packets[0], "x", 1, MSG_NOSIGNAL) < 0 ? strerrorname_np(errno) : "sent");
    get("datagram", datagrams[1], 100);
    get("datagram", datagrams[1], 100);
    get("datagram", datagrams[1], 100);
    get("ended", ended[1], 4);
    get("ended", ended[1], 100);
    get("ended", ended[1], 100);
    printf("%s\n", send(ended[1], "x", 1, MSG_NOSIGNAL) < 0 ? strerrorname_np(errno) : "sent");
    get("reset", reset[1], 100);
    get("reset", reset[1], 100);
    get("reset", reset[1], 100);
    for (int i = 0; i < 2; i++) {
        int accepted = CHECK(accept(server, 0, 0));
        get("accepted", accepted, 100);
        get("accepted", accepted, 100);
        if (i == 0) CHECK(write(accepted, "welcome", 7));
    }
    get("client", client, 100);
    get("udp", udp, 100);
    get("udp", udp, 100);
    get("udp", udp, 100);
    CHECK(connect(caller, (void *)&name, sizeof name));
    give(caller, "local", 5, -1);
    get("local", CHECK(accept(local, 0, 0)), 100);
    char answer[8000];
    printf("netlink %ld\n", (long)recv(route, answer, sizeof answer, MSG_DONTWAIT));
    struct signalfd_siginfo info;
    printf("signal %d %ld\n", (int)read(signals, &info, sizeof info), (long)number(signals));
    printf("expired %d\n", number(timer) > 0);
    struct itimerspec rest;
    CHECK(timerfd_gettime(timer, &rest));
    printf("interval %ld\n", rest.it_interval.tv_nsec);
    char text[100];
    long bytes = read(master, text, sizeof text);
    printf("master %ld %.*s", bytes, (int)bytes, text);
    CHECK(write(master, "way\n", 4));
    bytes = read(terminal, text, sizeof text);
    printf("terminal %.*s", (int)bytes, text);
    bytes = read(terminal, text, sizeof text);
    printf("terminal %.*s", (int)bytes, text);
    struct winsize size;
    CHECK(ioctl(master, TIOCGWINSZ, &size));
    printf("%d rows\n", size.ws_row);
    bytes = read(ends[0], text, sizeof text);
    printf("pipe %.*s\n", (int)bytes, text);
    bytes = read(CHECK(open("/dev/shm/folder/fifo", O_RDONLY | O_NONBLOCK)), text, sizeof text);
    printf("fifo %.*s, no writer yet %d\n", (int)bytes, text, poll(&(struct pollfd){unopened, POLLIN, 0}, 1, 0));
    CHECK(faccessat(folder, "name", F_OK, 0));
    bytes = readlink("/dev/shm/link", text, sizeof text);
    printf("link %.*s\n", (int)bytes, text);
    CHECK(pread(file, text, 3, 69000));
    printf("%.3s %d %d\n", text, shared[0], shared[1]);
    fflush(stdout);
    printf("running %d\n", poll(&(struct pollfd){process, POLLIN, 0}, 1, 0));
    close(pair[0]);
    int status;
    CHECK(waitpid(child, &status, 0));
    printf("ended %d, %x\n", poll(&(struct pollfd){process, POLLIN, 0}, 1, 0), status);
}
