//! SVE floating-point compares and reductions.

use super::sve_common::{BySize, Classes, Done, Element, active};
use super::sve_float::{float, floats, reg, split};
use crate::cpu::{Cpu, Vreg};
use crate::fp::vector::test;
use crate::fp::{self, Float, FpEnv};
use crate::sve;
use crate::table::{Ctx, Decoded, Encoding, Inst, bits};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    // Compares of vectors.
    sve!("FCMGE (vectors)", "01100101 size:2 0 Zm:5 010 Pg:3 Zn:5 0 Pd:4", compared, floats!(T => compare::<Ge, T>)),
    sve!("FCMGT (vectors)", "01100101 size:2 0 Zm:5 010 Pg:3 Zn:5 1 Pd:4", compared, floats!(T => compare::<Gt, T>)),
    sve!("FCMEQ (vectors)", "01100101 size:2 0 Zm:5 011 Pg:3 Zn:5 0 Pd:4", compared, floats!(T => compare::<Eq, T>)),
    sve!("FCMNE (vectors)", "01100101 size:2 0 Zm:5 011 Pg:3 Zn:5 1 Pd:4", compared, floats!(T => compare::<Ne, T>)),
    sve!("FCMUO", "01100101 size:2 0 Zm:5 110 Pg:3 Zn:5 0 Pd:4", compared, floats!(T => compare::<Unordered, T>)),
    sve!("SVE FACGE" as "FACGE", "01100101 size:2 0 Zm:5 110 Pg:3 Zn:5 1 Pd:4", compared, floats!(T => compare::<AbsGe, T>)),
    sve!("SVE FACGT" as "FACGT", "01100101 size:2 0 Zm:5 111 Pg:3 Zn:5 1 Pd:4", compared, floats!(T => compare::<AbsGt, T>)),
    // Compares with zero.
    sve!("SVE FCMGE (zero)" as "FCMGE (zero)", "01100101 size:2 010000001 Pg:3 Zn:5 0 Pd:4", compared_with_zero, floats!(T => compare_zero::<Ge, T>)),
    sve!("SVE FCMGT (zero)" as "FCMGT (zero)", "01100101 size:2 010000001 Pg:3 Zn:5 1 Pd:4", compared_with_zero, floats!(T => compare_zero::<Gt, T>)),
    sve!("SVE FCMLT (zero)" as "FCMLT (zero)", "01100101 size:2 010001001 Pg:3 Zn:5 0 Pd:4", compared_with_zero, floats!(T => compare_zero::<Lt, T>)),
    sve!("SVE FCMLE (zero)" as "FCMLE (zero)", "01100101 size:2 010001001 Pg:3 Zn:5 1 Pd:4", compared_with_zero, floats!(T => compare_zero::<Le, T>)),
    sve!("SVE FCMEQ (zero)" as "FCMEQ (zero)", "01100101 size:2 010010001 Pg:3 Zn:5 0 Pd:4", compared_with_zero, floats!(T => compare_zero::<Eq, T>)),
    sve!("FCMNE (zero)", "01100101 size:2 010011001 Pg:3 Zn:5 0 Pd:4", compared_with_zero, floats!(T => compare_zero::<Ne, T>)),
    // Reductions.
    sve!("FADDV" sized "FADDV [V", "01100101 size:2 000000001 Pg:3 Zn:5 Vd:5", reduced::<1>, floats!(T => reduce::<Sum, T>)),
    sve!("SVE FMAXNMV" sized "FMAXNMV [V", "01100101 size:2 000100001 Pg:3 Zn:5 Vd:5", reduced::<0>, floats!(T => reduce::<MaxNumber, T>)),
    sve!("SVE FMINNMV" sized "FMINNMV [V", "01100101 size:2 000101001 Pg:3 Zn:5 Vd:5", reduced::<0>, floats!(T => reduce::<MinNumber, T>)),
    sve!("SVE FMAXV" sized "FMAXV [V", "01100101 size:2 000110001 Pg:3 Zn:5 Vd:5", reduced::<0>, floats!(T => reduce::<Max, T>)),
    sve!("SVE FMINV" sized "FMINV [V", "01100101 size:2 000111001 Pg:3 Zn:5 Vd:5", reduced::<0>, floats!(T => reduce::<Min, T>)),
    sve!("FADDA" sized "FADDA [V", "01100101 size:2 011000001 Pg:3 Zm:5 Vdn:5", fadda, floats!(T => ordered_sum::<T>)),
];

// ---- Compares ----

/// A relation between two numbers, with the exceptions it raises.
trait Relation {
    fn holds<F: Float>(env: &mut FpEnv, a: F, b: F) -> bool;
}

macro_rules! relations {
    ($($name:ident |$env:ident, $a:ident, $b:ident| $result:expr;)+) => { $(
        struct $name;
        impl Relation for $name {
            #[inline(always)]
            fn holds<F: Float>($env: &mut FpEnv, $a: F, $b: F) -> bool {
                $result
            }
        }
    )+ };
}
relations! {
    Ge |env, a, b| fp::ge(env, a, b);
    Gt |env, a, b| fp::gt(env, a, b);
    Le |env, a, b| fp::ge(env, b, a);
    Lt |env, a, b| fp::gt(env, b, a);
    Eq |env, a, b| fp::eq(env, a, b);
    Ne |env, a, b| !fp::eq(env, a, b);
    Unordered |env, a, b| fp::unordered(env, a, b);
    AbsGe |env, a, b| fp::abs_ge(env, a, b);
    AbsGt |env, a, b| fp::abs_gt(env, a, b);
}

/// `Pd, Pg/Z, Zn, Zm`.
fn compared(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = compared_with_zero(w, c, classes, execs)?;
    d.inst.rm = d.src_z(bits(w, 16, 5));
    Some(d)
}

/// `Pd, Pg/Z, Zn, #0.0`.
fn compared_with_zero(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = float::<0>(w, c, classes, execs)?;
    d.inst.pg = d.src_p(bits(w, 10, 3));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rd = d.dst_p(bits(w, 0, 4));
    Some(d)
}

fn compare<R: Relation, F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let p = cpu.p(i.pg);
    let (env, z) = split(cpu);
    let result = test::<F>(env, reg(z, i.rn), reg(z, i.rm), p, R::holds);
    cpu.set_p(i.rd, result);
    Ok(())
}

fn compare_zero<R: Relation, F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let p = cpu.p(i.pg);
    let (env, z) = split(cpu);
    let result = test::<F>(env, reg(z, i.rn), &Vreg::ZERO, p, R::holds);
    cpu.set_p(i.rd, result);
    Ok(())
}

// ---- Reductions ----

/// An operation that folds the elements of a vector.
trait Fold {
    /// Replaces an inactive element.
    fn identity<F: Float>() -> F;
    fn join<F: Float>(env: &mut FpEnv, a: F, b: F) -> F;
}

macro_rules! folds {
    ($($name:ident $identity:expr, $join:path;)+) => { $(
        struct $name;
        impl Fold for $name {
            #[inline(always)]
            fn identity<F: Float>() -> F {
                $identity
            }
            #[inline(always)]
            fn join<F: Float>(env: &mut FpEnv, a: F, b: F) -> F {
                $join(env, a, b)
            }
        }
    )+ };
}
folds! {
    Sum F::zero(false), fp::add;
    Max F::infinity(true), fp::max;
    Min F::infinity(false), fp::min;
    MaxNumber F::default_nan(), fp::maxnm;
    MinNumber F::default_nan(), fp::minnm;
}

/// `Vd, Pg, Zn`.
fn reduced<const FLOPS: u8>(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = float::<FLOPS>(w, c, classes, execs)?;
    d.inst.pg = d.src_p(bits(w, 10, 3));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    Some(d)
}

/// Combines adjacent elements until one is left, as the architecture prescribes.
fn reduce<O: Fold, F: Float + Element>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let p = active::<F>(cpu.p(i.pg));
    let mut left = cpu.vl >> F::LOG2;
    let (env, z) = split(cpu);
    let mut tree = *reg(z, i.rn);
    let tree = &mut tree.lanes_mut::<F>()[..left];
    for (e, element) in tree.iter_mut().enumerate() {
        if p >> (e << F::LOG2) & 1 == 0 {
            *element = O::identity();
        }
    }
    while left > 1 {
        left /= 2;
        for e in 0..left {
            tree[e] = O::join(env, tree[2 * e], tree[2 * e + 1]);
        }
    }
    let result = tree[0].to_u64();
    *cpu.z_mut(i.rd) = Vreg::from_low(result.into());
    Ok(())
}

/// `Vdn, Pg, Vdn, Zm`.
fn fadda(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = float::<1>(w, c, classes, execs)?;
    d.inst.pg = d.src_p(bits(w, 10, 3));
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.rm = d.src_z(bits(w, 5, 5));
    Some(d)
}

/// Adds active elements strictly in order.
fn ordered_sum<F: Float + Element>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let p = active::<F>(cpu.p(i.pg));
    let (env, z) = split(cpu);
    let mut sum = reg(z, i.rd).lanes::<F>()[0];
    for (e, &element) in reg(z, i.rm).lanes::<F>().iter().enumerate() {
        if p >> (e << F::LOG2) & 1 == 1 {
            sum = fp::add(env, sum, element);
        }
    }
    *cpu.z_mut(i.rd) = Vreg::from_low(sum.to_u64().into());
    Ok(())
}
