// y(i) = x1(i) op x2(i), one loop per operation.

#include "stream3.inc"

        STREAM3 add_kernel, OP_ADD
        STREAM3 mul_kernel, OP_MUL
        STREAM3 fma_kernel, OP_FMA
        STREAM3 div_kernel, OP_DIV
        STREAM3 div_series_kernel, OP_DIV_SERIES
