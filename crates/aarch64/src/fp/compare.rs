//! Comparisons, maximum and minimum.

use std::cmp::Ordering;

use super::arith::{abs, neg};
use super::env::FpEnv;
use super::format::{Float, Kind, Unpacked, propagate, unpack};
use crate::cpu::Nzcv;

/// Returns the order of two numbers, or `None` when one of them is a NaN. Sets IOC for a signalling NaN, and with `signal_all`
/// for any NaN.
#[inline]
fn order<F: Float>(env: &mut FpEnv, a: F, b: F, signal_all: bool) -> Option<Ordering> {
    if is_ordinary(a) && is_ordinary(b) {
        return Some(value(a).cmp(&value(b)));
    }
    let (ua, ub) = env.counted(|env| (unpack(env, a), unpack(env, b)));
    if ua.is_nan() || ub.is_nan() {
        if signal_all || ua.kind == Kind::SignallingNan || ub.kind == Kind::SignallingNan {
            env.raise(FpEnv::IOC);
        }
        return None;
    }
    // Flushed numbers are zeros here.
    let flushed = |u: &Unpacked, x: F| if u.kind == Kind::Zero { 0 } else { value(x) };
    Some(flushed(&ua, a).cmp(&flushed(&ub, b)))
}

/// Returns whether `x` is neither a NaN nor a denormal number, so that only its value matters.
#[inline(always)]
fn is_ordinary<F: Float>(x: F) -> bool {
    let magnitude = x.magnitude();
    magnitude == 0 || (1 << F::FRACTION..=F::INFINITY).contains(&magnitude)
}

/// Returns an integer that has the same order as the numbers' values, made from the magnitude bits.
#[inline(always)]
fn value<F: Float>(x: F) -> i64 {
    let magnitude = x.magnitude() as i64;
    if x.sign() { -magnitude } else { magnitude }
}

/// Returns the flags of a comparison: FCMP, or with `signal_all` FCMPE.
#[inline]
#[must_use]
pub fn compare<F: Float>(env: &mut FpEnv, a: F, b: F, signal_all: bool) -> Nzcv {
    match order(env, a, b, signal_all) {
        None => 0b0011,
        Some(Ordering::Equal) => 0b0110,
        Some(Ordering::Less) => 0b1000,
        Some(Ordering::Greater) => 0b0010,
    }
}

/// a = b; quiet.
#[inline]
#[must_use]
pub fn eq<F: Float>(env: &mut FpEnv, a: F, b: F) -> bool {
    order(env, a, b, false) == Some(Ordering::Equal)
}

/// a ≥ b; every NaN signals.
#[inline]
#[must_use]
pub fn ge<F: Float>(env: &mut FpEnv, a: F, b: F) -> bool {
    matches!(order(env, a, b, true), Some(Ordering::Greater | Ordering::Equal))
}

/// a > b; every NaN signals.
#[inline]
#[must_use]
pub fn gt<F: Float>(env: &mut FpEnv, a: F, b: F) -> bool {
    order(env, a, b, true) == Some(Ordering::Greater)
}

/// Returns whether a or b is a NaN (SVE FCMUO); quiet.
#[inline]
#[must_use]
pub fn unordered<F: Float>(env: &mut FpEnv, a: F, b: F) -> bool {
    order(env, a, b, false).is_none()
}

/// |a| ≥ |b| (FACGE); every NaN signals.
#[inline]
#[must_use]
pub fn abs_ge<F: Float>(env: &mut FpEnv, a: F, b: F) -> bool {
    ge(env, abs(a), abs(b))
}

/// |a| > |b| (FACGT); every NaN signals.
#[inline]
#[must_use]
pub fn abs_gt<F: Float>(env: &mut FpEnv, a: F, b: F) -> bool {
    gt(env, abs(a), abs(b))
}

/// Returns the larger of two numbers, +0 being larger than −0; a NaN operand is the result.
#[inline]
#[must_use]
pub(super) fn max<F: Float>(env: &mut FpEnv, a: F, b: F) -> F {
    let (ua, ub) = (unpack(env, a), unpack(env, b));
    if let Some(nan) = propagate(env, [(a, ua), (b, ub)]) {
        return nan;
    }
    // A flushed denormal is compared as zero.
    let flushed = |u: &Unpacked, x: F| if u.is_zero() { F::zero(u.sign) } else { x };
    let (a, b) = (flushed(&ua, a), flushed(&ub, b));
    if total_order(a) > total_order(b) { a } else { b }
}

/// Returns the smaller of two numbers, −0 being smaller than +0; a NaN operand is the result.
#[inline]
#[must_use]
pub(super) fn min<F: Float>(env: &mut FpEnv, a: F, b: F) -> F {
    let (ua, ub) = (unpack(env, a), unpack(env, b));
    match propagate(env, [(a, ua), (b, ub)]) {
        Some(nan) => nan,
        None => neg(max(env, neg(a), neg(b))),
    }
}

/// Returns the larger of two numbers; a quiet NaN loses against a number.
#[inline]
#[must_use]
pub(super) fn maxnm<F: Float>(env: &mut FpEnv, a: F, b: F) -> F {
    let (a, b) = numbers(a, b, F::infinity(true));
    max(env, a, b)
}

/// Returns the smaller of two numbers; a quiet NaN loses against a number.
#[inline]
#[must_use]
pub(super) fn minnm<F: Float>(env: &mut FpEnv, a: F, b: F) -> F {
    let (a, b) = numbers(a, b, F::infinity(false));
    min(env, a, b)
}

/// Replaces a single quiet NaN by `loser`.
fn numbers<F: Float>(a: F, b: F, loser: F) -> (F, F) {
    let quiet = |x: F| x.is_nan() && x.to_u64() & F::QUIET != 0;
    match (quiet(a), quiet(b)) {
        (true, false) => (loser, b),
        (false, true) => (a, loser),
        _ => (a, b),
    }
}

/// Returns an integer with the order of the architecture's maximum: −0 below +0.
fn total_order<F: Float>(a: F) -> i64 {
    let magnitude = a.magnitude() as i64;
    if a.sign() { !magnitude } else { magnitude }
}
