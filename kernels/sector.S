// a(i) = a(i) + s * b(c(i)): two vectors per iteration, 14 instructions (4 loads, 2 gathers, 2 FMA, 2 stores, 2
// pointers, 1 counter, 1 branch). The indices of the next iteration are loaded in this one.
//
//   void sector_kernel(double *a, const double *b, const int64_t *c, uint64_t iterations, double s)
//
// iterations >= 1. Reads two vectors beyond the end of c.

        .globl  sector_kernel
        .type   sector_kernel, %function
        .p2align 6
sector_kernel:
        ptrue   p0.d
        dup     z31.d, z0.d[0]
        cntb    x9, all, mul #2
        ld1d    {z4.d}, p0/z, [x2]
        ld1d    {z5.d}, p0/z, [x2, #1, mul vl]
        .p2align 5
1:
        ld1d    {z2.d}, p0/z, [x1, z4.d, lsl #3]
        ld1d    {z3.d}, p0/z, [x1, z5.d, lsl #3]
        ld1d    {z0.d}, p0/z, [x0]
        ld1d    {z1.d}, p0/z, [x0, #1, mul vl]
        add     x2, x2, x9
        ld1d    {z4.d}, p0/z, [x2]
        ld1d    {z5.d}, p0/z, [x2, #1, mul vl]
        subs    x3, x3, #1
        fmla    z0.d, p0/m, z2.d, z31.d
        fmla    z1.d, p0/m, z3.d, z31.d
        st1d    {z0.d}, p0, [x0]
        st1d    {z1.d}, p0, [x0, #1, mul vl]
        add     x0, x0, x9
        b.ne    1b
        ret
        .size   sector_kernel, .-sector_kernel
