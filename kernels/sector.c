/* a(i) = a(i) + s * b(c(i)): b is reused, a and c are streams. With the sector cache b can stay in L2. */
#include "sector.h"
#include "runtime.h"

enum { MAX_N = 8 << 20, MAX_M = 1 << 20, SPARE = 16 };

static _Alignas(LINE) double a[MAX_N];
static _Alignas(LINE) int64_t c[MAX_N + SPARE];
static _Alignas(LINE) double b[MAX_M];

void sector_kernel(double *a, const double *b, const int64_t *c, uint64_t iterations, double s);

enum { PLAIN, TAGGED };
enum { N, M, POINTERS, L2_WAYS, PASSES };

/* The defaults are one core's share of twelve of 8 Mi elements; b is shared by all cores, like the L2 cache. */
static struct option options[] = {
    [N] = {"n", 699040, 16, MAX_N, NULL},
    [M] = {"m", 589824, 1, MAX_M, NULL},
    [POINTERS] = {"pointers", PLAIN, 0, 0, "plain|tagged"},
    [L2_WAYS] = {"l2-ways", 0, 0, USABLE_WAYS, NULL},
    [PASSES] = {"passes", 4, 1, 1000000, NULL},
};

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t n = options[N].value, m = options[M].value, ways = options[L2_WAYS].value;
    uint64_t per_iteration = 2 * svcntd();
    if (n % per_iteration)
        cannot_run("n must be a multiple of the elements of two vectors (16 with 512 bits)");
    for (uint64_t i = 0, next = 0; i < n; i++, next = next + 1 < m ? next + 1 : 0) {
        a[i] = (double)(i & 0xff);
        c[i] = (int64_t)next;
    }
    for (uint64_t i = 0; i < m; i++)
        b[i] = (double)(i & 0xffff);
    const double *of_b = options[POINTERS].value == TAGGED ? in_sector_1(b) : b;
    uint64_t before = 0;
    if (ways) {
        before = read_ways();
        give_sector_1(ways, USABLE_WAYS);
    }
    sector_kernel(a, of_b, c, n / per_iteration, 3);

    measure_begin("sector");
    for (uint64_t i = 0; i < options[PASSES].value; i++)
        sector_kernel(a, of_b, c, n / per_iteration, 3);
    measure_end();
    if (ways)
        write_ways(before);

    /* All values are integers below 2**53, hence exact. */
    double passes = (double)(options[PASSES].value + 1);
    bool ok = true;
    for (uint64_t i = 0; i < n; i++)
        ok &= a[i] == (double)(i & 0xff) + passes * 3 * b[c[i]];
    return finish(ok, options, COUNT_OF(options));
}
