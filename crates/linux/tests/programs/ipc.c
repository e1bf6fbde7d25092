// Communication between processes: passed descriptors and credentials, several messages in a call, semaphores, message queues,
// and the memory of other processes. What it prints is the same on every Linux.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void report(const char *what, long result) {
    if (result < 0)
        printf("%s: %s\n", what, strerrorname_np(errno));
    else
        printf("%s: %ld\n", what, result);
    fflush(stdout);
}

static long send_fds(int s, const int *fds, int count, const char *text) {
    char control[CMSG_SPACE(300 * sizeof(int))] = {0};
    struct iovec part = {(void *)text, strlen(text)};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(count * 4)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(count * 4);
    memcpy(CMSG_DATA(c), fds, count * 4);
    return sendmsg(s, &m, MSG_NOSIGNAL);
}

// Receives; returns the number of descriptors, or -1. `room`: that many fit.
static int receive_fds(int s, int *fds, int room, int flags, int *got_flags) {
    static char text[4096];
    char control[CMSG_SPACE(300 * sizeof(int))];
    struct iovec part = {text, sizeof text};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room ? CMSG_LEN(room * 4) : 0};
    long got = recvmsg(s, &m, flags);
    if (got < 0)
        return -1;
    if (got_flags)
        *got_flags = m.msg_flags;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (!c || c->cmsg_type != SCM_RIGHTS)
        return 0;
    int count = (c->cmsg_len - CMSG_LEN(0)) / 4;
    memcpy(fds, CMSG_DATA(c), count * 4);
    return count;
}

static int open_count(void) {
    int n = 0;
    for (int fd = 0; fd < 600; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

// Every kind of descriptor, from a child.
static void rights(void) {
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    pid_t child = fork();
    if (child == 0) {
        int fds[8], p[2], u[2];
        pipe(p);
        socketpair(AF_UNIX, SOCK_DGRAM, 0, u);
        FILE *file = tmpfile();
        fputs("contents", file), fflush(file);
        fds[0] = p[0], fds[1] = fileno(file), fds[2] = eventfd(7, 0), fds[3] = open("/proc/cpuinfo", O_RDONLY);
        fds[4] = memfd_create("shared", 0), fds[5] = u[0], fds[6] = epoll_create1(0), fds[7] = open("/dev/zero", O_RDONLY);
        ftruncate(fds[4], 65536);
        char *mapped = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fds[4], 0);
        strcpy(mapped, "in memory");
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = 42};
        epoll_ctl(fds[6], EPOLL_CTL_ADD, p[0], &event);
        send_fds(pair[0], fds, 8, "eight");
        write(p[1], "late", 4);
        send(u[1], "datagram", 8, 0);
        _exit(0);
    }
    int fds[8], flags, status;
    report("received", receive_fds(pair[1], fds, 8, MSG_CMSG_CLOEXEC, &flags));
    report("close-on-exec", fcntl(fds[0], F_GETFD));
    report("flags", flags & (MSG_CTRUNC | MSG_TRUNC));
    waitpid(child, &status, 0);
    char text[64] = {0};
    struct epoll_event event;
    report("epoll", epoll_wait(fds[6], &event, 1, 1000) == 1 && event.data.u64 == 42);
    report("pipe", read(fds[0], text, 60));
    report("end of the pipe", read(fds[0], text, 60));
    report("file", pread(fds[1], text, 60, 0));
    report("position", lseek(fds[1], 0, SEEK_CUR));
    unsigned long count = 0;
    read(fds[2], &count, 8);
    report("event", count);
    report("/proc", read(fds[3], text, 9) == 9 && !memcmp(text, "processor", 9));
    char *mapped = mmap(NULL, 65536, PROT_READ, MAP_SHARED, fds[4], 0);
    puts(mapped);
    report("datagram", recv(fds[5], text, 60, 0));
    report("device", read(fds[7], text, 3));
    // A second process gets a listening socket and accepts from it.
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0ipc-rights"};
    socklen_t len = offsetof(struct sockaddr_un, sun_path) + 11;
    bind(listener, (void *)&name, len), listen(listener, 2);
    child = fork();
    if (child == 0) {
        close(listener);
        int got;
        if (receive_fds(pair[0], &got, 1, 0, NULL) != 1)
            _exit(1);
        int server = accept(got, NULL, NULL);
        _exit(write(server, "accepted", 8) == 8 ? 0 : 2);
    }
    send_fds(pair[1], &listener, 1, "x");
    close(listener);
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    while (connect(client, (void *)&name, len) && errno != ECONNREFUSED) {
    }
    report("from the child", read(client, text, 60));
    waitpid(child, &status, 0);
    report("child", status);
    report("name is free", bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&name, len));
}

static void limits(void) {
    int pair[2], p[2], fds[300], flags;
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    pipe(p);
    int before = open_count();
    for (int i = 0; i < 300; i++)
        fds[i] = p[1];
    report("253", send_fds(pair[0], fds, 253, "x"));
    report("254", send_fds(pair[0], fds, 254, "x"));
    report("all", receive_fds(pair[1], fds, 300, 0, &flags));
    for (int i = 0; i < 253; i++)
        close(fds[i]);
    for (int i = 0; i < 300; i++)
        fds[i] = p[1];
    // Truncated ancillary data.
    send_fds(pair[0], fds, 3, "x");
    int some = receive_fds(pair[1], fds, 2, 0, &flags);
    printf("two of three: %d, truncated %d\n", some, !!(flags & MSG_CTRUNC));
    close(fds[0]), close(fds[1]);
    for (int i = 0; i < 300; i++)
        fds[i] = p[1];
    send_fds(pair[0], fds, 1, "x");
    printf("no room: %d, truncated %d\n", receive_fds(pair[1], fds, 0, 0, &flags), !!(flags & MSG_CTRUNC));
    fds[0] = 999;
    report("no such descriptor", send_fds(pair[0], fds, 1, "x"));
    // Dropped with read, and with the socket.
    fds[0] = p[1];
    send_fds(pair[0], fds, 1, "abc");
    char text[10];
    report("read", read(pair[1], text, 10));
    send_fds(pair[0], fds, 1, "abc");
    close(p[1]);
    struct pollfd w = {.fd = p[0], .events = POLLIN};
    report("the message has the writer", poll(&w, 1, 0));
    int peeked;
    report("peek", receive_fds(pair[1], &peeked, 1, MSG_PEEK, &flags));
    report("peeked writes", write(peeked, "y", 1));
    close(peeked);
    close(pair[1]);
    read(p[0], text, 10);
    report("now it is closed", read(p[0], text, 10));
    close(pair[0]), close(p[0]);
    report("nothing is left", open_count() - (before - 4));
    // A boundary: data before and after descriptors do not merge.
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    int one = open("/dev/null", O_RDWR);
    write(pair[0], "before", 6);
    send_fds(pair[0], &one, 1, "with");
    write(pair[0], "after", 5);
    char big[100];
    long first = read(pair[1], big, 6);
    struct iovec part = {big, 100};
    char control[64];
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    long second = recvmsg(pair[1], &m, 0), third = read(pair[1], big, 100);
    printf("%ld %ld %ld\n", first, second, third);
}

// A socket in its own queue, and two that contain each other: nothing is lost for ever, and there are limits.
static void cycles(void) {
    int failures = 0;
    for (int i = 0; i < 3000; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
            failures++;
            break;
        }
        failures += send_fds(pair[0], &pair[1], 1, "x") < 0;
        failures += send_fds(pair[1], &pair[0], 1, "x") < 0;
        close(pair[0]), close(pair[1]);
    }
    puts("done");
    // Many in flight.
    int pair[2], sent = 0;
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
    int fds[200];
    for (int i = 0; i < 200; i++)
        fds[i] = 0;
    while (sent < 2000 && send_fds(pair[0], fds, 200, "x") > 0)
        sent++;
    printf("limited: %d\n", sent > 0 && sent < 2000);
}

static void credentials(void) {
    int pair[2], one = 1;
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof one);
    pid_t child = fork();
    if (child == 0)
        _exit(write(pair[0], "hello", 5) != 5);
    char text[20];
    union { char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(4)]; struct cmsghdr align; } control;
    struct iovec part = {text, sizeof text};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    report("message", recvmsg(pair[1], &m, 0));
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    struct ucred who;
    memcpy(&who, CMSG_DATA(c), sizeof who);
    printf("type %d, child %d, user %d\n", c->cmsg_type, who.pid == child, who.uid == getuid());
    wait(NULL);
    // Explicit ones, with a descriptor.
    who.pid = getpid();
    m.msg_controllen = sizeof control;
    c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_CREDENTIALS, c->cmsg_len = CMSG_LEN(sizeof who);
    memcpy(CMSG_DATA(c), &who, sizeof who);
    c = CMSG_NXTHDR(&m, c);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(4);
    memcpy(CMSG_DATA(c), &pair[0], 4);
    part.iov_len = 2;
    report("both", sendmsg(pair[0], &m, 0));
    memset(&control, 0, sizeof control);
    report("both received", recvmsg(pair[1], &m, 0));
    int kinds = 0;
    for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        kinds = kinds * 10 + c->cmsg_type;
    printf("kinds %d, %d bytes\n", kinds, (int)m.msg_controllen);
}

static void messages(void) {
    int pair[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    struct mmsghdr m[4] = {0};
    struct iovec parts[4];
    char texts[4][8] = {"a", "bb", "ccc", "dddd"};
    for (int i = 0; i < 4; i++) {
        parts[i] = (struct iovec){texts[i], i + 1};
        m[i].msg_hdr.msg_iov = &parts[i], m[i].msg_hdr.msg_iovlen = 1;
    }
    report("sendmmsg", sendmmsg(pair[0], m, 4, 0));
    printf("%d %d %d %d\n", m[0].msg_len, m[1].msg_len, m[2].msg_len, m[3].msg_len);
    for (int i = 0; i < 4; i++)
        parts[i].iov_len = 8, m[i].msg_len = 0;
    report("recvmmsg", recvmmsg(pair[1], m, 3, MSG_WAITFORONE, NULL));
    printf("%d %d %d\n", m[0].msg_len, m[1].msg_len, m[2].msg_len);
    pid_t child = fork();
    if (child == 0) {
        usleep(1000);
        send(pair[0], "late", 4, 0);
        _exit(0);
    }
    struct timespec limit = {5, 0};
    report("waits for all", recvmmsg(pair[1], m, 2, 0, &limit));
    wait(NULL);
    report("nothing", recvmmsg(pair[1], m, 2, MSG_DONTWAIT, NULL));
    report("no messages", sendmmsg(pair[0], m, 0, 0));
    report("bad descriptor", sendmmsg(99, m, 1, 0));
}

static void memory(void) {
    char *page = mmap(NULL, 65536 * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(page, "original");
    int go[2], done[2];
    pipe(go), pipe(done);
    pid_t child = fork();
    if (child == 0) {
        strcpy(page, "child's"), strcpy(page + 100, "second");
        write(done[1], "x", 1);
        char c;
        read(go[0], &c, 1);
        _exit(strcmp(page + 200, "written") ? 1 : 0);
    }
    char c, out[20] = {0};
    read(done[0], &c, 1);
    struct iovec ours[2] = {{out, 3}, {out + 3, 17}}, theirs[2] = {{page, 8}, {page + 100, 7}};
    report("read", process_vm_readv(child, ours, 2, theirs, 2, 0));
    printf("%s %s %s\n", out, out + 8, page);
    struct iovec from = {"written", 8}, to = {page + 200, 8};
    report("write", process_vm_writev(child, &from, 1, &to, 1, 0));
    struct iovec bad[2] = {{page, 4}, {(void *)16, 4}};
    report("partly", process_vm_readv(child, ours, 2, bad, 2, 0));
    report("not mapped", process_vm_readv(child, ours, 2, bad + 1, 1, 0));
    report("no process", process_vm_readv(1 << 22, ours, 1, theirs, 1, 0));
    report("flags", process_vm_readv(child, ours, 1, theirs, 1, 1));
    write(go[1], "x", 1);
    int status;
    waitpid(child, &status, 0);
    report("child", status);
}

static void semaphores(void) {
    union semun { int val; struct semid_ds *buf; unsigned short *array; } arg;
    int id = semget(IPC_PRIVATE, 2, IPC_CREAT | 0600);
    unsigned short values[2] = {1, 0};
    arg.array = values;
    report("SETALL", semctl(id, 0, SETALL, arg));
    struct sembuf take = {0, -1, SEM_UNDO}, give = {0, 1, 0}, both[2] = {{0, -1, 0}, {1, -1, 0}};
    pid_t children[4];
    int *shared = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 4; i++)
        if ((children[i] = fork()) == 0) {
            for (int n = 0; n < 25; n++) {
                semop(id, &take, 1);
                int before = *shared;
                sched_yield();
                *shared = before + 1;
                struct sembuf back = {0, 1, SEM_UNDO};
                semop(id, &back, 1);
            }
            _exit(0);
        }
    for (int i = 0; i < 4; i++)
        waitpid(children[i], NULL, 0);
    report("excluded", *shared);
    if (fork() == 0) {
        semop(id, &take, 1);
        _exit(0);
    }
    wait(NULL);
    report("undone", semctl(id, 0, GETVAL));
    pid_t child = fork();
    if (child == 0)
        _exit(semop(id, both, 2) ? 1 : 0);
    while (semctl(id, 1, GETNCNT) == 0)
        sched_yield();
    report("neither", semctl(id, 0, GETVAL));
    report("last", semctl(id, 0, GETPID) > 0);
    arg.val = 1;
    semctl(id, 1, SETVAL, arg);
    int status;
    waitpid(child, &status, 0);
    report("child", status);
    report("both", semctl(id, 0, GETVAL) + semctl(id, 1, GETVAL));
    take.sem_flg = IPC_NOWAIT;
    report("now", semop(id, &take, 1));
    struct timespec limit = {0, 2000000};
    take.sem_flg = 0;
    report("too late", semtimedop(id, &take, 1, &limit));
    struct sembuf wrong = {2, 1, 0};
    report("no such semaphore", semop(id, &wrong, 1));
    arg.val = 40000;
    report("too large", semctl(id, 0, SETVAL, arg));
    struct semid_ds status_of;
    arg.buf = &status_of;
    report("IPC_STAT", semctl(id, 0, IPC_STAT, arg));
    printf("%lu semaphores, mode %o\n", (unsigned long)status_of.sem_nsems, status_of.sem_perm.mode);
    if ((child = fork()) == 0) {
        int failed = semop(id, &take, 1);
        _exit(failed && errno == EIDRM ? 3 : 4);
    }
    while (semctl(id, 0, GETNCNT) == 0)
        sched_yield();
    report("IPC_RMID", semctl(id, 0, IPC_RMID));
    waitpid(child, &status, 0);
    report("removed", WEXITSTATUS(status));
    report("gone", semop(id, &give, 1));
    int keyed = semget(0x1234567, 1, IPC_CREAT | IPC_EXCL | 0600);
    report("again", semget(0x1234567, 1, IPC_CREAT | IPC_EXCL | 0600));
    report("same", semget(0x1234567, 1, 0) == keyed);
    report("larger", semget(0x1234567, 2, 0));
    semctl(keyed, 0, IPC_RMID);
    report("no key", semget(0x1234567, 1, 0));
    report("no semaphores", semget(IPC_PRIVATE, 0, IPC_CREAT));
    report("too many", semget(IPC_PRIVATE, 100000, IPC_CREAT));
}

struct text { long kind; char text[100]; };

static void queues(void) {
    int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    struct text m = {2, "two"};
    report("send", msgsnd(id, &m, 4, 0));
    m.kind = 1, strcpy(m.text, "one");
    report("send", msgsnd(id, &m, 4, 0));
    report("of a type", msgrcv(id, &m, 100, 2, 0));
    puts(m.text);
    report("too long", msgrcv(id, &m, 2, 0, 0));
    report("cut", msgrcv(id, &m, 2, 0, MSG_NOERROR));
    report("none", msgrcv(id, &m, 100, 0, IPC_NOWAIT));
    pid_t child = fork();
    if (child == 0) {
        long sum = 0;
        for (int i = 0; i < 400; i++) {
            struct text got;
            if (msgrcv(id, &got, 100, -3, 0) != 100)
                _exit(1);
            sum += got.kind;
        }
        _exit(sum == 3 * 400 - 400 ? 0 : 2);
    }
    // More than the queue holds.
    for (int i = 0; i < 400; i++) {
        m.kind = 1 + i % 2 * 2;
        msgsnd(id, &m, 100, 0);
    }
    int status;
    waitpid(child, &status, 0);
    report("child", status);
    struct msqid_ds of;
    report("IPC_STAT", msgctl(id, IPC_STAT, &of));
    printf("%lu messages of %lu bytes, last %d\n", (unsigned long)of.msg_qnum, (unsigned long)of.msg_qbytes,
           of.msg_lspid == getpid() && of.msg_lrpid == child);
    int n = 0;
    while (msgsnd(id, &m, 100, IPC_NOWAIT) == 0)
        n++;
    report("full", n);
    report("full", msgsnd(id, &m, 100, IPC_NOWAIT));
    m.kind = 0;
    report("no type", msgsnd(id, &m, 1, 0));
    m.kind = 1;
    report("too long", msgsnd(id, &m, 9000, 0));
    if ((child = fork()) == 0)
        _exit(msgrcv(id, &m, 100, 77, 0) < 0 && errno == EIDRM ? 5 : 6);
    usleep(1000);
    report("IPC_RMID", msgctl(id, IPC_RMID, NULL));
    waitpid(child, &status, 0);
    report("removed", WEXITSTATUS(status));
    report("gone", msgsnd(id, &m, 1, 0));
    report("no key", msgget(0x7654321, 0));
}

static volatile sig_atomic_t signalled;
static void on_signal(int number, siginfo_t *info, void *context) {
    signalled = info->si_code == SI_MESGQ ? info->si_value.sival_int : -1;
}

static sem_t notified;
static void on_thread(union sigval value) {
    signalled = value.sival_int;
    sem_post(&notified);
}

static void posix(void) {
    struct mq_attr limits = {.mq_maxmsg = 3, .mq_msgsize = 16}, now;
    mq_unlink("/fxscope-test");
    report("none", mq_open("/fxscope-test", O_RDWR));
    mqd_t q = mq_open("/fxscope-test", O_CREAT | O_EXCL | O_RDWR, 0600, &limits);
    report("again", mq_open("/fxscope-test", O_CREAT | O_EXCL | O_RDWR, 0600, &limits));
    report("two slashes", mq_open("/a/b", O_CREAT | O_RDWR, 0600, &limits));
    struct mq_attr wrong = {.mq_maxmsg = 0, .mq_msgsize = 16};
    report("no room", mq_open("/fxscope-wrong", O_CREAT | O_RDWR, 0600, &wrong));
    char text[16];
    unsigned priority;
    report("send", mq_send(q, "low", 3, 1));
    report("send", mq_send(q, "high", 4, 9));
    report("send", mq_send(q, "low too", 7, 1));
    struct pollfd p = {.fd = q, .events = POLLIN | POLLOUT};
    poll(&p, 1, 0);
    report("full", p.revents);
    struct timespec past = {1, 0};
    report("too late", mq_timedsend(q, "x", 1, 0, &past));
    report("high", mq_receive(q, text, 16, &priority));
    report("priority", priority);
    report("low", mq_receive(q, text, 16, NULL) == 3 && !memcmp(text, "low", 3));
    report("small buffer", mq_receive(q, text, 15, NULL));
    report("too long", mq_send(q, text, 17, 0));
    report("priority", mq_send(q, text, 1, 32768));
    report("last", mq_receive(q, text, 16, NULL));
    poll(&p, 1, 0);
    report("empty", p.revents);
    pid_t child = fork();
    if (child == 0) {
        long sum = 0;
        for (int i = 0; i < 50; i++)
            sum += mq_receive(q, text, 16, NULL);
        _exit(sum == 50 * 5 ? 0 : 1);
    }
    for (int i = 0; i < 50; i++)
        mq_send(q, "hello", 5, i % 3);
    int status;
    waitpid(child, &status, 0);
    report("child", status);
    struct mq_attr set = {.mq_flags = O_NONBLOCK};
    report("mq_setattr", mq_setattr(q, &set, NULL));
    mq_getattr(q, &now);
    printf("%ld %ld %ld %d\n", now.mq_maxmsg, now.mq_msgsize, now.mq_curmsgs, now.mq_flags == O_NONBLOCK);
    report("nothing", mq_receive(q, text, 16, NULL));
    mqd_t reader = mq_open("/fxscope-test", O_RDONLY);
    report("read only", mq_send(reader, "x", 1, 0));
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 77};
    report("notify", mq_notify(q, &event));
    report("busy", mq_notify(q, &event));
    mq_send(q, "x", 1, 0);
    report("signal", signalled);
    mq_receive(q, text, 16, NULL);
    sem_init(&notified, 0, 0);
    event = (struct sigevent){.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_thread, .sigev_value.sival_int = 88};
    report("notify a thread", mq_notify(q, &event));
    mq_send(q, "x", 1, 0);
    sem_wait(&notified);
    report("thread", signalled);
    report("mq_unlink", mq_unlink("/fxscope-test"));
    report("mq_unlink", mq_unlink("/fxscope-test"));
    report("still there", mq_receive(reader, text, 16, NULL));
    report("close", mq_close(q));
    report("closed", mq_send(q, "x", 1, 0));
    int n = 0;
    char name[40];
    for (; n < 400; n++) {
        sprintf(name, "/fxscope-many-%d", n);
        if (mq_open(name, O_CREAT | O_RDWR, 0600, NULL) < 0)
            break;
    }
    report("limited", n > 0 && n < 400);
    while (n-- > 0)
        sprintf(name, "/fxscope-many-%d", n), mq_unlink(name);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    alarm(20);
    if (!strcmp(what, "rights")) rights();
    else if (!strcmp(what, "limits")) limits();
    else if (!strcmp(what, "cycles")) cycles();
    else if (!strcmp(what, "credentials")) credentials();
    else if (!strcmp(what, "messages")) messages();
    else if (!strcmp(what, "memory")) memory();
    else if (!strcmp(what, "semaphores")) semaphores();
    else if (!strcmp(what, "queues")) queues();
    else if (!strcmp(what, "posix")) posix();
    else return 2;
    return 0;
}
