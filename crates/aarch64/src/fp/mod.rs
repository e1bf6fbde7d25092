//! Floating-point arithmetic as the Arm architecture defines it.
//!
//! Values are bit patterns: `u16` (half), `u32` (single), `u64` (double), see [`Float`]. Every operation
//! takes the environment [`FpEnv`] first, whose control bits select rounding, default NaN and
//! flush-to-zero, and whose status bits it sets. All results are exact integer arithmetic rounded once;
//! where the host's arithmetic provably gives the same value and the same flags, it is used instead.
//!
//! # The operations
//!
//! | Function (generic over the format `F`) | Arm pseudocode |
//! |---|---|
//! | `add(env, a, b)`, `sub`, `mul`, `div`, `sqrt(env, a)` | FPAdd, FPSub, FPMul, FPDiv, FPSqrt |
//! | `mulx(env, a, b)` | FPMulX: 0 × ∞ is ±2 |
//! | `mul_add(env, addend, a, b)` | FPMulAdd: one rounding. FMLS, FNMADD, …: pass `neg(a)`, `neg(addend)` |
//! | `scale(env, a, exponent)` | FPScale: a × 2^exponent |
//! | `abs(a)`, `neg(a)`, `abd(env, a, b)` | FPAbs, FPNeg (bit operations, no flags), FABD |
//! | `compare(env, a, b, signal_all)` → NZCV | FPCompare: FCMP (`false`), FCMPE (`true`) |
//! | `eq(env, a, b)`, `ge`, `gt`, `unordered`, `abs_ge`, `abs_gt` → bool | FPCompareEQ, GE, GT, UN; FACGE, FACGT |
//! | `max(env, a, b)`, `min`, `maxnm`, `minnm` | FPMax, FPMin, FPMaxNum, FPMinNum |
//! | `round_to_int(env, a, rounding, exact)` | FPRoundInt: `exact` sets IXC (FRINTX) |
//! | `to_int::<F, I>(env, a, fbits, rounding)` → I | FPToFixed, I one of i16 u16 i32 u32 i64 u64 |
//! | `from_int::<F, I>(env, value, fbits, rounding)` → F | FixedToFP |
//! | `convert::<S, D>(env, a)` → D | FPConvert with the rounding of FPCR (AHP obeyed) |
//! | `convert_rounded::<S, D>(env, a, rounding)` → D | the same, other rounding: FCVTXN is `Rounding::Odd` |
//! | `expand_immediate(imm8)` → F | VFPExpandImm |
//! | `recip_estimate(env, a)`, `rsqrt_estimate` | FPRecipEstimate, FPRSqrtEstimate |
//! | `recip_estimate_unsigned(a)`, `rsqrt_estimate_unsigned` | UnsignedRecipEstimate, UnsignedRSqrtEstimate |
//! | `recip_step(env, a, b)`, `rsqrt_step` | FPRecipStepFused, FPRSqrtStepFused |
//! | `recipx(env, a)` | FPRecpX |
//! | `expa(a)`, `tsmul(env, a, b)`, `tssel(a, b)`, `tmad(env, x, a, b)` | FPExpCoefficient, FPTrigSMul, FPTrigSSel, FPTrigMAdd |
//!
//! [`vector`] has most of them for whole vector registers under a byte predicate.
//!
//! The rounding of FPCR is `env.rounding()`.
//!
//! # Where it is implemented
//!
//! `format` unpacks numbers and rounds them; `arith`, `compare`, `convert`, `estimate` and `trig`
//! compute with integers; `host` decides when the host's own arithmetic may be used, and `ops` offers both
//! under one name.

mod arith;
mod compare;
mod convert;
mod env;
mod estimate;
mod format;
pub(crate) mod host;
mod ops;
mod trig;
pub mod vector;

pub use arith::{abs, neg, scale};
pub use compare::{abs_ge, abs_gt, compare, eq, ge, gt, unordered};
pub use convert::{Integer, convert, convert_rounded, expand_immediate, from_int, round_to_int, to_int};
pub use env::{FpEnv, Rounding};
pub use estimate::{recip_estimate, recip_estimate_unsigned, recipx, rsqrt_estimate, rsqrt_estimate_unsigned};
pub use format::Float;
pub use ops::{abd, add, div, max, maxnm, min, minnm, mul, mul_add, mulx, recip_step, rsqrt_step, sqrt, sub};
pub use trig::{expa, tmad, tsmul, tssel};
