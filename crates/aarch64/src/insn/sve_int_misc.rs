//! SVE integer reductions and bitwise operations with an immediate.

use super::base_dp_imm::bit_mask;
use super::sve_common::{BySize, Classes, Done, at_most, map1, select_active, size, splat, sve};
use super::sve_element::Int;
use crate::cpu::{Cpu, Vreg};
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use crate::{sizes, sve};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    // Reductions of the active elements to a scalar.
    sve!("SADDV" sized "SADDV [T", "00000100 size:2 000 000 001 Pg:3 Zn:5 Vd:5", reduction, at_most(2, sizes!(i: T => add_across::<T>))),
    sve!("UADDV" classes UADDV, "00000100 size:2 000 001 001 Pg:3 Zn:5 Vd:5", reduction, sizes!(u: T => add_across::<T>)),
    sve!("SVE SMAXV" sized "SMAXV [V", "00000100 size:2 001 000 001 Pg:3 Zn:5 Vd:5", reduction, sizes!(i: T => across::<Max, T>)),
    sve!("SVE UMAXV" sized "UMAXV [V", "00000100 size:2 001 001 001 Pg:3 Zn:5 Vd:5", reduction, sizes!(u: T => across::<Max, T>)),
    sve!("SVE SMINV" sized "SMINV [V", "00000100 size:2 001 010 001 Pg:3 Zn:5 Vd:5", reduction, sizes!(i: T => across::<Min, T>)),
    sve!("SVE UMINV" sized "UMINV [V", "00000100 size:2 001 011 001 Pg:3 Zn:5 Vd:5", reduction, sizes!(u: T => across::<Min, T>)),
    sve!("ORV" sized "ORV [V", "00000100 size:2 011 000 001 Pg:3 Zn:5 Vd:5", reduction, sizes!(u: T => across::<Orr, T>)),
    sve!("EORV" sized "EORV [V", "00000100 size:2 011 001 001 Pg:3 Zn:5 Vd:5", reduction, sizes!(u: T => across::<Eor, T>)),
    sve!("ANDV" sized "ANDV [V", "00000100 size:2 011 010 001 Pg:3 Zn:5 Vd:5", reduction, sizes!(u: T => across::<And, T>)),
    // Bitwise, with a repeating mask.
    sve!("SVE ORR (immediate)" as "ORR (immediate)", "00000101 00 0000 imm13:13 Zdn:5", bitwise, bitwise_exec::<Orr> as Exec),
    sve!("SVE EOR (immediate)" as "EOR (immediate)", "00000101 01 0000 imm13:13 Zdn:5", bitwise, bitwise_exec::<Eor> as Exec),
    sve!("SVE AND (immediate)" as "AND (immediate)", "00000101 10 0000 imm13:13 Zdn:5", bitwise, bitwise_exec::<And> as Exec),
    sve!("DUPM", "00000101 11 0000 imm13:13 Zd:5", dupm, dupm_exec as Exec),
];

const UADDV: Classes = ["sve:UADDV [T=B]", "sve:UADDV [T=H]", "sve:UADDV [T={S|D}]", "sve:UADDV [T={S|D}]"];

/// An associative operation with its neutral element.
trait Fold {
    fn neutral<T: Int>() -> T;
    fn of<T: Int>(a: T, b: T) -> T;
}

macro_rules! folds {
    ($($name:ident = $neutral:ident, |$a:ident, $b:ident| $value:expr;)+) => { $(
        struct $name;
        impl Fold for $name {
            #[inline(always)]
            fn neutral<T: Int>() -> T {
                T::$neutral
            }
            #[inline(always)]
            fn of<T: Int>($a: T, $b: T) -> T {
                $value
            }
        }
    )+ };
}
folds! {
    Max = MIN, |a, b| a.max(b);
    Min = MAX, |a, b| a.min(b);
    Orr = ZERO, |a, b| a | b;
    Eor = ZERO, |a, b| a ^ b;
    And = ONES, |a, b| a & b;
}

/// Returns the active elements of `Zn`, with `neutral` for the others.
#[inline(always)]
fn active_or<T: Int>(cpu: &Cpu, i: &Inst, neutral: T) -> Vreg {
    select_active::<T>(cpu.p(i.pg), cpu.z(i.rn), &splat(neutral))
}

fn across<F: Fold, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let value = active_or(cpu, i, F::neutral::<T>()).lanes::<T>().iter().fold(F::neutral(), |a, &b| F::of::<T>(a, b));
    let mut out = Vreg::ZERO;
    out.lanes_mut::<T>()[0] = value;
    *cpu.z_mut(i.rd) = out;
    Ok(())
}

/// The sum is 64 bits wide whatever the element size.
fn add_across<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let sum = active_or(cpu, i, T::ZERO).lanes::<T>().iter().fold(0u64, |sum, a| sum.wrapping_add(a.extend()));
    *cpu.z_mut(i.rd) = Vreg::from_low(u128::from(sum));
    Ok(())
}

fn reduction(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.pg = d.src_p(bits(w, 10, 3));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    Some(d)
}

fn bitwise_exec<F: Fold>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    *cpu.z_mut(i.rd) = map1(cpu.z(i.rd), |a: u64| F::of(a, i.imm2));
    cpu.trim(i.rd);
    Ok(())
}

fn dupm_exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    *cpu.z_mut(i.rd) = splat(i.imm2);
    cpu.trim(i.rd);
    Ok(())
}

fn logical_immediate(w: u32) -> Option<u64> {
    bit_mask(bits(w, 17, 1), bits(w, 11, 6), bits(w, 5, 6))
}

fn bitwise(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mask = logical_immediate(w)?;
    let mut d = sve(c, classes[0], *exec);
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.imm2 = mask;
    Some(d)
}

fn dupm(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mask = logical_immediate(w)?;
    let mut d = sve(c, classes[0], *exec);
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    d.inst.imm2 = mask;
    Some(d)
}
