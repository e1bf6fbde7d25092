/* The kernel family for integers. */
#include "family.h"

#define WITH_SIGN(V)                                                          \
    static inline V FN(with_sign)(svbool_t all, V magnitude, V x)             \
    {                                                                         \
        return svsel(svcmplt(all, x, 0), svneg_x(all, magnitude), magnitude); \
    }
#define QUOTIENTS                                \
    PLAIN_LOOP(div, true, svdiv_x(all, a, b))    \
    PLAIN_LOOP(mod, true, svmls_x(all, a, svdiv_x(all, a, b), b))

#define T int64_t
#define V svint64_t
#define V2 svint64x2_t
#define I svint64_t
#define INDEX int64_t
#define COUNT svcntd
#define FN(name) name##_i64
static inline V FN(dup)(T x) { return svdup_s64(x); }
static inline I FN(lanes)(uint64_t stride) { return svindex_s64(0, (int64_t)stride); }
WITH_SIGN(V)
#include "family_loops.inc"
QUOTIENTS
loop *const *const loops_i64[OPERATIONS] = {COMMON_ROWS, [DIV] = PLAIN_ROW(div), [MOD] = PLAIN_ROW(mod)};

#undef T
#undef V
#undef V2
#undef I
#undef INDEX
#undef COUNT
#undef FN
#define T int32_t
#define V svint32_t
#define V2 svint32x2_t
#define I svint32_t
#define INDEX int32_t
#define COUNT svcntw
#define FN(name) name##_i32
static inline V FN(dup)(T x) { return svdup_s32(x); }
static inline I FN(lanes)(uint64_t stride) { return svindex_s32(0, (int32_t)stride); }
WITH_SIGN(V)
#include "family_loops.inc"
QUOTIENTS
PLAIN_LOOP(single, true, svreinterpret_s32(svcvt_f32_x(all, a)))

/* Each vector of doubles is half a vector of integers, which a load widens. */
static void __attribute__((noinline)) double_plain_i32(SIGNATURE)
{
    const svbool_t all = svptrue_b64();
    const int32_t *restrict x = from1;
    double *restrict y = to;
    for (; iterations; iterations--)
        _Pragma("GCC unroll 4") for (unsigned vector = 0; vector < UNROLLED; vector++, x += svcntw(), y += svcntw())
        {
            svint64_t low = svld1sw_vnum_s64(all, x, 0), high = svld1sw_vnum_s64(all, x, 1);
            svst1_vnum(all, y, 0, svcvt_f64_x(all, low));
            svst1_vnum(all, y, 1, svcvt_f64_x(all, high));
        }
}

loop *const *const loops_i32[OPERATIONS] = {COMMON_ROWS, [DIV] = PLAIN_ROW(div), [MOD] = PLAIN_ROW(mod),
                                            [TO_DOUBLE] = PLAIN_ROW(double), [TO_SINGLE] = PLAIN_ROW(single)};

/* Gathers and scatters are for elements of 4 and 8 bytes. */
#undef T
#undef V
#undef V2
#undef I
#undef INDEX
#undef COUNT
#undef FN
#define T int16_t
#define V svint16_t
#define V2 svint16x2_t
#define I svint16_t
#define COUNT svcnth
#define FN(name) name##_i16
static inline V FN(dup)(T x) { return svdup_s16(x); }
static inline I FN(lanes)(uint64_t stride) { return svdup_s16((int16_t)stride); }
WITH_SIGN(V)
#include "family_loops.inc"
loop *const *const loops_i16[OPERATIONS] = {COMMON_ROWS};

#undef T
#undef V
#undef V2
#undef I
#undef COUNT
#undef FN
#define T int8_t
#define V svint8_t
#define V2 svint8x2_t
#define I svint8_t
#define COUNT svcntb
#define FN(name) name##_i8
static inline V FN(dup)(T x) { return svdup_s8(x); }
static inline I FN(lanes)(uint64_t stride) { return svdup_s8((int8_t)stride); }
WITH_SIGN(V)
#include "family_loops.inc"
loop *const *const loops_i8[OPERATIONS] = {COMMON_ROWS};
