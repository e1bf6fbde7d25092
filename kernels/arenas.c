/* Threads of an OpenMP loop that allocate and free blocks at the same time, with the C library's malloc: for each thread, blocks of memory
 * that stay untouched, y2(i) = x1(i) + c*x2(i), and the blocks are freed. */
#include "threads.h"

#include <omp.h>
#include <stdlib.h>

enum { MAX_N = 1 << 20, MAX_BLOCKS = 1024, CONSTANT = 3 };
static _Alignas(LINE) double x1[MAX_N], x2[MAX_N], y2[MAX_THREADS][MAX_N];

enum { N, BLOCKS, THREADS };

static struct option options[] = {
    [N] = {"n", 1048512, 1, MAX_N, NULL},
    [BLOCKS] = {"blocks", 80, 1, MAX_BLOCKS, NULL},
    [THREADS] = {"threads", 12, 1, MAX_THREADS, NULL},
};

static uint64_t of(unsigned option)
{
    return options[option].value;
}

static void triad(double *y)
{
    svfloat64_t c = svdup_f64(CONSTANT);
    for (uint64_t i = 0; i < of(N); i += svcntd()) {
        svbool_t inside = svwhilelt_b64_u64(i, of(N));
        svst1(inside, y + i, svmla_x(inside, svld1(inside, x1 + i), svld1(inside, x2 + i), c));
    }
}

/* Returns whether there was memory for all blocks. */
static bool allocate_and_free(unsigned thread)
{
    void *blocks[MAX_BLOCKS];
    bool ok = true;
    for (uint64_t j = 0; j < of(BLOCKS); j++)
        ok &= (blocks[j] = malloc(of(N) * sizeof(double))) != NULL;
    triad(y2[thread]);
    for (uint64_t j = 0; j < of(BLOCKS); j++)
        free(blocks[j]);
    return ok;
}

static void begin_thread(void)
{
    struct cpu_mask mask = {{0}};
    unsigned cpu = cpu_of((unsigned)omp_get_thread_num());
    mask.words[cpu / 64] = (uint64_t)1 << cpu % 64;
    linux_call(0, sizeof mask, (long)&mask, 0, 0, 0, SET_AFFINITY);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    int threads = (int)of(THREADS);
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
    for (uint64_t i = 0; i < of(N); i++) {
        x1[i] = (double)(i & 1023);
        x2[i] = (double)(i & 511);
    }
#pragma omp parallel
    begin_thread();

    bool ok = true;
    measure_begin("arenas");
#pragma omp parallel for schedule(static) reduction(&& : ok)
    for (int k = 0; k < threads; k++)
        ok = ok && allocate_and_free((unsigned)k);
    measure_end();

    for (int k = 0; k < threads; k++)
        for (uint64_t i = 0; i < of(N); i++)
            ok &= y2[k][i] == x1[i] + CONSTANT * x2[i];
    return finish(ok, options, COUNT_OF(options));
}
