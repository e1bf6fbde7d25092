/* Common code of all kernel programs: options from the command line, the measured region, the output line. */
#ifndef FXSCOPE_KERNELS_RUNTIME_H
#define FXSCOPE_KERNELS_RUNTIME_H

#ifdef __ARM_FEATURE_SVE
#include <arm_sve.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Cache line of A64FX, and the block that DC ZVA clears there, in bytes. */
#define LINE 256

/* One option: given as `name=value`, or by position. */
struct option {
    const char *name;
    uint64_t value; /* the default until `parse_options` replaces it */
    uint64_t low, high;
    const char *words; /* "a|b|c" if values are words: `value` is then the index of the word; otherwise NULL */
};

/* Exit statuses. A program that cannot run with its options prints why to standard error and exits with CANNOT_RUN. */
enum { PASSED = 0, FAILED = 1, CANNOT_RUN = 2 };

/* Defined by each program; its result is the exit status. */
int program(int argc, char **argv);

/* Reads `argv` into `options`. `-t` anywhere makes `finish` print the elapsed time. A wrong argument ends the program. */
void parse_options(int argc, char **argv, struct option *options, unsigned count);

/* Exits with a message. */
_Noreturn void cannot_run(const char *why);

/* Ends the program unless DC ZVA clears lines of this size. */
static inline void require_line_zeroing(void)
{
    uint64_t dczid;
    __asm__("mrs %0, dczid_el0" : "=r"(dczid));
    if (dczid != 6) /* log2 of the block's size in words; bit 4: DC ZVA is prohibited */
        cannot_run("needs a processor on which DC ZVA clears 256 bytes, as on A64FX");
}

/* Mark the measured part: the calls of fxscope_roi.h and, with `-t`, a clock. */
void measure_begin(const char *region);
void measure_end(void);

/* Prints `NAME ok option=value …` or `NAME FAILED …` and returns the exit status. */
int finish(bool ok, const struct option *options, unsigned count);

/* `count` arrays of `bytes` each, one after the other from `pool`, each aligned to a cache line: the layout that
 * arrays of exactly this size would have in .bss. Exits if `pool` (of `pool_bytes`) is too small. */
void place_arrays(unsigned char *pool, size_t pool_bytes, size_t bytes, unsigned count, double **arrays);

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
