//! Operations on whole vector registers.
//!
//! `active` is an SVE predicate: an element is active if the bit of its lowest byte is set; other bits are ignored. Bits beyond
//! the vector length must be clear ([`all`] for an unpredicated operation). Inactive elements set no flags. **Their results, and
//! the bytes beyond the vector length, are unspecified**: merging and zeroing are up to the caller.

use super::{Float, FpEnv};
use crate::cpu::Vreg;

/// Returns the predicate of an operation on all elements of the lowest `bytes` bytes (16 for AdvSIMD, 8 for its 64-bit forms, the
/// vector length for SVE).
#[inline(always)]
#[must_use]
pub const fn all(bytes: usize) -> u64 {
    u64::MAX >> (64 - bytes)
}

/// Returns the indices of the active elements.
#[inline(always)]
fn elements<F: Float>(active: u64) -> impl Iterator<Item = usize> {
    const LOWEST_BYTE: [u64; 3] = [0x5555_5555_5555_5555, 0x1111_1111_1111_1111, 0x0101_0101_0101_0101];
    let mut rest = active & LOWEST_BYTE[F::BITS.ilog2() as usize - 4];
    std::iter::from_fn(move || {
        let byte = rest.trailing_zeros() as usize;
        rest &= rest.wrapping_sub(1);
        (byte < 64).then_some(byte / size_of::<F>())
    })
}

/// `f` of each active element.
#[inline(always)]
#[must_use]
pub fn unary<F: Float>(env: &mut FpEnv, a: &Vreg, active: u64, f: impl Fn(&mut FpEnv, F) -> F) -> Vreg {
    let mut result = Vreg::ZERO;
    for i in elements::<F>(active) {
        result.lanes_mut::<F>()[i] = f(env, a.lanes()[i]);
    }
    result
}

/// `f` of each pair of active elements.
#[inline(always)]
#[must_use]
pub fn binary<F: Float>(env: &mut FpEnv, a: &Vreg, b: &Vreg, active: u64, f: impl Fn(&mut FpEnv, F, F) -> F) -> Vreg {
    let mut result = Vreg::ZERO;
    for i in elements::<F>(active) {
        result.lanes_mut::<F>()[i] = f(env, a.lanes()[i], b.lanes()[i]);
    }
    result
}

/// Returns which active elements satisfy `f`, as a predicate (bit of the lowest byte of the element).
#[inline(always)]
#[must_use]
pub fn test<F: Float>(env: &mut FpEnv, a: &Vreg, b: &Vreg, active: u64, f: impl Fn(&mut FpEnv, F, F) -> bool) -> u64 {
    let mut result = 0;
    for i in elements::<F>(active) {
        result |= u64::from(f(env, a.lanes()[i], b.lanes()[i])) << (i * size_of::<F>());
    }
    result
}

/// −a in every element; no flags.
#[inline(always)]
#[must_use]
pub fn neg<F: Float>(a: &Vreg) -> Vreg {
    let mut result = *a;
    result.lanes_mut::<F>().iter_mut().for_each(|x| *x = super::neg(*x));
    result
}

/// |a| in every element; no flags.
#[inline(always)]
#[must_use]
pub fn abs<F: Float>(a: &Vreg) -> Vreg {
    let mut result = *a;
    result.lanes_mut::<F>().iter_mut().for_each(|x| *x = super::abs(*x));
    result
}

pub use super::ops::predicates::*;
pub use super::ops::vectors::*;

/// a + i × b (`rotation` 1: 90°) or a − i × b (3: 270°) for pairs of a real and an imaginary part (FCADD).
#[inline(always)]
#[must_use]
pub fn complex_add<F: Float>(env: &mut FpEnv, a: &Vreg, b: &Vreg, rotation: u8, active: u64) -> Vreg {
    let mut turned = Vreg::ZERO;
    for (t, b) in turned.lanes_mut::<F>().chunks_exact_mut(2).zip(b.lanes::<F>().chunks_exact(2)) {
        (t[0], t[1]) = if rotation == 1 { (super::neg(b[1]), b[0]) } else { (b[1], super::neg(b[0])) };
    }
    add::<F>(env, a, &turned, active)
}

/// Computes the part of addend + a × b, rotated by `rotation` × 90°, that has one part of each element of `a` as a factor: the
/// real part for rotations 0 and 2, the imaginary part for 1 and 3 (FCMLA).
#[inline(always)]
#[must_use]
pub fn complex_mul_add<F: Float>(
    env: &mut FpEnv,
    addend: &Vreg,
    a: &Vreg,
    b: &Vreg,
    rotation: u8,
    active: u64,
) -> Vreg {
    let (mut factor, mut turned) = (Vreg::ZERO, Vreg::ZERO);
    for (f, a) in factor.lanes_mut::<F>().chunks_exact_mut(2).zip(a.lanes::<F>().chunks_exact(2)) {
        f.fill(a[usize::from(rotation & 1)]);
    }
    for (t, b) in turned.lanes_mut::<F>().chunks_exact_mut(2).zip(b.lanes::<F>().chunks_exact(2)) {
        (t[0], t[1]) = match rotation {
            0 => (b[0], b[1]),
            1 => (super::neg(b[1]), b[0]),
            2 => (super::neg(b[0]), super::neg(b[1])),
            _ => (b[1], super::neg(b[0])),
        };
    }
    mul_add::<F>(env, addend, &factor, &turned, active)
}
