//! Shared by the SVE floating-point groups: operands with their operation count, and execution under a predicate.
//!
//! Inactive elements raise no flags. If the operands of an instruction are not in the order of its operation (FSUBR, FMAD, …),
//! the decoder reorders them: execution reads `rn`, `rm`, `ra` and writes `rd`.

use fxscope_isa::FpOp;

use super::sve_common::{BySize, Classes, Done, Element, size, sve, write_merging};
use crate::cpu::{Cpu, Vreg};
use crate::fp::vector::all;
use crate::fp::{Float, FpEnv};
use crate::table::{Ctx, Decoded, Inst, bits};
use fxscope_guestmem::Memory;

/// An operation on one vector under a predicate.
pub trait Unary {
    /// Returns the active elements of the result; the others are unspecified.
    fn apply<F: Float>(env: &mut FpEnv, a: &Vreg, p: u64) -> Vreg;
}

/// An operation on two vectors under a predicate.
pub trait Binary {
    /// Returns the active elements of the result; the others are unspecified.
    fn apply<F: Float>(env: &mut FpEnv, a: &Vreg, b: &Vreg, p: u64) -> Vreg;
}

/// Declares operations: `unary! { Name |env, a, p| expression; … }`, where `F` is the format.
macro_rules! unary {
    ($($name:ident |$env:ident, $a:ident, $p:ident| $result:expr;)+) => { $(
        struct $name;
        impl Unary for $name {
            #[inline(always)]
            fn apply<F: Float>($env: &mut FpEnv, $a: &Vreg, $p: u64) -> Vreg {
                $result
            }
        }
    )+ };
}
pub(crate) use unary;

/// Declares operations: `binary! { Name |env, a, b, p| expression; … }`, where `F` is the format.
macro_rules! binary {
    ($($name:ident |$env:ident, $a:ident, $b:ident, $p:ident| $result:expr;)+) => { $(
        struct $name;
        impl Binary for $name {
            #[inline(always)]
            fn apply<F: Float>($env: &mut FpEnv, $a: &Vreg, $b: &Vreg, $p: u64) -> Vreg {
                $result
            }
        }
    )+ };
}
pub(crate) use binary;

/// One executing function for each format: `floats!(T => exec::<Add, T>)`.
macro_rules! floats {
    ($t:ident => $exec:expr) => {{
        let [h, s, d] = $crate::sizes!(@ $t u16 u32 u64 => $exec);
        [None, h, s, d]
    }};
}
pub(crate) use floats;

/// Borrows the floating-point environment and the vector registers separately.
#[inline(always)]
pub fn split(cpu: &mut Cpu) -> (&mut FpEnv, &[Vreg; 32]) {
    (&mut cpu.fp, &cpu.z)
}

/// Register `n` of `z`.
#[inline(always)]
#[must_use]
pub fn reg(z: &[Vreg; 32], n: u8) -> &Vreg {
    &z[usize::from(n & 31)]
}

// ---- Execution ----

/// `rd` = O(`rn`), merging under `pg`.
pub fn merging1<O: Unary, F: Float + Element>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let p = cpu.p(i.pg);
    let (env, z) = split(cpu);
    let result = O::apply::<F>(env, reg(z, i.rn), p);
    write_merging::<F>(cpu, i.rd, i.pg, &result);
    Ok(())
}

/// `rd` = O(`rn`, `rm`), merging under `pg`.
pub fn merging2<O: Binary, F: Float + Element>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let p = cpu.p(i.pg);
    let (env, z) = split(cpu);
    let result = O::apply::<F>(env, reg(z, i.rn), reg(z, i.rm), p);
    write_merging::<F>(cpu, i.rd, i.pg, &result);
    Ok(())
}

/// `rd` = O(`rn`).
pub fn plain1<O: Unary, F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let p = all(cpu.vl);
    let (env, z) = split(cpu);
    let result = O::apply::<F>(env, reg(z, i.rn), p);
    *cpu.z_mut(i.rd) = result;
    cpu.trim(i.rd);
    Ok(())
}

/// `rd` = O(`rn`, `rm`).
pub fn plain2<O: Binary, F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let p = all(cpu.vl);
    let (env, z) = split(cpu);
    let result = O::apply::<F>(env, reg(z, i.rn), reg(z, i.rm), p);
    *cpu.z_mut(i.rd) = result;
    cpu.trim(i.rd);
    Ok(())
}

// ---- Operands ----

/// Decodes an instruction that performs `FLOPS` floating-point operations for each element of the size in bits 23:22.
pub fn float<const FLOPS: u8>(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    sized::<FLOPS>(size(w), c, classes, execs)
}

/// Decodes an instruction that performs `FLOPS` floating-point operations for each element of 2^`log2` bytes.
pub fn sized<const FLOPS: u8>(log2: usize, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[log2], execs[log2]?);
    if FLOPS > 0 {
        let (esize, elements) = (1 << log2, (c.vl >> log2) as u8);
        d.info.fp = FpOp { per_element: FLOPS, esize, elements, scalable: true };
    }
    Some(d)
}

/// `Zdn, Pg/M, Zdn, …`: governing predicate in bits 12:10, `Zdn` is the first operand and merges.
pub fn destructive<const FLOPS: u8>(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = float::<FLOPS>(w, c, classes, execs)?;
    d.inst.pg = d.src_p(bits(w, 10, 3));
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.rn = d.inst.rd;
    Some(d)
}

/// `Zdn, Pg/M, Zdn, Zm`.
pub fn predicated<const FLOPS: u8>(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = destructive::<FLOPS>(w, c, classes, execs)?;
    d.inst.rm = d.src_z(bits(w, 5, 5));
    Some(d)
}

/// `Zdn, Pg/M, Zdn, Zm` with the operands exchanged.
pub fn reversed<const FLOPS: u8>(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = predicated::<FLOPS>(w, c, classes, execs)?;
    (d.inst.rn, d.inst.rm) = (d.inst.rm, d.inst.rn);
    Some(d)
}

/// `Zd, Pg/M, Zn`.
pub fn merging(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = destructive::<0>(w, c, classes, execs)?;
    d.inst.rn = d.src_z(bits(w, 5, 5));
    Some(d)
}

/// `Zd, Zn, Zm`.
pub fn unpredicated<const FLOPS: u8>(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = plain::<FLOPS>(w, c, classes, execs)?;
    d.inst.rm = d.src_z(bits(w, 16, 5));
    Some(d)
}

/// `Zd, Zn`.
pub fn plain<const FLOPS: u8>(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = float::<FLOPS>(w, c, classes, execs)?;
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    Some(d)
}
