/* Sparse matrices for spmv.c: the matrix by rows, from which everything is built, and its ten storage formats. */
#ifndef SPMV_H
#define SPMV_H

#include "runtime.h"

/* Exit status if a matrix needs more memory than the limit. */
enum { NO_MEMORY = 3 };

/* Maximum number of rows and nonzeros: indices have 32 bits, as in the libraries that use these formats. */
enum { MAX_INDEX = INT32_MAX };

/* Blocks of BSR and BSC have up to this many rows; vectors have that many extra elements. */
enum { MAX_BLOCK = 8 };

/* n rows and columns. Row i has the nonzeros ptr[i] to ptr[i+1]-1, in ascending order of their columns. */
struct matrix {
    uint64_t n, nonzeros;
    double largest; /* largest absolute value if all are integers; otherwise infinity */
    int32_t *ptr, *index;
    double *value;
};

enum format { CRS, CCS, MSR, DIA, ELL, JDS, BSR, BSC, VBR, COO };
#define FORMAT_WORDS "crs|ccs|msr|dia|ell|jds|bsr|bsc|vbr|coo"

/* A matrix in one of the formats. The functions that build a format say which arrays it has, and what they mean. */
struct storage {
    enum format format;
    uint64_t n, nonzeros;
    uint64_t bytes; /* bytes of all its arrays */
    uint64_t count; /* diagonals, longest row, or rows or columns of blocks */
    uint64_t block; /* rows of a block */
    int32_t *ptr, *index, *row, *column, *offset;
    double *value, *work;
};

/* Prints a message assembled from parts to standard error, and exits. */
void say(const char *text);
void say_number(uint64_t number);
void say_size(unsigned __int128 bytes);
_Noreturn void leave(int status);

/* Memory limit of a matrix. Exits if `bytes` exceed it: "WHO needs …" and, in brackets, how they come about:
 * `first` times `times` times `second`. */
struct product {
    uint64_t first;
    const char *times;
    uint64_t second;
    const char *unit;
};
void set_limit(uint64_t bytes);
void claim(const char *who, unsigned __int128 bytes, const struct product *what);

/* Memory of `count` times `size` bytes, all zero. Exits if the system has none. */
void *take(uint64_t count, size_t size);

/* Parameters of generated matrices. */
enum kind { BANDED, DIAGONALS, BLOCKS, STENCIL2D, STENCIL3D, STENCIL27, POWERLAW, RANDOM, ARROW, DENSEROW, FROM_FILE };
#define KIND_WORDS "banded|diagonals|blocks|stencil2d|stencil3d|stencil27|powerlaw|random|arrow|denserow|file"

struct recipe {
    enum kind kind;
    uint64_t n, row, band, block, seed;
};

struct matrix generate(const struct recipe *recipe);

/* Reads a file in the Matrix Market exchange format. */
struct matrix read_market(const char *path);

/* Memory for a matrix by rows: n of them, and then for the nonzeros. */
struct matrix new_matrix(uint64_t n);
void take_nonzeros(struct matrix *a, uint64_t nonzeros);

/* The matrix by columns: the rows of its transpose. */
struct matrix transposed(const struct matrix *a);

struct storage store(const struct matrix *a, enum format format, uint64_t block);
void store_blocks(const struct matrix *a, struct storage *s);
void store_variable_blocks(const struct matrix *a, struct storage *s);

/* y = A x. */
void spmv_kernel(const struct storage *s, double *y, const double *x);
void spmv_blocks(const struct storage *s, double *y, const double *x);

#endif
