/* The vector length that prctl sets, here and after execve, and the vector registers after a system call. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static long length(void)
{
    long n;
    __asm__ volatile("rdvl %0, #1" : "=r"(n));
    return n;
}

static void show(const char *what)
{
    printf("%s: rdvl %ld, get %#x\n", what, length(), prctl(PR_SVE_GET_VL));
}

static void *thread(void *unused)
{
    show("thread");
    return unused;
}

static void run(const char *program, char *const arguments[])
{
    pid_t child = fork();
    if (child == 0) execv(program, arguments), _exit(1);
    waitpid(child, 0, 0);
}

/* Sets 32 bytes with these flags, then executes itself twice. */
static void execute(char *program, unsigned long flags)
{
    char *arguments[] = { program, "executed", 0 };
    int result = prctl(PR_SVE_SET_VL, 32 | flags);
    printf("flags %#lx: %#x, ", flags, result);
    show("now");
    pthread_t id;
    pthread_create(&id, 0, thread, 0);
    pthread_join(id, 0);
    fflush(stdout);
    run(program, arguments);
    prctl(PR_SVE_SET_VL, 64);
}

static void sizes(void)
{
    long asked[] = { 16, 32, 48, 64, 80, 256, 8192, 8208, 65536, 8, 17, -16, 64 | 1 << 19, 64 };
    for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++) {
        int result = prctl(PR_SVE_SET_VL, asked[i]);
        if (result < 0) printf("set %ld: %s\n", asked[i], strerrorname_np(errno));
        else printf("set %ld: %d\n", asked[i], result);
    }
}

static volatile sig_atomic_t signals;
static void count(int signal)
{
    signals += signal == SIGUSR1;
}

/* What is in Z9, P5 and the first-fault register after `number(a, b)`. */
static void state(const char *what, long number, long a, long b)
{
    uint64_t in[8], out[8];
    uint8_t p[8] = { 0 }, f[8] = { 0 };
    for (int i = 0; i < 8; i++)
        in[i] = 0x100 + i;
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
    __asm__ volatile("ldr z9, [%3]\n\tptrue p5.s\n\tsetffr\n\tsvc #0\n\t"
                     "str z9, [%4]\n\tstr p5, [%5]\n\trdffr p4.b\n\tstr p4, [%6]"
                     : "+r"(x0), "+r"(x8), "+r"(x1)
                     : "r"(in), "r"(out), "r"(p), "r"(f)
                     : "p4", "p5", "z9", "memory");
    uint64_t above = 0;
    for (int i = 2; i < 8; i++)
        above |= out[i];
    int low = out[0] == 0x100 && out[1] == 0x101;
    printf("%s: low %s, above %s, p %s, ffr %s\n", what, low ? "kept" : "lost", above ? "kept" : "zero",
           p[0] ? "kept" : "zero", f[0] ? "kept" : "zero");
}

int main(int argc, char **argv)
{
    setvbuf(stdout, 0, _IOLBF, 0);
    if (argc > 1 && !strcmp(argv[1], "executed")) {
        char *again[] = { argv[0], "again", 0 };
        show("executed");
        execv(argv[0], again);
    }
    if (argc > 1 && !strcmp(argv[1], "again")) return show("again"), 0;
    if (argc > 1 && !strcmp(argv[1], "state")) {
        signal(SIGUSR1, count);
        state("getpid", 172, 0, 0);
        state("no such call", 9999, 0, 0);
        state("kill with a handler", 129, getpid(), SIGUSR1);
        printf("signals: %d\n", (int)signals);
        return 0;
    }
    sizes();
    execute(argv[0], 0);
    execute(argv[0], PR_SVE_VL_INHERIT);
    execute(argv[0], PR_SVE_SET_VL_ONEXEC);
    execute(argv[0], PR_SVE_VL_INHERIT | PR_SVE_SET_VL_ONEXEC);
    return 0;
}
