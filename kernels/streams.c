/* The sum of many arrays, element by element, into one more: as many streams as there are arrays. Each thread has arrays of
 * its own, side by side in memory with a gap between them. */
#include "threads.h"

enum { MAX_STREAMS = 32, GAP = 3 * LINE, MOST = 128 << 20 };
enum { STREAMS, ELEMENTS, PASSES, THREADS };

static struct option options[] = {
    [STREAMS] = {"streams", 19, 2, MAX_STREAMS, NULL},
    [ELEMENTS] = {"n", 16384, 64, MOST / 8, NULL},
    [PASSES] = {"passes", 1, 1, 1000000, NULL},
    [THREADS] = {"threads", 1, 1, MAX_THREADS, NULL},
};

static _Alignas(LINE) unsigned char pool[MOST];
static _Alignas(LINE) bool wrong[MAX_THREADS];

/* Array number `stream` of a thread. Its last one is the sum. */
static double *array(unsigned thread, uint64_t stream)
{
    uint64_t bytes = (options[ELEMENTS].value * sizeof(double) + LINE - 1) / LINE * LINE + GAP;
    return (double *)(pool + (thread * options[STREAMS].value + stream) * bytes);
}

static __attribute__((noinline)) void add(double *const *arrays, uint64_t sources, uint64_t n)
{
    double *sum = arrays[sources];
    for (uint64_t i = 0; i < n; i += svcntd()) {
        svbool_t p = svwhilelt_b64(i, n);
        svfloat64_t a = svld1(p, arrays[0] + i);
        for (uint64_t s = 1; s < sources; s++)
            a = svadd_x(p, a, svld1(p, arrays[s] + i));
        svst1(p, sum + i, a);
    }
}

static void body(unsigned thread)
{
    uint64_t sources = options[STREAMS].value - 1, n = options[ELEMENTS].value;
    double *arrays[MAX_STREAMS];
    for (uint64_t s = 0; s <= sources; s++) {
        arrays[s] = array(thread, s);
        for (uint64_t i = 0; i < n; i++)
            arrays[s][i] = s < sources ? (double)(s + i) : 0;
    }
    measure_begin_together(thread, "streams");
    for (uint64_t pass = 0; pass < options[PASSES].value; pass++)
        add(arrays, sources, n);
    measure_end_together(thread);
    for (uint64_t i = 0; i < n; i++)
        wrong[thread] |= arrays[sources][i] != (double)(sources * i + sources * (sources - 1) / 2);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    run_threads((unsigned)options[THREADS].value, body);

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
