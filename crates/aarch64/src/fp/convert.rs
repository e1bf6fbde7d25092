//! Rounding to integers and conversions.

use super::env::{FpEnv, Rounding};
use super::format::{
    Float, Kind, Unpacked, quiet_nan, round, round_alternative, shift_right_sticky, unpack, unpack_alternative,
};

/// An integer type that conversions produce or take.
pub trait Integer: Copy {
    /// Smallest value.
    const MIN: i128;
    /// Largest value.
    const MAX: i128;
    /// `value`, which must be between `MIN` and `MAX`.
    fn from_i128(value: i128) -> Self;
    /// Returns the value.
    fn to_i128(self) -> i128;
    /// Returns the lowest bits of `bits`.
    fn from_bits(bits: u64) -> Self;
    /// Returns the bit pattern, zero-extended.
    fn to_bits(self) -> u64;
}

macro_rules! integer {
    ($($t:ty as $bits:ty),*) => {$(
        impl Integer for $t {
            const MIN: i128 = <$t>::MIN as i128;
            const MAX: i128 = <$t>::MAX as i128;
            #[inline(always)]
            fn from_i128(value: i128) -> $t {
                value as $t
            }
            #[inline(always)]
            fn to_i128(self) -> i128 {
                i128::from(self)
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> $t {
                bits as $t
            }
            #[inline(always)]
            fn to_bits(self) -> u64 {
                u64::from(self as $bits)
            }
        }
    )*};
}
integer!(i16 as u16, u16 as u16, i32 as u32, u32 as u32, i64 as u64, u64 as u64);

/// Returns the integer next to a finite number times 2^`fbits`, and whether it differs from it. Magnitudes of 2^100 and more give
/// some equally large integer.
fn nearest(u: &Unpacked, fbits: u32, rounding: Rounding) -> (i128, bool) {
    // Two bits below the point: a half, and whether anything is below it.
    let exp = u.exp + fbits as i32;
    let quarters = match exp - 61 {
        shift @ 0.. => u128::from(u.sig) << shift.min(60),
        shift => shift_right_sticky(u128::from(u.sig), shift.unsigned_abs()),
    };
    let (whole, rest) = ((quarters >> 2) as i128, quarters & 3);
    let up = match rounding {
        Rounding::TiesEven => rest == 3 || rest == 2 && whole & 1 == 1,
        Rounding::TiesAway => rest >= 2,
        Rounding::Plus => rest != 0 && !u.sign,
        Rounding::Minus => rest != 0 && u.sign,
        Rounding::Odd => rest != 0 && whole & 1 == 0,
        Rounding::Zero => false,
    };
    let whole = whole + i128::from(up);
    (if u.sign { -whole } else { whole }, rest != 0)
}

/// Rounds a to an integral number (FRINT*). With `exact` (FRINTX), IXC is set when the result differs from a.
#[must_use]
pub fn round_to_int<F: Float>(env: &mut FpEnv, a: F, rounding: Rounding, exact: bool) -> F {
    let u = unpack(env, a);
    match u.kind {
        Kind::QuietNan | Kind::SignallingNan => quiet_nan(env, a),
        Kind::Infinity => a,
        Kind::Zero => F::zero(u.sign),
        // A number without bits below the point is its own result.
        Kind::Finite if u.exp >= F::FRACTION as i32 => a,
        Kind::Finite => {
            let (value, inexact) = nearest(&u, 0, rounding);
            if inexact && exact {
                env.raise(FpEnv::IXC);
            }
            if value == 0 {
                F::zero(u.sign)
            } else {
                from_magnitude(env, u.sign, value.unsigned_abs(), 0, Rounding::Zero)
            }
        }
    }
}

/// a × 2^`fbits` as an integer: saturating with IOC when it does not fit, 0 with IOC for a NaN.
#[must_use]
pub fn to_int<F: Float, I: Integer>(env: &mut FpEnv, a: F, fbits: u32, rounding: Rounding) -> I {
    let u = unpack(env, a);
    let (value, inexact) = match u.kind {
        Kind::QuietNan | Kind::SignallingNan => {
            env.raise(FpEnv::IOC);
            (0, false)
        }
        Kind::Zero => (0, false),
        Kind::Infinity => (if u.sign { i128::MIN } else { i128::MAX }, false),
        Kind::Finite => nearest(&u, fbits, rounding),
    };
    let fitting = value.clamp(I::MIN, I::MAX);
    if fitting != value {
        env.raise(FpEnv::IOC);
    } else if inexact {
        env.raise(FpEnv::IXC);
    }
    I::from_i128(fitting)
}

/// `value` × 2^−`fbits` as a floating-point number.
#[must_use]
pub fn from_int<F: Float, I: Integer>(env: &mut FpEnv, value: I, fbits: u32, rounding: Rounding) -> F {
    let value = value.to_i128();
    if value == 0 {
        return F::zero(false);
    }
    from_magnitude(env, value < 0, value.unsigned_abs(), fbits, rounding)
}

/// ±`magnitude` × 2^−`fbits`; the magnitude is below 2^64 and not zero.
#[inline]
fn from_magnitude<F: Float>(env: &mut FpEnv, sign: bool, magnitude: u128, fbits: u32, rounding: Rounding) -> F {
    let sig = magnitude as u64;
    let shift = sig.leading_zeros();
    let (normalised, exponent) = (sig << shift, 63 - shift as i32 - fbits as i32);
    let fits = normalised << (F::FRACTION + 1) == 0;
    if fits && (1 - F::BIAS..=F::BIAS).contains(&exponent) {
        let fraction = (normalised << 1) >> (64 - F::FRACTION);
        return F::with_sign(sign, ((exponent + F::BIAS) as u64) << F::FRACTION | fraction);
    }
    round(env, sign, exponent, normalised, rounding)
}

/// Converts a to another format, rounded as FPCR specifies.
#[inline]
#[must_use]
pub fn convert<S: Float, D: Float>(env: &mut FpEnv, a: S) -> D {
    let rounding = env.rounding();
    convert_rounded(env, a, rounding)
}

/// Converts a to another format with the given rounding. FPCR.AHP selects the alternative half-precision format; FPCR.FZ16 does
/// not apply to conversions.
#[must_use]
pub fn convert_rounded<S: Float, D: Float>(env: &mut FpEnv, a: S, rounding: Rounding) -> D {
    let mut conversion = env.for_conversion();
    let result = conversion.counted(|env| convert_unflushed(env, a, rounding));
    (env.fpsr, env.denormals) = (conversion.fpsr, conversion.denormals);
    result
}

fn convert_unflushed<S: Float, D: Float>(env: &mut FpEnv, a: S, rounding: Rounding) -> D {
    let alternative = env.control(FpEnv::AHP);
    let u = if S::BITS == 16 && alternative { unpack_alternative(a.to_u64() as u16) } else { unpack(env, a) };
    let to_alternative = D::BITS == 16 && alternative;
    match u.kind {
        Kind::QuietNan | Kind::SignallingNan if to_alternative => {
            env.raise(FpEnv::IOC);
            D::zero(u.sign)
        }
        Kind::QuietNan | Kind::SignallingNan => {
            let nan = quiet_nan(env, a);
            // The top of the fraction is kept.
            let fraction = (nan.to_u64() & S::FRACTION_MASK) << (64 - S::FRACTION) >> (64 - D::FRACTION);
            D::with_sign(nan.sign(), D::INFINITY | fraction)
        }
        Kind::Infinity if to_alternative => {
            env.raise(FpEnv::IOC);
            D::with_sign(u.sign, D::SIGN - 1)
        }
        Kind::Infinity => D::infinity(u.sign),
        Kind::Zero => D::zero(u.sign),
        Kind::Finite if to_alternative => D::from_u64(round_alternative(env, u.sign, u.exp, u.sig, rounding).to_u64()),
        Kind::Finite => round(env, u.sign, u.exp, u.sig, rounding),
    }
}

/// Returns the number that an eight-bit immediate of FMOV encodes (VFPExpandImm).
#[must_use]
pub fn expand_immediate<F: Float>(imm8: u8) -> F {
    let imm8 = u64::from(imm8);
    let exponent_bits = F::BITS - 1 - F::FRACTION;
    // NOT(b) : Replicate(b) : cd, where b is bit 6.
    let b = imm8 >> 6 & 1;
    let replicated = if b == 1 { (1 << (exponent_bits - 3)) - 1 } else { 0 };
    let exponent = (b ^ 1) << (exponent_bits - 1) | replicated << 2 | imm8 >> 4 & 3;
    F::with_sign(imm8 >> 7 == 1, exponent << F::FRACTION | (imm8 & 15) << (F::FRACTION - 4))
}
