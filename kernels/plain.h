/* The loops of plain.S, and memory for their arrays. */
#ifndef PLAIN_H
#define PLAIN_H

#include "runtime.h"

enum { POOL = 128 << 20, PAGE = 4096 };

static _Alignas(PAGE) unsigned char pool[POOL];

typedef double kernel(double *y, const double *x1, const double *x2, const double *x3, uint64_t n);
kernel plain_load_kernel, plain_copy_kernel, plain_update_kernel, plain_triad_kernel, plain_daxpy_kernel;

enum { LOAD, COPY, UPDATE, TRIAD, DAXPY };
static kernel *const kernels[] = {plain_load_kernel, plain_copy_kernel, plain_update_kernel, plain_triad_kernel,
                                  plain_daxpy_kernel};
static const unsigned streams[] = {1, 2, 1, 4, 2};

#endif
