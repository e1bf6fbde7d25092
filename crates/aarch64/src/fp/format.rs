//! The three formats: unpacking bit patterns, rounding, and the rules for NaNs.

use bytemuck::Pod;

use super::convert::Integer;
use super::env::{FpEnv, Rounding};
use super::host::OnHost;

/// A floating-point format, implemented by its bit pattern: `u16`, `u32` and `u64`.
pub trait Float: Pod + Eq + std::fmt::Debug + Send + Sync + OnHost {
    /// The signed integer of the same size.
    type Signed: Integer;
    /// The unsigned integer of the same size.
    type Unsigned: Integer;
    /// Bits of the format.
    const BITS: u32;
    /// Bits of the fraction.
    const FRACTION: u32;
    /// Largest biased exponent: infinities and NaNs.
    const MAX_BIASED: u64 = (1 << (Self::BITS - 1 - Self::FRACTION)) - 1;
    /// Exponent bias.
    const BIAS: i32 = (1 << (Self::BITS - 2 - Self::FRACTION)) - 1;
    /// The sign bit.
    const SIGN: u64 = 1 << (Self::BITS - 1);
    /// The fraction field.
    const FRACTION_MASK: u64 = (1 << Self::FRACTION) - 1;
    /// Bits of plus infinity.
    const INFINITY: u64 = Self::MAX_BIASED << Self::FRACTION;
    /// The bit that makes a NaN quiet.
    const QUIET: u64 = 1 << (Self::FRACTION - 1);

    /// Returns the lowest `BITS` bits of `bits`.
    fn from_u64(bits: u64) -> Self;
    /// Returns the bit pattern, zero-extended.
    fn to_u64(self) -> u64;

    /// Returns the bit pattern without its sign.
    #[inline(always)]
    fn magnitude(self) -> u64 {
        self.to_u64() & !Self::SIGN
    }
    /// Returns the sign bit.
    #[inline(always)]
    fn sign(self) -> bool {
        self.to_u64() & Self::SIGN != 0
    }
    /// Returns whether it is a NaN.
    #[inline(always)]
    fn is_nan(self) -> bool {
        self.magnitude() > Self::INFINITY
    }
    /// Magnitude bits with a sign.
    #[inline(always)]
    fn with_sign(sign: bool, magnitude: u64) -> Self {
        Self::from_u64(magnitude | if sign { Self::SIGN } else { 0 })
    }
    /// Returns the default NaN: positive, quiet, otherwise zero.
    #[inline(always)]
    fn default_nan() -> Self {
        Self::from_u64(Self::INFINITY | Self::QUIET)
    }
    /// Zero with a sign.
    #[inline(always)]
    fn zero(sign: bool) -> Self {
        Self::with_sign(sign, 0)
    }
    /// Infinity with a sign.
    #[inline(always)]
    fn infinity(sign: bool) -> Self {
        Self::with_sign(sign, Self::INFINITY)
    }
    /// ±2 to the power `exp`, which must be a normal number.
    #[inline(always)]
    fn power_of_two(sign: bool, exp: i32) -> Self {
        Self::with_sign(sign, ((exp + Self::BIAS) as u64) << Self::FRACTION)
    }
}

macro_rules! float {
    ($t:ty, $signed:ty, $fraction:literal) => {
        impl Float for $t {
            type Signed = $signed;
            type Unsigned = $t;
            const BITS: u32 = <$t>::BITS;
            const FRACTION: u32 = $fraction;
            #[inline(always)]
            fn from_u64(bits: u64) -> $t {
                bits as $t
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                u64::from(self)
            }
        }
    };
}
float!(u16, i16, 10);
float!(u32, i32, 23);
float!(u64, i64, 52);

/// What a bit pattern represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Zero,
    Finite,
    Infinity,
    QuietNan,
    SignallingNan,
}

/// An unpacked number. A finite one is ±`sig` × 2^(`exp` − 63), with bit 63 of `sig` set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unpacked {
    pub kind: Kind,
    pub sign: bool,
    pub exp: i32,
    pub sig: u64,
}

impl Unpacked {
    pub fn is_nan(&self) -> bool {
        matches!(self.kind, Kind::QuietNan | Kind::SignallingNan)
    }
    pub fn is_zero(&self) -> bool {
        self.kind == Kind::Zero
    }
    pub fn is_infinite(&self) -> bool {
        self.kind == Kind::Infinity
    }
}

/// Unpacks `a`; a denormal number becomes zero if it must be flushed (FPUnpack).
pub(super) fn unpack<F: Float>(env: &mut FpEnv, a: F) -> Unpacked {
    let sign = a.sign();
    let of_kind = |kind| Unpacked { kind, sign, exp: 0, sig: 0 };
    let fraction = a.to_u64() & F::FRACTION_MASK;
    let biased = a.magnitude() >> F::FRACTION;
    if biased == F::MAX_BIASED {
        return of_kind(match fraction {
            0 => Kind::Infinity,
            f if f & F::QUIET != 0 => Kind::QuietNan,
            _ => Kind::SignallingNan,
        });
    }
    if biased == 0 {
        if fraction == 0 {
            return of_kind(Kind::Zero);
        }
        if env.flushes::<F>() {
            // Half precision flushes silently.
            if F::BITS != 16 {
                env.raise(FpEnv::IDC);
            }
            return of_kind(Kind::Zero);
        }
        env.count_denormal();
    }
    finite::<F>(sign, biased, fraction)
}

/// Unpacks a half-precision number in the alternative format, which has no infinities and no NaNs.
pub(super) fn unpack_alternative(a: u16) -> Unpacked {
    let (biased, fraction) = (a.magnitude() >> u16::FRACTION, a.to_u64() & u16::FRACTION_MASK);
    if a.magnitude() == 0 {
        Unpacked { kind: Kind::Zero, sign: a.sign(), exp: 0, sig: 0 }
    } else {
        finite::<u16>(a.sign(), biased, fraction)
    }
}

/// Returns a non-zero number from its fields.
fn finite<F: Float>(sign: bool, biased: u64, fraction: u64) -> Unpacked {
    let sig = if biased == 0 { fraction } else { fraction | 1 << F::FRACTION };
    let exp = biased.max(1) as i32 - F::BIAS + (63 - F::FRACTION as i32);
    let shift = sig.leading_zeros();
    Unpacked { kind: Kind::Finite, sign, exp: exp - shift as i32, sig: sig << shift }
}

/// `v >> n`, with the lowest bit set when any bit was lost.
pub(super) fn shift_right_sticky(v: u128, n: u32) -> u128 {
    match n {
        0 => v,
        1..=127 => v >> n | u128::from(v << (128 - n) != 0),
        _ => u128::from(v != 0),
    }
}

/// Rounds ±`sig` × 2^(`exp` − 127) to the format (FPRound): `sig` is not zero, and its lowest bit stands for
/// everything below it.
pub(super) fn round_wide<F: Float>(env: &mut FpEnv, sign: bool, exp: i32, sig: u128, mode: Rounding) -> F {
    let shift = sig.leading_zeros();
    let sig = sig << shift;
    round(env, sign, exp - shift as i32, (sig >> 64) as u64 | u64::from(sig as u64 != 0), mode)
}

/// Rounds ±`sig` × 2^(`exp` − 63) to the format (FPRound): bit 63 of `sig` is set, and its lowest bit
/// stands for everything below it.
pub(super) fn round<F: Float>(env: &mut FpEnv, sign: bool, exp: i32, sig: u64, mode: Rounding) -> F {
    let min_exp = 1 - F::BIAS;
    if exp < min_exp && env.flushes::<F>() {
        env.raise(FpEnv::UFC);
        return F::zero(sign);
    }
    let (magnitude, inexact) = round_magnitude::<F>(env, sign, exp, sig, mode);
    if magnitude >= F::INFINITY {
        env.raise(FpEnv::OFC | FpEnv::IXC);
        return overflow(sign, mode);
    }
    if inexact {
        env.raise(FpEnv::IXC);
    }
    if (1..=F::FRACTION_MASK).contains(&magnitude) {
        env.count_denormal();
    }
    F::with_sign(sign, magnitude)
}

/// Rounds as [`round`] does, to the alternative half-precision format, which has no infinity.
pub(super) fn round_alternative(env: &mut FpEnv, sign: bool, exp: i32, sig: u64, mode: Rounding) -> u16 {
    let (magnitude, inexact) = round_magnitude::<u16>(env, sign, exp, sig, mode);
    if magnitude >= u16::SIGN {
        env.raise(FpEnv::IOC);
        return u16::with_sign(sign, u16::SIGN - 1);
    }
    if inexact {
        env.raise(FpEnv::IXC);
    }
    u16::with_sign(sign, magnitude)
}

/// Rounds to magnitude bits of the format as if its exponent had no upper limit, and returns whether the result is inexact. Sets
/// UFC when it is tiny before rounding and inexact.
fn round_magnitude<F: Float>(env: &mut FpEnv, sign: bool, exp: i32, sig: u64, mode: Rounding) -> (u64, bool) {
    let min_exp = 1 - F::BIAS;
    let tiny = exp < min_exp;
    let sig = if tiny { shift_right_sticky(u128::from(sig), (min_exp - exp) as u32) as u64 } else { sig };
    let lost_bits = 63 - F::FRACTION;
    let lost = sig << (64 - lost_bits);
    let kept = sig >> lost_bits;
    const HALF: u64 = 1 << 63;
    let up = match mode {
        Rounding::TiesEven => lost > HALF || lost == HALF && kept & 1 == 1,
        Rounding::TiesAway => lost >= HALF,
        Rounding::Plus => lost != 0 && !sign,
        Rounding::Minus => lost != 0 && sign,
        Rounding::Odd => lost != 0 && kept & 1 == 0,
        Rounding::Zero => false,
    };
    if tiny && lost != 0 {
        env.raise(FpEnv::UFC);
    }
    // `kept` includes the leading one of a normal number, which adds one to the exponent field; a carry out of the fraction does
    // the same.
    let exponent_below = if tiny { 0 } else { (exp - min_exp) as u64 };
    ((exponent_below << F::FRACTION) + kept + u64::from(up), lost != 0)
}

/// Returns the result of an overflow: infinity, or the largest number if the rounding direction is opposite.
pub(super) fn overflow<F: Float>(sign: bool, mode: Rounding) -> F {
    let to_infinity = match mode {
        Rounding::TiesEven | Rounding::TiesAway => true,
        Rounding::Plus => !sign,
        Rounding::Minus => sign,
        Rounding::Zero | Rounding::Odd => false,
    };
    F::with_sign(sign, F::INFINITY - u64::from(!to_infinity))
}

/// Returns the default NaN of an invalid operation.
#[cold]
pub(super) fn invalid<F: Float>(env: &mut FpEnv) -> F {
    env.raise(FpEnv::IOC);
    F::default_nan()
}

/// Returns the result of an operation with the NaN operand `a` (FPProcessNaN).
#[cold]
pub(super) fn quiet_nan<F: Float>(env: &mut FpEnv, a: F) -> F {
    if a.to_u64() & F::QUIET == 0 {
        env.raise(FpEnv::IOC);
    }
    if env.control(FpEnv::DN) { F::default_nan() } else { F::from_u64(a.to_u64() | F::QUIET) }
}

/// Returns the result of an operation on `operands` when one of them is a NaN (FPProcessNaNs): the first
/// signalling one, else the first quiet one.
#[inline]
pub(super) fn propagate<F: Float, const N: usize>(env: &mut FpEnv, operands: [(F, Unpacked); N]) -> Option<F> {
    let of = |kind| operands.iter().find(|(_, u)| u.kind == kind).map(|&(a, _)| a);
    of(Kind::SignallingNan).or_else(|| of(Kind::QuietNan)).map(|a| quiet_nan(env, a))
}
