// Random operations on a few dozen sockets and queues, none of which waits. Prints a sum of all results: it is the same in every
// run with the same seed.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long state;

static unsigned rnd(unsigned n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

enum { FDS = 40 };
static int fds[FDS];
static unsigned long sum;

static void note(long result) {
    sum = sum * 31 + (result < 0 ? 1000 + errno : result);
}

static void keep(int fd) {
    note(fd >= 0);
    if (fd < 0)
        return;
    int at = rnd(FDS);
    if (fds[at] >= 0)
        close(fds[at]);
    fds[at] = fd;
}

static socklen_t name(struct sockaddr_storage *a) {
    memset(a, 0, sizeof *a);
    switch (rnd(6)) {
    case 0:
    case 1: {
        struct sockaddr_in *in = (void *)a;
        in->sin_family = AF_INET, in->sin_port = htons(5000 + rnd(6)), in->sin_addr.s_addr = htonl(0x7f000001 + rnd(3));
        if (rnd(4) == 0)
            in->sin_addr.s_addr = rnd(2) ? 0 : htonl(0x0a000001);
        return sizeof *in;
    }
    case 2: {
        struct sockaddr_in6 *in = (void *)a;
        in->sin6_family = AF_INET6, in->sin6_port = htons(5000 + rnd(6));
        in->sin6_addr.s6_addr[15] = rnd(3);
        return sizeof *in;
    }
    case 3: {
        struct sockaddr_un *un = (void *)a;
        un->sun_family = AF_UNIX;
        snprintf(un->sun_path, sizeof un->sun_path, "s%u", rnd(8));
        return sizeof *un;
    }
    case 4:
        a->ss_family = AF_UNIX;
        memset((char *)a + 2, rnd(3), 108);
        return 2 + rnd(110);
    default:
        a->ss_family = rnd(20);
        return rnd(sizeof *a + 1);
    }
}

/* Whether messages carry sockets, which may then lead to one another; otherwise they carry this file. */
static int passes_sockets, plain;

static void message(int fd, int sends) {
    static char text[70000];
    char control[200];
    struct sockaddr_storage to;
    struct iovec parts[3] = {{text, rnd(3000)}, {text, rnd(2)}, {text + 100, rnd(66000)}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = rnd(4)};
    if (rnd(2))
        m.msg_name = &to, m.msg_namelen = name(&to);
    int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (rnd(8) ? 0 : 1 << rnd(18));
    if (rnd(2)) {
        memset(control, 0, sizeof control);
        m.msg_control = control, m.msg_controllen = sends ? CMSG_SPACE(8) : rnd(200);
        struct cmsghdr *c = (void *)control;
        c->cmsg_level = rnd(8) ? SOL_SOCKET : rnd(50), c->cmsg_type = rnd(8) ? SCM_RIGHTS : rnd(5);
        c->cmsg_len = rnd(8) ? CMSG_LEN(8) : rnd(300);
        int passed[2] = {fds[rnd(FDS)], rnd(4) ? fd : 3 + (int)rnd(57)};
        if (!passes_sockets)
            passed[0] = passed[1] = rnd(8) ? plain : -1;
        memcpy(CMSG_DATA(c), passed, 8);
    }
    note(sends ? sendmsg(fd, &m, flags) : recvmsg(fd, &m, flags & ~MSG_NOSIGNAL));
    if (!sends && m.msg_controllen >= CMSG_LEN(4) && m.msg_control) {
        struct cmsghdr *c = (void *)control;
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / 4 && i < 40; i++) {
                int got;
                memcpy(&got, CMSG_DATA(c) + 4 * i, 4);
                keep(got);
            }
    }
}

static void operate(void) {
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_RAW}, families[] = {1, 2, 10, 16};
    int fd = fds[rnd(FDS)], pair[2], value = rnd(3) ? rnd(2) : rnd(1 << 20);
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    char byte[300];
    switch (rnd(24)) {
    case 0: case 1: keep(socket(families[rnd(4)], types[rnd(4)] | SOCK_NONBLOCK, rnd(5) ? 0 : rnd(20))); break;
    case 2: note(socketpair(AF_UNIX, types[rnd(3)] | SOCK_NONBLOCK, 0, pair)); keep(pair[0]), keep(pair[1]); break;
    case 3: case 4: len = name(&a); note(bind(fd, (void *)&a, len)); break;
    case 5: case 6: case 7: len = name(&a); note(connect(fd, (void *)&a, len)); break;
    case 8: case 9: note(listen(fd, rnd(5))); break;
    case 10: case 11: keep(accept4(fd, (void *)&a, &len, SOCK_NONBLOCK)); break;
    case 12: case 13: case 14: message(fd, 1); break;
    case 15: case 16: message(fd, 0); break;
    case 17: note(setsockopt(fd, rnd(2) ? SOL_SOCKET : rnd(42), rnd(60), &value, rnd(8) ? 4 : rnd(64))); break;
    case 18: note(getsockopt(fd, rnd(2) ? SOL_SOCKET : rnd(42), rnd(60), byte, &len)); break;
    case 19: note(shutdown(fd, rnd(4))); break;
    case 20: note(getsockname(fd, (void *)&a, &len)), note(getpeername(fd, (void *)&a, &len)); break;
    case 21: note(read(fd, byte, rnd(300))), note(write(fd, byte, rnd(300))); break;
    case 22: note(ioctl(fd, rnd(2) ? FIONREAD : 0x8910 + rnd(64), byte)); break;
    default: {
        struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};
        note(poll(&p, 1, 0)), note(p.revents);
        if (rnd(3) == 0)
            keep(dup(fd));
        unlink("s1");
    }
    }
}

static void queue(int sets, int messages) {
    struct { long kind; char text[64]; } m = {1 + rnd(4)};
    struct sembuf ops[3];
    for (int i = 0; i < 3; i++)
        ops[i] = (struct sembuf){rnd(5), rnd(7) - 3, IPC_NOWAIT | (rnd(2) ? SEM_UNDO : 0)};
    note(semop(sets, ops, 1 + rnd(3)));
    note(semctl(sets, rnd(5), 11 + rnd(5)));
    note(rnd(2) ? msgsnd(messages, &m, rnd(65), IPC_NOWAIT) : msgrcv(messages, &m, rnd(65), (long)rnd(9) - 4, IPC_NOWAIT));
}

int main(int argc, char **argv) {
    if (argc < 3 || chdir(argv[2]))
        return 1;
    state = atoi(argv[1]) * 7919 + 1;
    passes_sockets = argc > 3;
    plain = memfd_create("plain", 0);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < FDS; i++)
        fds[i] = -1;
    int sets = semget(IPC_PRIVATE, 4, 0600), messages = msgget(IPC_PRIVATE, 0600);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 700; i++) {
            operate();
            if (i % 16 == 0)
                queue(sets, messages);
        }
        // The other process does something else with the same sockets, at the same time.
        if (round == 0 && fork() == 0) {
            state += 99;
            for (int i = 0; i < 700; i++)
                operate();
            _exit(sum % 251);
        }
    }
    int status = 0;
    wait(&status);
    printf("%lx %d\n", sum, status);
    return 0;
}
