//! The host's arithmetic, used where it provably gives Arm's result and no flag must be set.
//!
//! The host rounds to nearest even, never flushes, and its flags are ignored. Its result is used when FPCR.RMode is RN and all of
//! the following hold:
//!
//! * no operand is a denormal, which FPCR.FZ may flush, and which is counted otherwise (operands of vectors are not checked
//!   before the first denormal number, see [`FpEnv::denormals`]);
//! * the result is neither NaN nor infinite (which may need IOC, DZC, OFC or a certain NaN), and its magnitude is above the
//!   smallest normal number (underflow is detected before rounding, so a result that was rounded up to the smallest normal number
//!   is tiny, too), or it is an exact zero;
//! * IXC is already set, or an error-free transformation shows that the result is exact.
//!
//! Everything else is left to integer arithmetic.

use std::ops::{Add, Div, Mul, Neg, Sub};

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::arith;
use super::compare;
use super::env::FpEnv;
use super::estimate;
use super::format::Float;
use crate::cpu::Vreg;

/// Calls a function compiled for wide vectors and fused multiply-add if the processor has them (hosts other than x86-64 always
/// do); otherwise evaluates the second argument.
macro_rules! wide {
    ($call:expr, $otherwise:expr) => {{
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the features that the function is compiled for.
            #[allow(unsafe_code)]
            unsafe {
                $call
            }
        } else {
            $otherwise
        }
        #[cfg(not(target_arch = "x86_64"))]
        $call
    }};
}

/// `f32` or `f64`: the types the host computes with.
pub trait HostFloat:
    Pod
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Zero.
    const ZERO: Self;
    /// One half.
    const HALF: Self;
    /// Two.
    const TWO: Self;
    /// Three.
    const THREE: Self;
    /// Infinity.
    const INFINITY: Self;
    /// The smallest normal number.
    const MIN_NORMAL: Self;
    /// The rounding error of a product, quotient or root is representable in the format when the product or radicand is at least
    /// this large, with margin.
    const SAFE: Self;
    /// Magnitude.
    fn magnitude(self) -> Self;
    /// Square root.
    fn root(self) -> Self;
    /// self × b + c, rounded once.
    fn fused(self, b: Self, c: Self) -> Self;
    /// Returns the larger of two numbers, neither of them a NaN; +0 is larger than −0.
    fn larger(self, other: Self) -> Self;
}

macro_rules! host_float {
    ($t:ty, $safe:literal) => {
        impl HostFloat for $t {
            const ZERO: $t = 0.0;
            const HALF: $t = 0.5;
            const TWO: $t = 2.0;
            const THREE: $t = 3.0;
            const INFINITY: $t = <$t>::INFINITY;
            const MIN_NORMAL: $t = <$t>::MIN_POSITIVE;
            const SAFE: $t = <$t>::from_bits($safe);
            #[inline(always)]
            fn magnitude(self) -> $t {
                self.abs()
            }
            #[inline(always)]
            fn root(self) -> $t {
                self.sqrt()
            }
            #[inline(always)]
            fn fused(self, b: $t, c: $t) -> $t {
                self.mul_add(b, c)
            }
            #[inline(always)]
            fn larger(self, other: $t) -> $t {
                // Equal numbers have equal bits, or are zeros, of which the positive one has fewer bits set.
                let equal = <$t>::from_bits(self.to_bits() & other.to_bits());
                if self > other {
                    self
                } else if self < other {
                    other
                } else {
                    equal
                }
            }
        }
    };
}
// 2^-60 and 2^-900.
host_float!(f32, 0x2180_0000);
host_float!(f64, 0x07b0_0000_0000_0000);

/// An operation that both the host and integer arithmetic can do. Operands beyond `OPERANDS` are ignored.
pub trait Operation {
    /// Number of operands.
    const OPERANDS: usize;
    /// Whether `host` needs a fused multiply-add.
    const FUSED: bool = false;
    /// Whether the operation rounds: a finite result above the smallest normal number is then Arm's, whatever the operands,
    /// unless they are flushed.
    const ROUNDS: bool = true;
    /// Returns the host's result.
    fn host<H: HostFloat>(x: [H; 3]) -> H;
    /// Returns whether the host's result `r` is Arm's and sets no flag other than IXC.
    fn is_arms<H: HostFloat>(x: [H; 3], r: H) -> bool;
    /// Returns whether `r` is certainly exact, given that it is Arm's.
    fn is_exact<H: HostFloat>(x: [H; 3], r: H) -> bool;
    /// Computes the result and all flags by integer arithmetic.
    fn soft<F: Float>(env: &mut FpEnv, x: [F; 3]) -> F;
}

/// Returns whether `r` is finite and was certainly normal before rounding.
#[inline(always)]
fn is_normal<H: HostFloat>(r: H) -> bool {
    (r.magnitude() > H::MIN_NORMAL) & (r.magnitude() < H::INFINITY)
}

/// Returns whether a rounded sum of two numbers is certainly Arm's: the sum of two numbers of a format is zero only if it is
/// exactly zero.
#[inline(always)]
pub(crate) fn sum_is_certain<H: HostFloat>(sum: H) -> bool {
    is_normal(sum) | (sum == H::ZERO)
}

/// Returns whether neither a nor b is a NaN.
#[inline(always)]
fn is_ordered<H: HostFloat>(a: H, b: H) -> bool {
    (a <= b) | (a >= b)
}

/// Returns whether a + b = s exactly, s being their rounded sum.
#[inline(always)]
fn sum_is_exact<H: HostFloat>(a: H, b: H, s: H) -> bool {
    let b_part = s - a;
    (a - (s - b_part)) + (b - b_part) == H::ZERO
}

/// Returns whether a × b = p exactly, p being their rounded product.
#[inline(always)]
fn product_is_exact<H: HostFloat>(a: H, b: H, p: H) -> bool {
    ((p.magnitude() >= H::SAFE) & (a.fused(b, -p) == H::ZERO)) | (a == H::ZERO) | (b == H::ZERO)
}

macro_rules! operation {
    ($(#[$doc:meta])* $name:ident($($x:ident),+) $(fused $fused:literal)? $(rounds $rounds:literal)?
        host $host:expr; arms($r1:ident) $arms:expr; exact($r2:ident) $exact:expr; soft $soft:path) => {
        $(#[$doc])*
        pub struct $name;
        impl Operation for $name {
            const OPERANDS: usize = [$(stringify!($x)),+].len();
            $(const FUSED: bool = $fused;)?
            $(const ROUNDS: bool = $rounds;)?
            #[inline(always)]
            fn host<H: HostFloat>([$($x),+, ..]: [H; 3]) -> H {
                $host
            }
            #[allow(unused_variables)]
            #[inline(always)]
            fn is_arms<H: HostFloat>([$($x),+, ..]: [H; 3], $r1: H) -> bool {
                $arms
            }
            #[allow(unused_variables)]
            #[inline(always)]
            fn is_exact<H: HostFloat>([$($x),+, ..]: [H; 3], $r2: H) -> bool {
                $exact
            }
            #[inline(always)]
            fn soft<F: Float>(env: &mut FpEnv, [$($x),+, ..]: [F; 3]) -> F {
                env.counted(|env| $soft(env, $($x),+))
            }
        }
    };
}

operation! {
    /// a + b.
    Sum(a, b)
    host a + b;
    // The sum of two numbers of a format is zero only if it is exactly zero.
    arms(r) is_normal(r) | (r == H::ZERO);
    exact(r) sum_is_exact(a, b, r);
    soft arith::add
}
operation! {
    /// a − b.
    Difference(a, b)
    host a - b;
    arms(r) is_normal(r) | (r == H::ZERO);
    exact(r) sum_is_exact(a, -b, r);
    soft arith::sub
}
operation! {
    /// |a − b|.
    AbsoluteDifference(a, b)
    host (a - b).magnitude();
    arms(r) is_normal(r) | (r == H::ZERO);
    exact(r) sum_is_exact(a, -b, a - b);
    soft arith::abd
}
operation! {
    /// a × b.
    Product(a, b)
    host a * b;
    arms(r) is_normal(r) | (r == H::ZERO) & ((a == H::ZERO) | (b == H::ZERO));
    exact(r) product_is_exact(a, b, r);
    soft arith::mul
}
operation! {
    /// a × b as defined for FMULX.
    ExtendedProduct(a, b)
    host a * b;
    arms(r) is_normal(r) | (r == H::ZERO) & ((a == H::ZERO) | (b == H::ZERO));
    exact(r) product_is_exact(a, b, r);
    soft arith::mulx
}
operation! {
    /// a / b.
    Quotient(a, b)
    host a / b;
    arms(r) is_normal(r) | (r == H::ZERO) & (a == H::ZERO);
    exact(r) ((a.magnitude() >= H::SAFE) & (r.fused(b, -a) == H::ZERO)) | (a == H::ZERO);
    soft arith::div
}
operation! {
    /// √a.
    Root(a)
    host a.root();
    arms(r) is_normal(r) | (r == H::ZERO);
    exact(r) ((a >= H::SAFE) & (r.fused(r, -a) == H::ZERO)) | (a == H::ZERO);
    soft arith::sqrt
}
operation! {
    /// c + a × b.
    FusedSum(c, a, b) fused true
    host a.fused(b, c);
    // A sum that cancels to zero is exact if the addend is so large that the product has no bits below the format's smallest
    // number.
    arms(r) is_normal(r)
        | (r == H::ZERO) & ((a == H::ZERO) | (b == H::ZERO) | (c.magnitude() >= H::SAFE));
    exact(r) product_is_exact(a, b, a * b) & sum_is_exact(c, a * b, r);
    soft arith::mul_add
}
operation! {
    /// 2 − a × b.
    RecipStep(a, b) fused true
    host (-a).fused(b, H::TWO);
    arms(r) is_normal(r) | (r == H::ZERO);
    exact(r) product_is_exact(a, b, a * b) & sum_is_exact(H::TWO, -(a * b), r);
    soft estimate::recip_step
}
operation! {
    /// (3 − a × b) / 2. Halving is exact above the smallest normal number.
    RsqrtStep(a, b) fused true
    host (-a).fused(b, H::THREE) * H::HALF;
    arms(r) is_normal(r) | (r == H::ZERO);
    exact(r) product_is_exact(a, b, a * b) & sum_is_exact(H::THREE, -(a * b), r + r);
    soft estimate::rsqrt_step
}
operation! {
    /// The larger of a and b.
    Larger(a, b) rounds false
    host a.larger(b);
    arms(r) is_ordered(a, b);
    exact(r) true;
    soft compare::max
}
operation! {
    /// The smaller of a and b.
    Smaller(a, b) rounds false
    host -(-a).larger(-b);
    arms(r) is_ordered(a, b);
    exact(r) true;
    soft compare::min
}
operation! {
    /// The larger of a and b, a quiet NaN losing against a number.
    LargerNumber(a, b) rounds false
    host a.larger(b);
    arms(r) is_ordered(a, b);
    exact(r) true;
    soft compare::maxnm
}
operation! {
    /// The smaller of a and b, a quiet NaN losing against a number.
    SmallerNumber(a, b) rounds false
    host -(-a).larger(-b);
    arms(r) is_ordered(a, b);
    exact(r) true;
    soft compare::minnm
}

/// A comparison that both the host and integer arithmetic can do.
pub trait Relation {
    /// Returns whether it holds for two numbers, neither of them a NaN.
    fn host<H: HostFloat>(a: H, b: H) -> bool;
    /// Returns whether it holds, and sets all flags.
    fn soft<F: Float>(env: &mut FpEnv, a: F, b: F) -> bool;
}

macro_rules! relation {
    ($(#[$doc:meta] $name:ident: $host:expr, $soft:path;)*) => {$(
        #[$doc]
        pub struct $name;
        impl Relation for $name {
            #[inline(always)]
            fn host<H: HostFloat>(a: H, b: H) -> bool {
                let holds: fn(H, H) -> bool = $host;
                holds(a, b)
            }
            #[inline(always)]
            fn soft<F: Float>(env: &mut FpEnv, a: F, b: F) -> bool {
                $soft(env, a, b)
            }
        }
    )*};
}
relation! {
    /// a = b.
    Equal: |a, b| a == b, compare::eq;
    /// a ≥ b.
    GreaterOrEqual: |a, b| a >= b, compare::ge;
    /// a > b.
    Greater: |a, b| a > b, compare::gt;
    /// a or b is a NaN.
    Unordered: |_, _| false, compare::unordered;
    /// |a| ≥ |b|.
    MagnitudeGreaterOrEqual: |a, b| a.magnitude() >= b.magnitude(), compare::abs_ge;
    /// |a| > |b|.
    MagnitudeGreater: |a, b| a.magnitude() > b.magnitude(), compare::abs_gt;
}

/// The host's part of [`Float`].
pub trait OnHost: Sized {
    /// Performs one operation.
    fn compute<O: Operation>(env: &mut FpEnv, x: [Self; 3]) -> Self;
    /// Performs one operation on all active elements of vectors, see [`super::vector`].
    fn compute_vector<O: Operation>(env: &mut FpEnv, x: [&Vreg; 3], active: u64) -> Vreg;
    /// Performs one comparison of all active elements of vectors; returns a predicate.
    fn compare_vector<R: Relation>(env: &mut FpEnv, a: &Vreg, b: &Vreg, active: u64) -> u64;
}

impl OnHost for u16 {
    #[inline(always)]
    fn compute<O: Operation>(env: &mut FpEnv, x: [u16; 3]) -> u16 {
        O::soft(env, x)
    }
    fn compute_vector<O: Operation>(env: &mut FpEnv, x: [&Vreg; 3], active: u64) -> Vreg {
        let mut result = Vreg::ZERO;
        for (i, r) in result.lanes_mut::<u16>().iter_mut().enumerate() {
            if active >> (2 * i) & 1 != 0 {
                *r = O::soft(env, x.map(|v| v.lanes::<u16>()[i]));
            }
        }
        result
    }
    fn compare_vector<R: Relation>(env: &mut FpEnv, a: &Vreg, b: &Vreg, active: u64) -> u64 {
        compare_one_by_one::<u16, R>(env, a, b, active)
    }
}

macro_rules! on_host {
    ($bits:ty, $host:ty) => {
        impl OnHost for $bits {
            #[inline(always)]
            fn compute<O: Operation>(env: &mut FpEnv, x: [$bits; 3]) -> $bits {
                match scalar::<$host, O>(env, x.map(<$host>::from_bits)) {
                    Some(r) => r.to_bits(),
                    None => soft::<$bits, O>(env, x),
                }
            }
            fn compute_vector<O: Operation>(env: &mut FpEnv, x: [&Vreg; 3], active: u64) -> Vreg {
                let mut result = Vreg::ZERO;
                if env.control(FpEnv::RMODE) || !lanes::<$host, O>(env, x, active, &mut result) {
                    one_by_one::<$bits, O>(env, x, active, &mut result);
                }
                result
            }
            fn compare_vector<R: Relation>(env: &mut FpEnv, a: &Vreg, b: &Vreg, active: u64) -> u64 {
                match wide!(relation::<$host, R>(element_limit(env), a, b), None) {
                    Some(holds) => holds & active,
                    None => compare_one_by_one::<$bits, R>(env, a, b, active),
                }
            }
        }
    };
}
on_host!(u32, f32);
on_host!(u64, f64);

/// Returns the limit below which nonzero elements of vectors are left to integer arithmetic: 0 until a denormal number matters.
/// (With a constant limit the compiler generates longer code.)
#[inline(always)]
fn element_limit<H: HostFloat>(env: &FpEnv) -> H {
    if env.control(FpEnv::FZ) | (env.denormals != 0) { H::MIN_NORMAL } else { H::ZERO }
}

/// Returns whether an operand is zero or not below `limit`.
#[inline(always)]
fn is_plain<H: HostFloat>(limit: H, x: H) -> bool {
    (x.magnitude() >= limit) | (x == H::ZERO)
}

/// Returns whether the host's result may be used; without `EXACT`, regardless of the inexact flag.
#[inline(always)]
fn is_certain<H: HostFloat, O: Operation, const EXACT: bool>(limit: H, x: [H; 3], r: H) -> bool {
    let mut certain = O::is_arms(x, r);
    for x in &x[..O::OPERANDS] {
        certain &= is_plain(limit, *x);
    }
    if EXACT {
        certain &= O::is_exact(x, r);
    }
    certain
}

/// Computes the result and all flags by integer arithmetic.
#[cold]
#[inline(never)]
fn soft<F: Float, O: Operation>(env: &mut FpEnv, x: [F; 3]) -> F {
    O::soft(env, x)
}

/// Returns the host's result, if it may be used.
#[inline(always)]
fn scalar<H: HostFloat, O: Operation>(env: &FpEnv, [a, b, c]: [H; 3]) -> Option<H> {
    if env.control(FpEnv::RMODE) {
        return None;
    }
    if env.fpsr & FpEnv::IXC == 0 {
        wide!(scalar_wide::<H, O, true>(a, b, c), scalar_portable::<H, O, true>(a, b, c))
    } else if O::FUSED {
        wide!(scalar_wide::<H, O, false>(a, b, c), scalar_portable::<H, O, false>(a, b, c))
    } else {
        scalar_inline::<H, O, false>(a, b, c)
    }
}

#[inline(always)]
fn scalar_inline<H: HostFloat, O: Operation, const EXACT: bool>(a: H, b: H, c: H) -> Option<H> {
    let x = [a, b, c];
    let r = O::host(x);
    is_certain::<H, O, EXACT>(H::MIN_NORMAL, x, r).then_some(r)
}

/// [`scalar_inline`] for any processor.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn scalar_portable<H: HostFloat, O: Operation, const EXACT: bool>(a: H, b: H, c: H) -> Option<H> {
    scalar_inline::<H, O, EXACT>(a, b, c)
}

/// [`scalar_inline`] for a processor with fused multiply-add.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
fn scalar_wide<H: HostFloat, O: Operation, const EXACT: bool>(a: H, b: H, c: H) -> Option<H> {
    scalar_inline::<H, O, EXACT>(a, b, c)
}

/// Processes the active elements one by one.
#[cold]
#[inline(never)]
fn one_by_one<F: Float, O: Operation>(env: &mut FpEnv, x: [&Vreg; 3], active: u64, result: &mut Vreg) {
    for (i, r) in result.lanes_mut::<F>().iter_mut().enumerate() {
        if active >> (i * size_of::<F>()) & 1 != 0 {
            *r = F::compute::<O>(env, x.map(|v| v.lanes::<F>()[i]));
        }
    }
}

/// Computes the host's results for all elements of the register, or of its lowest 16 bytes when no others are active. Returns
/// whether all of them may be used.
#[inline(always)]
fn lanes<H: HostFloat, O: Operation>(env: &FpEnv, x: [&Vreg; 3], active: u64, result: &mut Vreg) -> bool {
    let limit = element_limit(env);
    match (env.fpsr & FpEnv::IXC == 0, active >> 16 == 0) {
        (true, false) => wide!(lanes_wide::<H, O, true>(limit, x, result), false),
        (false, false) => wide!(lanes_wide::<H, O, false>(limit, x, result), false),
        (true, true) => wide!(lanes_narrow::<H, O, true>(limit, x, result), false),
        (false, true) => wide!(lanes_narrow::<H, O, false>(limit, x, result), false),
    }
}

/// Computes the whole register.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
fn lanes_wide<H: HostFloat, O: Operation, const EXACT: bool>(
    limit: H,
    [a, b, c]: [&Vreg; 3],
    result: &mut Vreg,
) -> bool {
    let [a, b, c]: [&[H]; 3] = [a.lanes(), b.lanes(), c.lanes()];
    let result = result.lanes_mut::<H>();
    if O::ROUNDS && !EXACT && limit == H::ZERO {
        // In nearly all cases the results alone show that they may be used.
        let mut normal = true;
        for i in 0..result.len() {
            result[i] = O::host([a[i], b[i], c[i]]);
        }
        for r in &*result {
            normal &= is_normal(*r);
        }
        if normal {
            return true;
        }
    }
    each::<H, O, EXACT>(limit, [a, b, c], result)
}

/// Computes the lowest 16 bytes. They are processed twice to fill the host's vectors: the compiler then generates better code.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
fn lanes_narrow<H: HostFloat, O: Operation, const EXACT: bool>(limit: H, x: [&Vreg; 3], result: &mut Vreg) -> bool {
    let twice = |v: &Vreg| [v.0[0], v.0[1], v.0[0], v.0[1]];
    let (a, b, c) = (twice(x[0]), twice(x[1]), twice(x[2]));
    let mut r = [0u64; 4];
    let x = [cast_slice(&a), cast_slice(&b), cast_slice(&c)];
    let certain = each::<H, O, EXACT>(limit, x, cast_slice_mut(&mut r));
    result.0[..2].copy_from_slice(&r[..2]);
    certain
}

#[inline(always)]
fn each<H: HostFloat, O: Operation, const EXACT: bool>(limit: H, [a, b, c]: [&[H]; 3], result: &mut [H]) -> bool {
    // One flag per element, stored to memory: with a single condition for all elements the compiler generates far more shuffles
    // than comparisons.
    let mut doubts = Vreg::ZERO;
    let elements = result.iter_mut().zip(doubts.lanes_mut::<H>()).zip(a.iter().zip(b).zip(c));
    for ((r, doubt), ((&a, &b), &c)) in elements {
        let x = [a, b, c];
        *r = O::host(x);
        *doubt = if is_certain::<H, O, EXACT>(limit, x, *r) { H::ZERO } else { H::HALF };
    }
    std::hint::black_box(doubts) == Vreg::ZERO
}

/// Returns the elements for which the relation holds, or `None` if one is a NaN or below `limit`.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
fn relation<H: HostFloat, R: Relation>(limit: H, a: &Vreg, b: &Vreg) -> Option<u64> {
    let (a, b) = (a.lanes::<H>(), b.lanes::<H>());
    let mut certain = true;
    let mut holds = 0;
    for i in 0..64 / size_of::<H>() {
        certain &= is_ordered(a[i], b[i]);
        certain &= is_plain(limit, a[i]) & is_plain(limit, b[i]);
        holds |= u64::from(R::host(a[i], b[i])) << (i * size_of::<H>());
    }
    certain.then_some(holds)
}

#[cold]
#[inline(never)]
fn compare_one_by_one<F: Float, R: Relation>(env: &mut FpEnv, a: &Vreg, b: &Vreg, active: u64) -> u64 {
    let mut holds = 0;
    for (i, (&a, &b)) in a.lanes::<F>().iter().zip(b.lanes::<F>()).enumerate() {
        let bit = 1 << (i * size_of::<F>());
        if active & bit != 0 && R::soft(env, a, b) {
            holds |= bit;
        }
    }
    holds
}
