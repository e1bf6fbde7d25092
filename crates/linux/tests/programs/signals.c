/* Signals through the C library, with vector registers alive across handlers. */
#include <arm_sve.h>
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile sig_atomic_t seen;
static sigjmp_buf back;

static void spoil(int signal)
{
    seen += signal;
    __asm__ volatile("ptrue p0.b\n ptrue p7.b\n mov z0.b, #85\n mov z31.b, #85\n mov z17.b, #85\n setffr"
                     : : : "z0", "z17", "z31", "p0", "p7");
    volatile double d = signal;
    d = d / 3;
    feraiseexcept(FE_OVERFLOW);
}

static void leave(int signal)
{
    siglongjmp(back, signal);
}

static char alternate[65536] __attribute__((aligned(16)));
static volatile int on_alternate;

static void overflow(int signal, siginfo_t *info, void *context)
{
    char here;
    (void)info;
    (void)context;
    on_alternate = &here >= alternate && &here < alternate + sizeof alternate;
    siglongjmp(back, signal);
}

static int recurse(int n)
{
    volatile char room[4096];
    room[0] = (char)n;
    return recurse(n + 1) + room[0];
}

int main(int argc, char **argv)
{
    struct sigaction a = { .sa_handler = spoil };
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGUSR2, &a, NULL);
    unsigned char z[64] = { 0 }, p[8] = { 0 }, f[8] = { 0 };
    pid_t pid = getpid();
    /* kill(pid, SIGUSR1) by hand, so that the compiler keeps nothing in vector registers around it */
    register long x0 __asm__("x0") = pid, x1 __asm__("x1") = SIGUSR1, x8 __asm__("x8") = 129;
    __asm__ volatile("index z17.b, #3, #1\n"
                     "ptrue p7.h\n"
                     "ptrue p0.d\n wrffr p0.b\n"
                     "svc #0\n"
                     "rdffr p1.b\n"
                     "ptrue p2.b\n st1b z17.b, p2, [%[z]]\n"
                     "str p7, [%[p]]\n str p1, [%[f]]\n"
                     : "+r"(x0) : "r"(x1), "r"(x8), [z] "r"(z), [p] "r"(p), [f] "r"(f)
                     : "memory", "z17", "p0", "p1", "p2", "p7", "cc");
    printf("seen %d\n", (int)seen);
    /* The system call itself may discard what is beyond the low 128 bits. */
    for (int i = 0; i < 16; i++)
        printf("%d ", z[i]);
    printf("\nexceptions %x\n", fetestexcept(FE_ALL_EXCEPT));

    sigset_t set, old, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, &old);
    raise(SIGUSR2);
    raise(SIGUSR2);
    sigpending(&pending);
    printf("blocked: seen %d pending %d\n", (int)seen, sigismember(&pending, SIGUSR2));
    sigprocmask(SIG_SETMASK, &old, NULL);
    printf("unblocked: seen %d\n", (int)seen);
    raise(SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, &old);
    raise(SIGUSR2);
    sigemptyset(&set);
    sigsuspend(&set);
    printf("suspended: seen %d\n", (int)seen);

    a.sa_handler = leave;
    sigaction(SIGSEGV, &a, NULL);
    sigaction(SIGBUS, &a, NULL);
    char *page = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int got = sigsetjmp(back, 1);
    if (!got)
        page[0] = 1;
    printf("write to a read-only page: %d\n", got);
    got = sigsetjmp(back, 1);
    if (!got)
        ((void (*)(void))page)();
    printf("jump to data: %d\n", got);
    sigaction(SIGTRAP, &a, NULL);
    got = sigsetjmp(back, 1);
    if (!got)
        __asm__ volatile("brk #1");
    printf("breakpoint: %d\n", got);

    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
    printf("sigaltstack %d\n", sigaltstack(&stack, NULL));
    struct sigaction b = { .sa_sigaction = overflow, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    sigaction(SIGSEGV, &b, NULL);
    got = sigsetjmp(back, 1);
    if (!got)
        got = recurse(0);
    printf("stack overflow: %d on the alternate stack %d\n", got, on_alternate);
    signal(SIGUSR1, SIG_IGN);
    raise(SIGUSR1);
    fflush(stdout);
    switch (argc > 1 ? argv[1][0] : 0) {
    case 'a':
        abort();
    case 's':
        signal(SIGSEGV, SIG_DFL);
        *(volatile int *)16 = 1;
        break;
    case 't':
        raise(SIGTERM);
        break;
    case 'q':
        _exit(9);
    }
    return 0;
}
