// Tries to change files outside the folder it may write to. Arguments: that folder, and one next to it that holds
// `victim` (a file) and `folder`. Prints what succeeded.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char inside[4096], victim[4096], folder[4096];

static void report(const char *what, long result) {
    printf("%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
}

static int opened(int fd) {
    if (fd >= 0)
        close(fd);
    return fd;
}

static void direct(void) {
    char fresh[4200];
    snprintf(fresh, sizeof fresh, "%s/fresh", folder);
    report("write", opened(open(victim, O_WRONLY)));
    report("read and write", opened(open(victim, O_RDWR)));
    report("append", opened(open(victim, O_WRONLY | O_APPEND)));
    report("truncate on opening", opened(open(victim, O_RDONLY | O_TRUNC)));
    report("create", opened(open(fresh, O_CREAT | O_RDWR, 0600)));
    report("unnamed file", opened(open(folder, O_TMPFILE | O_RDWR, 0600)));
    report("truncate", truncate(victim, 0));
    report("delete", unlink(victim));
    report("delete folder", rmdir(folder));
    report("make folder", mkdir(fresh, 0700));
    report("make link", symlink("x", fresh));
    report("make pipe", mkfifo(fresh, 0600));
    report("change rights", chmod(victim, 0));
    report("change owner", chown(victim, getuid(), getgid()));
    report("change times", utimensat(AT_FDCWD, victim, NULL, 0));
    report("rename away", rename(victim, "stolen"));
    report("rename here", rename("own", fresh));
    report("hard link", link(victim, "linked"));
    report("hard link out", link("own", fresh));
    report("existing folder", mkdir(folder, 0700));
    report("access to write", access(victim, W_OK));
    report("access to a folder to write", access(folder, W_OK));
    report("access to read", access(victim, R_OK));
}

static void by_detours(void) {
    char path[4200];
    symlink(victim, "to-victim");
    symlink(folder, "to-folder");
    symlink("..", "up");
    report("through a link", opened(open("to-victim", O_WRONLY)));
    report("through a link to a folder", opened(open("to-folder/fresh", O_CREAT | O_WRONLY, 0600)));
    report("through the parent", opened(open("../outside/victim", O_WRONLY)));
    report("through a link to the parent", opened(open("up/outside/victim", O_WRONLY)));
    report("through /proc", opened(open("/proc/self/cwd/../outside/victim", O_WRONLY)));
    report("through the root", opened(open("/proc/self/root/etc/passwd", O_WRONLY)));
    int fd = open(victim, O_RDONLY);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    report("reopen", opened(open(path, O_WRONLY)));
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    report("reopen by /dev", opened(open(path, O_RDWR)));
    symlink(path, "to-fd");
    report("reopen by a link", opened(open("to-fd", O_RDWR)));
    report("rights of an open file", fchmod(fd, 0));
    report("times of an open file", futimens(fd, NULL));
    report("size of an open file", ftruncate(fd, 0));
    report("shared mapping", mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
    strcat(strcpy(path, victim), " (deleted)");
    report("rights of an open file with a strange name", fchmod(open(path, O_RDONLY), 0));
    int dir = open(folder, O_RDONLY | O_DIRECTORY);
    report("relative to a folder", opened(openat(dir, "../victim", O_WRONLY)));
    report("new in an open folder", opened(openat(dir, "fresh", O_CREAT | O_WRONLY, 0600)));
    report("go there", fchdir(dir));
    report("new in the current folder", opened(open("fresh", O_CREAT | O_WRONLY, 0600)));
    chdir(inside);
    rename("own", "renamed");
    report("own folder", rmdir(inside));
    report("move own folder", rename(inside, folder));
}

static void the_host(void) {
    report("memory of a host process", opened(open("/proc/1/mem", O_RDONLY)));
    report("host setting", opened(open("/proc/sys/kernel/core_pattern", O_WRONLY)));
    report("host device", opened(open("/dev/mem", O_RDONLY)));
    report("another terminal", opened(open("/dev/pts/0", O_RDONLY)));
    report("null device", opened(open("/dev/null", O_WRONLY)));
    report("rights of a standard stream", fchmod(1, 0));
    report("owner of a standard stream", fchown(2, getuid(), getgid()));
    report("times of a standard stream", futimens(0, NULL));
    report("internet socket", opened(socket(AF_INET, SOCK_STREAM, 0)));
    report("packet socket", opened(socket(AF_PACKET, SOCK_RAW, 0)));
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "/run/host.socket"};
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    report("local socket of the host", connect(s, (void *)&name, sizeof name));
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 1;
    strcpy(inside, argv[1]);
    snprintf(victim, sizeof victim, "%s/victim", argv[2]);
    snprintf(folder, sizeof folder, "%s/folder", argv[2]);
    report("enter", chdir(inside));
    report("own file", opened(open("own", O_CREAT | O_WRONLY, 0600)));
    direct();
    by_detours();
    the_host();
    return 0;
}
