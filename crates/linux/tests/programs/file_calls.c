// File system calls of computing programs, including their errors. Argument: an empty folder.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static void report(const char *what, long result) {
    if (result < 0)
        printf("%s: %s\n", what, strerrorname_np(errno));
    else
        printf("%s: %ld\n", what, result);
}

static int make(const char *name, const char *text) {
    int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0644);
    if (write(fd, text, strlen(text)) < 0)
        report(name, -1);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void content(const char *name) {
    char text[200] = {0};
    int fd = open(name, O_RDONLY);
    report(name, read(fd, text, sizeof text - 1));
    printf("  %s\n", text);
    close(fd);
}

static void moving(void) {
    char text[64] = {0};
    int a = make("a", "0123456789abcdef"), b = make("b", "");
    off_t at = 4;
    report("sendfile", sendfile(b, a, &at, 6));
    report("offset", at);
    at = 2;
    loff_t to = 6;
    report("copy_file_range", copy_file_range(a, &at, b, &to, 5, 0));
    report("offsets", at * 100 + to);
    content("b");
    struct iovec parts[2] = {{text, 3}, {text + 10, 5}};
    report("preadv", preadv(a, parts, 2, 8));
    printf("%s %s\n", text, text + 10);
    report("preadv2", preadv2(a, parts, 2, 0, 0));
    report("pwritev", pwritev(b, parts, 2, 20));
    report("bad offset", pread(a, text, 4, -1));
    report("bad buffer", read(a, (void *)16, 4));
    report("null count", read(a, (void *)16, 0));
    report("write to a reader", write(open("a", O_RDONLY), "x", 1));
    report("truncate", ftruncate(b, 3));
    report("size", lseek(b, 0, SEEK_END));
    report("fallocate", fallocate(b, 0, 0, 100));
    report("size", lseek(b, 0, SEEK_END));
    report("seek", lseek(b, -1000, SEEK_END));
    report("sync", fsync(b) + fdatasync(b) + syncfs(b));
    report("advice", posix_fadvise(a, 0, 0, POSIX_FADV_SEQUENTIAL));
}

static void names(void) {
    struct stat s;
    report("mkdir", mkdir("d", 0755));
    report("mkdir again", mkdir("d", 0755));
    report("mkdir in nothing", mkdir("no/d", 0755));
    report("mkdir with a slash", mkdir("d/e/", 0755));
    report("below a file", open("a/x", O_RDONLY));
    report("file with a slash", open("a/", O_RDONLY));
    report("folder to write", open("d", O_WRONLY));
    report("not a folder", open("a", O_RDONLY | O_DIRECTORY));
    report("exclusive", open("a", O_CREAT | O_EXCL | O_RDWR, 0600));
    report("empty path", open("", O_RDONLY));
    report("long name", open("d/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"
                             "12345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
                             "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678", O_RDONLY));
    report("symlink", symlink("../a", "d/link"));
    report("loop", symlink("loop", "loop"));
    report("open loop", open("loop", O_RDONLY));
    report("lstat loop", lstat("loop", &s));
    report("stat link", stat("d/link", &s));
    report("size", s.st_size);
    report("no follow", open("d/link", O_RDONLY | O_NOFOLLOW));
    char text[100] = {0};
    report("readlink", readlink("d/link", text, sizeof text));
    puts(text);
    report("readlink of a file", readlink("a", text, sizeof text));
    report("rename", rename("b", "d/b"));
    report("rename over a folder", rename("a", "d"));
    report("rename nothing", rename("b", "c"));
    report("link", link("a", "d/hard"));
    report("links", stat("a", &s) ? -1 : (long)s.st_nlink);
    report("chmod", chmod("a", 0640));
    report("mode", stat("a", &s) ? -1 : (long)s.st_mode);
    struct timespec times[2] = {{1000000000, 5}, {1100000000, 0}};
    report("utimens", utimensat(AT_FDCWD, "a", times, 0));
    report("time", stat("a", &s) ? -1 : (long)(s.st_atime + s.st_mtime));
    report("omit", utimensat(AT_FDCWD, "a", (struct timespec[2]){{0, UTIME_OMIT}, {7, 0}}, 0));
    report("time", stat("a", &s) ? -1 : (long)(s.st_atime + s.st_mtime));
    report("bad time", utimensat(AT_FDCWD, "a", (struct timespec[2]){{0, -5}, {7, 0}}, 0));
    report("pipe", mkfifo("fifo", 0600));
    report("its mode", stat("fifo", &s) ? -1 : (long)s.st_mode);
    report("rmdir full", rmdir("d"));
    report("unlink folder", unlink("d"));
    report("rmdir file", rmdir("a"));
    report("unlink", unlink("fifo"));
    report("access", access("a", R_OK | W_OK));
    report("no access", access("none", F_OK));
    report("access to folders", access(".", R_OK | W_OK | X_OK) | access("d", W_OK) | access("/dev/shm", W_OK));
    report("attributes", getxattr("a", "user.x", text, 10) < 0 && (errno == ENOTSUP || errno == ENODATA) ? 0 : 1);
    struct statx x;
    report("statx", statx(AT_FDCWD, "a", 0, STATX_SIZE, &x));
    report("size", x.stx_size);
    struct statfs f;
    report("statfs", statfs(".", &f));
    report("longest name", f.f_namelen);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char **)a, *(char **)b);
}

static void folders(void) {
    char *list[50];
    int count = 0;
    DIR *d = opendir("d");
    for (struct dirent *e; (e = readdir(d)) && count < 50;)
        asprintf(&list[count++], "%s %d", e->d_name, e->d_type);
    rewinddir(d);
    report("again", readdir(d) != NULL);
    qsort(list, count, sizeof *list, by_name);
    for (int i = 0; i < count; i++)
        puts(list[i]);
    char path[4096];
    report("chdir", chdir("d"));
    puts(strrchr(getcwd(path, sizeof path), '/'));
    report("relative", access("../a", F_OK));
    report("fchdir to a file", fchdir(open("../a", O_RDONLY)));
    report("back", chdir(".."));
    report("short buffer", getcwd(path, 2) ? 0 : -1);
    report("relative to a descriptor", openat(dirfd(d), "b", O_RDONLY) < 0 ? -1 : 0);
    report("not a folder", openat(open("a", O_RDONLY), "b", O_RDONLY));
    report("bad descriptor", openat(99, "b", O_RDONLY));
    report("deleting", unlinkat(dirfd(d), "link", 0));
}

static void sharing(void) {
    int a = make("s", "the contents of the file");
    report("size", ftruncate(a, 200000));
    char *p = mmap(NULL, 200000, PROT_READ | PROT_WRITE, MAP_SHARED, a, 0);
    report("map", p == MAP_FAILED ? -1 : 0);
    memcpy(p, "THE", 3);
    memcpy(p + 65530, "across pages", 12);
    report("msync", msync(p, 200000, MS_SYNC));
    content("s");
    char text[20] = {0};
    pread(a, text, 12, 65530);
    puts(text);
    memcpy(p + 4, "CONTENTS", 8);
    report("unmap", munmap(p, 200000));
    content("s");
    char *q = mmap(NULL, 100, PROT_READ | PROT_WRITE, MAP_PRIVATE, a, 0);
    memset(q, '-', 10);
    munmap(q, 100);
    content("s");
    int reader = open("s", O_RDONLY);
    report("write-only share", mmap(NULL, 100, PROT_WRITE, MAP_SHARED, reader, 0) == MAP_FAILED ? -1 : 0);
    report("bad offset", mmap(NULL, 100, PROT_READ, MAP_SHARED, a, 100) == MAP_FAILED ? -1 : 0);
    p = mmap(NULL, 100, PROT_READ | PROT_WRITE, MAP_SHARED, a, 0);
    memcpy(p + 13, "OF", 2);
    close(a);
    report("flock", flock(reader, LOCK_EX | LOCK_NB));
    report("flock elsewhere", flock(open("s", O_RDONLY), LOCK_EX | LOCK_NB));
    report("unlock", flock(reader, LOCK_UN));
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
    int writer = open("s", O_RDWR);
    report("lock", fcntl(writer, F_SETLK, &lock));
    report("get lock", fcntl(writer, F_GETLK, &lock));
    report("kind", lock.l_type);
    int m = memfd_create("memory", MFD_CLOEXEC);
    report("memfd", ftruncate(m, 100));
    report("close-on-exec", fcntl(m, F_GETFD));
    report("dup", fcntl(m, F_DUPFD_CLOEXEC, 50));
    report("dup3 to itself", dup3(m, m, 0));
    // The last shared mapping still exists when the program ends.
}

static void talking(void) {
    int pair[2];
    char text[20] = {0};
    report("socketpair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    report("send", send(pair[0], "hello", 5, 0));
    report("recv", recv(pair[1], text, 20, 0));
    puts(text);
    struct iovec parts[2] = {{"ab", 2}, {"cde", 3}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    report("sendmsg", sendmsg(pair[1], &message, 0));
    parts[0] = (struct iovec){text, 4};
    parts[1] = (struct iovec){text + 10, 4};
    report("recvmsg", recvmsg(pair[0], &message, 0));
    printf("%s %s\n", text, text + 10);
    report("nothing", recv(pair[0], text, 1, MSG_DONTWAIT));
    int value;
    socklen_t len = sizeof value;
    report("type", getsockopt(pair[0], SOL_SOCKET, SO_TYPE, &value, &len) ?: value);
    report("shutdown", shutdown(pair[0], SHUT_WR));
    report("end", recv(pair[1], text, 1, 0));
    report("not a socket", getpeername(0, (void *)text, &len));
    report("unknown family", socket(12345, SOCK_STREAM, 0));
}

/// The rights of files made under several umasks: each process has its own.
static void rights(void) {
    struct stat st;
    report("umask", umask(077));
    close(open("mine", O_CREAT | O_WRONLY, 0777));
    pid_t child = fork();
    if (child == 0) {
        report("inherited", umask(0));
        close(open("all", O_CREAT | O_WRONLY, 0666));
        mkdir("public", 0777);
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    mkdir("private", 0755);
    mknod("pipe", S_IFIFO | 0666, 0);
    const char *names[] = {"mine", "all", "public", "private", "pipe"};
    for (int i = 0; i < 5; i++) {
        stat(names[i], &st);
        report(names[i], st.st_mode & 0777);
    }
    report("still", umask(022));
}

int main(int argc, char **argv) {
    if (argc != 2 || chdir(argv[1]))
        return 1;
    umask(022);
    moving();
    names();
    folders();
    sharing();
    talking();
    fflush(stdout);
    rights();
    return 0;
}
