//! The operations whose common cases the host can do, each for numbers and for vectors.

use super::env::FpEnv;
use super::format::Float;
use super::host;
use crate::cpu::Vreg;

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($($x:ident),+) = $op:ident [$($padded:ident),+];)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            #[must_use]
            pub fn $name<F: Float>(env: &mut FpEnv, $($x: F),+) -> F {
                F::compute::<host::$op>(env, [$($padded),+])
            }
        )*

        /// The same on vectors.
        pub mod vectors {
            use super::*;
            $(
                $(#[$doc])*
                #[inline(always)]
                #[must_use]
                pub fn $name<F: Float>(env: &mut FpEnv, $($x: &Vreg),+, active: u64) -> Vreg {
                    F::compute_vector::<host::$op>(env, [$($padded),+], active)
                }
            )*
        }
    };
}

operations! {
    /// a + b.
    add(a, b) = Sum [a, b, b];
    /// a − b.
    sub(a, b) = Difference [a, b, b];
    /// |a − b|, the sign of a NaN cleared (FABD).
    abd(a, b) = AbsoluteDifference [a, b, b];
    /// a × b.
    mul(a, b) = Product [a, b, b];
    /// a × b, where zero times infinity is ±2 (FMULX).
    mulx(a, b) = ExtendedProduct [a, b, b];
    /// a / b.
    div(a, b) = Quotient [a, b, b];
    /// √a.
    sqrt(a) = Root [a, a, a];
    /// addend + a × b, rounded once. For FMLS, negate `a`; for FNMLA, `a` and `addend`; for FNMLS, `addend`.
    mul_add(addend, a, b) = FusedSum [addend, a, b];
    /// 2 − a × b, rounded once (FRECPS).
    recip_step(a, b) = RecipStep [a, b, b];
    /// (3 − a × b) / 2, rounded once (FRSQRTS).
    rsqrt_step(a, b) = RsqrtStep [a, b, b];
    /// The larger of two numbers, +0 being larger than −0; a NaN operand is the result.
    max(a, b) = Larger [a, b, b];
    /// The smaller of two numbers, −0 being smaller than +0; a NaN operand is the result.
    min(a, b) = Smaller [a, b, b];
    /// The larger of two numbers; a quiet NaN loses against a number.
    maxnm(a, b) = LargerNumber [a, b, b];
    /// The smaller of two numbers; a quiet NaN loses against a number.
    minnm(a, b) = SmallerNumber [a, b, b];
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident = $relation:ident;)*) => {
        /// Comparisons of vectors.
        pub mod predicates {
            use super::*;
            $(
                $(#[$doc])*
                #[inline(always)]
                #[must_use]
                pub fn $name<F: Float>(env: &mut FpEnv, a: &Vreg, b: &Vreg, active: u64) -> u64 {
                    F::compare_vector::<host::$relation>(env, a, b, active)
                }
            )*
        }
    };
}

comparisons! {
    /// Where a = b; quiet.
    eq = Equal;
    /// Where a ≥ b; every NaN signals.
    ge = GreaterOrEqual;
    /// Where a > b; every NaN signals.
    gt = Greater;
    /// Where a or b is a NaN; quiet.
    unordered = Unordered;
    /// Where |a| ≥ |b|; every NaN signals.
    abs_ge = MagnitudeGreaterOrEqual;
    /// Where |a| > |b|; every NaN signals.
    abs_gt = MagnitudeGreater;
}
