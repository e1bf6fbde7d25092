/* Results of mmap, mprotect and msync for mappings of files that cannot be written, and for bad ranges. The argument is a folder. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 65536ul

static void report(const char *what, long result)
{
    printf("%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
}

static char *map(const char *what, int prot, int flags, int fd)
{
    char *at = mmap(0, 4 * PAGE, prot, flags, fd, 0);
    report(what, at == MAP_FAILED ? -1 : 0);
    return at;
}

int main(int argc, char **argv)
{
    if (argc < 2 || chdir(argv[1])) return 1;
    int both = open("file", O_RDWR | O_CREAT, 0600), in = open("file", O_RDONLY), out = open("file", O_WRONLY);
    ftruncate(both, 4 * PAGE);
    map("shared, writable, of O_RDONLY", PROT_READ | PROT_WRITE, MAP_SHARED, in);
    map("shared, of O_WRONLY", PROT_READ, MAP_SHARED, out);
    map("private, of O_WRONLY", PROT_READ, MAP_PRIVATE, out);
    char *copy = map("private, of O_RDONLY", PROT_READ, MAP_PRIVATE, in);
    report("make it writable", mprotect(copy, PAGE, PROT_READ | PROT_WRITE));
    copy[0] = 1;
    char *shared = map("shared, of O_RDWR", PROT_READ, MAP_SHARED, both);
    report("make it writable", mprotect(shared, 4 * PAGE, PROT_READ | PROT_WRITE));
    strcpy(shared, "written");
    report("msync", msync(shared, 4 * PAGE, MS_SYNC));
    char *fixed = map("shared, of O_RDONLY", PROT_READ, MAP_SHARED, in);
    close(in);
    report("make it writable", mprotect(fixed, PAGE, PROT_READ | PROT_WRITE));
    report("make its end writable", mprotect(fixed + 3 * PAGE, PAGE, PROT_WRITE));
    report("make it executable", mprotect(fixed, PAGE, PROT_READ | PROT_EXEC));
    report("make it inaccessible", mprotect(fixed, PAGE, PROT_NONE));
    report("make it readable", mprotect(fixed, PAGE, PROT_READ));
    printf("it has: %s\n", fixed);
    report("msync", msync(fixed, 4 * PAGE, MS_SYNC));

    report("msync, both ways", msync(shared, PAGE, MS_SYNC | MS_ASYNC));
    report("msync, unknown flag", msync(shared, PAGE, 8));
    report("msync, no flag", msync(shared, PAGE, 0));
    report("msync, asynchronous", msync(shared, PAGE, MS_ASYNC | MS_INVALIDATE));
    report("msync, unaligned", msync(shared + 1, PAGE, MS_SYNC));
    report("msync of nothing", msync(shared, 0, MS_SYNC));
    munmap(shared + PAGE, PAGE);
    strcpy(shared + 2 * PAGE, "behind a gap");
    report("msync with a gap", msync(shared, 4 * PAGE, MS_SYNC));
    report("mprotect with a gap", mprotect(shared, 4 * PAGE, PROT_READ));
    char text[16] = "";
    pread(both, text, 13, 2 * PAGE);
    printf("behind the gap: %s\n", text);
    munmap(shared, PAGE);
    report("msync of nothing mapped", msync(shared, PAGE, MS_SYNC));
    return 0;
}
