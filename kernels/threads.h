/* Common code of the threaded programs: threads on chosen CPUs, and a barrier that spins. */
#ifndef FXSCOPE_KERNELS_THREADS_H
#define FXSCOPE_KERNELS_THREADS_H

#include "runtime.h"

enum { MAX_THREADS = 64 };

/* System calls, by their numbers. */
enum { OPENAT = 56, CLOSE = 57, IOCTL = 29, FUTEX = 98, SET_AFFINITY = 122, GET_AFFINITY = 123, YIELD = 124 };
long linux_call(long a0, long a1, long a2, long a3, long a4, long a5, long number);

/* Bits 0 to 1023, one per CPU. */
struct cpu_mask {
    uint64_t words[16];
};

/* Removes `cpus=LIST` (as in cpus=12-23,36) from `argv`, wherever it is, and returns the number of remaining arguments.
 * Without it, the CPUs are those that the program may run on. An invalid list ends the program. */
int choose_cpus(int argc, char **argv);

/* The CPU of a thread: the chosen CPUs in order, starting over if there are more threads. */
unsigned cpu_of(unsigned thread);

/* Calls body(0) in this thread and body(1) to body(count - 1) in new ones, concurrently, each pinned to its CPU;
 * returns when all have returned. */
void run_threads(unsigned count, void (*body)(unsigned thread));

/* A barrier of all threads of a `run_threads`: a counter with LDADD, and a word that the last one changes and the others
 * read with LDAR. A thread that waits for long yields its CPU from time to time, in case it is shared. */
void meet(unsigned thread);

/* All threads synchronise; one of them starts, or ends, the measured part while the others wait. */
void measure_begin_together(unsigned thread, const char *region);
void measure_end_together(unsigned thread);

/* Waits on a word, or wakes all waiting threads. */
void futex_wait(uint32_t *word, uint32_t value);
void futex_wake_all(uint32_t *word);

#endif
