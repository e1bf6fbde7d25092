//! SVE conversions of floating-point numbers: between formats, to and from integers, to integral values.

use fxscope_isa::Governing;

use super::sve_common::{Classes, Done, Element, sve, write_merging};
use super::sve_float::{Unary, floats, merging, merging1, reg, split, unary};
use crate::cpu::{Cpu, Vreg};
use crate::fp::vector::unary as each;
use crate::fp::{self, Float, FpEnv, Integer, Rounding};
use crate::sve;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    sve!("SVE FRINTN" as "FRINTN", "01100101 size:2 000000101 Pg:3 Zn:5 Zd:5", merging, floats!(T => merging1::<Nearest, T>)),
    sve!("SVE FRINTP" as "FRINTP", "01100101 size:2 000001101 Pg:3 Zn:5 Zd:5", merging, floats!(T => merging1::<Up, T>)),
    sve!("SVE FRINTM" as "FRINTM", "01100101 size:2 000010101 Pg:3 Zn:5 Zd:5", merging, floats!(T => merging1::<Down, T>)),
    sve!("SVE FRINTZ" as "FRINTZ", "01100101 size:2 000011101 Pg:3 Zn:5 Zd:5", merging, floats!(T => merging1::<Truncate, T>)),
    sve!("SVE FRINTA" as "FRINTA", "01100101 size:2 000100101 Pg:3 Zn:5 Zd:5", merging, floats!(T => merging1::<Away, T>)),
    sve!("SVE FRINTX" as "FRINTX", "01100101 size:2 000110101 Pg:3 Zn:5 Zd:5", merging, floats!(T => merging1::<CurrentExact, T>)),
    sve!("SVE FRINTI" as "FRINTI", "01100101 size:2 000111101 Pg:3 Zn:5 Zd:5", merging, floats!(T => merging1::<Current, T>)),
    sve!("SVE FCVT" as "FCVT", "01100101 1 opc:1 0010 opc2:2 101 Pg:3 Zn:5 Zd:5", converting::<16>, FORMATS),
    sve!("SVE SCVTF" as "SCVTF", "01100101 opc:2 010 opc2:2 0 101 Pg:3 Zn:5 Zd:5", converting::<17>, FROM_SIGNED),
    sve!("SVE UCVTF" as "UCVTF", "01100101 opc:2 010 opc2:2 1 101 Pg:3 Zn:5 Zd:5", converting::<17>, FROM_UNSIGNED),
    sve!("SVE FCVTZS" as "FCVTZS", "01100101 opc:2 011 opc2:2 0 101 Pg:3 Zn:5 Zd:5", converting::<17>, TO_SIGNED),
    sve!("SVE FCVTZU" as "FCVTZU", "01100101 opc:2 011 opc2:2 1 101 Pg:3 Zn:5 Zd:5", converting::<17>, TO_UNSIGNED),
];

// ---- To integral values ----

unary! {
    Nearest |env, a, p| each::<F>(env, a, p, |env, a| fp::round_to_int(env, a, Rounding::TiesEven, false));
    Up |env, a, p| each::<F>(env, a, p, |env, a| fp::round_to_int(env, a, Rounding::Plus, false));
    Down |env, a, p| each::<F>(env, a, p, |env, a| fp::round_to_int(env, a, Rounding::Minus, false));
    Truncate |env, a, p| each::<F>(env, a, p, |env, a| fp::round_to_int(env, a, Rounding::Zero, false));
    Away |env, a, p| each::<F>(env, a, p, |env, a| fp::round_to_int(env, a, Rounding::TiesAway, false));
    CurrentExact |env, a, p| each::<F>(env, a, p, |env, a| fp::round_to_int(env, a, env.rounding(), true));
    Current |env, a, p| each::<F>(env, a, p, |env, a| fp::round_to_int(env, a, env.rounding(), false));
}

// ---- Conversions ----

/// Executing functions by `opc` (bits 23:22) and `opc2`; `None` where there is no such conversion.
type Conversions = [[Option<Exec>; 4]; 4];

const FORMATS: Conversions = [
    [None; 4],
    [None; 4],
    [Some(format::<u32, u32, u16>), Some(format::<u32, u16, u32>), None, None],
    [
        Some(format::<u64, u64, u16>),
        Some(format::<u64, u16, u64>),
        Some(format::<u64, u64, u32>),
        Some(format::<u64, u32, u64>),
    ],
];

const FROM_SIGNED: Conversions = from_integers::<i16, i32, i64>();
const FROM_UNSIGNED: Conversions = from_integers::<u16, u32, u64>();
const TO_SIGNED: Conversions = to_integers::<i16, i32, i64>();
const TO_UNSIGNED: Conversions = to_integers::<u16, u32, u64>();

/// From integers of 16 (`H`), 32 (`W`) and 64 bits (`X`).
const fn from_integers<H: Integer, W: Integer, X: Integer>() -> Conversions {
    [
        [None; 4],
        [None, Some(from_integer::<u16, H, u16>), Some(from_integer::<u32, W, u16>), Some(from_integer::<u64, X, u16>)],
        [None, None, Some(from_integer::<u32, W, u32>), None],
        [Some(from_integer::<u64, W, u64>), None, Some(from_integer::<u64, X, u32>), Some(from_integer::<u64, X, u64>)],
    ]
}

/// To integers of 16 (`H`), 32 (`W`) and 64 bits (`X`).
const fn to_integers<H: Integer, W: Integer, X: Integer>() -> Conversions {
    [
        [None; 4],
        [None, Some(to_integer::<u16, u16, H>), Some(to_integer::<u32, u16, W>), Some(to_integer::<u64, u16, X>)],
        [None, None, Some(to_integer::<u32, u32, W>), None],
        [Some(to_integer::<u64, u64, W>), None, Some(to_integer::<u64, u32, X>), Some(to_integer::<u64, u64, X>)],
    ]
}

/// `Zd, Pg/M, Zn`, with `opc2` in two bits from bit `OPC2`.
fn converting<const OPC2: u32>(w: u32, c: &Ctx, classes: &Classes, execs: &Conversions) -> Option<Decoded> {
    let (opc, opc2) = (bits(w, 22, 2), bits(w, OPC2, 2));
    let exec = execs[opc as usize][opc2 as usize]?;
    let mut d = sve(c, classes[0], exec);
    d.inst.pg = d.src_p(bits(w, 10, 3));
    // Elements have the larger size of source and result.
    let esize = 1 << if opc == 1 { opc2 } else { opc };
    d.info.governing = Some(Governing { predicate: d.inst.pg, esize });
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    Some(d)
}

/// Applies `f` to the bits of each active element of the size of `C`, the larger of source and result: the smaller one is in its
/// low bits.
#[inline(always)]
fn converted<C: Float + Element>(cpu: &mut Cpu, i: &Inst, f: impl Fn(&mut FpEnv, u64) -> u64) -> Done {
    let p = cpu.p(i.pg);
    let (env, z) = split(cpu);
    let result = each::<C>(env, reg(z, i.rn), p, |env, a| C::from_u64(f(env, a.to_u64())));
    write_merging::<C>(cpu, i.rd, i.pg, &result);
    Ok(())
}

/// The alternative half-precision format does not exist here, regardless of FPCR.AHP.
fn format<C: Float + Element, S: Float, D: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    converted::<C>(cpu, i, |env, a| {
        let mut ieee = FpEnv { fpcr: env.fpcr & !FpEnv::AHP, ..*env };
        let result = fp::convert::<S, D>(&mut ieee, S::from_u64(a));
        (env.fpsr, env.denormals) = (ieee.fpsr, ieee.denormals);
        result.to_u64()
    })
}

fn from_integer<C: Float + Element, I: Integer, D: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    converted::<C>(cpu, i, |env, a| {
        let rounding = env.rounding();
        fp::from_int::<D, I>(env, low(a), 0, rounding).to_u64()
    })
}

/// Extends results that are narrower than their elements according to their type.
fn to_integer<C: Float + Element, S: Float, I: Integer>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    converted::<C>(cpu, i, |env, a| fp::to_int::<S, I>(env, S::from_u64(a), 0, Rounding::Zero).to_i128() as u64)
}

/// Returns the low bits of `bits` as an integer.
#[inline(always)]
fn low<I: Integer>(bits: u64) -> I {
    let unused = 64 - 8 * size_of::<I>();
    let value = bits << unused;
    I::from_i128(if I::MIN < 0 { i128::from(value as i64 >> unused) } else { i128::from(value >> unused) })
}
