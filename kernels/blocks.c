/* A mesh in blocks with all variables of a cell side by side, as in adaptive codes: guard cells are copied from
 * neighbouring blocks, and an equation of state is interpolated in tables for vectors of cells, whose variables are one cell
 * apart. The shape is that of public astrophysics codes; code, tables and numbers of variables are ours. */
#include "runtime.h"

enum {
    NVAR = 24,            /* variables of a cell */
    GUARD = 4,            /* cells around a block */
    NXB = 16,             /* cells of a block in each direction */
    SIDE = NXB + 2 * GUARD,
    MAX_BLOCKS = 4096,    /* 453 MB */
    ROW_OF_BLOCKS = 48,   /* blocks from one to the one above it */
    DENSITIES = 541,      /* entries of a table, first index */
    TEMPERATURES = 201,   /* second index */
    TABLES = 21,          /* 18.3 MB in total */
    MAX_LANES = 32,
};

enum { DENS, TEMP, PRES, EINT, GAMC, ENTR };
enum { PART, BLOCKS, EVALUATIONS };
enum { ALL, GUARDS, STATE };

static struct option options[] = {
    [PART] = {"part", ALL, 0, 0, "all|guards|state"},
    [BLOCKS] = {"blocks", 2400, 2 * ROW_OF_BLOCKS, MAX_BLOCKS, NULL},
    [EVALUATIONS] = {"evaluations", 2, 1, 8, NULL},
};

typedef double block[SIDE][SIDE][NVAR];

static _Alignas(LINE) block unk[MAX_BLOCKS];
static _Alignas(LINE) double table[TABLES][TEMPERATURES][DENSITIES];

/* A quantity: values and derivatives, `orders` of them in each direction, starting at table `first`. */
struct quantity {
    int first, orders, variable;
};

static const struct quantity QUANTITIES[] = {{0, 3, PRES}, {9, 2, EINT}, {13, 2, GAMC}, {17, 2, ENTR}};

/* Quantity q is linear: x + (q + 1) * y at density x and temperature y, in units of the tables. */
static void fill_tables(void)
{
    for (unsigned q = 0; q < COUNT_OF(QUANTITIES); q++) {
        const struct quantity *quantity = &QUANTITIES[q];
        double slope = q + 1;
        for (int y = 0; y < TEMPERATURES; y++)
            for (int x = 0; x < DENSITIES; x++) {
                table[quantity->first][y][x] = x + slope * y;
                table[quantity->first + 1][y][x] = 1;
                table[quantity->first + quantity->orders][y][x] = slope;
            }
    }
}

/* Density and temperature of an interior cell: they change little within a block. Quarters, so that all sums are exact. */
static double density(uint64_t b, int j, int i)
{
    return 4 + (double)(b * 37 % 500) + (i + j) * 0.75;
}

static double temperature(uint64_t b, int j, int i)
{
    return 4 + (double)(b * 11 % 160) + (i + 2 * j) * 0.25;
}

static uint64_t neighbour(uint64_t b, int side, uint64_t blocks)
{
    static const int away[4] = {1, -1, ROW_OF_BLOCKS, -ROW_OF_BLOCKS};
    return (b + blocks + (uint64_t)(int64_t)away[side]) % blocks;
}

/* Copies one variable of `rows` rows of `cells` cells between blocks. */
static void copy_cells(double *to, const double *from, int rows, int cells)
{
    svuint64_t cell = svindex_u64(0, NVAR);
    for (int j = 0; j < rows; j++)
        for (int i = 0; i < cells; i += (int)svcntd()) {
            svbool_t p = svwhilelt_b64(i, cells);
            int at = (j * SIDE + i) * NVAR;
            svst1_scatter_index(p, to + at, cell, svld1_gather_index(p, from + at, cell));
        }
}

/* The guard cells of a block are cells of its neighbours: right, left, above, below. */
static void fill_guards(uint64_t b, uint64_t blocks)
{
    static const struct {
        int to_j, to_i, from_j, from_i, rows, cells;
    } strips[4] = {
        {GUARD, GUARD + NXB, GUARD, GUARD, NXB, GUARD},
        {GUARD, 0, GUARD, NXB, NXB, GUARD},
        {GUARD + NXB, GUARD, GUARD, GUARD, GUARD, NXB},
        {0, GUARD, NXB, GUARD, GUARD, NXB},
    };
    for (int side = 0; side < 4; side++) {
        block *other = &unk[neighbour(b, side, blocks)];
        for (int var = 0; var <= ENTR; var++)
            copy_cells(&unk[b][strips[side].to_j][strips[side].to_i][var],
                       &(*other)[strips[side].from_j][strips[side].from_i][var], strips[side].rows, strips[side].cells);
    }
}

/* Weights of Hermite's interpolation at fraction `z` between two entries: for the value and its derivatives, at the
 * entries before and after. Cubic with two orders, quintic with three. */
struct weights {
    double at[3][2][MAX_LANES];
};

static void cubic(svbool_t p, svfloat64_t z, double *value, double *slope)
{
    svfloat64_t zz = svmul_x(p, z, z);
    svst1(p, value, svadd_x(p, svmul_x(p, zz, svsub_x(p, svmul_x(p, z, 2.0), 3.0)), 1.0));
    svst1(p, slope, svmul_x(p, z, svadd_x(p, svmul_x(p, z, svsub_x(p, z, 2.0)), 1.0)));
}

static void quintic(svbool_t p, svfloat64_t z, double *value, double *slope, double *curve)
{
    svfloat64_t zz = svmul_x(p, z, z), zzz = svmul_x(p, zz, z);
    svfloat64_t inner = svsub_x(p, svmul_x(p, z, svsubr_x(p, svmul_x(p, z, 6.0), 15.0)), 10.0);
    svst1(p, value, svadd_x(p, svmul_x(p, zzz, inner), 1.0));
    inner = svsub_x(p, svmul_x(p, z, svsubr_x(p, svmul_x(p, z, 3.0), 8.0)), 6.0);
    svst1(p, slope, svmul_x(p, z, svadd_x(p, svmul_x(p, zz, inner), 1.0)));
    inner = svadd_x(p, svmul_x(p, z, svsub_x(p, svmul_x(p, z, svsubr_x(p, z, 3.0)), 3.0)), 1.0);
    svst1(p, curve, svmul_x(p, svmul_x(p, zz, 0.5), inner));
}

static void weigh(svbool_t p, svfloat64_t z, int orders, struct weights *w)
{
    svfloat64_t rest = svsubr_x(p, z, 1.0);
    if (orders == 2) {
        cubic(p, z, w->at[0][0], w->at[1][0]);
        cubic(p, rest, w->at[0][1], w->at[1][1]);
    } else {
        quintic(p, z, w->at[0][0], w->at[1][0], w->at[2][0]);
        quintic(p, rest, w->at[0][1], w->at[1][1], w->at[2][1]);
    }
    svst1(p, w->at[1][1], svneg_x(p, svld1(p, w->at[1][1])));
}

/* A quantity at table entry `entry` and the next three: 4 gathers from each table. */
static svfloat64_t interpolate(svbool_t p, const struct quantity *q, svint64_t entry, const struct weights *x,
                               const struct weights *y)
{
    svfloat64_t sum = svdup_f64(0);
    for (int dy = 0; dy < q->orders; dy++)
        for (int dx = 0; dx < q->orders; dx++) {
            const double *values = &table[q->first + dy * q->orders + dx][0][0];
            for (int corner = 0; corner < 4; corner++) {
                const double *from = values + corner / 2 * DENSITIES + corner % 2;
                svfloat64_t w = svmul_x(p, svld1(p, x->at[dx][corner % 2]), svld1(p, y->at[dy][corner / 2]));
                sum = svmla_x(p, sum, svld1_gather_index(p, from, entry), w);
            }
        }
    return sum;
}

/* Analytic parts in addition to the tables, for the cost of divisions and roots; the result is the temperature again. */
static svfloat64_t ideal_parts(svbool_t p, svfloat64_t x, svfloat64_t y)
{
    svfloat64_t root = svsqrt_x(p, svmul_x(p, x, x));
    svfloat64_t pressure = svdiv_x(p, svmul_x(p, root, y), x);
    return svdiv_x(p, svmul_x(p, pressure, x), root);
}

/* The state of up to a vector of cells of a row, after `evaluations` at converging temperatures. */
static void state_of_cells(double *cells, int count, uint64_t evaluations)
{
    svbool_t p = svwhilelt_b64(0, count);
    svuint64_t cell = svindex_u64(0, NVAR);
    svfloat64_t x = svld1_gather_index(p, cells + DENS, cell), y = svld1_gather_index(p, cells + TEMP, cell);
    svfloat64_t whole_x = svrintm_x(p, x);
    struct weights wx[2], wy[2];
    for (uint64_t e = evaluations; e-- > 0;) {
        svfloat64_t near = svadd_x(p, ideal_parts(p, x, y), (double)(2 * e));
        svfloat64_t whole_y = svrintm_x(p, near);
        svint64_t entry = svmla_x(p, svcvt_s64_x(p, whole_x), svcvt_s64_x(p, whole_y), (int64_t)DENSITIES);
        for (int orders = 2; orders <= 3; orders++) {
            weigh(p, svsub_x(p, x, whole_x), orders, &wx[orders - 2]);
            weigh(p, svsub_x(p, near, whole_y), orders, &wy[orders - 2]);
        }
        for (unsigned q = 0; q < COUNT_OF(QUANTITIES); q++) {
            const struct quantity *quantity = &QUANTITIES[q];
            int of = quantity->orders - 2;
            svfloat64_t value = interpolate(p, quantity, entry, &wx[of], &wy[of]);
            svst1_scatter_index(p, cells + quantity->variable, cell, value);
        }
    }
}

static void step(uint64_t blocks)
{
    for (uint64_t b = 0; b < blocks; b++) {
        if (options[PART].value != STATE)
            fill_guards(b, blocks);
        if (options[PART].value == GUARDS)
            continue;
        for (int j = GUARD; j < GUARD + NXB; j++)
            for (int i = 0; i < NXB; i += (int)svcntd())
                state_of_cells(unk[b][j][GUARD + i], NXB - i, options[EVALUATIONS].value);
    }
}

static bool is_right(uint64_t blocks)
{
    bool ok = true;
    for (uint64_t b = 0; b < blocks; b += 7) {
        /* Those of the right neighbour: its leftmost column. */
        const block *right = &unk[neighbour(b, 0, blocks)];
        for (int j = GUARD; options[PART].value != STATE && j < GUARD + NXB; j++)
            ok &= unk[b][j][GUARD + NXB][DENS] == (*right)[j][GUARD][DENS];
        for (int j = 0; options[PART].value != GUARDS && j < NXB; j += 5)
            for (unsigned q = 0; q < COUNT_OF(QUANTITIES); q++)
                ok &= unk[b][GUARD + j][GUARD + 3][QUANTITIES[q].variable] ==
                      density(b, j, 3) + (q + 1) * temperature(b, j, 3);
    }
    return ok;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t blocks = options[BLOCKS].value;
    fill_tables();
    for (uint64_t b = 0; b < blocks; b++)
        for (int j = 0; j < NXB; j++)
            for (int i = 0; i < NXB; i++) {
                double *cell = unk[b][GUARD + j][GUARD + i];
                cell[DENS] = density(b, j, i);
                cell[TEMP] = temperature(b, j, i);
            }
    measure_begin("step");
    step(blocks);
    measure_end();
    return finish(is_right(blocks), options, COUNT_OF(options));
}
