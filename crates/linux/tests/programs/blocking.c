/* Calls that block until another thread or process does its part. The first argument selects the call, the second is a folder. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1l << 20)

static char block[4 * MIB], taken[4 * MIB];

static void report(const char *what, long result)
{
    if (result < 0) printf("%s: %s\n", what, strerrorname_np(errno));
    else printf("%s: %ld\n", what, result);
    fflush(stdout);
}

static pthread_t start(void *(*what)(void *), int fd)
{
    pthread_t id;
    if (pthread_create(&id, 0, what, (void *)(long)fd)) abort();
    return id;
}

/* Takes 4 MiB in small pieces and checks them. Returns what joined() prints: the main thread prints alone, so the order is fixed. */
static void *drain(void *fd)
{
    long done = 0, n;
    while (done < 4 * MIB && (n = read((long)fd, taken + done, 10000)) > 0)
        done += n;
    return done == 4 * MIB && !memcmp(block, taken, done) ? "all" : "something else";
}

static void joined(pthread_t drain)
{
    void *result;
    pthread_join(drain, &result);
    printf("drained: %s\n", (char *)result);
}

static void *fill(void *fd)
{
    for (long done = 0; done < 4 * MIB; done += 65536)
        if (write((long)fd, block + done, 65536) != 65536) printf("short write\n");
    return 0;
}

static void transfers(void)
{
    for (long i = 0; i < 4 * MIB; i++)
        block[i] = i * 31 >> 7;
    int pair[2], ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    pthread_t other = start(drain, pair[1]);
    report("send", send(pair[0], block, 4 * MIB, 0));
    joined(other);
    other = start(drain, pair[1]);
    struct iovec pieces[] = { { block, MIB + 5 }, { block + MIB + 5, 3 * MIB - 5 } };
    struct msghdr message = { .msg_iov = pieces, .msg_iovlen = 2 };
    report("sendmsg", sendmsg(pair[0], &message, 0));
    joined(other);
    other = start(drain, pair[1]);
    report("write to a socket", write(pair[0], block, 4 * MIB));
    joined(other);
    other = start(fill, pair[0]);
    memset(taken, 0, sizeof taken);
    report("recv of all", recv(pair[1], taken, 4 * MIB, MSG_WAITALL));
    printf("it is: %s\n", memcmp(block, taken, 4 * MIB) ? "something else" : "all");
    pthread_join(other, 0);
    report("recv without waiting", recv(pair[1], taken, 1, MSG_DONTWAIT));
    long part = send(pair[0], block, 4 * MIB, MSG_DONTWAIT);
    printf("send without waiting: %s\n", part > 0 && part < 4 * MIB ? "a part" : "something else");

    pipe(ends);
    other = start(drain, ends[0]);
    report("write to a pipe", write(ends[1], block, 4 * MIB));
    joined(other);
    other = start(drain, ends[0]);
    report("writev to a pipe", writev(ends[1], pieces, 2));
    joined(other);
    other = start(drain, ends[0]);
    int file = memfd_create("file", 0);
    pwrite(file, block, 4 * MIB, 0);
    off_t at = 0;
    while (at < 4 * MIB && sendfile(ends[1], file, &at, 4 * MIB - at) > 0)
        ;
    report("sendfile to a pipe", at);
    joined(other);
    report("pwritev2 at the position", pwritev2(ends[1], pieces, 0, -1, 0));

    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    other = start(drain, pair[1]);
    report("sendfile to a socket", sendfile(pair[0], file, 0, 4 * MIB));
    report("position", lseek(file, 0, SEEK_CUR));
    joined(other);

    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
    report("message", write(pair[0], block, 10000));
    report("it comes as", read(pair[1], taken, 20000));
    for (int i = 0; i < 3; i++)
        write(pair[0], block, 100 + i);
    report("first", read(pair[1], taken, 20000));
    report("second, cut off", recv(pair[1], taken, 10, MSG_TRUNC));
    report("third", recv(pair[1], taken, 20000, MSG_WAITALL));
    close(pair[1]);
    report("send to nobody", send(pair[0], block, 1, MSG_NOSIGNAL));
}

static void *reader(void *unused)
{
    int fd = open("fifo", O_RDONLY);
    char text[32] = "";
    report("reader", fd < 0 ? -1 : 0);
    printf("flags: %#x\n", fcntl(fd, F_GETFL) & O_NONBLOCK);
    report("read", read(fd, text, sizeof text));
    printf("text: %s\n", text);
    report("end of file", read(fd, text, sizeof text));
    close(fd);
    return unused;
}

static void writer(void)
{
    int fd = open("fifo", O_WRONLY);
    if (fd < 0) report("writer", -1);
    write(fd, "through a FIFO", 14);
    close(fd);
}

static void *late_writer(void *unused)
{
    usleep(20000);
    writer();
    return unused;
}

static void interrupted(int signal)
{
    (void)signal;
}

static void fifos(void)
{
    mkfifo("fifo", 0600);
    report("writer that does not wait", open("fifo", O_WRONLY | O_NONBLOCK));
    int both = open("fifo", O_RDWR), in = open("fifo", O_RDONLY | O_NONBLOCK);
    report("reader and writer", both < 0 || in < 0 ? -1 : 0);
    close(both), close(in);

    pthread_t other = start(reader, 0);
    usleep(20000);
    writer();
    pthread_join(other, 0);

    other = start(late_writer, 0);
    reader(0);
    pthread_join(other, 0);

    pid_t child = fork();
    if (child == 0) late_writer(0), _exit(0);
    reader(0);
    waitpid(child, 0, 0);

    struct sigaction action = { .sa_handler = interrupted };
    sigaction(SIGALRM, &action, 0);
    /* Repeated, because the first one may arrive before open() waits. */
    ualarm(20000, 20000);
    report("interrupted reader", open("fifo", O_RDONLY));
    report("interrupted writer", open("fifo", O_WRONLY));
    ualarm(0, 0);
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, 0);
    ualarm(10000, 0);
    other = start(late_writer, 0);
    reader(0);
    pthread_join(other, 0);
}

static int locked;
static void *unlock(void *unused)
{
    usleep(20000);
    printf("unlock\n");
    flock(locked, LOCK_UN);
    return unused;
}

static void locks(void)
{
    locked = open("file", O_RDWR | O_CREAT, 0600);
    int other = open("file", O_RDWR);
    report("lock", flock(locked, LOCK_EX));
    report("lock again, not waiting", flock(other, LOCK_EX | LOCK_NB));
    pthread_t id = start(unlock, 0);
    report("lock again", flock(other, LOCK_EX));
    pthread_join(id, 0);
    struct sigaction action = { .sa_handler = interrupted };
    sigaction(SIGALRM, &action, 0);
    ualarm(20000, 0);
    report("lock, interrupted", flock(locked, LOCK_EX));
}

static void *accept_all(void *fd)
{
    usleep(20000);
    for (int i = 0; i < 8; i++)
        if (accept((long)fd, 0, 0) < 0) printf("accept: %s\n", strerrorname_np(errno));
    return 0;
}

static void connections(void)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "socket" };
    int server = socket(AF_UNIX, SOCK_STREAM, 0), done = 0;
    bind(server, (void *)&name, sizeof name), listen(server, 1);
    pthread_t other = start(accept_all, server);
    for (int i = 0; i < 8; i++)
        done += connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&name, sizeof name) == 0;
    pthread_join(other, 0);
    printf("connections: %d\n", done);
}

/* Two FIFOs to a program outside: a request is sent through the first, and an answer received through the second. */
static void outside(void)
{
    char text[32] = "";
    int out = open("request", O_WRONLY), in = open("answer", O_RDONLY);
    write(out, "request", 7);
    report("answer", read(in, text, sizeof text));
    printf("text: %s\n", text);
}

static void for_ever(void)
{
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    send(pair[0], block, sizeof block, 0);
}

int main(int argc, char **argv)
{
    if (argc < 3 || chdir(argv[2])) return 1;
    setvbuf(stdout, 0, _IOLBF, 0);
    const char *what = argv[1];
    if (!strcmp(what, "transfers")) transfers();
    else if (!strcmp(what, "fifos")) fifos();
    else if (!strcmp(what, "locks")) locks();
    else if (!strcmp(what, "connections")) connections();
    else if (!strcmp(what, "outside")) outside();
    else for_ever();
    return 0;
}
