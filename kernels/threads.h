/* What the threaded programs share: threads on chosen CPUs, and a barrier that spins. */
#ifndef FXSCOPE_KERNELS_THREADS_H
#define FXSCOPE_KERNELS_THREADS_H

#include "runtime.h"

enum { MAX_THREADS = 64 };

/* System calls, by their numbers. */
enum { OPENAT = 56, CLOSE = 57, IOCTL = 29, FUTEX = 98, SET_AFFINITY = 122, GET_AFFINITY = 123, YIELD = 124 };
long linux_call(long a0, long a1, long a2, long a3, long a4, long a5, long number);

/* Bits 0 to 1023, one for each CPU. */
struct cpu_mask {
    uint64_t words[16];
};

/* Takes `cpus=LIST` (as in cpus=12-23,36) out of `argv`, wherever it stands, and returns the number of arguments left.
 * Without it the CPUs are those that the program may run on. A list that is none ends the program. */
int choose_cpus(int argc, char **argv);

/* The CPU of a thread: the next of the chosen ones for each, from the first again when there are no more. */
unsigned cpu_of(unsigned thread);

/* Calls body(0) in this thread and body(1) to body(count - 1) in new ones, at the same time, each pinned to its CPU;
 * returns when all have returned. */
void run_threads(unsigned count, void (*body)(unsigned thread));

/* A barrier of all threads of a `run_threads`: a counter with LDADD, and a word that the last one changes and the others
 * read with LDAR. A thread that has to wait for long gives up its CPU from time to time, in case that it shares it. */
void meet(unsigned thread);

/* All threads meet; one of them begins, or ends, the measured part while the others wait. */
void measure_begin_together(unsigned thread, const char *region);
void measure_end_together(unsigned thread);

/* Waits on a word, or wakes all that do. */
void futex_wait(uint32_t *word, uint32_t value);
void futex_wake_all(uint32_t *word);

#endif
