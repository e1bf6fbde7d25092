//! SVE shifts by immediates, vectors and wide elements.

use fxscope_isa::Governing;

use super::sve_common::{
    BySize, Classes, Done, at_most, from_fn, map1, map2, predicated, sve, unpredicated, write_merging,
};
use super::sve_element::Int;
use crate::cpu::Cpu;
use crate::table::{Ctx, Decoded, Encoding, Inst, bits};
use crate::{sizes, sve};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    sve!("ASR (immediate, predicated)", "00000100 tszh:2 000 000 100 Pg:3 tszl:2 imm3:3 Zdn:5", immediate_predicated::<true>, sizes!(i: T => by_immediate_merging::<Right, T>)),
    sve!("LSR (immediate, predicated)", "00000100 tszh:2 000 001 100 Pg:3 tszl:2 imm3:3 Zdn:5", immediate_predicated::<true>, sizes!(u: T => by_immediate_merging::<Right, T>)),
    sve!("LSL (immediate, predicated)", "00000100 tszh:2 000 011 100 Pg:3 tszl:2 imm3:3 Zdn:5", immediate_predicated::<false>, sizes!(u: T => by_immediate_merging::<Left, T>)),
    sve!("ASRD", "00000100 tszh:2 000 100 100 Pg:3 tszl:2 imm3:3 Zdn:5", immediate_predicated::<true>, sizes!(i: T => by_immediate_merging::<Divide, T>)),
    sve!("ASR (vectors)", "00000100 size:2 010 000 100 Pg:3 Zm:5 Zdn:5", predicated, sizes!(i: T => by_vector::<Right, T>)),
    sve!("LSR (vectors)", "00000100 size:2 010 001 100 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => by_vector::<Right, T>)),
    sve!("LSL (vectors)", "00000100 size:2 010 011 100 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => by_vector::<Left, T>)),
    sve!("ASRR", "00000100 size:2 010 100 100 Pg:3 Zm:5 Zdn:5", predicated, sizes!(i: T => reversed::<Right, T>)),
    sve!("LSRR", "00000100 size:2 010 101 100 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => reversed::<Right, T>)),
    sve!("LSLR", "00000100 size:2 010 111 100 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => reversed::<Left, T>)),
    sve!("ASR (wide elements, predicated)", "00000100 size:2 011 000 100 Pg:3 Zm:5 Zdn:5", predicated, at_most(2, sizes!(i: T => by_wide_merging::<Right, T>))),
    sve!("LSR (wide elements, predicated)", "00000100 size:2 011 001 100 Pg:3 Zm:5 Zdn:5", predicated, at_most(2, sizes!(u: T => by_wide_merging::<Right, T>))),
    sve!("LSL (wide elements, predicated)", "00000100 size:2 011 011 100 Pg:3 Zm:5 Zdn:5", predicated, at_most(2, sizes!(u: T => by_wide_merging::<Left, T>))),
    sve!("ASR (wide elements, unpredicated)", "00000100 size:2 1 Zm:5 100000 Zn:5 Zd:5", unpredicated, at_most(2, sizes!(i: T => by_wide::<Right, T>))),
    sve!("LSR (wide elements, unpredicated)", "00000100 size:2 1 Zm:5 100001 Zn:5 Zd:5", unpredicated, at_most(2, sizes!(u: T => by_wide::<Right, T>))),
    sve!("LSL (wide elements, unpredicated)", "00000100 size:2 1 Zm:5 100011 Zn:5 Zd:5", unpredicated, at_most(2, sizes!(u: T => by_wide::<Left, T>))),
    sve!("ASR (immediate, unpredicated)", "00000100 tszh:2 1 tszl:2 imm3:3 100100 Zn:5 Zd:5", immediate::<true>, sizes!(i: T => by_immediate::<Right, T>)),
    sve!("LSR (immediate, unpredicated)", "00000100 tszh:2 1 tszl:2 imm3:3 100101 Zn:5 Zd:5", immediate::<true>, sizes!(u: T => by_immediate::<Right, T>)),
    sve!("LSL (immediate, unpredicated)", "00000100 tszh:2 1 tszl:2 imm3:3 100111 Zn:5 Zd:5", immediate::<false>, sizes!(u: T => by_immediate::<Left, T>)),
];

/// A shift of one element. The sense of right shifts follows from the signedness of `T`.
trait Shift {
    fn of<T: Int>(a: T, n: u64) -> T;
}

struct Left;
impl Shift for Left {
    #[inline(always)]
    fn of<T: Int>(a: T, n: u64) -> T {
        a.shift_left(n)
    }
}

struct Right;
impl Shift for Right {
    #[inline(always)]
    fn of<T: Int>(a: T, n: u64) -> T {
        a.shift_right(n)
    }
}

/// Signed division by 2^n, rounded towards zero.
struct Divide;
impl Shift for Divide {
    #[inline(always)]
    fn of<T: Int>(a: T, n: u64) -> T {
        let quotient = a.shift_right(n);
        let inexact = quotient.shift_left(n) != a;
        if a < T::ZERO && inexact { quotient.sub(T::ONES) } else { quotient }
    }
}

fn by_immediate<S: Shift, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let n = u64::from(i.aux);
    *cpu.z_mut(i.rd) = map1(cpu.z(i.rn), |a: T| S::of(a, n));
    Ok(())
}

fn by_immediate_merging<S: Shift, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let n = u64::from(i.aux);
    let value = map1(cpu.z(i.rd), |a: T| S::of(a, n));
    write_merging::<T>(cpu, i.rd, i.pg, &value);
    Ok(())
}

// The amount is unsigned. Sign extension of a signed `T` is harmless: a negative element is at least the element size either way.

fn by_vector<S: Shift, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let value = map2(cpu.z(i.rd), cpu.z(i.rm), |a: T, n: T| S::of(a, n.extend()));
    write_merging::<T>(cpu, i.rd, i.pg, &value);
    Ok(())
}

fn reversed<S: Shift, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let value = map2(cpu.z(i.rd), cpu.z(i.rm), |n: T, a: T| S::of(a, n.extend()));
    write_merging::<T>(cpu, i.rd, i.pg, &value);
    Ok(())
}

fn by_wide_merging<S: Shift, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let (a, n) = (cpu.z(i.rd).lanes::<T>(), &cpu.z(i.rm).0);
    let value = from_fn::<T>(|e| S::of(a[e], n[e << T::LOG2 >> 3]));
    write_merging::<T>(cpu, i.rd, i.pg, &value);
    Ok(())
}

fn by_wide<S: Shift, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let (a, n) = (cpu.z(i.rn).lanes::<T>(), &cpu.z(i.rm).0);
    *cpu.z_mut(i.rd) = from_fn::<T>(|e| S::of(a[e], n[e << T::LOG2 >> 3]));
    Ok(())
}

/// Returns log2 of the element size and the shift amount that `tsz:imm3` encodes.
fn amount(right: bool, tsz: u32, imm3: u32) -> Option<(usize, u16)> {
    let log2 = tsz.checked_ilog2()?;
    let (esize, value) = (8 << log2, tsz << 3 | imm3);
    Some((log2 as usize, if right { 2 * esize - value } else { value - esize } as u16))
}

fn immediate_predicated<const RIGHT: bool>(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let (log2, shift) = amount(RIGHT, bits(w, 22, 2) << 2 | bits(w, 8, 2), bits(w, 5, 3))?;
    let mut d = sve(c, classes[log2], execs[log2]?);
    d.inst.pg = d.src_p(bits(w, 10, 3));
    d.info.governing = Some(Governing { predicate: d.inst.pg, esize: 1 << log2 });
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.aux = shift;
    Some(d)
}

fn immediate<const RIGHT: bool>(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let (log2, shift) = amount(RIGHT, bits(w, 22, 2) << 2 | bits(w, 19, 2), bits(w, 16, 3))?;
    let mut d = sve(c, classes[log2], execs[log2]?);
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.aux = shift;
    Some(d)
}
