/* Sparse matrix times vector in the ten storage formats of linear algebra libraries, on generated matrices with the shapes of public
 * collections, or on one from a file. */
#include "spmv.h"

struct timespec {
    int64_t seconds, nanoseconds;
};

long linux_clock_gettime(int clock, struct timespec *now);

enum { CLOCK_MONOTONIC = 1 };

enum { FORMAT, MATRIX, N, ROW, BAND, BLOCK, SEED, REPS, LIMIT };

static struct option options[] = {
    [FORMAT] = {"format", CRS, 0, 0, FORMAT_WORDS},
    [MATRIX] = {"matrix", BANDED, 0, 0, KIND_WORDS},
    [N] = {"n", 10000, 1, MAX_INDEX - 1, NULL},
    [ROW] = {"row", 9, 1, MAX_INDEX, NULL},
    [BAND] = {"band", 0, 0, MAX_INDEX, NULL},
    [BLOCK] = {"block", 0, 0, 0, "2|3|4|8"},
    [SEED] = {"seed", 1, 0, UINT32_MAX, NULL},
    [REPS] = {"reps", 1, 1, 1000000000, NULL},
    [LIMIT] = {"limit", 1024, 1, 1 << 24, NULL},
};

static const uint64_t BLOCK_ROWS[] = {2, 3, 4, 8};

/* Results in the output line, after the options. */
enum { ROWS, NONZEROS, BYTES, CHECKSUM, NS_PER_PRODUCT, MFLOPS, SHOWN };

/* Removes `file=PATH` from the arguments, since it is not a number or word; NULL if there is none. */
static const char *take_file(int *argc, char **argv)
{
    const char *path = NULL;
    int left = 0;
    for (int i = 0; i < *argc; i++) {
        const char *t = argv[i];
        if (t[0] == 'f' && t[1] == 'i' && t[2] == 'l' && t[3] == 'e' && t[4] == '=')
            path = t + 5;
        else
            argv[left++] = argv[i];
    }
    *argc = left;
    return path;
}

static bool has_time_option(int argc, char **argv)
{
    bool found = false;
    for (int i = 1; i < argc; i++)
        found |= argv[i][0] == '-' && argv[i][1] == 't' && !argv[i][2];
    return found;
}

static uint64_t nanoseconds(void)
{
    struct timespec now;
    linux_clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)(now.seconds * 1000000000 + now.nanoseconds);
}

static struct matrix make_matrix(const char *path)
{
    struct recipe recipe = {
        .kind = (enum kind)options[MATRIX].value,
        .n = options[N].value,
        .row = options[ROW].value,
        .band = options[BAND].value,
        .block = BLOCK_ROWS[options[BLOCK].value],
        .seed = options[SEED].value,
    };
    if (!path && recipe.kind == FROM_FILE)
        cannot_run("matrix=file needs file=PATH");
    return path ? read_market(path) : generate(&recipe);
}

static double absolute(double x)
{
    return x < 0 ? -x : x;
}

/* Whether values are small enough integers for sums of products with elements of x (at most 8) to be exact in any order. */
static bool is_exact(const struct matrix *a)
{
    return a->largest * 8 * (double)a->nonzeros < 0x1p53;
}

/* Compares y with sums of 64-bit integers. */
static bool is_product_of_integers(const struct matrix *a, const double *y, const double *x)
{
    int64_t *integer = take(a->n, sizeof *integer);
    for (uint64_t i = 0; i < a->n; i++)
        integer[i] = (int64_t)x[i];
    bool ok = true;
    for (uint64_t i = 0; i < a->n; i++) {
        int64_t sum = 0;
        for (int64_t k = a->ptr[i]; k < a->ptr[i + 1]; k++)
            sum += (int64_t)a->value[k] * integer[a->index[k]];
        ok &= y[i] == (double)sum;
    }
    return ok;
}

/* Compares y with sums from left to right, within the rounding that another order can cause. */
static bool is_product(const struct matrix *a, const double *y, const double *x)
{
    bool ok = true;
    for (uint64_t i = 0; i < a->n; i++) {
        double sum = 0, sizes = 0;
        for (int64_t k = a->ptr[i]; k < a->ptr[i + 1]; k++) {
            double term = a->value[k] * x[a->index[k]];
            sum += term;
            sizes += absolute(term);
        }
        double length = (double)(a->ptr[i + 1] - a->ptr[i]);
        ok &= absolute(y[i] - sum) <= sizes * (length + 2) * 0x1p-52;
    }
    return ok;
}

/* 32-bit checksum of the bits of y, in order; equal for all formats if sums are exact. */
static uint64_t checksum(const double *y, uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        union {
            double number;
            uint64_t bits;
        } element = {y[i] + 0.0}; /* no negative zero */
        sum += (element.bits ^ element.bits >> 32) * (2 * i + 1) * 0x9e3779b97f4a7c15;
    }
    return sum >> 32;
}

/* x has odd numbers from -7 to 7, since a zero would hide an element. Blocks may reach beyond the last row, where x and y are zero. */
static double *make_x(uint64_t n)
{
    double *x = take(n + MAX_BLOCK, sizeof *x);
    for (uint64_t i = 0; i < n; i++)
        x[i] = (double)((int64_t)(i * 5 % 8) * 2 - 7);
    return x;
}

/* An untimed product, then the marked ones. Returns the nanoseconds of one. */
static uint64_t measure(const struct storage *s, double *y, const double *x)
{
    spmv_kernel(s, y, x);
    /* A value that is no sum of the matrix, so that omitted elements are detected. */
    for (uint64_t i = 0; i < s->n; i++)
        y[i] = 0x1p-1000;
    uint64_t reps = options[REPS].value, started = nanoseconds();
    measure_begin("spmv");
    for (uint64_t i = 0; i < reps; i++)
        spmv_kernel(s, y, x);
    measure_end();
    return (nanoseconds() - started) / reps;
}

/* Prints the line with the options and the results, with the time if requested. */
static int show(bool ok, const struct storage *s, const double *y, uint64_t ns, bool with_time)
{
    static struct option shown[COUNT_OF(options) + SHOWN];
    for (unsigned i = 0; i < COUNT_OF(options); i++)
        shown[i] = options[i];
    struct option *results = shown + COUNT_OF(options);
    results[ROWS] = (struct option){"rows", s->n, 0, 0, NULL};
    results[NONZEROS] = (struct option){"nonzeros", s->nonzeros, 0, 0, NULL};
    results[BYTES] = (struct option){"bytes", s->bytes, 0, 0, NULL};
    results[CHECKSUM] = (struct option){"checksum", checksum(y, s->n), 0, 0, NULL};
    results[NS_PER_PRODUCT] = (struct option){"ns-per-product", ns, 0, 0, NULL};
    results[MFLOPS] = (struct option){"mflops", ns ? 2000 * s->nonzeros / ns : 0, 0, 0, NULL};
    return finish(ok, shown, COUNT_OF(shown) - (with_time ? 0 : SHOWN - NS_PER_PRODUCT));
}

int program(int argc, char **argv)
{
    const char *path = take_file(&argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    if (path)
        options[MATRIX].value = FROM_FILE;
    set_limit(options[LIMIT].value << 20);
    struct matrix a = make_matrix(path);
    struct storage s = store(&a, (enum format)options[FORMAT].value, BLOCK_ROWS[options[BLOCK].value]);
    double *x = make_x(a.n), *y = take(a.n + MAX_BLOCK, sizeof *y);
    uint64_t ns = measure(&s, y, x);
    bool ok = is_exact(&a) ? is_product_of_integers(&a, y, x) : is_product(&a, y, x);
    return show(ok, &s, y, ns, has_time_option(argc, argv));
}
