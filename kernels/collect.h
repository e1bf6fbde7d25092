/* The measuring program: what its files share. The program runs each benchmark of its list in a process of its own. */
#ifndef FXSCOPE_KERNELS_COLLECT_H
#define FXSCOPE_KERNELS_COLLECT_H

#include "threads.h"

enum { MOST_REPETITIONS = 64, MOST_EVENTS = 6, MOST_CMGS = 16, REASON_BYTES = 128 };

/* Numbers of events of the PMU and of Linux. */
enum { CPU_CYCLES = 0x11 };

/* What the process of a benchmark leaves in memory that it shares with the program. */
struct result {
    uint64_t operations; /* of one thread in one repetition; 0: nothing was measured */
    uint64_t ticks[MOST_REPETITIONS];
    uint64_t counts[1 + MOST_EVENTS][MOST_REPETITIONS]; /* of the first thread; CPU_CYCLES, then the benchmark's events */
    uint64_t counted; /* repetitions in which the events were counted all the time */
    int64_t counter_error; /* why events cannot be opened, an error number of Linux; 0: they can */
    char reason[REASON_BYTES]; /* why nothing was measured */
};

/* How the process of a benchmark measures. */
struct setting {
    unsigned threads, repetitions;
    int memory_cpu; /* the CPU that touches the memory of all threads first; negative: each thread touches its own */
    unsigned event_count;
    uint64_t events[MOST_EVENTS];
    uint64_t page; /* bytes of a page */
    struct result *result;
};
extern struct setting setting;

/* A loop to measure. */
struct work {
    void (*touch)(unsigned thread);   /* writes the memory of a thread for the first time; may be NULL */
    void (*prepare)(void);            /* runs on the first thread before each repetition; may be NULL */
    void (*body)(unsigned thread);    /* the measured part, on each thread */
    uint64_t operations;              /* in a call of `body` */
};

/* Measures: all threads run `body` together once, then once in each repetition. */
void measure(const struct work *work);

/* Runs the loop of this name with `argv[1]` onwards as its options. Ends the process if there is none. */
void run_loop(const char *name, int argc, char **argv);

/* Ends the process of a benchmark with the reason why it has no result. */
_Noreturn void no_result(const char *reason);

/* Lets the running thread run on this CPU only. */
void stay_on(unsigned cpu);

/* The system's counter, read after all instructions before it, and its rate. */
uint64_t counter_now(void);
uint64_t counter_hz(void);

/* Text of the result file. It ends the program if there is no room left. */
void put(const char *text);
void put_decimal(uint64_t value);
void put_quoted(const char *text);
/* Writes the text to the file, which is replaced as a whole, or to standard output if `path` is NULL. */
bool write_text(const char *path);

/* Writes a line to standard error. */
void say(const char *text, const char *more);

/* Reads at most `room - 1` bytes of a file as text, without a line feed at its end. Returns whether there is such a file. */
bool read_text(const char *path, char *text, unsigned room);

/* CPUs on which the program may run, by CMG. */
struct cmg {
    unsigned count;
    unsigned cpus[MAX_THREADS];
};
extern struct cmg cmgs[MOST_CMGS];
extern unsigned cmg_count;
void find_cmgs(void);

/* Writes the description of the computer, an object. */
void put_host(uint64_t page, int64_t counter_error);

#endif
