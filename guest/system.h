/* System calls of Linux on arm64, and the few structures that they need. */
#ifndef GUEST_SYSTEM_H
#define GUEST_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of the calls (Linux, include/uapi/asm-generic/unistd.h). */
enum {
    CALL_IOCTL = 29,
    CALL_OPENAT = 56,
    CALL_CLOSE = 57,
    CALL_PIPE2 = 59,
    CALL_GETDENTS64 = 61,
    CALL_LSEEK = 62,
    CALL_READ = 63,
    CALL_WRITE = 64,
    CALL_EXIT_GROUP = 94,
    CALL_CLOCK_GETTIME = 113,
    CALL_SCHED_SETAFFINITY = 122,
    CALL_SCHED_GETAFFINITY = 123,
    CALL_KILL = 129,
    CALL_RT_SIGACTION = 134,
    CALL_RT_SIGPROCMASK = 135,
    CALL_RT_SIGTIMEDWAIT = 137,
    CALL_GETPID = 172,
    CALL_CLONE = 220,
    CALL_EXECVE = 221,
    CALL_GET_MEMPOLICY = 236,
    CALL_SET_MEMPOLICY = 237,
    CALL_PERF_EVENT_OPEN = 241,
    CALL_WAIT4 = 260,
};

/* Error numbers, as calls return them with a minus. */
enum {
    E_PERM = 1,
    E_NOENT = 2,
    E_SRCH = 3,
    E_IO = 5,
    E_2BIG = 7,
    E_NOEXEC = 8,
    E_ACCES = 13,
    E_NOTDIR = 20,
    E_ISDIR = 21,
    E_INVAL = 22,
    E_MFILE = 24,
};

enum { STANDARD_INPUT, STANDARD_OUTPUT, STANDARD_ERROR };

enum { CLOCK_REALTIME, CLOCK_MONOTONIC };

enum { SIGNAL_INTERRUPT = 2, SIGNAL_KILL = 9, SIGNAL_CHILD = 17 };

struct timespec {
    int64_t seconds, nanoseconds;
};

/* `struct rusage` up to the times of the processor. */
struct usage {
    int64_t user_seconds, user_microseconds, system_seconds, system_microseconds, others[14];
};

/* Performs a call; negative results are error numbers. */
static inline long call(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
    return x0;
}

static inline long call1(long number, long a)
{
    return call(number, a, 0, 0, 0, 0, 0);
}

static inline long call2(long number, long a, long b)
{
    return call(number, a, b, 0, 0, 0, 0);
}

static inline long call3(long number, long a, long b, long c)
{
    return call(number, a, b, c, 0, 0, 0);
}

/* Ends the process. */
static inline _Noreturn void leave(int status)
{
    for (;;)
        call1(CALL_EXIT_GROUP, status);
}

/* The environment of the process: `NAME=value`, ended by a null pointer. */
extern char **environment;

/* Opens a file for reading; relative paths start from the current directory. */
long open_to_read(const char *path);

/* Reads a file of at most `room - 1` bytes as a string; returns its length or an error. */
long read_file(const char *path, char *text, size_t room);

/* Returns the value of a variable of the environment, or NULL. */
const char *variable(const char *name);

/* Describes an error number as strerror(3) does. */
const char *error_text(long error);

/* Executes a command, which is searched for in PATH; returns only with an error number, positive. */
long execute(char **command);

#endif
