/* Shared mappings: of one file several times, in two processes, beside reads and writes, of files that change their length. The
   arguments are what to do and a folder. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 65536ul

static void report(const char *what, long result)
{
    printf("%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
}

static char *map(int fd, int prot, int flags, size_t len, off_t offset)
{
    char *at = mmap(0, len, prot, flags, fd, offset);
    if (at == MAP_FAILED) perror("mmap"), exit(1);
    return at;
}

static char *shared(int fd, size_t len)
{
    return map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, len, 0);
}

static sigjmp_buf after_signal;

static void on_signal(int number)
{
    siglongjmp(after_signal, number);
}

/* The signal that reading a byte raises, or its value as a negative number. */
static int read_at(volatile char *at)
{
    int number = sigsetjmp(after_signal, 1);
    if (number) return number;
    return -*at;
}

static void of_file(const char *name, int fd)
{
    char text[32] = "", *first, *second;
    printf("%s\n", name);
    ftruncate(fd, 3 * PAGE);
    pwrite(fd, "before", 6, PAGE);
    first = shared(fd, 3 * PAGE);
    second = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, PAGE, PAGE);
    printf("filled: %s %s\n", first + PAGE, second);
    strcpy(second, "through the second");
    printf("the first has: %s\n", first + PAGE);
    strcpy(first + PAGE, "and back");
    printf("the second has: %s\n", second);

    pwrite(fd, "written at", 10, PAGE + 100);
    lseek(fd, PAGE + 120, SEEK_SET);
    write(fd, "written on", 10);
    printf("after writes: %s, %s\n", first + PAGE + 100, second + 120);
    pread(fd, text, 9, PAGE);
    printf("read: %s, position %ld\n", text, (long)(lseek(fd, 0, SEEK_CUR) - PAGE));
    lseek(fd, PAGE, SEEK_SET);
    read(fd, text, 4);
    printf("read: %.4s, position %ld\n", text, (long)(lseek(fd, 0, SEEK_CUR) - PAGE));

    char *private = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE, 3 * PAGE, 0);
    printf("private: %s\n", private + PAGE);
    strcpy(second, "seen");
    printf("private, before its first store: %s\n", private + PAGE);
    private[PAGE + 1000] = 1;
    strcpy(second, "not seen");
    printf("private, after its first store: %s, and shared: %d\n", private + PAGE, first[PAGE + 1000]);

    if (!fork()) {
        strcpy(first + 2 * PAGE, "by a child");
        pwrite(fd, "CHILD", 5, 2 * PAGE + 5);
        _exit(0);
    }
    wait(0);
    printf("after the child's end: %s\n", first + 2 * PAGE);

    munmap(first, PAGE);
    munmap(second, PAGE);
    printf("a part is mapped: %s\n", first + PAGE);
    munmap(first + PAGE, 2 * PAGE);
    munmap(private, 3 * PAGE);
    pread(fd, text, 9, PAGE);
    printf("nothing is mapped: %s\n", text);
    first = shared(fd, PAGE);
    strcpy(first, "again");
    close(fd);
    printf("closed: %s\n", first);
    munmap(first, PAGE);
}

/* Both ends map the file for themselves. */
static void of_two_processes(void)
{
    int fd = shm_open("/shared", O_CREAT | O_RDWR, 0600);
    ftruncate(fd, 2 * PAGE);
    pid_t child = fork();
    if (!child) {
        int own = shm_open("/shared", O_RDWR, 0600);
        _Atomic int *words = (void *)(shared(own, 2 * PAGE) + PAGE);
        for (int i = 0; i < 100; i++) atomic_fetch_add(words, 1);
        atomic_store(words + 1, 1);
        syscall(SYS_futex, words + 1, FUTEX_WAKE, 1, 0, 0, 0);
        while (atomic_load(words + 2) == 0) syscall(SYS_futex, words + 2, FUTEX_WAIT, 0, 0, 0, 0);
        _exit(atomic_load(words));
    }
    _Atomic int *words = (void *)map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, PAGE, PAGE);
    for (int i = 0; i < 100; i++) atomic_fetch_add(words, 1);
    while (atomic_load(words + 1) == 0) syscall(SYS_futex, words + 1, FUTEX_WAIT, 0, 0, 0, 0);
    printf("sum of both: %d\n", atomic_load(words));
    atomic_store(words + 2, 1);
    syscall(SYS_futex, words + 2, FUTEX_WAKE, 1, 0, 0, 0);
    int status;
    waitpid(child, &status, 0);
    printf("the child has: %d\n", WEXITSTATUS(status));
    report("shm_unlink", shm_unlink("/shared"));
}

/* A waiter and a waker that has never touched the page. */
static void of_an_untouched_page(void)
{
    int *words = map(-1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, PAGE, 0), status;
    pid_t child = fork();
    if (!child) _exit(syscall(SYS_futex, words, FUTEX_WAIT, 0, 0, 0, 0) == 0);
    long woken = 0;
    while (!woken) {
        usleep(1000);
        woken = syscall(SYS_futex, words, FUTEX_WAKE, 1, 0, 0, 0);
    }
    waitpid(child, &status, 0);
    printf("woken: %ld, child %d\n", woken, WEXITSTATUS(status));
    // A page that neither has touched before the fork.
    char *second = map(-1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, 2 * PAGE, 0);
    if (!fork()) second[PAGE] = 7, _exit(0);
    wait(0);
    printf("a page that the child touched first: %d\n", second[PAGE]);
}

static void of_lengths(int fd)
{
    signal(SIGBUS, on_signal);
    ftruncate(fd, PAGE + 100);
    char *at = shared(fd, 4 * PAGE);
    memset(at, 1, PAGE + 100);
    printf("rest of the last page: %d, beyond: %d\n", read_at(at + PAGE + 100), read_at(at + 2 * PAGE) == SIGBUS);
    ftruncate(fd, 2 * PAGE + 10);
    printf("longer: %d\n", read_at(at + 2 * PAGE));
    strcpy(at + PAGE, "0123456789");
    ftruncate(fd, PAGE + 4);
    printf("shorter: %d, %s\n", read_at(at + 2 * PAGE) == SIGBUS, at + PAGE);
    ftruncate(fd, 4 * PAGE);
    printf("longer again: %s %d\n", at + PAGE, read_at(at + 3 * PAGE));
    at[3 * PAGE] = 5;
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 3 * PAGE, PAGE);
    printf("punched: %d\n", at[3 * PAGE]);
    at[2 * PAGE] = 6;
    ftruncate(fd, 0);
    printf("empty: %d\n", read_at(at) == SIGBUS);
    ftruncate(fd, 3 * PAGE);
    printf("zeros: %d %d\n", at[0], at[2 * PAGE]);
    at[0] = 9;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    close(open(path, O_RDWR | O_TRUNC));
    printf("emptied by open: %d\n", read_at(at) == SIGBUS);
    munmap(at, 4 * PAGE);
}

static void of_copies(int from, int to)
{
    ftruncate(from, 2 * PAGE), ftruncate(to, 2 * PAGE);
    char *source = shared(from, 2 * PAGE), *target = shared(to, 2 * PAGE);
    strcpy(source, "to be sent"), strcpy(target + 20, "kept"), strcpy(target, "overwritten");
    off_t start = 0;
    lseek(to, 0, SEEK_SET);
    printf("sent: %ld, ", (long)sendfile(to, from, &start, 10));
    printf("%s, %s\n", target, target + 20);
    strcpy(source + PAGE, "to be copied");
    off_t in = PAGE, out = PAGE + 5;
    printf("copied: %ld, ", (long)copy_file_range(from, &in, to, &out, 12, 0));
    printf("%s\n", target + PAGE + 5);
    char data[8] = "";
    int pipes[2];
    pipe(pipes);
    start = 6;
    sendfile(pipes[1], from, &start, 4);
    read(pipes[0], data, 4);
    printf("sent to a pipe: %s\n", data);
    printf("first data: %ld\n", (long)lseek(to, 0, SEEK_DATA));
    fcntl(to, F_SETFL, O_APPEND);
    write(to, "appended", 8);
    char *more = map(to, PROT_READ, MAP_SHARED, PAGE, 2 * PAGE);
    printf("appended: %s\n", more);
    target[100] = 1;
    munmap(more, PAGE), munmap(target, 2 * PAGE);
    struct stat status;
    fstat(to, &status);
    printf("length: %ld\n", (long)status.st_size);
}

static void of_rights(void)
{
    int both = open("rights", O_RDWR | O_CREAT | O_TRUNC, 0600), in = open("rights", O_RDONLY);
    ftruncate(both, PAGE);
    char *view = map(in, PROT_READ, MAP_SHARED, PAGE, 0), *at = shared(both, PAGE), text[16] = "";
    strcpy(at, "changed");
    printf("the view has: %s\n", view);
    report("make the view writable", mprotect(view, PAGE, PROT_READ | PROT_WRITE));
    munmap(at, PAGE), close(both);
    printf("the view still has: %s\n", view);
    munmap(view, PAGE);
    pread(in, text, 7, 0);
    printf("the file has: %s\n", text);
}

/* A file of 16 MiB is mapped privately three times, in two processes. */
static void of_read_only(void)
{
    enum { BYTES = 16 << 20 };
    int fd = open("large", O_RDWR | O_CREAT | O_TRUNC, 0600), status;
    char *data = malloc(PAGE);
    for (int i = 0; i < BYTES; i += PAGE) memset(data, i / PAGE, PAGE), write(fd, data, PAGE);
    char *one = mmap(0, BYTES, PROT_READ, MAP_PRIVATE, fd, 0), *two = mmap(0, BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    report("mapped", one == MAP_FAILED || two == MAP_FAILED ? -1 : 0);
    if (!fork()) {
        char *three = mmap(0, BYTES, PROT_READ, MAP_PRIVATE, open("large", O_RDONLY), 0);
        report("mapped in a child", three == MAP_FAILED ? -1 : 0);
        _exit(three[5 * PAGE + 1] + one[6 * PAGE]);
    }
    wait(&status);
    printf("contents: %d, %d %d\n", WEXITSTATUS(status), one[7 * PAGE], two[8 * PAGE]);
    pwrite(fd, "new", 3, 9 * PAGE);
    printf("after a write: %.3s %.3s\n", one + 9 * PAGE, two + 9 * PAGE);
    report("make one writable", mprotect(one, BYTES, PROT_READ | PROT_WRITE));
    memcpy(one + 9 * PAGE, "own", 3);
    pread(fd, data, 3, 9 * PAGE);
    printf("after a store: %.3s %.3s, file %.3s\n", one + 9 * PAGE, two + 9 * PAGE, data);
    char *shared_too = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, PAGE, 9 * PAGE);
    memcpy(shared_too, "all", 3);
    printf("after a store that is shared: %.3s %.3s\n", one + 9 * PAGE, two + 9 * PAGE);
    munmap(one, BYTES), munmap(two, BYTES), munmap(shared_too, PAGE);
    pread(fd, data, 3, 9 * PAGE);
    printf("unmapped: %.3s\n", data);
    two = map(fd, PROT_READ, MAP_PRIVATE, PAGE, 9 * PAGE);
    printf("mapped again: %.3s\n", two);
}

static void of_remapping(void)
{
    int fd = memfd_create("remapped", 0);
    ftruncate(fd, 8 * PAGE);
    char *at = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, 2 * PAGE, PAGE);
    at[0] = 1, at[PAGE] = 2;
    char *second = mremap(at, 0, 2 * PAGE, MREMAP_MAYMOVE);
    printf("a second mapping: %d %d\n", second[0], second[PAGE]);
    second[0] = 3;
    printf("the first: %d\n", at[0]);
    char *grown = mremap(at, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE);
    grown[3 * PAGE] = 4;
    char byte = 0;
    pread(fd, &byte, 1, 4 * PAGE);
    printf("grown: %d %d %d\n", grown[0], grown[PAGE], byte);
    munmap(grown + PAGE, PAGE);
    char *moved = mremap(grown + 2 * PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, second);
    printf("moved over the second: %d %d\n", moved == second, moved[PAGE]);
    moved[0] = 8;
    pread(fd, &byte, 1, 3 * PAGE);
    printf("the file: %d\n", byte);

    char *anonymous = map(-1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, PAGE, 0);
    anonymous[5] = 5;
    char *again = mremap(anonymous, 0, PAGE, MREMAP_MAYMOVE);
    munmap(anonymous, PAGE);
    printf("anonymous: %d\n", again[5]);
    char *private = map(-1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, PAGE, 0);
    report("a second mapping of private memory", mremap(private, 0, PAGE, MREMAP_MAYMOVE) == MAP_FAILED ? -1 : 0);
    report("a second mapping without moving", mremap(again, 0, PAGE, 0) == MAP_FAILED ? -1 : 0);
    report("what is not mapped", mremap(grown + PAGE, PAGE, PAGE, MREMAP_MAYMOVE) == MAP_FAILED ? -1 : 0);
    for (int i = 0; i < 3; i++) private[0] = i, private = mremap(private, (1 + i) * PAGE, (2 + i) * PAGE, MREMAP_MAYMOVE);
    printf("private: %d\n", private[0]);
    anonymous = map(-1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, PAGE, 0);
    anonymous[0] = 7;
    madvise(anonymous, PAGE, MADV_DONTNEED);
    private[0] = 7;
    madvise(private, PAGE, MADV_DONTNEED);
    printf("not needed: shared %d, private %d\n", anonymous[0], private[0]);
}

/* Load and store exclusives through two addresses of one word. */
static void of_exclusives(void)
{
    int fd = memfd_create("exclusive", 0);
    ftruncate(fd, PAGE);
    uint32_t *one = (void *)shared(fd, PAGE), *two = (void *)shared(fd, PAGE), old, failed;
    __asm__ volatile("ldaxr %w0, [%2]\n\tadd %w0, %w0, #5\n\tstlxr %w1, %w0, [%2]" : "=&r"(old), "=&r"(failed) : "r"(one) : "memory");
    printf("stored: %u, failed %u\n", *two, failed);
    __asm__ volatile("ldaxr %w0, [%2]\n\tstr wzr, [%3]\n\tstlxr %w1, %w0, [%2]" : "=&r"(old), "=&r"(failed) : "r"(one), "r"(two) : "memory");
    printf("changed in between: %u, failed %u\n", *one, failed);
}

typedef long function(long);

static void put(uint32_t *at, int k)
{
    at[0] = 0x91000000u | k << 10; // add x0, x0, #k
    at[1] = 0xd65f03c0u;           // ret
}

/* Code that is written through one mapping, or into the file, and executed in another; in another process, too. */
static void of_code(void)
{
    int fd = memfd_create("code", 0);
    ftruncate(fd, PAGE);
    uint32_t *writable = (void *)shared(fd, PAGE), code[2];
    char *executable = map(fd, PROT_READ | PROT_EXEC, MAP_SHARED, PAGE, 0);
    for (int k = 1; k < 3; k++) {
        put(writable, k);
        __builtin___clear_cache((char *)writable, (char *)(writable + 2));
        printf("after maintenance at the writable address: %ld\n", ((function *)executable)(10));
        put(writable, 10 * k);
        __builtin___clear_cache(executable, executable + 8);
        printf("after maintenance at the executable address: %ld\n", ((function *)executable)(10));
    }
    put(code, 3);
    pwrite(fd, code, 8, 0);
    __builtin___clear_cache(executable, executable + 8);
    printf("after a write of the file: %ld\n", ((function *)executable)(10));
    int to_child[2], from_child[2], status;
    pipe(to_child), pipe(from_child);
    if (!fork()) {
        char byte;
        long before = ((function *)executable)(10);
        write(from_child[1], "", 1), read(to_child[0], &byte, 1);
        __asm__ volatile("isb");
        _exit(10 * (before - 10) + ((function *)executable)(10) - 10);
    }
    char byte;
    read(from_child[0], &byte, 1);
    put(writable, 7);
    __builtin___clear_cache((char *)writable, (char *)(writable + 2));
    write(to_child[1], "", 1);
    wait(&status);
    printf("in a child, before and after: %d\n", WEXITSTATUS(status));
}

/* Executes a copy of this program in a memfd to which it has been written through a mapping. */
static void of_program(void)
{
    int from = open("/proc/self/exe", O_RDONLY), fd = memfd_create("program", MFD_CLOEXEC);
    struct stat status;
    fstat(from, &status);
    ftruncate(fd, status.st_size);
    read(from, shared(fd, status.st_size), status.st_size);
    fexecve(fd, (char *[]){"program", "executed", "/", 0}, environ);
    perror("fexecve");
}

int main(int argc, char **argv)
{
    setvbuf(stdout, 0, _IONBF, 0);
    if (argc < 3 || chdir(argv[2])) return 1;
    const char *what = argv[1];
    if (!strcmp(what, "files")) {
        of_file("a memfd", memfd_create("shared", 0));
        of_file("an object in /dev/shm", shm_open("/file", O_CREAT | O_RDWR, 0600));
        shm_unlink("/file");
        of_file("a file", open("file", O_CREAT | O_RDWR | O_TRUNC, 0600));
        of_rights();
    } else if (!strcmp(what, "processes")) {
        of_two_processes();
        of_an_untouched_page();
        of_exclusives();
    } else if (!strcmp(what, "lengths")) {
        of_lengths(memfd_create("lengths", 0));
        of_lengths(open("lengths", O_CREAT | O_RDWR | O_TRUNC, 0600));
        of_copies(open("from", O_CREAT | O_RDWR | O_TRUNC, 0600), open("to", O_CREAT | O_RDWR | O_TRUNC, 0600));
        of_copies(memfd_create("from", 0), memfd_create("to", 0));
    } else if (!strcmp(what, "read-only")) {
        of_read_only();
    } else if (!strcmp(what, "remapped")) {
        of_remapping();
    } else if (!strcmp(what, "code")) {
        of_code();
        of_program();
    } else if (!strcmp(what, "executed")) {
        char path[64] = "";
        readlink("/proc/self/exe", path, sizeof path - 1);
        printf("executed: %s\n", path);
    } else {
        return 1;
    }
    return 0;
}
