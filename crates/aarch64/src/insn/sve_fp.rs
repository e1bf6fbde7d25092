//! SVE floating-point arithmetic on one and two operands, and the accelerators of elementary functions.

use super::sve_common::{BySize, Classes, Done, Element, map1, map2, size, splat, write_merging};
use super::sve_float::{
    Binary, Unary, binary, destructive, float, floats, merging, merging1, merging2, plain, plain1, plain2, predicated,
    reg, reversed, split, unary, unpredicated,
};
use crate::cpu::{Cpu, Vreg};
use crate::fp::vector::{self, all};
use crate::fp::{self, Float, FpEnv};
use crate::sve;
use crate::table::{Ctx, Decoded, Encoding, Inst, bits};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    // Two operands, predicated.
    sve!("FADD (vectors, predicated)", "01100101 size:2 000000100 Pg:3 Zm:5 Zdn:5", predicated::<1>, floats!(T => merging2::<Add, T>)),
    sve!("FSUB (vectors, predicated)", "01100101 size:2 000001100 Pg:3 Zm:5 Zdn:5", predicated::<1>, floats!(T => merging2::<Sub, T>)),
    sve!("FMUL (vectors, predicated)", "01100101 size:2 000010100 Pg:3 Zm:5 Zdn:5", predicated::<1>, floats!(T => merging2::<Mul, T>)),
    sve!("FSUBR (vectors)", "01100101 size:2 000011100 Pg:3 Zm:5 Zdn:5", reversed::<1>, floats!(T => merging2::<Sub, T>)),
    sve!("FMAXNM (vectors)", "01100101 size:2 000100100 Pg:3 Zm:5 Zdn:5", predicated::<0>, floats!(T => merging2::<MaxNumber, T>)),
    sve!("FMINNM (vectors)", "01100101 size:2 000101100 Pg:3 Zm:5 Zdn:5", predicated::<0>, floats!(T => merging2::<MinNumber, T>)),
    sve!("FMAX (vectors)", "01100101 size:2 000110100 Pg:3 Zm:5 Zdn:5", predicated::<0>, floats!(T => merging2::<Max, T>)),
    sve!("FMIN (vectors)", "01100101 size:2 000111100 Pg:3 Zm:5 Zdn:5", predicated::<0>, floats!(T => merging2::<Min, T>)),
    sve!("SVE FABD" as "FABD", "01100101 size:2 001000100 Pg:3 Zm:5 Zdn:5", predicated::<1>, floats!(T => merging2::<AbsoluteDifference, T>)),
    sve!("FSCALE", "01100101 size:2 001001100 Pg:3 Zm:5 Zdn:5", predicated::<1>, floats!(T => merging2::<Scale, T>)),
    sve!("SVE FMULX" as "FMULX", "01100101 size:2 001010100 Pg:3 Zm:5 Zdn:5", predicated::<1>, floats!(T => merging2::<MulExtended, T>)),
    sve!("FDIVR" sized "FDIVR [T", "01100101 size:2 001100100 Pg:3 Zm:5 Zdn:5", reversed::<1>, floats!(T => merging2::<Div, T>)),
    sve!("FDIV" sized "FDIV [T", "01100101 size:2 001101100 Pg:3 Zm:5 Zdn:5", predicated::<1>, floats!(T => merging2::<Div, T>)),
    // Immediate.
    sve!("FADD (immediate)", "01100101 size:2 011000100 Pg:3 0000 i1:1 Zdn:5", half_or_one, floats!(T => with_immediate::<Add, T>)),
    sve!("FSUB (immediate)", "01100101 size:2 011001100 Pg:3 0000 i1:1 Zdn:5", half_or_one, floats!(T => with_immediate::<Sub, T>)),
    sve!("FMUL (immediate)", "01100101 size:2 011010100 Pg:3 0000 i1:1 Zdn:5", half_or_two, floats!(T => with_immediate::<Mul, T>)),
    sve!("FSUBR (immediate)", "01100101 size:2 011011100 Pg:3 0000 i1:1 Zdn:5", half_or_one, floats!(T => with_immediate::<SubReversed, T>)),
    sve!("FMAXNM (immediate)", "01100101 size:2 011100100 Pg:3 0000 i1:1 Zdn:5", zero_or_one, floats!(T => with_immediate::<MaxNumber, T>)),
    sve!("FMINNM (immediate)", "01100101 size:2 011101100 Pg:3 0000 i1:1 Zdn:5", zero_or_one, floats!(T => with_immediate::<MinNumber, T>)),
    sve!("FMAX (immediate)", "01100101 size:2 011110100 Pg:3 0000 i1:1 Zdn:5", zero_or_one, floats!(T => with_immediate::<Max, T>)),
    sve!("FMIN (immediate)", "01100101 size:2 011111100 Pg:3 0000 i1:1 Zdn:5", zero_or_one, floats!(T => with_immediate::<Min, T>)),
    // Two operands, unpredicated.
    sve!("FADD (vectors, unpredicated)", "01100101 size:2 0 Zm:5 000000 Zn:5 Zd:5", unpredicated::<1>, floats!(T => plain2::<Add, T>)),
    sve!("FSUB (vectors, unpredicated)", "01100101 size:2 0 Zm:5 000001 Zn:5 Zd:5", unpredicated::<1>, floats!(T => plain2::<Sub, T>)),
    sve!("FMUL (vectors, unpredicated)", "01100101 size:2 0 Zm:5 000010 Zn:5 Zd:5", unpredicated::<1>, floats!(T => plain2::<Mul, T>)),
    sve!("FTSMUL", "01100101 size:2 0 Zm:5 000011 Zn:5 Zd:5", unpredicated::<1>, floats!(T => plain2::<TrigStart, T>)),
    sve!("SVE FRECPS" as "FRECPS", "01100101 size:2 0 Zm:5 000110 Zn:5 Zd:5", unpredicated::<1>, floats!(T => plain2::<RecipStep, T>)),
    sve!("SVE FRSQRTS" as "FRSQRTS", "01100101 size:2 0 Zm:5 000111 Zn:5 Zd:5", unpredicated::<1>, floats!(T => plain2::<RsqrtStep, T>)),
    sve!("FTSSEL", "00000100 size:2 1 Zm:5 101100 Zn:5 Zd:5", unpredicated::<0>, floats!(T => plain2::<TrigSelect, T>)),
    sve!("FTMAD", "01100101 size:2 010 imm3:3 100000 Zm:5 Zdn:5", ftmad, floats!(T => trig_step::<T>)),
    // One operand.
    sve!("SVE FABS" as "FABS", "00000100 size:2 011100101 Pg:3 Zn:5 Zd:5", merging, floats!(T => merging1::<Abs, T>)),
    sve!("SVE FNEG" as "FNEG", "00000100 size:2 011101101 Pg:3 Zn:5 Zd:5", merging, floats!(T => merging1::<Neg, T>)),
    sve!("SVE FRECPX" as "FRECPX", "01100101 size:2 001100101 Pg:3 Zn:5 Zd:5", merging, floats!(T => merging1::<RecipExponent, T>)),
    sve!("SVE FSQRT" sized "FSQRT [T", "01100101 size:2 001101101 Pg:3 Zn:5 Zd:5", merging, floats!(T => merging1::<Sqrt, T>)),
    sve!("SVE FRECPE" as "FRECPE", "01100101 size:2 001110001100 Zn:5 Zd:5", plain::<0>, floats!(T => plain1::<RecipEstimate, T>)),
    sve!("SVE FRSQRTE" as "FRSQRTE", "01100101 size:2 001111001100 Zn:5 Zd:5", plain::<0>, floats!(T => plain1::<RsqrtEstimate, T>)),
    sve!("FEXPA", "00000100 size:2 100000101110 Zn:5 Zd:5", plain::<0>, floats!(T => plain1::<ExpAccelerator, T>)),
];

binary! {
    Add |env, a, b, p| vector::add::<F>(env, a, b, p);
    Sub |env, a, b, p| vector::sub::<F>(env, a, b, p);
    SubReversed |env, a, b, p| vector::sub::<F>(env, b, a, p);
    Mul |env, a, b, p| vector::mul::<F>(env, a, b, p);
    Div |env, a, b, p| vector::div::<F>(env, a, b, p);
    Max |env, a, b, p| vector::max::<F>(env, a, b, p);
    Min |env, a, b, p| vector::min::<F>(env, a, b, p);
    MaxNumber |env, a, b, p| vector::maxnm::<F>(env, a, b, p);
    MinNumber |env, a, b, p| vector::minnm::<F>(env, a, b, p);
    AbsoluteDifference |env, a, b, p| vector::abd::<F>(env, a, b, p);
    MulExtended |env, a, b, p| vector::mulx::<F>(env, a, b, p);
    RecipStep |env, a, b, p| vector::recip_step::<F>(env, a, b, p);
    RsqrtStep |env, a, b, p| vector::rsqrt_step::<F>(env, a, b, p);
    Scale |env, a, b, p| vector::binary::<F>(env, a, b, p, |env, a, b| fp::scale(env, a, signed(b)));
    TrigStart |env, a, b, p| vector::binary::<F>(env, a, b, p, fp::tsmul);
    TrigSelect |_env, a, b, _p| map2::<F>(a, b, fp::tssel);
}

unary! {
    Abs |_env, a, _p| vector::abs::<F>(a);
    Neg |_env, a, _p| vector::neg::<F>(a);
    Sqrt |env, a, p| vector::sqrt::<F>(env, a, p);
    RecipExponent |env, a, p| vector::unary::<F>(env, a, p, fp::recipx);
    RecipEstimate |env, a, p| vector::unary::<F>(env, a, p, fp::recip_estimate);
    RsqrtEstimate |env, a, p| vector::unary::<F>(env, a, p, fp::rsqrt_estimate);
    ExpAccelerator |_env, a, _p| map1::<F>(a, fp::expa);
}

/// Returns a bit pattern as a signed integer.
fn signed<F: Float>(value: F) -> i64 {
    let unused = 64 - F::BITS;
    (value.to_u64() << unused) as i64 >> unused
}

// ---- Immediates ----

/// `Zdn, Pg/M, Zdn, #const`: the constant is a power of two by its exponent, or zero, picked by bit 5.
fn immediate<const FLOPS: u8>(
    w: u32,
    c: &Ctx,
    classes: &Classes,
    execs: &BySize,
    constants: [Option<i32>; 2],
) -> Option<Decoded> {
    let mut d = destructive::<FLOPS>(w, c, classes, execs)?;
    let exponent = constants[bits(w, 5, 1) as usize];
    d.inst.imm2 = exponent.map_or(0, |e| match size(w) {
        1 => u16::power_of_two(false, e).to_u64(),
        2 => u32::power_of_two(false, e).to_u64(),
        _ => u64::power_of_two(false, e),
    });
    Some(d)
}

fn half_or_one(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    immediate::<1>(w, c, classes, execs, [Some(-1), Some(0)])
}

fn half_or_two(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    immediate::<1>(w, c, classes, execs, [Some(-1), Some(1)])
}

fn zero_or_one(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    immediate::<0>(w, c, classes, execs, [None, Some(0)])
}

fn with_immediate<O: Binary, F: Float + Element>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let p = cpu.p(i.pg);
    let constant = splat(F::from_u64(i.imm2));
    let (env, z) = split(cpu);
    let result = O::apply::<F>(env, reg(z, i.rn), &constant, p);
    write_merging::<F>(cpu, i.rd, i.pg, &result);
    Ok(())
}

// ---- FTMAD ----

fn ftmad(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = float::<2>(w, c, classes, execs)?;
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.rm = d.src_z(bits(w, 5, 5));
    d.inst.aux = bits(w, 16, 3) as u16;
    Some(d)
}

fn trig_step<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let p = all(cpu.vl);
    let (env, z) = split(cpu);
    let step = |env: &mut FpEnv, a, b| fp::tmad::<F>(env, usize::from(i.aux), a, b);
    *cpu.z_mut(i.rd) = vector::binary(env, reg(z, i.rd), reg(z, i.rm), p, step);
    cpu.trim(i.rd);
    Ok(())
}
