/* Functions of vectors, of our own: estimates refined by Newton's method, the instructions for exponentials and for
 * trigonometric series, and Taylor series. T is the element's type, V the vector's, U that of its bits. */

#define HALF_PI 1.57079632679489661923
#define LOG2_E 1.44269504088896340736

/* 1/x: each step doubles the 8 bits of the estimate. */
#define RECIPROCAL(V, STEPS)                                             \
    static inline V FN(reciprocal)(svbool_t all, V x)                    \
    {                                                                    \
        V r = svrecpe(x);                                                \
        for (unsigned step = 0; step < STEPS; step++)                    \
            r = svmul_x(all, r, svrecps(x, r));                          \
        return r;                                                        \
    }

/* sqrt(x) = x/sqrt(x), x > 0, by the same method. */
#define ROOT(V, STEPS)                                                   \
    static inline V FN(root)(svbool_t all, V x)                          \
    {                                                                    \
        V r = svrsqrte(x);                                               \
        for (unsigned step = 0; step < STEPS; step++)                    \
            r = svmul_x(all, r, svrsqrts(svmul_x(all, x, r), r));        \
        return svmul_x(all, x, r);                                       \
    }

/* A polynomial of descending coefficients. */
#define POLYNOMIAL(T, V)                                                                                 \
    static inline __attribute__((always_inline)) V FN(polynomial)(svbool_t all, V x, const T *c, unsigned count) \
    {                                                                                                    \
        V sum = FN(dup)(c[0]);                                                                           \
        _Pragma("GCC unroll 32") for (unsigned i = 1; i < count; i++)                                     \
            sum = svmad_x(all, sum, x, FN(dup)(c[i]));                                                   \
        return sum;                                                                                      \
    }

/* e^x: FEXPA has 2^(k + j/64) from the low bits of k + j/64 + SHIFT; the rest, below 0.0055, is a Taylor series. */
#define EXPONENTIAL(T, V, SHIFT, LN2_HIGH, LN2_LOW)                                        \
    static inline V FN(exponential)(svbool_t all, V x)                                      \
    {                                                                                       \
        static const T series[] = {(T)(1.0 / 120), (T)(1.0 / 24), (T)(1.0 / 6), (T)0.5, 1}; \
        V shifted = svmla_x(all, FN(dup)((T)(SHIFT)), x, (T)LOG2_E);                        \
        V k = svsub_x(all, shifted, (T)(SHIFT));                                            \
        V rest = svmls_x(all, svmls_x(all, x, k, (T)(LN2_HIGH)), k, (T)(LN2_LOW));          \
        V power = FN(power_of_two)(shifted);                                      \
        return svmla_x(all, power, svmul_x(all, power, rest), FN(polynomial)(all, rest, series, 5)); \
    }

/* ln x, x > 0: x = m 2^k with m around 1; ln m = 2 artanh((m-1)/(m+1)). */
#define LOGARITHM(T, V, U, MANTISSA, ROOT_BITS, TERMS, LN2_HIGH, LN2_LOW)                        \
    static inline V FN(logarithm)(svbool_t all, V x)                                             \
    {                                                                                            \
        static const T series[] = {(T)(2.0 / 21), (T)(2.0 / 19), (T)(2.0 / 17), (T)(2.0 / 15), (T)(2.0 / 13), (T)(2.0 / 11), \
                                   (T)(2.0 / 9), (T)(2.0 / 7), (T)(2.0 / 5), (T)(2.0 / 3)};      \
        U exponent = svasr_x(all, svsub_x(all, FN(bits)(x), ROOT_BITS), MANTISSA);        \
        V m = FN(of_bits)(svsub_x(all, FN(bits)(x), svlsl_x(all, exponent, MANTISSA)));   \
        V k = FN(of_integer)(all, exponent);                                                     \
        V s = svmul_x(all, svsub_x(all, m, 1), FN(reciprocal)(all, svadd_x(all, m, 1)));         \
        V square = svmul_x(all, s, s);                                                           \
        V tail = svmul_x(all, svmul_x(all, s, square), FN(polynomial)(all, square, series + (10 - TERMS), TERMS)); \
        V low = svmla_x(all, svmla_x(all, tail, s, 2), k, (T)(LN2_LOW));                         \
        return svmla_x(all, low, k, (T)(LN2_HIGH));                                              \
    }

/* sin(x) and cos(x) = sin(x + pi/2), by quadrants: FTSMUL and FTSSEL choose between both series, whose terms FTMAD has. */
#define TRIGONOMETRIC(T, V, HALF_PI_HIGH, HALF_PI_MIDDLE, HALF_PI_LOW)                           \
    static inline V FN(wave)(svbool_t all, V x, int shift)                                       \
    {                                                                                            \
        V q = svrintn_x(all, svmul_x(all, x, (T)(1 / HALF_PI)));                                 \
        V r = svmls_x(all, svmls_x(all, x, q, (T)(HALF_PI_HIGH)), q, (T)(HALF_PI_MIDDLE));       \
        r = svmls_x(all, r, q, (T)(HALF_PI_LOW));                                                \
        __auto_type quadrant = FN(quadrant)(all, q, shift);                                      \
        V square = svtsmul(r, quadrant), sum = FN(dup)(0);                                       \
        sum = svtmad(sum, square, 7);                                                            \
        sum = svtmad(sum, square, 6);                                                            \
        sum = svtmad(sum, square, 5);                                                            \
        sum = svtmad(sum, square, 4);                                                            \
        sum = svtmad(sum, square, 3);                                                            \
        sum = svtmad(sum, square, 2);                                                            \
        sum = svtmad(sum, square, 1);                                                            \
        sum = svtmad(sum, square, 0);                                                            \
        return svmul_x(all, sum, svtssel(r, quadrant));                                          \
    }

/* atan(x): reduced to |t| <= tan(pi/8) by atan(z) = pi/4 + atan((z-1)/(z+1)) and atan(z) = pi/2 + atan(-1/z). */
#define ARCTANGENT(T, V, TERMS)                                                                              \
    static inline V FN(arctangent)(svbool_t all, V x)                                                        \
    {                                                                                                        \
        static const T series[] = {(T)(1.0 / 41), (T)(-1.0 / 39), (T)(1.0 / 37), (T)(-1.0 / 35), (T)(1.0 / 33), (T)(-1.0 / 31), \
                                   (T)(1.0 / 29), (T)(-1.0 / 27), (T)(1.0 / 25), (T)(-1.0 / 23), (T)(1.0 / 21), (T)(-1.0 / 19), \
                                   (T)(1.0 / 17), (T)(-1.0 / 15), (T)(1.0 / 13), (T)(-1.0 / 11), (T)(1.0 / 9), (T)(-1.0 / 7),   \
                                   (T)(1.0 / 5), (T)(-1.0 / 3)};                                             \
        V z = svabs_x(all, x);                                                                               \
        svbool_t middle = svcmpgt(all, z, (T)0.41421356237309503), high = svcmpgt(all, z, (T)2.4142135623730950); \
        V above = svsel(high, FN(dup)(-1), svsel(middle, svsub_x(all, z, 1), z));                            \
        V below = svsel(high, z, svsel(middle, svadd_x(all, z, 1), FN(dup)(1)));                             \
        V start = svsel(high, FN(dup)((T)HALF_PI), svsel(middle, FN(dup)((T)(HALF_PI / 2)), FN(dup)(0)));    \
        V t = svmul_x(all, above, FN(reciprocal)(all, below)), square = svmul_x(all, t, t);                  \
        V tail = svmul_x(all, svmul_x(all, t, square), FN(polynomial)(all, square, series + (20 - TERMS), TERMS)); \
        return FN(with_sign)(all, svadd_x(all, start, svadd_x(all, t, tail)), x);                            \
    }
