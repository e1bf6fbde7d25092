//! Addition, multiplication, division, square root and their fused forms.

use super::env::{FpEnv, Rounding};
use super::format::{
    Float, Kind, Unpacked, invalid, propagate, quiet_nan, round, round_wide, shift_right_sticky, unpack,
};

/// −a: the sign bit flipped, NaNs included; no flags.
#[inline(always)]
#[must_use]
pub fn neg<F: Float>(a: F) -> F {
    F::from_u64(a.to_u64() ^ F::SIGN)
}

/// |a|: the sign bit cleared, NaNs included; no flags.
#[inline(always)]
#[must_use]
pub fn abs<F: Float>(a: F) -> F {
    F::from_u64(a.magnitude())
}

/// a + b.
#[inline]
#[must_use]
pub(super) fn add<F: Float>(env: &mut FpEnv, a: F, b: F) -> F {
    let (ua, ub) = (unpack(env, a), unpack(env, b));
    if let Some(nan) = propagate(env, [(a, ua), (b, ub)]) {
        return nan;
    }
    sum(env, ua, ub)
}

/// a − b.
#[inline]
#[must_use]
pub(super) fn sub<F: Float>(env: &mut FpEnv, a: F, b: F) -> F {
    let (ua, ub) = (unpack(env, a), unpack(env, b));
    if let Some(nan) = propagate(env, [(a, ua), (b, ub)]) {
        return nan;
    }
    sum(env, ua, Unpacked { sign: !ub.sign, ..ub })
}

/// |a − b|, the sign of a NaN cleared (FABD).
#[inline]
#[must_use]
pub(super) fn abd<F: Float>(env: &mut FpEnv, a: F, b: F) -> F {
    abs(sub(env, a, b))
}

/// a × b.
#[inline]
#[must_use]
pub(super) fn mul<F: Float>(env: &mut FpEnv, a: F, b: F) -> F {
    product(env, a, b, |env, _| invalid(env))
}

/// a × b, where zero times infinity is ±2 (FMULX).
#[inline]
#[must_use]
pub(super) fn mulx<F: Float>(env: &mut FpEnv, a: F, b: F) -> F {
    product(env, a, b, |_, sign| F::power_of_two(sign, 1))
}

/// a / b.
#[must_use]
pub(super) fn div<F: Float>(env: &mut FpEnv, a: F, b: F) -> F {
    let (ua, ub) = (unpack(env, a), unpack(env, b));
    if let Some(nan) = propagate(env, [(a, ua), (b, ub)]) {
        return nan;
    }
    let sign = ua.sign != ub.sign;
    match (ua.kind, ub.kind) {
        (Kind::Zero, Kind::Zero) | (Kind::Infinity, Kind::Infinity) => invalid(env),
        (Kind::Infinity, _) => F::infinity(sign),
        (_, Kind::Zero) => {
            env.raise(FpEnv::DZC);
            F::infinity(sign)
        }
        (Kind::Zero, _) | (_, Kind::Infinity) => F::zero(sign),
        _ => {
            let dividend = u128::from(ua.sig) << 63;
            let divisor = u128::from(ub.sig);
            let quotient = dividend / divisor;
            let sticky = u128::from(quotient * divisor != dividend);
            // The quotient has 63 or 64 bits; one more bit stands for everything below it.
            round_wide(env, sign, ua.exp - ub.exp + 63, quotient << 1 | sticky, env.rounding())
        }
    }
}

/// Returns the square root of a.
#[must_use]
pub(super) fn sqrt<F: Float>(env: &mut FpEnv, a: F) -> F {
    let ua = unpack(env, a);
    match ua.kind {
        Kind::QuietNan | Kind::SignallingNan => quiet_nan(env, a),
        Kind::Zero => F::zero(ua.sign),
        _ if ua.sign => invalid(env),
        Kind::Infinity => F::infinity(false),
        Kind::Finite => {
            // sqrt(sig × 2^(exp − 63)), leaving an even power of two; the root has bit 63 set.
            let radicand = u128::from(ua.sig) << (63 + (ua.exp & 1));
            let root = radicand.isqrt();
            let sticky = u64::from(root * root != radicand);
            round(env, false, ua.exp >> 1, root as u64 | sticky, env.rounding())
        }
    }
}

/// addend + a × b, rounded once.
#[inline]
#[must_use]
pub(super) fn mul_add<F: Float>(env: &mut FpEnv, addend: F, a: F, b: F) -> F {
    let (uc, ua, ub) = (unpack(env, addend), unpack(env, a), unpack(env, b));
    let no_product = ua.is_infinite() && ub.is_zero() || ua.is_zero() && ub.is_infinite();
    if no_product && uc.kind != Kind::SignallingNan {
        // This applies even if the addend is a quiet NaN.
        return invalid(env);
    }
    if let Some(nan) = propagate(env, [(addend, uc), (a, ua), (b, ub)]) {
        return nan;
    }
    fused(env, uc, ua, ub, 0)
}

/// a × 2^`exponent`, rounded once (FSCALE).
#[must_use]
pub fn scale<F: Float>(env: &mut FpEnv, a: F, exponent: i64) -> F {
    env.counted(|env| {
        let u = unpack(env, a);
        match u.kind {
            Kind::QuietNan | Kind::SignallingNan => quiet_nan(env, a),
            Kind::Zero => F::zero(u.sign),
            Kind::Infinity => a,
            Kind::Finite => {
                // Beyond these limits every format overflows or underflows.
                let exp = i64::from(u.exp).saturating_add(exponent).clamp(-3000, 3000) as i32;
                round(env, u.sign, exp, u.sig, env.rounding())
            }
        }
    })
}

/// (c + a × b) × 2^`scale`, rounded once; no operand is a NaN and the product is not zero times infinity.
pub(super) fn fused<F: Float>(env: &mut FpEnv, c: Unpacked, a: Unpacked, b: Unpacked, scale: i32) -> F {
    let sign = a.sign != b.sign;
    if a.is_infinite() || b.is_infinite() {
        return if c.is_infinite() && c.sign != sign { invalid(env) } else { F::infinity(sign) };
    }
    if c.is_infinite() {
        return F::infinity(c.sign);
    }
    let product = (!a.is_zero() && !b.is_zero()).then(|| {
        // Two factors in [1, 2) times 2^63 make a product in [1, 4) times 2^126.
        Term { sign, exp: a.exp + b.exp + 1, sig: u128::from(a.sig) * u128::from(b.sig) }
    });
    let addend = (!c.is_zero()).then(|| Term::of(&c));
    let total = match (addend, product) {
        (None, None) => return signed_zero(env, c.sign, sign),
        (Some(one), None) | (None, Some(one)) => one,
        (Some(x), Some(y)) => match x.plus(y) {
            Some(total) => total,
            None => return F::zero(env.rounding() == Rounding::Minus),
        },
    };
    round_wide(env, total.sign, total.exp + scale, total.sig, env.rounding())
}

/// ±`sig` × 2^(`exp` − 127), not zero.
#[derive(Clone, Copy)]
struct Term {
    sign: bool,
    exp: i32,
    sig: u128,
}

impl Term {
    fn of(u: &Unpacked) -> Term {
        Term { sign: u.sign, exp: u.exp, sig: u128::from(u.sig) << 64 }
    }

    /// Returns the sum, or `None` when it is exactly zero. Bits that do not fit are kept as a sticky lowest bit: they are lost
    /// only when one term is so much smaller that at most one leading bit cancels.
    fn plus(self, other: Term) -> Option<Term> {
        // With bit 127 clear there is room for a carry. If it is set, halving drops the lowest bit, which is zero (a product has
        // at most 106 bits, a single number at most 53).
        let (x, y) = (self.halved(), other.halved());
        let (big, small) = if (x.exp, x.sig) >= (y.exp, y.sig) { (x, y) } else { (y, x) };
        let aligned = shift_right_sticky(small.sig, (big.exp - small.exp) as u32);
        if big.sign == small.sign {
            return Some(Term { sig: big.sig + aligned, ..big });
        }
        (big.sig != aligned).then(|| Term { sig: big.sig - aligned, ..big })
    }

    /// Returns the same value with bit 126 as the highest set bit.
    fn halved(self) -> Term {
        let shift = self.sig.leading_zeros();
        Term { exp: self.exp - shift as i32 + 1, sig: self.sig << shift >> 1, ..self }
    }
}

/// a + b without NaNs.
fn sum<F: Float>(env: &mut FpEnv, a: Unpacked, b: Unpacked) -> F {
    match (a.kind, b.kind) {
        (Kind::Infinity, Kind::Infinity) if a.sign != b.sign => invalid(env),
        (Kind::Infinity, _) => F::infinity(a.sign),
        (_, Kind::Infinity) => F::infinity(b.sign),
        (Kind::Zero, Kind::Zero) => signed_zero(env, a.sign, b.sign),
        (Kind::Zero, _) => round(env, b.sign, b.exp, b.sig, env.rounding()),
        (_, Kind::Zero) => round(env, a.sign, a.exp, a.sig, env.rounding()),
        _ => match Term::of(&a).plus(Term::of(&b)) {
            Some(total) => round_wide(env, total.sign, total.exp, total.sig, env.rounding()),
            None => F::zero(env.rounding() == Rounding::Minus),
        },
    }
}

/// Returns the sum of two zeros.
fn signed_zero<F: Float>(env: &FpEnv, a: bool, b: bool) -> F {
    F::zero(if a == b { a } else { env.rounding() == Rounding::Minus })
}

/// a × b; calls `zero_times_infinity` for that case.
fn product<F: Float>(env: &mut FpEnv, a: F, b: F, zero_times_infinity: impl Fn(&mut FpEnv, bool) -> F) -> F {
    let (ua, ub) = (unpack(env, a), unpack(env, b));
    if let Some(nan) = propagate(env, [(a, ua), (b, ub)]) {
        return nan;
    }
    let sign = ua.sign != ub.sign;
    match (ua.kind, ub.kind) {
        (Kind::Infinity, Kind::Zero) | (Kind::Zero, Kind::Infinity) => zero_times_infinity(env, sign),
        (Kind::Infinity, _) | (_, Kind::Infinity) => F::infinity(sign),
        (Kind::Zero, _) | (_, Kind::Zero) => F::zero(sign),
        _ => {
            let sig = u128::from(ua.sig) * u128::from(ub.sig);
            round_wide(env, sign, ua.exp + ub.exp + 1, sig, env.rounding())
        }
    }
}
