/* Operands of the kernel family, and what its operations must yield: numbers that every type has exactly, so that results are exact but
 * for functions and estimates. */
#include "family.h"

unsigned source_bytes(enum type type)
{
    static const unsigned char bytes[] = {8, 4, 2, 8, 4, 2, 1};
    return bytes[type];
}

unsigned result_bytes(enum type type, enum operation op)
{
    return op == TO_DOUBLE ? 8 : op == TO_SINGLE || op == TO_INT || op == TO_NINT ? 4 : source_bytes(type);
}

static enum type result_type(enum type type, enum operation op)
{
    return op == TO_DOUBLE ? F64 : op == TO_SINGLE ? F32 : op == TO_INT || op == TO_NINT ? I32 : type;
}

static bool is_integer(enum type type)
{
    return type >= I64;
}

/* Element i of x1 (`which` is 0) or x2: small positive numbers; for functions sixteenths and quarters; for rounding and signs
 * negative ones, too. */
static double operand(enum type type, enum operation op, unsigned which, uint64_t i)
{
    double first = (double)(i % 61 + 1), second = (double)(i % 13 + 1);
    if (op >= EXP)
        return which ? second / 4 : first / 16;
    if (op == AINT || op == ANINT || op == TO_INT || op == TO_NINT)
        return (first - 30) * 0.75;
    if (op == ABS || op == TO_DOUBLE || op == TO_SINGLE)
        return first - 30;
    if (op == SIGN && which)
        return second - 6.5 + (is_integer(type) ? 0.5 : 0);
    return which ? second : first;
}

static void put_value(void *array, enum type type, uint64_t at, double value)
{
    switch (type) {
    case F64: ((double *)array)[at] = value; break;
    case F32: ((float *)array)[at] = (float)value; break;
    case F16: ((__fp16 *)array)[at] = (__fp16)value; break;
    case I64: ((int64_t *)array)[at] = (int64_t)value; break;
    case I32: ((int32_t *)array)[at] = (int32_t)value; break;
    case I16: ((int16_t *)array)[at] = (int16_t)value; break;
    default: ((int8_t *)array)[at] = (int8_t)(int64_t)value;
    }
}

static double value_at(const void *array, enum type type, uint64_t at)
{
    switch (type) {
    case F64: return ((const double *)array)[at];
    case F32: return ((const float *)array)[at];
    case F16: return ((const __fp16 *)array)[at];
    case I64: return (double)((const int64_t *)array)[at];
    case I32: return ((const int32_t *)array)[at];
    case I16: return ((const int16_t *)array)[at];
    default: return ((const int8_t *)array)[at];
    }
}

void put_element(void *array, enum type type, enum operation op, unsigned which, uint64_t at, uint64_t i)
{
    put_value(array, type, at, operand(type, op, which, i));
}

/* e^x as (e^(x/256))^256. */
static double reference_exp(double x)
{
    double r = x / 256, sum = 1;
    for (unsigned k = 12; k; k--)
        sum = 1 + sum * r / k;
    for (unsigned k = 0; k < 8; k++)
        sum *= sum;
    return sum;
}

/* Newton's method for e^y = x. */
static double reference_log(double x)
{
    double y = 0;
    for (unsigned k = 0; k < 12; k++) {
        double power = reference_exp(y);
        y += 2 * (x - power) / (x + power);
    }
    return y;
}

/* The series from x^first / first!, with alternating signs. */
static double reference_wave(double x, unsigned first)
{
    double term = first ? x : 1, sum = 0;
    for (unsigned k = first; k < 40; k += 2) {
        sum += term;
        term *= -x * x / ((k + 1) * (k + 2));
    }
    return sum;
}

/* Halves the angle three times, then the series. */
static double reference_atan(double x)
{
    double t = x, power, sum = 0;
    for (unsigned k = 0; k < 3; k++)
        t /= 1 + __builtin_sqrt(1 + t * t);
    power = t;
    for (unsigned k = 1; k < 60; k += 2) {
        sum += power / k;
        power *= -t * t;
    }
    return 8 * sum;
}

static double rounded(double x)
{
    return x < 0 ? -(double)(int64_t)(0.5 - x) : (double)(int64_t)(x + 0.5);
}

static double function(enum operation op, double a, double b)
{
    switch (op) {
    case RECIP: return 1 / a;
    case SQRT: case SQRT_SERIES: return __builtin_sqrt(a);
    case EXP: return reference_exp(a);
    case LOG: return reference_log(a);
    case SIN: return reference_wave(a, 1);
    case COS: return reference_wave(a, 0);
    case ATAN: return reference_atan(a);
    default: return reference_exp(b * reference_log(a));
    }
}

static double expected(enum type type, enum operation op, uint64_t i)
{
    double a = operand(type, op, 0, i), b = operand(type, op, 1, i), whole = (double)(int64_t)(a / b);
    switch (op) {
    case LOAD: return 0;
    case STORE: return FACTOR;
    case COPY: case TO_DOUBLE: case TO_SINGLE: return a;
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case FMA: return a + FACTOR * b;
    case MAX: return a > b ? a : b;
    case MIN: return a < b ? a : b;
    case ABS: return a < 0 ? -a : a;
    case SIGN: return b < 0 ? -a : a;
    case DIV: return is_integer(type) ? whole : a / b;
    case MOD: return a - whole * b;
    case AINT: case TO_INT: return (double)(int64_t)a;
    case ANINT: case TO_NINT: return rounded(a);
    default: return function(op, a, b);
    }
}

/* Relative (below 1 absolute) difference that is allowed: of one rounding, of estimates and series, of the references. */
static double tolerance(enum type type, enum operation op)
{
    bool exact = op < DIV || op == MOD || (op >= AINT && op <= TO_NINT) || is_integer(type);
    return exact ? 0 : type == F16 ? 4e-3 : type == F32 ? 4e-6 : 1e-12;
}

bool is_result(const void *y, enum type type, enum operation op, uint64_t at, uint64_t i)
{
    enum type to = result_type(type, op);
    double result = value_at(y, to, at), wanted = expected(type, op, i), size = wanted < 0 ? -wanted : wanted;
    /* Integers of a byte wrap around. */
    if (to == I8)
        wanted = (int8_t)(int64_t)wanted;
    double difference = result > wanted ? result - wanted : wanted - result;
    return difference <= tolerance(type, op) * (size > 1 ? size : 1);
}
