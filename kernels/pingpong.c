/* Two threads pass a line back and forth: each waits until the word in it has the number of its turn, and writes the next. */
#include "threads.h"

enum { ROUNDS };

static struct option options[] = {
    [ROUNDS] = {"rounds", 500, 1, 1000000000, NULL},
};

static _Alignas(LINE) uint64_t turn;

/* pingpong.S */
void pingpong_kernel(uint64_t *turn, uint64_t mine, uint64_t rounds);

static void play(unsigned thread)
{
    measure_begin_together(thread, "pingpong");
    pingpong_kernel(&turn, thread, options[ROUNDS].value);
    measure_end_together(thread);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    if (cpu_of(0) == cpu_of(1))
        cannot_run("needs two CPUs, as in cpus=12,13");
    run_threads(2, play);
    return finish(turn == 2 * options[ROUNDS].value, options, COUNT_OF(options));
}
