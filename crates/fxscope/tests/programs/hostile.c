// Tries to change the devices in /dev, to use device nodes elsewhere and to reach the kernel through its file systems
// mounted in the current folder. Prints the result of each attempt.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static void report(const char *what, const char *name, long result) {
    printf("%s %s: %s\n", what, name, result < 0 ? strerrorname_np(errno) : "done");
}

static int opened(int fd) {
    if (fd >= 0)
        close(fd);
    return fd;
}

static void by_name(const char *name) {
    report("delete", name, unlink(name));
    report("rename", name, rename(name, "stolen"));
    report("replace", name, rename("own", name));
    report("exchange", name, renameat2(AT_FDCWD, "own", AT_FDCWD, name, RENAME_EXCHANGE));
    report("link", name, link(name, "linked"));
    report("link over", name, link("own", name));
    report("symbolic link over", name, symlink("own", name));
    report("node over", name, mknod(name, S_IFCHR | 0666, makedev(1, 1)));
    report("folder over", name, mkdir(name, 0777));
    report("rights", name, chmod(name, 0600));
    report("owner", name, chown(name, 1, 1));
    report("owner without following", name, lchown(name, 1, 1));
    report("times", name, utimensat(AT_FDCWD, name, NULL, 0));
    report("length", name, truncate(name, 0));
    report("attribute", name, setxattr(name, "user.x", "1", 1, 0));
}

static void by_descriptor(const char *name, int fd) {
    char path[64];
    report("rights of descriptor", name, fchmod(fd, 0600));
    report("owner of descriptor", name, fchown(fd, 1, 1));
    report("owner of descriptor, empty path", name, fchownat(fd, "", 1, 1, AT_EMPTY_PATH));
    report("times of descriptor", name, futimens(fd, NULL));
    report("times of descriptor, empty path", name, utimensat(fd, "", NULL, AT_EMPTY_PATH));
    report("attribute of descriptor", name, fsetxattr(fd, "user.x", "1", 1, 0));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    report("rights by /proc", name, chmod(path, 0600));
    report("owner by /proc", name, chown(path, 1, 1));
    report("times by /proc", name, utimensat(AT_FDCWD, path, NULL, 0));
    report("link by /proc", name, linkat(AT_FDCWD, path, AT_FDCWD, "linked", AT_SYMLINK_FOLLOW));
}

static void device(const char *name) {
    by_name(name);
    int fd = open(name, O_RDWR);
    if (fd >= 0) {
        by_descriptor(name, fd);
        report("length of descriptor", name, ftruncate(fd, 0));
    }
    int handle = open(name, O_PATH);
    by_descriptor(name, handle);
}

static void kernel_file(const char *name) {
    struct stat status;
    struct statfs system;
    char text[4096], path[64];
    report("read", name, opened(open(name, O_RDONLY)));
    report("write", name, opened(open(name, O_WRONLY)));
    report("read and write", name, opened(open(name, O_RDWR)));
    report("make", name, opened(open(name, O_CREAT | O_RDWR, 0600)));
    report("handle", name, opened(open(name, O_PATH)));
    snprintf(path, sizeof path, "/proc/self/fd/%d", open(name, O_PATH | O_NOFOLLOW));
    report("handle opened again", name, opened(open(path, O_RDWR)));
    report("stat", name, stat(name, &status));
    report("lstat", name, lstat(name, &status));
    report("statfs", name, statfs(name, &system));
    report("access", name, access(name, F_OK));
    report("link text", name, readlink(name, text, sizeof text));
    report("enter", name, chdir(name));
    report("rights", name, chmod(name, 0600));
    report("length", name, truncate(name, 0));
    report("execute", name, execl(name, name, NULL));
}

int main(void) {
    close(open("own", O_CREAT | O_WRONLY, 0600));
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/tty"};
    for (int i = 0; i < 4; i++)
        device(devices[i]);
    by_descriptor("standard input", 0);
    by_descriptor("standard output", 1);
    by_descriptor("standard error", 2);
    static const char *const nodes[] = {"memory", "disk", "null", "hard-link"};
    for (int i = 0; i < 4; i++) {
        by_name(nodes[i]);
        report("read", nodes[i], opened(open(nodes[i], O_RDONLY)));
        report("write", nodes[i], opened(open(nodes[i], O_WRONLY)));
        report("read and write", nodes[i], opened(open(nodes[i], O_RDWR)));
    }
    static const char *const files[] = {
        "jail/proc", "jail/proc/self", "jail/proc/self/mem", "jail/proc/self/environ", "jail/proc/self/exe",
        "jail/proc/self/fd/0", "jail/proc/1/mem", "jail/proc/sys/kernel/core_pattern", "jail/proc/../proc/self/mem",
        "to-memory", "jail/sys", "jail/sys/kernel", "environment", "jail/proc/fresh",
    };
    symlink("jail/proc/self/mem", "to-memory");
    for (unsigned i = 0; i < sizeof files / sizeof *files; i++)
        kernel_file(files[i]);
    report("folder in", "jail/sys", mkdir("jail/sys/fresh", 0700));
    report("open", "/dev/null", opened(open("/dev/null", O_RDWR | O_TRUNC | O_CREAT, 0600)));
    report("open", "/dev/zero", opened(open("/dev/zero", O_RDONLY)));
    report("open", "/dev/full", opened(open("/dev/full", O_WRONLY)));
    return 0;
}
