//! SVE floating-point multiply-add, products with an indexed element, and complex arithmetic.

use super::sve_common::{BySize, Classes, Done, Element, from_fn, write_merging};
use super::sve_float::{destructive, floats, reg, sized, split};
use crate::cpu::{Cpu, Vreg};
use crate::fp::vector::{self, all};
use crate::fp::{self, Float, FpEnv};
use crate::sve;
use crate::table::{Ctx, Decoded, Encoding, Inst, bits};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    // Into the addend.
    sve!("FMLA", "01100101 size:2 1 Zm:5 000 Pg:3 Zn:5 Zda:5", accumulating, floats!(T => fused::<T, false, false>)),
    sve!("FMLS", "01100101 size:2 1 Zm:5 001 Pg:3 Zn:5 Zda:5", accumulating, floats!(T => fused::<T, true, false>)),
    sve!("FNMLA", "01100101 size:2 1 Zm:5 010 Pg:3 Zn:5 Zda:5", accumulating, floats!(T => fused::<T, true, true>)),
    sve!("FNMLS", "01100101 size:2 1 Zm:5 011 Pg:3 Zn:5 Zda:5", accumulating, floats!(T => fused::<T, false, true>)),
    // Into a factor.
    sve!("FMAD", "01100101 size:2 1 Za:5 100 Pg:3 Zm:5 Zdn:5", multiplying, floats!(T => fused::<T, false, false>)),
    sve!("FMSB", "01100101 size:2 1 Za:5 101 Pg:3 Zm:5 Zdn:5", multiplying, floats!(T => fused::<T, true, false>)),
    sve!("FNMAD", "01100101 size:2 1 Za:5 110 Pg:3 Zm:5 Zdn:5", multiplying, floats!(T => fused::<T, true, true>)),
    sve!("FNMSB", "01100101 size:2 1 Za:5 111 Pg:3 Zm:5 Zdn:5", multiplying, floats!(T => fused::<T, false, true>)),
    // By an element of each 128-bit part.
    sve!("FMLA (indexed)", "01100100 size:2 1 opc:5 000000 Zn:5 Zda:5", accumulating_indexed, floats!(T => fused_indexed::<T, false>)),
    sve!("FMLS (indexed)", "01100100 size:2 1 opc:5 000001 Zn:5 Zda:5", accumulating_indexed, floats!(T => fused_indexed::<T, true>)),
    sve!("FMUL (indexed)", "01100100 size:2 1 opc:5 001000 Zn:5 Zd:5", multiplying_indexed, floats!(T => product_indexed::<T>)),
    // Complex numbers: real part in even elements, imaginary part in odd ones.
    sve!("SVE FCADD" as "FCADD", "01100100 size:2 00000 rot:1 100 Pg:3 Zm:5 Zdn:5", fcadd, floats!(T => add_rotated::<T>)),
    sve!("FCMLA (vectors)", "01100100 size:2 0 Zm:5 0 rot:2 Pg:3 Zn:5 Zda:5", fcmla, floats!(T => fused_complex::<T>)),
    sve!("FCMLA (indexed)", "01100100 1 sz:1 1 opc:5 0001 rot:2 Zn:5 Zda:5", fcmla_indexed, floats!(T => fused_complex_indexed::<T>)),
];

// ---- Multiply-add ----

/// `Zda, Pg/M, Zn, Zm`.
fn accumulating(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = destructive::<2>(w, c, classes, execs)?;
    d.inst.ra = d.inst.rd;
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rm = d.src_z(bits(w, 16, 5));
    Some(d)
}

/// `Zdn, Pg/M, Zm, Za`.
fn multiplying(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = destructive::<2>(w, c, classes, execs)?;
    d.inst.rm = d.src_z(bits(w, 5, 5));
    d.inst.ra = d.src_z(bits(w, 16, 5));
    Some(d)
}

/// ±`addend` ± `a` × `b`, rounded once. The operands are negated, not the result, which matters for NaNs.
#[inline(always)]
fn mul_add<F: Float, const NEGATE_PRODUCT: bool, const NEGATE_ADDEND: bool>(
    env: &mut FpEnv,
    addend: &Vreg,
    a: &Vreg,
    b: &Vreg,
    p: u64,
) -> Vreg {
    let (negated_addend, negated_a);
    let addend = if NEGATE_ADDEND {
        negated_addend = vector::neg::<F>(addend);
        &negated_addend
    } else {
        addend
    };
    let a = if NEGATE_PRODUCT {
        negated_a = vector::neg::<F>(a);
        &negated_a
    } else {
        a
    };
    vector::mul_add::<F>(env, addend, a, b, p)
}

fn fused<F: Float + Element, const NEGATE_PRODUCT: bool, const NEGATE_ADDEND: bool>(
    cpu: &mut Cpu,
    _: &mut Memory,
    i: &Inst,
) -> Done {
    let p = cpu.p(i.pg);
    let (env, z) = split(cpu);
    let result = mul_add::<F, NEGATE_PRODUCT, NEGATE_ADDEND>(env, reg(z, i.ra), reg(z, i.rn), reg(z, i.rm), p);
    write_merging::<F>(cpu, i.rd, i.pg, &result);
    Ok(())
}

// ---- By element ----

/// Reads `[index]`: log2 of the element size, from bits 23:22; register and index from bits 20:16, and for half precision also
/// bit 22.
fn element(w: u32) -> (usize, u32, u16) {
    match bits(w, 22, 2) {
        0 | 1 => (1, bits(w, 16, 3), (bits(w, 22, 1) << 2 | bits(w, 19, 2)) as u16),
        2 => (2, bits(w, 16, 3), bits(w, 19, 2) as u16),
        _ => (3, bits(w, 16, 4), bits(w, 20, 1) as u16),
    }
}

/// `Zda, Zn, Zm[index]`.
fn accumulating_indexed(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let (log2, zm, index) = element(w);
    let mut d = sized::<2>(log2, c, classes, execs)?;
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.ra = d.inst.rd;
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rm = d.element_z(zm);
    d.inst.aux = index;
    Some(d)
}

/// `Zd, Zn, Zm[index]`.
fn multiplying_indexed(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let (log2, zm, index) = element(w);
    let mut d = sized::<1>(log2, c, classes, execs)?;
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rm = d.element_z(zm);
    d.inst.aux = index;
    Some(d)
}

/// Returns element `index` of each 128-bit part in all elements of that part.
#[inline(always)]
fn broadcast<F: Float>(a: &Vreg, index: u16) -> Vreg {
    let part = 16 / size_of::<F>();
    from_fn(|e| a.lanes::<F>()[e / part * part + (usize::from(index) & (part - 1))])
}

fn fused_indexed<F: Float, const NEGATE: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let factor = broadcast::<F>(cpu.z(i.rm), i.aux);
    let p = all(cpu.vl);
    let (env, z) = split(cpu);
    *cpu.z_mut(i.rd) = mul_add::<F, NEGATE, false>(env, reg(z, i.ra), reg(z, i.rn), &factor, p);
    cpu.trim(i.rd);
    Ok(())
}

fn product_indexed<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let factor = broadcast::<F>(cpu.z(i.rm), i.aux);
    let p = all(cpu.vl);
    let (env, z) = split(cpu);
    *cpu.z_mut(i.rd) = vector::mul::<F>(env, reg(z, i.rn), &factor, p);
    cpu.trim(i.rd);
    Ok(())
}

// ---- Complex ----

/// Negates `value` if `negate`.
#[inline(always)]
fn negated_if<F: Float>(negate: bool, value: F) -> F {
    if negate { fp::neg(value) } else { value }
}

/// `Zdn, Pg/M, Zdn, Zm, #rot`: 90 or 270 degrees.
fn fcadd(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = destructive::<1>(w, c, classes, execs)?;
    d.inst.rm = d.src_z(bits(w, 5, 5));
    d.inst.aux = bits(w, 16, 1) as u16;
    Some(d)
}

fn add_rotated<F: Float + Element>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let p = cpu.p(i.pg);
    let (env, z) = split(cpu);
    let b = reg(z, i.rm).lanes::<F>();
    // i × (x + iy) = −y + ix; rotated by 270 degrees it is y − ix.
    let negative = usize::from(i.aux);
    let rotated = from_fn(|e| negated_if(e & 1 == negative, b[e ^ 1]));
    let result = vector::add::<F>(env, reg(z, i.rn), &rotated, p);
    write_merging::<F>(cpu, i.rd, i.pg, &result);
    Ok(())
}

/// `Zda, Pg/M, Zn, Zm, #rot`: a multiple of 90 degrees.
fn fcmla(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = accumulating(w, c, classes, execs)?;
    d.inst.imm = i64::from(bits(w, 13, 2));
    Some(d)
}

/// `Zda, Zn, Zm[index], #rot`: the index counts complex numbers.
fn fcmla_indexed(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let single = bits(w, 22, 1) == 1;
    let (zm, index) = if single { (bits(w, 16, 4), bits(w, 20, 1)) } else { (bits(w, 16, 3), bits(w, 19, 2)) };
    let mut d = sized::<2>(1 + usize::from(single), c, classes, execs)?;
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.ra = d.inst.rd;
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rm = d.element_z(zm);
    d.inst.aux = index as u16;
    d.inst.imm = i64::from(bits(w, 10, 2));
    Some(d)
}

/// `ra` + `rn` × `b` for the parts of the complex product that rotation `rot` selects: one part of each element of `rn` times
/// both parts of `b`, some of them negated.
#[inline(always)]
fn complex_mul_add<F: Float>(env: &mut FpEnv, z: &[Vreg; 32], i: &Inst, b: &Vreg, p: u64) -> Vreg {
    let (a, b) = (reg(z, i.rn).lanes::<F>(), b.lanes::<F>());
    let (odd, high) = (i.imm & 1 == 1, i.imm & 2 == 2);
    let part = from_fn(|e| a[e & !1 | usize::from(odd)]);
    let factor = from_fn(|e| {
        let negate = if e & 1 == 0 { odd != high } else { high };
        negated_if(negate, b[e ^ usize::from(odd)])
    });
    vector::mul_add::<F>(env, reg(z, i.ra), &part, &factor, p)
}

fn fused_complex<F: Float + Element>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let p = cpu.p(i.pg);
    let (env, z) = split(cpu);
    let result = complex_mul_add::<F>(env, z, i, reg(z, i.rm), p);
    write_merging::<F>(cpu, i.rd, i.pg, &result);
    Ok(())
}

fn fused_complex_indexed<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let part = 16 / size_of::<F>();
    let first = (2 * usize::from(i.aux)) & (part - 1);
    let source = cpu.z(i.rm).lanes::<F>();
    let b = from_fn(|e| source[e / part * part + first + (e & 1)]);
    let p = all(cpu.vl);
    let (env, z) = split(cpu);
    *cpu.z_mut(i.rd) = complex_mul_add::<F>(env, z, i, &b, p);
    cpu.trim(i.rd);
    Ok(())
}
