// Communicates with itself over the loopback interface and a socket in the folder given as argument.

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void check(const char *what, long result) {
    printf("%s: %s\n", what, result < 0 ? strerror(errno) : "done");
}

static void talk(int client, int server) {
    char text[20] = {0};
    check("send", send(client, "question", 8, 0));
    check("receive", recv(server, text, sizeof text, 0));
    puts(text);
    check("answer", write(server, "answer", 6));
    memset(text, 0, sizeof text);
    check("read", read(client, text, sizeof text));
    puts(text);
}

int main(int argc, char **argv) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, peer;
    socklen_t len = sizeof name;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    check("option", setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one));
    check("bind", bind(listener, (void *)&name, sizeof name));
    check("listen", listen(listener, 5));
    check("name", getsockname(listener, (void *)&name, &len));
    printf("%s %d %d\n", inet_ntoa(name.sin_addr), name.sin_port != 0, (int)len);
    check("connect", connect(client, (void *)&name, sizeof name));
    len = sizeof peer;
    int server = accept(listener, (void *)&peer, &len);
    check("accept", server);
    printf("%s\n", inet_ntoa(peer.sin_addr));
    talk(client, server);

    if (argc < 2 || chdir(argv[1]))
        return 1;
    struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "socket"};
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    client = socket(AF_UNIX, SOCK_STREAM, 0);
    check("bind", bind(listener, (void *)&local, sizeof local));
    check("bind again", bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&local, sizeof local));
    check("listen", listen(listener, 5));
    check("connect", connect(client, (void *)&local, offsetof(struct sockaddr_un, sun_path) + 7));
    talk(client, accept(listener, NULL, NULL));
    check("delete", unlink("socket"));
    check("connect to nothing", connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&local, sizeof local));
    return 0;
}
