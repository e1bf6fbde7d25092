/* One thread for which the kernel and the processor do much between its blocks: regions, new and removed pages, a page that is closed at
 * first, signals, sleep, written code, ways of sectors, prefetch controls, subnormal numbers, and another program at the end. The argument is
 * the number of rounds. What it prints does not depend on time. */
#define _GNU_SOURCE
#include <fxscope.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define WRITE(name, value) __asm__ volatile("msr " name ", %0" : : "r"((uint64_t)(value)))
enum { LENGTH = 6000, PAGE = 65536, PAGES = 8 };

static double numbers[LENGTH];
static volatile sig_atomic_t faults, signals;
static char *volatile closed;

static void on_fault(int signal)
{
    (void)signal;
    faults++;
    mprotect(closed, PAGE, PROT_READ | PROT_WRITE);
}

static void on_signal(int signal)
{
    (void)signal;
    signals++;
}

__attribute__((noipa)) static double sum(const double *a, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * a[(i * 37) % n];
    return sum;
}

/* Halves a number until it is subnormal, and further. */
__attribute__((noipa)) static double halve(double x, int times)
{
    for (int i = 0; i < times; i++)
        x *= 0.5;
    return x;
}

/* Has the kernel map, touches and removes pages. */
__attribute__((noipa)) static int pages(int round)
{
    char *mapped = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < PAGES; i++)
        mapped[i * PAGE + round] = i;
    int last = mapped[(PAGES - 1) * PAGE + round];
    munmap(mapped, PAGES * PAGE);
    return last;
}

/* Calls a function that returns `number`, and was written just before. */
__attribute__((noipa)) static int written(unsigned *page, int number)
{
    page[0] = 0x52800000 | (unsigned)number << 5; /* mov w0, #number */
    page[1] = 0xd65f03c0;                         /* ret */
    __builtin___clear_cache((char *)page, (char *)(page + 2));
    return ((int (*)(void))page)();
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 0;
    signal(SIGSEGV, on_fault);
    signal(SIGUSR1, on_signal);
    unsigned *code = mmap(0, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double total = 0;
    int numbered = 0;
    for (int i = 0; i < LENGTH; i++)
        numbers[i] = i % 11;
    for (int round = 0; round < rounds; round++) {
        FXSCOPE_BEGIN("sum");
        total += sum(numbers, LENGTH);
        FXSCOPE_END("sum");
        numbered += pages(round);
        closed = mmap(0, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        closed[round] = 1;
        munmap(closed, PAGE);
        FXSCOPE_BEGIN("code");
        numbered += written(code, round + 1);
        FXSCOPE_END("code");
        WRITE("S3_3_C11_C8_2", round % 2 ? 0x31 : 0x13);
        WRITE("S3_3_C11_C4_0", round % 3 ? 0 : (uint64_t)3 << 58);
        total += halve(1e-300, 60 + round);
        raise(SIGUSR1);
        nanosleep(&(struct timespec){.tv_nsec = 30000}, 0);
    }
    if (rounds > 0) {
        printf("total %.17g, numbers %d, faults %d, signals %d\n", total, numbered, faults, signals);
        fflush(stdout);
        execl("/proc/self/exe", argv[0], (char *)0);
        return 1;
    }
    printf("sum %.17g\n", sum(numbers, LENGTH));
}
