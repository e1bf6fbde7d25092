// Runs test cases for the differential test and reports the state each one leaves.
//
// Everything happens in one signal handler: a signal frame holds the complete user state, so a case is
// loaded by writing it into the frame and returning, and saved by reading the frame of the signal that
// ended it (SIGTRAP of the BRK after the code, or the fault the code raised).
//
// Standard input: one u64, the vector length in bytes; then cases, each a `struct input`, followed by the
// memory window when `memory` is set. Standard output: for each case a `struct output`, again with the
// window when `memory` is set. The layout is that of `machine.rs`.

#include <asm/sigcontext.h>
#include <asm/siginfo.h>
#include <asm/signal.h>
#include <asm/ucontext.h>
#include <asm/unistd.h>
#include <linux/mman.h>
#include <linux/prctl.h>

typedef __u64 u64;
typedef __u32 u32;
typedef __u8 u8;

enum { PAGE = 0x10000, WINDOW_BYTES = 0x1000, WORDS = 16, ALARM_SECONDS = 20 };
enum { SCRATCH = 0x40000000, CODE = 0x40020000, WINDOW = SCRATCH + PAGE - WINDOW_BYTES };

#define BRK 0xd4200000u

struct state {
    u64 x[31], sp, pc, nzcv;
    u32 fpcr, fpsr;
    u8 z[32][64];
    u64 p[16], ffr;
};

struct input {
    struct state state;
    u32 words[WORDS];
    u32 count, memory;
};

struct output {
    struct state state;
    u32 signal, code;
    u64 address;
};

static struct input in;
static struct output out;
static int running;
static u64 vl;
static u8 handler_stack[1 << 16] __attribute__((aligned(16)));

static long call(long nr, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}

static void leave(int status)
{
    for (;;)
        call(__NR_exit_group, status, 0, 0, 0, 0, 0);
}

static void copy(void *to, const void *from, u64 bytes)
{
    for (u64 i = 0; i < bytes; i++)
        ((u8 *)to)[i] = ((const u8 *)from)[i];
}

static void get(void *to, u64 bytes)
{
    for (u64 done = 0; done < bytes;) {
        long n = call(__NR_read, 0, (long)to + done, bytes - done, 0, 0, 0);
        if (n <= 0)
            leave(done == 0 && n == 0 ? 0 : 2);
        done += n;
    }
}

static void put(const void *from, u64 bytes)
{
    for (u64 done = 0; done < bytes;) {
        long n = call(__NR_write, 1, (long)from + done, bytes - done, 0, 0, 0);
        if (n <= 0)
            leave(3);
        done += n;
    }
}

static void *record(struct sigcontext *sc, u32 magic)
{
    u8 *at = sc->__reserved;
    for (;;) {
        struct _aarch64_ctx *head = (struct _aarch64_ctx *)at;
        if (head->magic == magic)
            return head;
        if (head->magic == 0)
            leave(4);
        at += head->size;
    }
}

// Writes the code of the case, or BRK over it again.
static void place(const u32 *words)
{
    volatile u32 *at = (volatile u32 *)in.state.pc;
    for (u32 i = 0; i < in.count; i++) {
        at[i] = words ? words[i] : BRK;
        __asm__ volatile("dc cvau, %0\n dsb ish\n ic ivau, %0\n dsb ish\n isb" ::"r"(at + i) : "memory");
    }
}

static void timer(long seconds)
{
    long value[4] = {0, 0, seconds, 0};
    call(__NR_setitimer, 0, (long)value, 0, 0, 0, 0);
}

static void handler(int signal, siginfo_t *info, struct ucontext *uc)
{
    struct sigcontext *sc = &uc->uc_mcontext;
    struct fpsimd_context *fp = record(sc, FPSIMD_MAGIC);
    struct sve_context *sve = record(sc, SVE_MAGIC);
    u64 vq = sve_vq_from_vl(vl);
    u8 *z = (u8 *)sve + SVE_SIG_ZREGS_OFFSET, *p = (u8 *)sve + SVE_SIG_PREGS_OFFSET(vq);

    if (sve->vl != vl)
        leave(5);
    if (running) {
        struct state *s = &out.state;
        copy(s->x, sc->regs, sizeof s->x);
        s->sp = sc->sp;
        s->pc = sc->pc;
        s->nzcv = sc->pstate >> 28;
        s->fpcr = fp->fpcr;
        s->fpsr = fp->fpsr;
        for (int i = 0; i < 32; i++)
            copy(s->z[i], z + i * vl, vl);
        for (int i = 0; i < 16; i++)
            copy(&s->p[i], p + i * (vl / 8), vl / 8);
        copy(&s->ffr, p + 16 * (vl / 8), vl / 8);
        out.signal = signal;
        out.code = info->si_code;
        out.address = (u64)info->si_addr;
        timer(0);
        place(0);
        put(&out, sizeof out);
        if (in.memory)
            put((void *)WINDOW, WINDOW_BYTES);
    }
    running = 1;

    get(&in, sizeof in);
    if (in.memory)
        get((void *)WINDOW, WINDOW_BYTES);
    place(in.words);
    timer(ALARM_SECONDS);
    struct state *s = &in.state;
    copy(sc->regs, s->x, sizeof s->x);
    sc->sp = s->sp;
    sc->pc = s->pc;
    sc->pstate = s->nzcv << 28;
    fp->fpcr = s->fpcr;
    fp->fpsr = s->fpsr;
    for (int i = 0; i < 32; i++) {
        copy(&fp->vregs[i], s->z[i], 16);
        copy(z + i * vl, s->z[i], vl);
    }
    for (int i = 0; i < 16; i++)
        copy(p + i * (vl / 8), &s->p[i], vl / 8);
    copy(p + 16 * (vl / 8), &s->ffr, vl / 8);
}

static void map(u64 at, int prot)
{
    if (call(__NR_mmap, at, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != (long)at)
        leave(6);
}

__attribute__((used)) static void begin(void)
{
    static const int signals[] = {SIGTRAP, SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGALRM};

    get(&vl, sizeof vl);
    if ((call(__NR_prctl, PR_SVE_SET_VL, vl, 0, 0, 0, 0) & PR_SVE_VL_LEN_MASK) != (long)vl)
        leave(7);
    map(SCRATCH, PROT_READ | PROT_WRITE);
    map(CODE, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (u64 i = 0; i < PAGE; i += 4)
        *(volatile u32 *)(CODE + i) = BRK;

    stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    call(__NR_sigaltstack, (long)&stack, 0, 0, 0, 0, 0);
    for (u64 i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action = {.sa_handler = (__sighandler_t)handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        for (u64 j = 0; j < sizeof action.sa_mask.sig / sizeof *action.sa_mask.sig; j++)
            action.sa_mask.sig[j] = ~0ul;
        call(__NR_rt_sigaction, signals[i], (long)&action, 0, 8, 0, 0);
    }
    __asm__ volatile("brk 0");
    leave(8);
}

__asm__(".globl _start\n_start: bl begin\n");
