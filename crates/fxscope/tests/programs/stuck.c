/* A launcher and its ranks, with functions of MPI of their own that poll, as libraries do. usage: stuck RANKS HOW */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* As in MPICH: built-in datatypes say their size. */
#define DOUBLE 0x4c00080b
#define WORLD 0x44000000
#define FUNCTION __attribute__((noinline)) int

static struct {
    int full[64];
    int pipe[64];
} *shared;
static int rank, ranks;
static char how;

/* One look at the network: it counts and reads the time. */
__attribute__((noinline)) static void poll_network(void)
{
    static unsigned long looks;
    static struct timespec last;
    if (looks++ % 8 == 0) clock_gettime(CLOCK_MONOTONIC, &last);
    sched_yield();
}

FUNCTION MPI_Recv(void *buffer, int count, int type, int from, int tag, int comm, void *status)
{
    if (how == 'a') return read(3, buffer, 1) != 1;
    while (!__atomic_load_n(&shared->full[rank], __ATOMIC_ACQUIRE)) poll_network();
    return 0;
}

FUNCTION MPI_Send(const void *buffer, int count, int type, int to, int tag, int comm)
{
    __atomic_store_n(&shared->full[to], 1, __ATOMIC_RELEASE);
    return 0;
}

FUNCTION MPI_Abort(int comm, int status)
{
    exit(status);
}

static double work(long steps)
{
    double sum = 0;
    for (long i = 0; i < steps; i++) sum = sum * 0.999 + i;
    return sum;
}

static void handled(int signal_number)
{
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

FUNCTION run(void)
{
    double numbers[4] = {rank};
    int other = (rank + 1) % ranks;
    switch (how) {
    case 'f': if (rank == 1) *(volatile int *)8 = 1; /* faults */ break;
    case 'h': signal(SIGSEGV, handled); if (rank == 1) *(volatile int *)8 = 1; break;
    case 'm': if (rank == 1) MPI_Abort(WORLD, 3); break;
    case 'k': if (rank == 0) { usleep(5000); kill(getppid() + 2, SIGTERM); } break;
    case 'w': if (rank == 0) numbers[0] = work(600000); break; /* the others wait for it */
    case 't': if (rank == 0) usleep(20000); break;
    }
    if (strchr("fhmk", how)) { pause(); return 1; }
    if (strchr("wt", how) && rank == 0)
        for (int to = 1; to < ranks; to++) MPI_Send(numbers, 4, DOUBLE, to, 9, WORLD);
    else
        MPI_Recv(numbers, 4, DOUBLE, other, 9, WORLD, 0); /* receives */
    return numbers[0] < 0;
}

static int launch(char **v)
{
    int fd = memfd_create("shared", 0), ends[2], status, died = 0;
    if (ftruncate(fd, sizeof *shared) || dup2(fd, 9) != 9 || pipe(ends) || dup2(ends[0], 3) != 3) return 1;
    for (int i = 0; i < ranks; i++) {
        char number[12];
        sprintf(number, "%d", i);
        setenv("PMI_RANK", number, 1);
        if (!fork()) {
            execv("/proc/self/exe", v);
            _exit(9);
        }
    }
    for (int left = ranks; left > 0 && wait(&status) > 0; left--)
        if (status && !died) {
            died = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
            kill(0, SIGTERM);
        }
    return died;
}

int main(int c, char **v)
{
    if (c < 3) return 2;
    ranks = atoi(v[1]);
    how = v[2][0];
    if (!getenv("PMI_RANK")) {
        signal(SIGTERM, SIG_IGN);
        return launch(v);
    }
    signal(SIGTERM, SIG_DFL);
    rank = atoi(getenv("PMI_RANK"));
    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, 9, 0);
    return shared == MAP_FAILED ? 1 : run();
}
