//! Reciprocal estimates and the steps of the iterations that refine them.

use super::arith::{fused, neg};
use super::env::FpEnv;
use super::format::{Float, Kind, Unpacked, invalid, overflow, propagate, quiet_nan, unpack};

/// Returns an estimate of 1 / a with eight significant bits (FRECPE).
#[must_use]
pub fn recip_estimate<F: Float>(env: &mut FpEnv, a: F) -> F {
    let u = unpack(env, a);
    match u.kind {
        Kind::QuietNan | Kind::SignallingNan => return quiet_nan(env, a),
        Kind::Infinity => return F::zero(u.sign),
        Kind::Zero => {
            env.raise(FpEnv::DZC);
            return F::infinity(u.sign);
        }
        Kind::Finite => {}
    }
    if u.exp < -F::BIAS - 1 {
        env.raise(FpEnv::OFC | FpEnv::IXC);
        return overflow(u.sign, env.rounding());
    }
    if env.flushes::<F>() && u.exp >= F::BIAS - 1 {
        env.raise(FpEnv::UFC);
        return F::zero(u.sign);
    }
    // Only the first nine bits of the significand are used.
    let estimate = u64::from(reciprocal((u.sig >> 55) as u32));
    let fraction = estimate << (F::FRACTION - 8) & F::FRACTION_MASK;
    let magnitude = match F::BIAS - 1 - u.exp {
        0 => (fraction | 1 << F::FRACTION) >> 1,
        -1 => (fraction | 1 << F::FRACTION) >> 2,
        biased => (biased as u64) << F::FRACTION | fraction,
    };
    F::with_sign(u.sign, magnitude)
}

/// Returns an estimate of 1 / √a with eight significant bits (FRSQRTE).
#[must_use]
pub fn rsqrt_estimate<F: Float>(env: &mut FpEnv, a: F) -> F {
    let u = unpack(env, a);
    match u.kind {
        Kind::QuietNan | Kind::SignallingNan => return quiet_nan(env, a),
        Kind::Zero => {
            env.raise(FpEnv::DZC);
            return F::infinity(u.sign);
        }
        _ if u.sign => return invalid(env),
        Kind::Infinity => return F::zero(false),
        Kind::Finite => {}
    }
    // The significand, leaving an even power of two, as 128–511 in units of 2^−8 or 2^−9.
    let scaled = if u.exp & 1 != 0 { (u.sig >> 55) as u32 } else { (u.sig >> 56) as u32 };
    let estimate = u64::from(reciprocal_square_root(scaled));
    let exp = (-1 - u.exp).div_euclid(2);
    F::from_u64(((exp + F::BIAS) as u64) << F::FRACTION | estimate << (F::FRACTION - 8) & F::FRACTION_MASK)
}

/// Returns an estimate of 2^31 / a for fractions of at least one half, in units of 2^−32 (URECPE); all ones below.
#[must_use]
pub fn recip_estimate_unsigned(a: u32) -> u32 {
    if a >> 31 == 0 { u32::MAX } else { reciprocal(a >> 23) << 23 }
}

/// Returns an estimate of 1 / (2 √a) for fractions of at least one quarter, in units of 2^−32 (URSQRTE); all ones
/// below.
#[must_use]
pub fn rsqrt_estimate_unsigned(a: u32) -> u32 {
    if a >> 30 == 0 { u32::MAX } else { reciprocal_square_root(a >> 23) << 23 }
}

/// RecipEstimate: the reciprocal of 256–511 as 256–511.
fn reciprocal(scaled: u32) -> u32 {
    ((1 << 19) / (scaled * 2 + 1)).div_ceil(2)
}

/// RecipSqrtEstimate: the reciprocal square root of 128–511 as 256–511.
fn reciprocal_square_root(scaled: u32) -> u32 {
    let a = if scaled < 256 { scaled * 2 + 1 } else { ((scaled & !1) + 1) * 2 };
    // The largest b with a × b² < 2^28.
    let b = ((1u32 << 28) - 1) / a;
    b.isqrt().div_ceil(2)
}

/// 2 − a × b, rounded once (FRECPS).
#[must_use]
pub(super) fn recip_step<F: Float>(env: &mut FpEnv, a: F, b: F) -> F {
    step(env, a, b, F::power_of_two(false, 1), 0)
}

/// (3 − a × b) / 2, rounded once (FRSQRTS).
#[must_use]
pub(super) fn rsqrt_step<F: Float>(env: &mut FpEnv, a: F, b: F) -> F {
    let three = F::from_u64(F::power_of_two(false, 1).to_u64() | F::QUIET);
    step(env, a, b, three, -1)
}

/// (c − a × b) × 2^`scale`.
fn step<F: Float>(env: &mut FpEnv, a: F, b: F, c: F, scale: i32) -> F {
    let a = neg(a);
    let (ua, ub) = (unpack(env, a), unpack(env, b));
    if let Some(nan) = propagate(env, [(a, ua), (b, ub)]) {
        return nan;
    }
    let uc = unpack(env, c);
    if ua.is_infinite() && ub.is_zero() || ua.is_zero() && ub.is_infinite() {
        // The product counts as zero.
        let zero = Unpacked { kind: Kind::Zero, sign: false, exp: 0, sig: 0 };
        return fused(env, uc, zero, zero, scale);
    }
    fused(env, uc, ua, ub, scale)
}

/// Returns the reciprocal of a's power of two, with an inverted exponent field (FRECPX).
#[must_use]
pub fn recipx<F: Float>(env: &mut FpEnv, a: F) -> F {
    if unpack(env, a).is_nan() {
        return quiet_nan(env, a);
    }
    let biased = a.magnitude() >> F::FRACTION;
    let exponent = if biased == 0 { F::MAX_BIASED - 1 } else { biased ^ F::MAX_BIASED };
    F::with_sign(a.sign(), exponent << F::FRACTION)
}
