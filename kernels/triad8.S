// y(i) = x1(i) + c0 * x2(i), eight vectors per iteration, in addition to the loops of triad.S.

#include "stream3.inc"

        STREAM3 triad8_kernel, OP_FMA
