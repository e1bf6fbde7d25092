// The run's own network: connections, datagrams and names over the loopback interface and between local sockets, by several
// processes and threads. What it prints is the same on every Linux.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
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

static struct sockaddr_in6 v6(const char *host, int port) {
    struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    inet_pton(AF_INET6, host, &name.sin6_addr);
    return name;
}

static const char *text(struct sockaddr_storage *name) {
    static char out[80], host[60];
    if (name->ss_family == AF_INET)
        inet_ntop(AF_INET, &((struct sockaddr_in *)name)->sin_addr, host, sizeof host);
    else if (name->ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)name)->sin6_addr, host, sizeof host);
    int port = ((struct sockaddr_in *)name)->sin_port;
    snprintf(out, sizeof out, "%s %s", host, port ? "with a port" : "without a port");
    return out;
}

static int port_of(int fd) {
    struct sockaddr_in6 name;
    socklen_t len = sizeof name;
    getsockname(fd, (void *)&name, &len);
    return ntohs(name.sin6_port);
}

static void show_name(const char *what, int fd) {
    struct sockaddr_storage name = {0};
    socklen_t len = sizeof name;
    getsockname(fd, (void *)&name, &len);
    printf("%s: %s, %d bytes\n", what, text(&name), (int)len);
}

static int listener4(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in name = v4("127.0.0.1", 0);
    bind(fd, (void *)&name, sizeof name);
    listen(fd, 8);
    return fd;
}

static int connected4(int listener) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        return -1;
    struct sockaddr_in name = v4("127.0.0.1", port_of(listener));
    return connect(fd, (void *)&name, sizeof name) ? -1 : fd;
}

static void tcp(void) {
    int listener = listener4(), client = connected4(listener);
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    int server = accept(listener, (void *)&peer, &len);
    report("peer is the client", ntohs(((struct sockaddr_in *)&peer)->sin_port) == port_of(client));
    show_name("client", client), show_name("server", server);
    char buffer[64];
    report("send", send(client, "hello world", 11, 0));
    report("peek", recv(server, buffer, 5, MSG_PEEK));
    int waiting;
    ioctl(server, FIONREAD, &waiting);
    report("waiting", waiting);
    report("receive", recv(server, buffer, sizeof buffer, 0));
    report("nothing", recv(server, buffer, sizeof buffer, MSG_DONTWAIT));
    struct pollfd p = {.fd = server, .events = POLLIN | POLLOUT | POLLRDHUP};
    poll(&p, 1, 0);
    report("ready to write", p.revents);
    report("shutdown", shutdown(client, SHUT_WR));
    poll(&p, 1, 0);
    report("ended", p.revents);
    report("end", read(server, buffer, sizeof buffer));
    report("answer", write(server, "answer", 6));
    report("answered", read(client, buffer, sizeof buffer));
    close(server);
    report("end of both", read(client, buffer, sizeof buffer));
    signal(SIGPIPE, SIG_IGN);
    report("after shutdown", send(client, "x", 1, 0));
    close(client);
    // Errors.
    struct sockaddr_in name = v4("127.0.0.1", port_of(listener)), mine = v4("192.0.2.1", 0);
    int other = socket(AF_INET, SOCK_STREAM, 0);
    report("bind twice", bind(other, (void *)&name, sizeof name));
    report("bind to another machine's", bind(other, (void *)&mine, sizeof mine));
    report("short address", bind(other, (void *)&name, 8));
    report("receive without connection", recv(other, buffer, 1, 0));
    report("send without connection", send(other, "x", 1, MSG_NOSIGNAL));
    report("accept without listening", accept(other, NULL, NULL));
    report("peer of nobody", getpeername(other, (void *)&peer, &len));
    report("shutdown of nothing", shutdown(other, SHUT_RDWR));
    close(listener);
    report("connect to a closed port", connect(other, (void *)&name, sizeof name));
    report("now the port is free", bind(socket(AF_INET, SOCK_STREAM, 0), (void *)&name, sizeof name));
    other = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    listener = listener4();
    name = v4("127.0.0.1", port_of(listener));
    report("non-blocking", connect(other, (void *)&name, sizeof name));
    struct pollfd w = {.fd = other, .events = POLLOUT};
    report("becomes ready", poll(&w, 1, 1000));
    int error = -1;
    len = sizeof error;
    getsockopt(other, SOL_SOCKET, SO_ERROR, &error, &len);
    report("error", error);
    report("again", connect(other, (void *)&name, sizeof name));
    report("accepted", accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC) >= 0);
    close(listener);
    report("raw protocol mismatch", socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
    report("family", socket(AF_APPLETALK, SOCK_STREAM, 0));
    report("type", socket(AF_INET, 9, 0));
}

static void udp(void) {
    int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in name = v4("127.0.0.1", 0), any = v4("0.0.0.0", 0);
    bind(a, (void *)&any, sizeof any);
    bind(b, (void *)&name, sizeof name);
    struct sockaddr_in to = v4("127.0.0.1", port_of(a));
    report("send", sendto(b, "one", 3, 0, (void *)&to, sizeof to));
    report("send", sendto(b, "", 0, 0, (void *)&to, sizeof to));
    report("send", sendto(b, "three", 5, 0, (void *)&to, sizeof to));
    char buffer[64];
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    int waiting;
    ioctl(a, FIONREAD, &waiting);
    report("waiting", waiting);
    report("receive", recvfrom(a, buffer, sizeof buffer, 0, (void *)&from, &len));
    report("from b", ntohs(((struct sockaddr_in *)&from)->sin_port) == port_of(b));
    report("empty", recv(a, buffer, sizeof buffer, 0));
    report("truncated", recv(a, buffer, 2, MSG_TRUNC));
    report("nothing", recv(a, buffer, 2, MSG_DONTWAIT));
    to = v4("127.0.0.1", port_of(b));
    report("connect", connect(a, (void *)&to, sizeof to));
    show_name("a", a);
    report("write", write(a, "four", 4));
    struct iovec parts[2] = {{buffer, 2}, {buffer + 2, 20}};
    report("readv", readv(b, parts, 2));
    // Only the connected peer is heard.
    int c = socket(AF_INET, SOCK_DGRAM, 0);
    to = v4("127.0.0.1", port_of(a));
    report("stranger", sendto(c, "x", 1, 0, (void *)&to, sizeof to));
    report("not heard", recv(a, buffer, 2, MSG_DONTWAIT));
    close(b);
    report("to a closed port", send(a, "x", 1, 0));
    report("is reported", send(a, "x", 1, 0));
    report("and again", recv(a, buffer, 1, MSG_DONTWAIT));
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    report("disconnect", connect(a, &none, sizeof none));
    report("nowhere", send(a, "x", 1, 0));
    static char large[70000];
    name.sin_port = 0;
    bind(b = socket(AF_INET, SOCK_DGRAM, 0), (void *)&name, sizeof name);
    to = v4("127.0.0.1", port_of(b));
    report("too long", sendto(c, large, 65508, 0, (void *)&to, sizeof to));
    report("longest", sendto(c, large, 65507, 0, (void *)&to, sizeof to));
    report("all of it", recv(b, large, sizeof large, 0));
}

static void dual(void) {
    int listener = socket(AF_INET6, SOCK_STREAM, 0), six = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 any = v6("::", 0);
    bind(listener, (void *)&any, sizeof any);
    listen(listener, 4);
    int port = port_of(listener), old = connected4(listener);
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    int server = accept(listener, (void *)&peer, &len);
    printf("IPv4 client: %s\n", text(&peer));
    show_name("server", server);
    struct sockaddr_in6 to = v6("::1", port);
    report("connect", connect(six, (void *)&to, sizeof to));
    len = sizeof peer;
    accept(listener, (void *)&peer, &len);
    printf("IPv6 client: %s\n", text(&peer));
    len = sizeof peer;
    getpeername(old, (void *)&peer, &len);
    printf("IPv4 peer: %s\n", text(&peer));
    struct sockaddr_in four = v4("127.0.0.1", port);
    report("port of both", bind(socket(AF_INET, SOCK_STREAM, 0), (void *)&four, sizeof four));
    int only = socket(AF_INET6, SOCK_STREAM, 0), one = 1;
    setsockopt(only, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    any.sin6_port = 0;
    bind(only, (void *)&any, sizeof any);
    listen(only, 1);
    report("IPv6 only", connected4(only));
    int mapped = socket(AF_INET6, SOCK_STREAM, 0);
    to = v6("::ffff:127.0.0.1", port);
    report("mapped", connect(mapped, (void *)&to, sizeof to));
    show_name("mapped", mapped);
    report("family", connect(six, (void *)&four, sizeof four));
}

static struct sockaddr_un un(const char *name, socklen_t *len) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t bytes = name[0] == '@' ? strlen(name) : strlen(name) + 1;
    memcpy(address.sun_path, name, bytes);
    if (name[0] == '@')
        address.sun_path[0] = 0;
    *len = offsetof(struct sockaddr_un, sun_path) + bytes;
    return address;
}

static void local(void) {
    const char *names[] = {"@fxscope-test-name", "stream.socket"};
    for (int i = 0; i < 2; i++) {
        socklen_t len, got;
        struct sockaddr_un name = un(names[i], &len), peer;
        int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
        report("connect to nobody", connect(client, (void *)&name, len));
        report("bind", bind(listener, (void *)&name, len));
        report("not listening", connect(client, (void *)&name, len));
        report("bind twice", bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&name, len));
        report("listen", listen(listener, 1));
        report("wrong type", connect(socket(AF_UNIX, SOCK_DGRAM, 0), (void *)&name, len));
        pid_t child = fork();
        if (child == 0) {
            if (connect(client, (void *)&name, len))
                _exit(1);
            write(client, "from the child", 14);
            char answer[10];
            _exit(read(client, answer, 10) == 5 ? 0 : 2);
        }
        close(client);
        got = sizeof peer;
        int server = accept(listener, (void *)&peer, &got);
        report("unnamed peer", got);
        got = sizeof peer;
        getsockname(server, (void *)&peer, &got);
        report("server's name", got == len && !memcmp(&peer, &name, len));
        struct ucred who;
        got = sizeof who;
        getsockopt(server, SOL_SOCKET, SO_PEERCRED, &who, &got);
        report("the child", who.pid == child && who.uid == getuid() && who.gid == getgid());
        char buffer[64];
        report("read", read(server, buffer, sizeof buffer));
        report("write", write(server, "reply", 5));
        int status;
        waitpid(child, &status, 0);
        report("child", status);
        report("end", read(server, buffer, sizeof buffer));
        // A full queue of connections.
        int waiting[4], n = 0;
        for (; n < 4; n++) {
            waiting[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
            if (connect(waiting[n], (void *)&name, len))
                break;
        }
        report("queue", n);
        report("full", connect(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), (void *)&name, len));
        close(listener);
        report("dropped", read(waiting[0], buffer, 1));
    }
    report("delete", unlink("stream.socket"));
    socklen_t len;
    struct sockaddr_un gone = un("stream.socket", &len), far = un("no/such/folder", &len);
    report("deleted", connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&gone, sizeof gone));
    report("no folder", bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&far, sizeof far));
    // Datagrams.
    int a = socket(AF_UNIX, SOCK_DGRAM, 0), b = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr_un name = un("@fxscope-datagrams", &len), from;
    bind(a, (void *)&name, len);
    report("datagram", sendto(b, "hello", 5, 0, (void *)&name, len));
    socklen_t got = sizeof from;
    char buffer[200];
    report("receive", recvfrom(a, buffer, sizeof buffer, 0, (void *)&from, &got));
    report("from no name", got);
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    report("automatic name", bind(b, (void *)&own, sizeof own.sun_family));
    report("connect", connect(b, (void *)&name, len));
    report("send", send(b, "abc", 3, 0));
    got = sizeof from;
    report("truncated", recvfrom(a, buffer, 2, 0, (void *)&from, &got));
    report("from a name", got);
    report("reply", sendto(a, "reply", 5, 0, (void *)&from, got));
    report("replied", recv(b, buffer, sizeof buffer, 0));
    close(a);
    report("to the dead", send(b, "x", 1, 0));
    // Packets with a connection.
    int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0), client = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    name = un("@fxscope-packets", &len);
    bind(listener, (void *)&name, len), listen(listener, 2);
    report("packets", connect(client, (void *)&name, len));
    int server = accept(listener, NULL, NULL);
    send(client, "first", 5, 0), send(client, "second", 6, 0);
    report("first", recv(server, buffer, sizeof buffer, 0));
    report("second", recv(server, buffer, 3, 0));
    report("no more", recv(server, buffer, 3, MSG_DONTWAIT));
}

enum { CLIENTS = 20, ROUNDS = 5 };

static void *client_thread(void *listener) {
    int fd = connected4(*(int *)listener);
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char buffer[100];
        write(fd, "question", 8);
        for (int got = 0; got < 16;)
            got += read(fd, buffer, sizeof buffer);
        sum += 16;
    }
    close(fd);
    return (void *)sum;
}

// A server with epoll, with clients in threads and in another process.
static void serve(void) {
    int listener = listener4(), set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
    fcntl(listener, F_SETFL, O_NONBLOCK);
    pthread_t threads[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        pthread_create(&threads[i], NULL, client_thread, &listener);
    pid_t child = fork();
    if (child == 0)
        _exit((long)client_thread(&listener) == 16 * ROUNDS ? 0 : 1);
    int open = 0, closed = 0;
    long bytes = 0;
    while (closed < CLIENTS + 1) {
        struct epoll_event events[8];
        int n = epoll_wait(set, events, 8, 5000);
        if (n <= 0) {
            report("wait", n);
            break;
        }
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                int server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                if (server >= 0) {
                    struct epoll_event more = {.events = EPOLLIN | EPOLLET, .data.fd = server};
                    epoll_ctl(set, EPOLL_CTL_ADD, server, &more), open++;
                }
                continue;
            }
            char buffer[64];
            for (long got; (got = read(fd, buffer, sizeof buffer)) >= 0;) {
                if (got == 0) {
                    close(fd), closed++;
                    break;
                }
                bytes += got;
                for (int r = 0; r < got / 8; r++)
                    write(fd, "sixteen bytes ok", 16);
            }
        }
    }
    printf("connections %d, closed %d, bytes %ld\n", open, closed, bytes);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    int status;
    waitpid(child, &status, 0);
    report("child", status);
    // Both directions of one connection, more than buffers hold.
    int client = connected4(listener), server;
    fcntl(listener, F_SETFL, 0);
    server = accept(listener, NULL, NULL);
    child = fork();
    enum { LARGE = 1 << 20 };
    char *block = calloc(1, LARGE);
    if (child == 0) {
        close(server);
        write(client, block, LARGE);
        long got = 0, n;
        shutdown(client, SHUT_WR);
        while ((n = read(client, block, LARGE)) > 0)
            got += n;
        _exit(got == LARGE ? 0 : 1);
    }
    report("all", recv(server, block, LARGE, MSG_WAITALL) == LARGE);
    report("back", write(server, block, LARGE) == LARGE);
    close(server);
    waitpid(child, &status, 0);
    report("child", status);
}

static void options(void) {
    int tcp = socket(AF_INET, SOCK_STREAM, 0), pair[2];
    struct { const char *name; int level, option, value; } list[] = {
        {"SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR, 1}, {"SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 5},
        {"SO_TYPE", SOL_SOCKET, SO_TYPE, -1},          {"SO_DOMAIN", SOL_SOCKET, SO_DOMAIN, -1},
        {"SO_PROTOCOL", SOL_SOCKET, SO_PROTOCOL, -1},  {"SO_ACCEPTCONN", SOL_SOCKET, SO_ACCEPTCONN, -1},
        {"SO_REUSEPORT", SOL_SOCKET, SO_REUSEPORT, 1}, {"TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 1},
        {"TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 60}, {"TCP_KEEPINTVL", IPPROTO_TCP, TCP_KEEPINTVL, 10},
        {"TCP_KEEPCNT", IPPROTO_TCP, TCP_KEEPCNT, 3},  {"TCP_CORK", IPPROTO_TCP, TCP_CORK, 1},
        {"TCP_USER_TIMEOUT", IPPROTO_TCP, TCP_USER_TIMEOUT, 500}, {"IP_TOS", IPPROTO_IP, IP_TOS, 16},
        {"IP_TTL", IPPROTO_IP, IP_TTL, 9},             {"SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, 50000},
        {"SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 50000},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        int value = list[i].value;
        socklen_t len = sizeof value;
        if (value >= 0 && setsockopt(tcp, list[i].level, list[i].option, &value, sizeof value))
            report(list[i].name, -1);
        value = -1;
        getsockopt(tcp, list[i].level, list[i].option, &value, &len);
        report(list[i].name, value);
    }
    int value = 1;
    report("unknown", setsockopt(tcp, SOL_SOCKET, 4000, &value, sizeof value));
    report("short", setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &value, 1));
    report("read-only", setsockopt(tcp, SOL_SOCKET, SO_TYPE, &value, sizeof value));
    report("no socket", setsockopt(0, SOL_SOCKET, SO_TYPE, &value, sizeof value));
    struct linger linger = {1, 7};
    report("linger", setsockopt(tcp, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    struct timeval limit = {0, 20000};
    report("limit", setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    char byte;
    report("too late", read(pair[0], &byte, 1));
    int listener = listener4();
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    report("nobody comes", accept(listener, NULL, NULL));
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    report("TCP_INFO", getsockopt(listener, IPPROTO_TCP, TCP_INFO, &info, &len));
    report("state", info.tcpi_state);
    struct ucred who;
    len = sizeof who;
    getsockopt(pair[1], SOL_SOCKET, SO_PEERCRED, &who, &len);
    report("itself", who.pid == getpid());
}

static void interfaces(void) {
    struct ifaddrs *list, *each;
    report("getifaddrs", getifaddrs(&list));
    for (each = list; each; each = each->ifa_next) {
        if (strcmp(each->ifa_name, "lo"))
            continue;
        char host[64] = "";
        if (each->ifa_addr->sa_family == AF_INET)
            inet_ntop(AF_INET, &((struct sockaddr_in *)each->ifa_addr)->sin_addr, host, sizeof host);
        if (each->ifa_addr->sa_family == AF_INET6)
            inet_ntop(AF_INET6, &((struct sockaddr_in6 *)each->ifa_addr)->sin6_addr, host, sizeof host);
        printf("%s family %d flags %x %s\n", each->ifa_name, each->ifa_addr->sa_family, each->ifa_flags, host);
    }
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request = {.ifr_name = "lo"};
    report("flags", ioctl(s, SIOCGIFFLAGS, &request) ? -1 : request.ifr_flags);
    report("mtu", ioctl(s, SIOCGIFMTU, &request) ? -1 : request.ifr_mtu);
    report("index", if_nametoindex("lo"));
    char name[IF_NAMESIZE] = "";
    if_indextoname(1, name);
    puts(name);
    strcpy(request.ifr_name, "nothing0");
    report("no such interface", ioctl(s, SIOCGIFMTU, &request));
    struct ifreq entries[4];
    struct ifconf all = {.ifc_len = sizeof entries, .ifc_req = entries};
    report("SIOCGIFCONF", ioctl(s, SIOCGIFCONF, &all));
    printf("%s %s\n", entries[0].ifr_name, inet_ntoa(((struct sockaddr_in *)&entries[0].ifr_addr)->sin_addr));
    report("another protocol of netlink", socket(AF_NETLINK, SOCK_RAW, 31));
}

// What is not the same on every machine.
static void names(void) {
    char host[100];
    gethostname(host, sizeof host);
    const char *wanted[] = {"localhost", host};
    for (int i = 0; i < 2; i++) {
        struct addrinfo hint = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
        int error = getaddrinfo(wanted[i], "80", &hint, &found);
        printf("%s: %s\n", wanted[i], error ? gai_strerror(error) : text((void *)found->ai_addr));
        if (!error)
            printf("%s\n", inet_ntoa(((struct sockaddr_in *)found->ai_addr)->sin_addr));
    }
    int s = socket(AF_INET, SOCK_STREAM, 0), d = socket(AF_INET, SOCK_DGRAM, 0), t = socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in outside = v4("192.0.2.1", 80), name = v4("127.0.0.1", 0);
    struct sockaddr_in6 far = v6("2001:db8::1", 80);
    report("connect outside", connect(s, (void *)&outside, sizeof outside));
    report("send outside", sendto(d, "x", 1, 0, (void *)&outside, sizeof outside));
    report("send outside", sendto(t, "x", 1, 0, (void *)&far, sizeof far));
    bind(s, (void *)&name, sizeof name);
    report("first port", port_of(s) >= 32768 && port_of(s) < 61000);
    const char *files[] = {"/proc/net/tcp", "/proc/net/udp", "/proc/net/tcp6", "/proc/net/unix", "/proc/net/dev",
                           "/proc/net/route", "/proc/net/if_inet6", "/sys/class/net/lo/address", "/sys/class/net/lo/mtu",
                           "/sys/class/net/lo/operstate", "/proc/sys/net/core/somaxconn"};
    listen(s, 1);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        FILE *file = fopen(files[i], "r");
        char line[300];
        int lines = 0;
        while (file && fgets(line, sizeof line, file))
            lines++;
        printf("%s: %d\n", files[i], lines);
    }
    struct sockaddr_un foreign = {.sun_family = AF_UNIX};
    if (getenv("FOREIGN")) {
        strcpy(foreign.sun_path, getenv("FOREIGN"));
        report("a socket of the host", connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&foreign, sizeof foreign));
    }
    foreign = (struct sockaddr_un){.sun_family = AF_UNIX, .sun_path = "/etc/fxscope-socket"};
    report("a name elsewhere", bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&foreign, sizeof foreign));
}

// Thousands of sockets: the limits of descriptors and memory hold, and closing them gives everything back.
static void flood(void) {
    for (int round = 0; round < 2; round++) {
        int open = 0, listener = listener4(), fds[5000];
        while (open < 4999 && (fds[open] = round ? connected4(listener) : socket(AF_INET6, SOCK_DGRAM, 0)) >= 0) {
            open++;
            if (round && (fds[open++] = accept(listener, NULL, NULL)) < 0)
                break;
        }
        printf("round %d: %s\n", round, open > 20 && open < 4999 ? strerrorname_np(errno) : "wrong");
        for (int i = 0; i < open; i++)
            close(fds[i]);
        close(listener);
    }
    // A full datagram socket loses what comes, and a full stream makes its writer wait.
    int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in name = v4("127.0.0.1", 0);
    bind(a, (void *)&name, sizeof name);
    name = v4("127.0.0.1", port_of(a));
    static char block[30000];
    for (int i = 0; i < 100; i++)
        sendto(b, block, sizeof block, 0, (void *)&name, sizeof name);
    int received = 0;
    while (recv(a, block, sizeof block, MSG_DONTWAIT) > 0)
        received++;
    printf("some are lost: %d\n", received > 1 && received < 100);
    // A socket of its own queue.
    int self = listener4(), again = connected4(self);
    int server = accept(self, NULL, NULL);
    shutdown(self, SHUT_RDWR);
    report("accept after shutdown", accept(self, NULL, NULL));
    write(again, "x", 1);
    close(server);
    report("reset", read(again, block, 1));
    socklen_t len;
    struct sockaddr_un odd = un("@\n\xff\x01 odd", &len);
    report("odd name", bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&odd, len));
    FILE *file = fopen("/proc/net/unix", "r");
    char line[300];
    while (fgets(line, sizeof line, file)) {
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (argc > 2 && chdir(argv[2]))
        return 1;
    alarm(20);
    if (!strcmp(what, "tcp")) tcp();
    else if (!strcmp(what, "udp")) udp();
    else if (!strcmp(what, "dual")) dual();
    else if (!strcmp(what, "local")) local();
    else if (!strcmp(what, "serve")) serve();
    else if (!strcmp(what, "options")) options();
    else if (!strcmp(what, "interfaces")) interfaces();
    else if (!strcmp(what, "names")) names();
    else if (!strcmp(what, "flood")) flood();
    else return 2;
    return 0;
}
