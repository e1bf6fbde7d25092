/* Triad through pointers, whose stride the compiler knows (contiguous) or not (gathers and scatters), swept repeatedly by
 * many threads, each with its part. Each sweep is a parallel region: one thread prepares it while the others wait, all start
 * together, and synchronise after it. */
#include "blades.h"

enum { MAX_N = 1 << 20 };

static _Alignas(LINE) unsigned char pool[3ul * 8 * MAX_N];

/* triadt.S */
typedef void kernel(void *y, const void *x1, const void *x2, uint64_t iterations, uint64_t stride, double c0);
kernel contiguous_kernel, strided_kernel;

/* An iteration, and its elements with the longest vectors. */
enum { VECTORS = 8, ELEMENTS = 64 };

enum { CONTIGUOUS, STRIDED };
static kernel *const kernels[] = {contiguous_kernel, strided_kernel};

enum { SPIN, HARDWARE };

enum { POINTERS, N, PASSES, THREADS, MEETING };

static struct option options[] = {
    [POINTERS] = {"pointers", CONTIGUOUS, 0, 0, "contiguous|strided"},
    [N] = {"n", 196608, ELEMENTS, MAX_N, NULL},
    [PASSES] = {"passes", 20, 1, 1000000000, NULL},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
    [MEETING] = {"meeting", SPIN, 0, 0, "spin|hardware"},
};

static const double C0 = 3.0;

static double *arrays[3];
static _Alignas(LINE) bool wrong[MAX_THREADS];

/* Start of a thread's part: whole iterations, so that no line belongs to two threads. */
static uint64_t part(unsigned thread)
{
    return options[N].value / ELEMENTS * thread / options[THREADS].value * ELEMENTS;
}

static void sweep(uint64_t from, uint64_t to)
{
    uint64_t iterations = (to - from) / (VECTORS * svcntd());
    if (iterations)
        kernels[options[POINTERS].value](arrays[0] + from, arrays[1] + from, arrays[2] + from, iterations, 1, C0);
}

/* region.S: the library's overhead, in places of two lines. */
void region_join(void *place, uint64_t places);
void region_fork(void *place, uint64_t places);

enum { JOIN_PLACES = 22, FORK_PLACES = 25, MAX_PLACES = 25, WITHIN = 40 };

/* A place: its two lines, and unused lines, since prefetches would follow neighbouring ones. */
struct place {
    _Alignas(LINE) uint64_t first[4 * LINE / 8];
    uint64_t second[4 * LINE / 8];
};

/* Data of each thread, and the first thread's data about all. */
static struct place own[MAX_THREADS][MAX_PLACES], of_all[MAX_PLACES];

/* Links places in an order that prefetches do not follow. */
static void connect(struct place *places, uint64_t count)
{
    enum { STEP = 7 };
    for (uint64_t i = 0; i < count; i++) {
        struct place *place = &places[i];
        place->first[0] = (uint64_t)place->second;
        place->second[0] = (uint64_t)&places[(i + STEP) % count];
        place->first[WITHIN / 8] = place->second[WITHIN / 8] = place->second[1] = WITHIN;
    }
}

static void wait_for_all(unsigned thread)
{
    if (options[MEETING].value == HARDWARE)
        hardware_barrier_wfe();
    else
        meet(thread);
}

static void region(unsigned thread, uint64_t from, uint64_t to)
{
    if (thread == 0)
        region_fork(of_all, FORK_PLACES);
    wait_for_all(thread);
    region_join(own[thread], JOIN_PLACES);
    sweep(from, to);
    wait_for_all(thread);
}

static void run(unsigned thread)
{
    bool hardware = options[MEETING].value == HARDWARE;
    if (hardware)
        assign_window(thread);
    connect(own[thread], JOIN_PLACES);
    if (thread == 0)
        connect(of_all, FORK_PLACES);
    uint64_t from = part(thread), to = part(thread + 1);
    for (uint64_t i = from; i < to; i++) {
        arrays[0][i] = -1;
        arrays[1][i] = (double)i;
        arrays[2][i] = (double)(i % 77);
    }
    meet(thread);
    region(thread, from, to);

    measure_begin_together(thread, "triadt");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        region(thread, from, to);
    measure_end_together(thread);

    bool ok = true;
    for (uint64_t i = from; i < to; i++)
        ok &= arrays[0][i] == (double)i + C0 * (double)(i % 77);
    wrong[thread] = !ok;
    if (hardware)
        unassign_window(thread);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t n = options[N].value;
    if (n % ELEMENTS)
        cannot_run("n must be a multiple of 64");
    place_arrays(pool, sizeof pool, n * sizeof(double), 3, arrays);
    bool hardware = options[MEETING].value == HARDWARE;
    if (hardware) {
        allocate_blades((unsigned)options[THREADS].value);
        if (threads_of[cmg_of(0)] != options[THREADS].value)
            cannot_run("meeting=hardware is for threads of one CMG");
    }
    run_threads((unsigned)options[THREADS].value, run);
    if (hardware)
        free_blades();

    bool ok = true;
    for (unsigned t = 0; t < options[THREADS].value; t++)
        ok &= !wrong[t];
    return finish(ok, options, COUNT_OF(options));
}
