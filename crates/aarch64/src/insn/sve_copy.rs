//! SVE moves into vectors: DUP, CPY, FDUP, FCPY, SEL.

use bytemuck::Pod;

use super::sve_common::{BySize, Classes, Done, select_active, size, splat, sve, write_merging, write_zeroing};
use super::sve_element::Int;
use crate::cpu::Cpu;
use crate::fp::expand_immediate;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits, sbits};
use crate::{sizes, sve};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    // All elements.
    sve!("DUP (immediate)", "00100101 size:2 111000 11 sh:1 imm8:8 Zd:5", dup_immediate, sizes!(u: T => fill::<T>)),
    sve!("FDUP", "00100101 size:2 111001 110 imm8:8 Zd:5", fdup, sizes!(u: T => fill::<T>)),
    sve!("DUP (scalar)", "00000101 size:2 100000 001110 Rn:5 Zd:5", dup_scalar, sizes!(u: T => fill_scalar::<T>)),
    sve!("DUP (indexed)", "00000101 imm2:2 1 tsz:5 001000 Zn:5 Zd:5", dup_indexed, DUP_INDEXED),
    // Active elements.
    sve!("CPY (immediate, zeroing)" as "CPY (immediate)", "00000101 size:2 01 Pg:4 00 sh:1 imm8:8 Zd:5", cpy_zeroing, sizes!(u: T => fill_zeroing::<T>)),
    sve!("CPY (immediate, merging)" as "CPY (immediate)", "00000101 size:2 01 Pg:4 01 sh:1 imm8:8 Zd:5", cpy_merging, sizes!(u: T => fill_merging::<T>)),
    sve!("FCPY", "00000101 size:2 01 Pg:4 110 imm8:8 Zd:5", fcpy, sizes!(u: T => fill_merging::<T>)),
    sve!("CPY (scalar)", "00000101 size:2 101000 101 Pg:3 Rn:5 Zd:5", cpy_scalar, sizes!(u: T => fill_merging_scalar::<T>)),
    sve!("CPY (SIMD&FP scalar)", "00000101 size:2 100000 100 Pg:3 Vn:5 Zd:5", cpy_simd, sizes!(u: T => fill_merging_simd::<T>)),
    sve!("SEL (vectors)", "00000101 size:2 1 Zm:5 11 Pv:4 Zn:5 Zd:5", sel, sizes!(u: T => select_elements::<T>)),
];

/// By log2 of the element size: the sizes of DUP (indexed) go up to 16 bytes.
const DUP_INDEXED: [Exec; 5] =
    [fill_element::<u8>, fill_element::<u16>, fill_element::<u32>, fill_element::<u64>, fill_element::<u128>];

/// Every element of `Zd` becomes `imm`.
fn fill<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    *cpu.z_mut(i.rd) = splat(T::truncate(i.imm as u64));
    cpu.trim(i.rd);
    Ok(())
}

fn fill_scalar<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    *cpu.z_mut(i.rd) = splat(T::truncate(cpu.x(i.rn)));
    cpu.trim(i.rd);
    Ok(())
}

/// Element `aux` of `Zn`; zero when the vector is too short.
fn fill_element<T: Pod>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    // Elements beyond the vector length are zero.
    let value = cpu.z(i.rn).lanes::<T>().get(usize::from(i.aux)).copied().unwrap_or(T::zeroed());
    *cpu.z_mut(i.rd) = splat(value);
    cpu.trim(i.rd);
    Ok(())
}

fn fill_zeroing<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    write_zeroing::<T>(cpu, i.rd, i.pg, &splat(T::truncate(i.imm as u64)));
    Ok(())
}

fn fill_merging<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    write_merging::<T>(cpu, i.rd, i.pg, &splat(T::truncate(i.imm as u64)));
    Ok(())
}

fn fill_merging_scalar<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let value = splat(T::truncate(cpu.x(i.rn)));
    write_merging::<T>(cpu, i.rd, i.pg, &value);
    Ok(())
}

fn fill_merging_simd<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let value = splat(cpu.z(i.rn).lanes::<T>()[0]);
    write_merging::<T>(cpu, i.rd, i.pg, &value);
    Ok(())
}

fn select_elements<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    *cpu.z_mut(i.rd) = select_active::<T>(cpu.p(i.pg), cpu.z(i.rn), cpu.z(i.rm));
    Ok(())
}

/// Returns the signed eight-bit immediate with its optional shift; bytes have no shift.
fn shifted_immediate(w: u32) -> Option<i64> {
    let shifted = bits(w, 13, 1);
    (size(w) > 0 || shifted == 0).then(|| sbits(w, 5, 8) << (8 * shifted))
}

/// Returns the floating-point number that an eight-bit immediate encodes; byte elements have none.
fn fp_immediate(w: u32) -> Option<i64> {
    let imm8 = bits(w, 5, 8) as u8;
    match size(w) {
        1 => Some(expand_immediate::<u16>(imm8).into()),
        2 => Some(expand_immediate::<u32>(imm8).into()),
        3 => Some(expand_immediate::<u64>(imm8) as i64),
        _ => None,
    }
}

/// `NAME Zd`, writing all of it.
fn to_vector(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    Some(d)
}

fn dup_immediate(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = to_vector(w, c, classes, execs)?;
    d.inst.imm = shifted_immediate(w)?;
    Some(d)
}

fn fdup(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = to_vector(w, c, classes, execs)?;
    d.inst.imm = fp_immediate(w)?;
    Some(d)
}

fn dup_scalar(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = to_vector(w, c, classes, execs)?;
    d.inst.rn = d.src_sp(bits(w, 5, 5));
    Some(d)
}

fn dup_indexed(w: u32, c: &Ctx, classes: &Classes, execs: &[Exec; 5]) -> Option<Decoded> {
    let tsz = bits(w, 16, 5);
    if tsz == 0 {
        return None;
    }
    let log2 = tsz.trailing_zeros();
    let mut d = sve(c, classes[0], execs[log2 as usize]);
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.aux = ((bits(w, 22, 2) << 5 | tsz) >> (log2 + 1)) as u16;
    Some(d)
}

fn cpy_zeroing(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = to_vector(w, c, classes, execs)?;
    d.inst.pg = d.src_p(bits(w, 16, 4));
    d.inst.imm = shifted_immediate(w)?;
    Some(d)
}

/// `NAME Zd, Pg/M`, with the governing predicate in `width` bits from bit `lo`.
fn merging(w: u32, c: &Ctx, classes: &Classes, execs: &BySize, lo: u32, width: u32) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.pg = d.src_p(bits(w, lo, width));
    d.inst.rd = d.both_z(bits(w, 0, 5));
    Some(d)
}

fn cpy_merging(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = merging(w, c, classes, execs, 16, 4)?;
    d.inst.imm = shifted_immediate(w)?;
    Some(d)
}

fn fcpy(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = merging(w, c, classes, execs, 16, 4)?;
    d.inst.imm = fp_immediate(w)?;
    Some(d)
}

fn cpy_scalar(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = merging(w, c, classes, execs, 10, 3)?;
    d.inst.rn = d.src_sp(bits(w, 5, 5));
    Some(d)
}

fn cpy_simd(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = merging(w, c, classes, execs, 10, 3)?;
    d.inst.rn = d.src_z(bits(w, 5, 5));
    Some(d)
}

fn sel(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = to_vector(w, c, classes, execs)?;
    d.inst.pg = d.src_p(bits(w, 10, 4));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rm = d.src_z(bits(w, 16, 5));
    Some(d)
}
