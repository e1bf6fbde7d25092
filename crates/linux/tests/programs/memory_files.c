// Fills files in memory until its 32 MiB are exhausted. The argument selects the method; prints the results of the calls.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1l << 20)

static char block[MIB];

static void report(const char *what, long result)
{
    printf("%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
}

static int memory_file(void)
{
    int fd = memfd_create("file", 0);
    if (fd < 0) perror("memfd_create"), exit(1);
    return fd;
}

// Writes until the kernel refuses; returns the MiB written.
static long fill(int fd)
{
    long done = 0;
    for (;;) {
        ssize_t n = write(fd, block, sizeof block);
        if (n < 0) return report("write", n), done / MIB;
        done += n;
        if (done > 64 * MIB) return done / MIB;
    }
}

static void within(const char *what, long low, long value, long high)
{
    if (low <= value && value <= high) printf("%s: as expected\n", what);
    else printf("%s: %ld, not from %ld to %ld\n", what, value, low, high);
}

static char *anonymous(long bytes)
{
    char *at = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) perror("mmap"), exit(1);
    memset(at, 1, bytes);
    return at;
}

static void written(void)
{
    int fd = memory_file();
    struct sysinfo info;
    struct statfs room;
    within("MiB of a memfd", 24, fill(fd), 31);
    report("overwrite", pwrite(fd, block, sizeof block, 3 * MIB));
    report("write another", write(memory_file(), block, sizeof block));
    sysinfo(&info);
    within("MiB of shared memory", 24, info.sharedram / MIB, 31);
    within("MiB free", 0, info.freeram / MIB, 0);
    fstatfs(fd, &room);
    within("MiB of the file system", 32, room.f_blocks * room.f_bsize / MIB, 32);
    within("MiB free in it", 0, room.f_bavail * room.f_bsize / MIB, 0);
    report("shorten", ftruncate(fd, 4 * MIB));
    anonymous(20 * MIB);
    within("MiB beside other memory", 0, fill(memory_file()), 7);
}

static void named(void)
{
    int first = shm_open("/first", O_RDWR | O_CREAT, 0600), second = shm_open("/second", O_RDWR | O_CREAT, 0600);
    report("allocate", fallocate(first, 0, 0, 20 * MIB));
    report("allocate as much again", fallocate(second, 0, 0, 20 * MIB));
    close(first);
    report("when it is closed", fallocate(second, 0, 0, 20 * MIB));
    shm_unlink("/first");
    report("when it is deleted", fallocate(second, 0, 0, 20 * MIB));
    report("holes", ftruncate(second, 1 << 30));
    report("write into holes", pwrite(second, block, sizeof block, 512 * MIB));
    within("MiB until it is full", 0, fill(shm_open("/third", O_RDWR | O_CREAT, 0600)), 11);
    report("write into holes", pwrite(second, block, sizeof block, 768 * MIB));
    report("punch a hole", fallocate(second, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4 * MIB));
    report("write into holes", pwrite(second, block, sizeof block, 768 * MIB));
    report("empty", truncate("/dev/shm/second", 0));
    anonymous(16 * MIB);
}

static void copied(void)
{
    int from = memory_file(), to = memory_file();
    off_t start = 0, to_start = 0;
    for (int i = 0; i < 16; i++) write(from, block, sizeof block);
    within("MiB sent", 8, sendfile(to, from, &start, 16 * MIB) / MIB, 15);
    report("send more", sendfile(to, from, &start, 16 * MIB));
    start = 0;
    to_start = 64 * MIB;
    report("copy", copy_file_range(from, &start, to, &to_start, 16 * MIB, 0));
}

static void mapped(void)
{
    int fd = memory_file(), differ = 0;
    ftruncate(fd, 20 * MIB);
    char *at = mmap(0, 20 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (long i = 0; i < 20 * MIB; i++) at[i] = i % 251;
    report("msync of more than half of the memory", msync(at, 20 * MIB, MS_SYNC));
    report("munmap", munmap(at, 20 * MIB));
    for (long i = 0; i < 20; i++) {
        pread(fd, block, sizeof block, i * MIB);
        for (long j = 0; j < MIB; j++) differ += block[j] != (char)((i * MIB + j) % 251);
    }
    printf("bytes that differ: %d\n", differ);
}

static void of_children(void)
{
    int fd = memory_file(), status;
    if (!fork()) {
        within("MiB of a child", 20, fill(memory_file()), 31);
        fflush(stdout);
        raise(SIGKILL);
    }
    wait(&status);
    printf("signal %d\n", WTERMSIG(status));
    within("MiB of its parent", 20, fill(fd), 31);
}

int main(int argc, char **argv)
{
    memset(block, 1, sizeof block);
    setvbuf(stdout, 0, _IOLBF, 0);
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "written")) written();
    else if (!strcmp(what, "named")) named();
    else if (!strcmp(what, "copied")) copied();
    else if (!strcmp(what, "mapped")) mapped();
    else if (!strcmp(what, "children")) of_children();
    else return 1;
    return 0;
}
