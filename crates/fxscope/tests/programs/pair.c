// Two threads ("threads") or two processes ("processes") sum one half of an array each; the first one prints both sums, and
// its view of the machine and the host.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fxscope.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N = 8192 };
static double numbers[N];
static double *sums;

__attribute__((noinline)) static const char *map_much(void)
{
    void *memory = mmap(0, 256 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? strerrorname_np(errno) : "ok";
}

static void *half(void *number)
{
    double sum = 0;
    int from = (long)number * (N / 2);
    for (int round = 0; round < 4; round++)
        for (int i = from; i < from + N / 2; i++) sum += numbers[i];
    sums[(long)number] = sum / 4;
    return 0;
}

static const char *tried(int result)
{
    return result < 0 ? strerrorname_np(errno) : "ok";
}

/* Whether a line of the file has the word. */
static int names(const char *path, const char *word)
{
    char line[256];
    FILE *file = fopen(path, "r");
    int found = 0;
    while (file && fgets(line, sizeof line, file)) found |= strstr(line, word) != 0;
    return found;
}

int main(int argc, char **argv)
{
    sums = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < N; i++) numbers[i] = i;
    FXSCOPE_BEGIN("work");
    if (strcmp(argv[1], "threads") == 0) {
        pthread_t second;
        if (pthread_create(&second, 0, half, (void *)1)) return 1;
        half(0);
        pthread_join(second, 0);
    } else {
        pid_t second = fork();
        if (second < 0) return 1;
        half((void *)(long)(second == 0));
        if (second == 0) _exit(0);
        int status;
        if (waitpid(second, &status, 0) != second || status) return 1;
    }
    FXSCOPE_END("work");
    printf("sum %.0f\n", sums[0] + sums[1]);

    long vector;
    __asm__("rdvl %0, #1" : "=r"(vector));
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    printf("vector %ld, cpus %d\n", vector, CPU_COUNT(&cpus));
    const char *variable = getenv("PAIR");
    printf("variable %s\n", variable ? variable : "none");
    printf("year %ld\n", 1970 + time(0) / 31556952);
    const char *writes = getenv("PAIR_WRITES"), *reads = getenv("PAIR_READS");
    printf("write %s\n", tried(open(writes ? writes : "pair.out", O_WRONLY | O_CREAT, 0600)));
    printf("read %s\n", tried(open(reads ? reads : "/etc/passwd", O_RDONLY)));
    printf("network %s\n", names("/etc/hosts", "fxscope") ? "its own" : "the host's");
    printf("much %s\n", map_much());
}
