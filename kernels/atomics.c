/* All threads add to one word, each with its own kind of atomic operation. */
#include "threads.h"

enum { OP, THREADS, ROUNDS };
enum { LDADD, EXCLUSIVE, CAS };

static struct option options[] = {
    [OP] = {"op", LDADD, 0, 0, "ldadd|exclusive|cas"},
    [THREADS] = {"threads", 4, 1, MAX_THREADS, NULL},
    [ROUNDS] = {"rounds", 500, 1, 1000000000, NULL},
};

static _Alignas(LINE) uint64_t word;

/* atomics.S */
typedef void kernel(uint64_t *word, uint64_t rounds);
kernel ldadd_kernel, exclusive_kernel, cas_kernel;

static void add(unsigned thread)
{
    static kernel *const kernels[] = {[LDADD] = ldadd_kernel, [EXCLUSIVE] = exclusive_kernel, [CAS] = cas_kernel};
    measure_begin_together(thread, "atomics");
    kernels[options[OP].value](&word, options[ROUNDS].value);
    measure_end_together(thread);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    run_threads((unsigned)options[THREADS].value, add);
    return finish(word == options[THREADS].value * options[ROUNDS].value, options, COUNT_OF(options));
}
