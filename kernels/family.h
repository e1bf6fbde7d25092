/* The kernel family: y(i) = op(x1(i), x2(i)) for every operation, type of elements and kind of access that SVE has. */
#ifndef FXSCOPE_KERNELS_FAMILY_H
#define FXSCOPE_KERNELS_FAMILY_H

#include "threads.h"

/* Names of the options' words; also columns and rows of the tables of loops. */
enum type { F64, F32, F16, I64, I32, I16, I8, TYPES };
#define TYPE_WORDS "f64|f32|f16|i64|i32|i16|i8"

enum operation {
    LOAD, STORE, COPY, ADD, SUB, MUL, FMA, MAX, MIN, ABS, SIGN,                 /* any access */
    DIV, MOD, RECIP, SQRT, SQRT_SERIES, AINT, ANINT, TO_DOUBLE, TO_SINGLE, TO_INT, TO_NINT, /* contiguous from here on */
    EXP, LOG, SIN, COS, ATAN, POW, OPERATIONS
};
#define OPERATION_WORDS \
    "load|store|copy|add|sub|mul|fma|max|min|abs|sign|div|mod|recip|sqrt|sqrt-series|aint|anint|double|single|int|nint|" \
    "exp|log|sin|cos|atan|pow"

enum access { CONTIGUOUS, PAIRS, STRIDED, INDIRECT };
#define ACCESS_WORDS "contiguous|pairs|strided|indirect"

/* Loops of an operation: contiguous, with software prefetch or DC ZVA; pairs (LD2 and ST2); strided gathers with DC ZVA; and those with
 * gathers or scatters, by the accesses of loads and of stores. */
enum { PLAIN, PREFETCHING_L1, PREFETCHING, ZEROING, ZEROING_PREFETCHING, OF_PAIRS, ZEROING_GATHER, INDEXED_LOOPS, LOOPS = INDEXED_LOOPS + 8 };

static inline unsigned indexed_loop(enum access load, enum access store)
{
    unsigned loads = load == CONTIGUOUS ? 0 : load - 1, stores = store == CONTIGUOUS ? 0 : store - 1;
    return INDEXED_LOOPS + loads * 3 + stores - 1;
}

/* Distances of DC ZVA and of prefetches, bytes. */
struct ahead {
    uint64_t zero, l1, l2;
};

/* A loop of `iterations` of UNROLLED vectors, from these elements on; `index` has an element for each of x and y. */
typedef void loop(void *y, const void *x1, const void *x2, const void *index, uint64_t iterations, uint64_t stride,
                  const struct ahead *ahead);
enum { UNROLLED = 4 };

/* The loops of each type by operation and number; NULL where SVE has no such instructions. */
typedef loop *const *const loops_of_type[OPERATIONS];
extern loops_of_type loops_f64, loops_f32, loops_f16, loops_i64, loops_i32, loops_i16, loops_i8;

/* The factor of `fma`, and what `store` stores. */
enum { FACTOR = 3 };

/* Bytes of an element of x1 and x2; of y. */
unsigned source_bytes(enum type type);
unsigned result_bytes(enum type type, enum operation op);

/* Writes element `i` of the family's data to an array: x1 (`which` is 0) or x2. */
void put_element(void *array, enum type type, enum operation op, unsigned which, uint64_t at, uint64_t i);

/* Elements repeat after this number of them. */
enum { PERIOD = 61 * 13 };

/* Whether element `at` of y is op(x1(i), x2(i)): exactly, but for estimates and functions. */
bool is_result(const void *y, enum type type, enum operation op, uint64_t at, uint64_t i);

#endif
