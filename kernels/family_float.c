/* The kernel family for floating-point numbers. */
#include "family.h"
#include "family_math.h"

/* |m| with the sign of x, by bits. */
#define WITH_SIGN(V, OF_BITS, BITS, ONE)                                                                 \
    static inline V FN(with_sign)(svbool_t all, V magnitude, V x)                                        \
    {                                                                                                    \
        __auto_type sign = svand_x(all, BITS(x), (uint64_t)ONE << (8 * sizeof(T) - 1));                  \
        return OF_BITS(svorr_x(all, BITS(magnitude), sign));                                             \
    }
/* The quotient is rounded: it may be one too large. */
#define REST(V)                                                                                          \
    static inline V FN(rest)(svbool_t all, V a, V b)                                                     \
    {                                                                                                    \
        V rest = svmls_x(all, a, svrintz_x(all, svdiv_x(all, a, b)), b);                                 \
        return svadd_m(svcmplt(all, rest, 0), rest, b);                                                  \
    }
#define PLAIN_LOOPS                                                  \
    PLAIN_LOOP(div, true, svdiv_x(all, a, b))                        \
    PLAIN_LOOP(mod, true, FN(rest)(all, a, b))                       \
    SERIES_LOOP(recip, FN(reciprocal)(all, a))                  \
    PLAIN_LOOP(sqrt, true, svsqrt_x(all, a))                         \
    SERIES_LOOP(sqrt_series, FN(root)(all, a))                  \
    PLAIN_LOOP(aint, true, svrintz_x(all, a))                        \
    PLAIN_LOOP(anint, true, svrinta_x(all, a))
#define PLAIN_ROWS                                                                                            \
    [DIV] = PLAIN_ROW(div), [MOD] = PLAIN_ROW(mod), [RECIP] = PLAIN_ROW(recip), [SQRT] = PLAIN_ROW(sqrt),      \
    [SQRT_SERIES] = PLAIN_ROW(sqrt_series), [AINT] = PLAIN_ROW(aint), [ANINT] = PLAIN_ROW(anint)
#define FUNCTION_LOOPS                                               \
    SERIES_LOOP(exp, FN(exponential)(all, a))                   \
    SERIES_LOOP(log, FN(logarithm)(all, a))                     \
    SERIES_LOOP(sin, FN(wave)(all, a, 0))                       \
    SERIES_LOOP(cos, FN(wave)(all, a, 1))                       \
    SERIES_LOOP(atan, FN(arctangent)(all, a))                   \
    SERIES_LOOP(pow, FN(exponential)(all, svmul_x(all, b, FN(logarithm)(all, a))))
#define FUNCTION_ROWS                                                                                         \
    [EXP] = PLAIN_ROW(exp), [LOG] = PLAIN_ROW(log), [SIN] = PLAIN_ROW(sin), [COS] = PLAIN_ROW(cos),            \
    [ATAN] = PLAIN_ROW(atan), [POW] = PLAIN_ROW(pow)

#define T double
#define V svfloat64_t
#define V2 svfloat64x2_t
#define I svint64_t
#define INDEX int64_t
#define COUNT svcntd
#define FN(name) name##_f64
static inline V FN(dup)(T x) { return svdup_f64(x); }
static inline I FN(lanes)(uint64_t stride) { return svindex_s64(0, (int64_t)stride); }
static inline svint64_t FN(bits)(V x) { return svreinterpret_s64(x); }
static inline V FN(of_bits)(svint64_t x) { return svreinterpret_f64(x); }
static inline V FN(of_integer)(svbool_t all, svint64_t x) { return svcvt_f64_x(all, x); }
static inline V FN(power_of_two)(V x) { return svexpa(svreinterpret_u64(x)); }
static inline svuint64_t FN(quadrant)(svbool_t all, V q, int shift)
{
    return svreinterpret_u64(svadd_x(all, svcvt_s64_x(all, q), shift));
}
WITH_SIGN(V, svreinterpret_f64, svreinterpret_u64, 1)
REST(V)
RECIPROCAL(V, 3)
ROOT(V, 3)
POLYNOMIAL(T, V)
EXPONENTIAL(T, V, 0x1.8p46 + 1023, 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56)
LOGARITHM(T, V, svint64_t, 52, 0x3fe6a09e667f3bcd, 10, 0x1.62e42fefa3800p-1, 0x1.ef35793c76730p-45)
TRIGONOMETRIC(T, V, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110)
ARCTANGENT(T, V, 20)
#include "family_loops.inc"
PLAIN_LOOPS
FUNCTION_LOOPS

/* Two vectors of doubles are one of half their length. */
#define NARROW(name, TO, convert)                                                                \
    static void __attribute__((noinline)) FN(name)(SIGNATURE)                        \
    {                                                                                            \
        const svbool_t all = svptrue_b64();                                                      \
        const double *restrict x = from1;                                                      \
        TO *restrict y = to;                                                                 \
        for (; iterations; iterations--, x += UNROLLED * svcntd(), y += UNROLLED * svcntd()) {   \
            __auto_type low = convert(svld1_vnum(all, x, 0));                                    \
            __auto_type high = convert(svld1_vnum(all, x, 1));                                   \
            svst1_vnum(svptrue_b32(), y, 0, svuzp1(low, high));                                  \
            low = convert(svld1_vnum(all, x, 2));                                                \
            high = convert(svld1_vnum(all, x, 3));                                               \
            svst1_vnum(svptrue_b32(), y, 1, svuzp1(low, high));                                  \
        }                                                                                        \
    }
#define TO_SINGLE_VECTOR(x) svcvt_f32_x(all, x)
#define TO_INT_VECTOR(x) svcvt_s32_x(all, x)
#define TO_NEAREST_VECTOR(x) svcvt_s32_x(all, svrinta_x(all, x))
NARROW(single_plain, float, TO_SINGLE_VECTOR)
NARROW(int_plain, int32_t, TO_INT_VECTOR)
NARROW(nint_plain, int32_t, TO_NEAREST_VECTOR)

loop *const *const loops_f64[OPERATIONS] = {COMMON_ROWS, PLAIN_ROWS, FUNCTION_ROWS, [TO_SINGLE] = PLAIN_ROW(single),
                                            [TO_INT] = PLAIN_ROW(int), [TO_NINT] = PLAIN_ROW(nint)};

#undef T
#undef V
#undef V2
#undef I
#undef INDEX
#undef COUNT
#undef FN
#define T float
#define V svfloat32_t
#define V2 svfloat32x2_t
#define I svint32_t
#define INDEX int32_t
#define COUNT svcntw
#define FN(name) name##_f32
static inline V FN(dup)(T x) { return svdup_f32(x); }
static inline I FN(lanes)(uint64_t stride) { return svindex_s32(0, (int32_t)stride); }
static inline svint32_t FN(bits)(V x) { return svreinterpret_s32(x); }
static inline V FN(of_bits)(svint32_t x) { return svreinterpret_f32(x); }
static inline V FN(of_integer)(svbool_t all, svint32_t x) { return svcvt_f32_x(all, x); }
static inline V FN(power_of_two)(V x) { return svexpa(svreinterpret_u32(x)); }
static inline svuint32_t FN(quadrant)(svbool_t all, V q, int shift)
{
    return svreinterpret_u32(svadd_x(all, svcvt_s32_x(all, q), shift));
}
WITH_SIGN(V, svreinterpret_f32, svreinterpret_u32, 1)
REST(V)
RECIPROCAL(V, 2)
ROOT(V, 2)
POLYNOMIAL(T, V)
EXPONENTIAL(T, V, 0x1.8p17 + 127, 0x1.62e430p-1, -0x1.05c610p-29)
LOGARITHM(T, V, svint32_t, 23, 0x3f3504f3, 5, 0x1.62e000p-1, 0x1.0bfbe8p-15)
TRIGONOMETRIC(T, V, 0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50)
ARCTANGENT(T, V, 8)
#include "family_loops.inc"
PLAIN_LOOPS
FUNCTION_LOOPS
PLAIN_LOOP(int, true, svreinterpret_f32(svcvt_s32_x(all, a)))
PLAIN_LOOP(nint, true, svreinterpret_f32(svcvt_s32_x(all, svrinta_x(all, a))))

/* A load puts each number into the low half of an element of 8 bytes. */
static void __attribute__((noinline)) double_plain_f32(SIGNATURE)
{
    const svbool_t all = svptrue_b64();
    const uint32_t *restrict x = from1;
    double *restrict y = to;
    for (; iterations; iterations--)
        _Pragma("GCC unroll 4") for (unsigned vector = 0; vector < UNROLLED; vector++, x += svcntw(), y += svcntw())
        {
            svuint64_t low = svld1uw_vnum_u64(all, x, 0), high = svld1uw_vnum_u64(all, x, 1);
            svst1_vnum(all, y, 0, svcvt_f64_x(all, svreinterpret_f32(low)));
            svst1_vnum(all, y, 1, svcvt_f64_x(all, svreinterpret_f32(high)));
        }
}

loop *const *const loops_f32[OPERATIONS] = {COMMON_ROWS, PLAIN_ROWS, FUNCTION_ROWS, [TO_DOUBLE] = PLAIN_ROW(double),
                                            [TO_INT] = PLAIN_ROW(int), [TO_NINT] = PLAIN_ROW(nint)};

/* Gathers and scatters are for elements of 4 and 8 bytes, and there are no instructions for functions of half precision. */
#undef T
#undef V
#undef V2
#undef I
#undef INDEX
#undef COUNT
#undef FN
#define T __fp16
#define V svfloat16_t
#define V2 svfloat16x2_t
#define I svint16_t
#define COUNT svcnth
#define FN(name) name##_f16
static inline V FN(dup)(T x) { return svdup_f16(x); }
static inline I FN(lanes)(uint64_t stride) { return svdup_s16((int16_t)stride); }
WITH_SIGN(V, svreinterpret_f16, svreinterpret_u16, 1)
REST(V)
RECIPROCAL(V, 1)
ROOT(V, 1)
#include "family_loops.inc"
PLAIN_LOOPS
loop *const *const loops_f16[OPERATIONS] = {COMMON_ROWS, PLAIN_ROWS};
