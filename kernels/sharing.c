/* Each thread increments its own word: all words in one line, which then moves from core to core, or each in its own line. */
#include "threads.h"

enum { LAYOUT, THREADS, ROUNDS };
enum { ONE_LINE, OWN_LINES };

static struct option options[] = {
    [LAYOUT] = {"layout", ONE_LINE, 0, 0, "one-line|own-lines"},
    [THREADS] = {"threads", 4, 1, LINE / sizeof(uint64_t), NULL},
    [ROUNDS] = {"rounds", 1000, 1, 1000000000, NULL},
};

static _Alignas(LINE) uint64_t counters[MAX_THREADS * LINE / sizeof(uint64_t)];

/* sharing.S */
void count_kernel(uint64_t *counter, uint64_t rounds);

static uint64_t *counter_of(unsigned thread)
{
    return counters + thread * (options[LAYOUT].value == ONE_LINE ? 1 : LINE / sizeof(uint64_t));
}

static void count(unsigned thread)
{
    count_kernel(counter_of(thread), 1);
    measure_begin_together(thread, "sharing");
    count_kernel(counter_of(thread), options[ROUNDS].value);
    measure_end_together(thread);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    run_threads((unsigned)options[THREADS].value, count);

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= *counter_of(t) == options[ROUNDS].value + 1;
    return finish(ok, options, COUNT_OF(options));
}
