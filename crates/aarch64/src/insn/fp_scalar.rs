//! Scalar floating point.

use fxscope_isa::{FpOp, InstKind};

use crate::cpu::{Cpu, Stop, Vreg};
use crate::enc;
use crate::fp::{self, Float, FpEnv, Integer, Rounding};
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use fxscope_guestmem::Memory;

/// Encodings of this group.
pub static TABLE: &[Encoding] = &[
    // Two sources.
    enc!("FMUL (scalar)", "00011110 ftype:2 1 rm:5 0000 10 rn:5 rd:5", fmul),
    enc!("FDIV (scalar)", "00011110 ftype:2 1 rm:5 0001 10 rn:5 rd:5", fdiv),
    enc!("FADD (scalar)", "00011110 ftype:2 1 rm:5 0010 10 rn:5 rd:5", fadd),
    enc!("FSUB (scalar)", "00011110 ftype:2 1 rm:5 0011 10 rn:5 rd:5", fsub),
    enc!("FMAX (scalar)", "00011110 ftype:2 1 rm:5 0100 10 rn:5 rd:5", fmax),
    enc!("FMIN (scalar)", "00011110 ftype:2 1 rm:5 0101 10 rn:5 rd:5", fmin),
    enc!("FMAXNM (scalar)", "00011110 ftype:2 1 rm:5 0110 10 rn:5 rd:5", fmaxnm),
    enc!("FMINNM (scalar)", "00011110 ftype:2 1 rm:5 0111 10 rn:5 rd:5", fminnm),
    enc!("FNMUL (scalar)", "00011110 ftype:2 1 rm:5 1000 10 rn:5 rd:5", fnmul),
    // Three sources.
    enc!("FMADD", "00011111 ftype:2 0 rm:5 0 ra:5 rn:5 rd:5", fmadd),
    enc!("FMSUB", "00011111 ftype:2 0 rm:5 1 ra:5 rn:5 rd:5", fmsub),
    enc!("FNMADD", "00011111 ftype:2 1 rm:5 0 ra:5 rn:5 rd:5", fnmadd),
    enc!("FNMSUB", "00011111 ftype:2 1 rm:5 1 ra:5 rn:5 rd:5", fnmsub),
    // One source.
    enc!("FMOV (register)", "00011110 ftype:2 1 000000 10000 rn:5 rd:5", fmov_register),
    enc!("FABS (scalar)", "00011110 ftype:2 1 000001 10000 rn:5 rd:5", fabs),
    enc!("FNEG (scalar)", "00011110 ftype:2 1 000010 10000 rn:5 rd:5", fneg),
    enc!("FSQRT (scalar)", "00011110 ftype:2 1 000011 10000 rn:5 rd:5", fsqrt),
    enc!("FCVT", "00011110 ftype:2 1 0001 opc:2 10000 rn:5 rd:5", fcvt),
    enc!("FRINTN (scalar)", "00011110 ftype:2 1 001000 10000 rn:5 rd:5", frintn),
    enc!("FRINTP (scalar)", "00011110 ftype:2 1 001001 10000 rn:5 rd:5", frintp),
    enc!("FRINTM (scalar)", "00011110 ftype:2 1 001010 10000 rn:5 rd:5", frintm),
    enc!("FRINTZ (scalar)", "00011110 ftype:2 1 001011 10000 rn:5 rd:5", frintz),
    enc!("FRINTA (scalar)", "00011110 ftype:2 1 001100 10000 rn:5 rd:5", frinta),
    enc!("FRINTX (scalar)", "00011110 ftype:2 1 001110 10000 rn:5 rd:5", frintx),
    enc!("FRINTI (scalar)", "00011110 ftype:2 1 001111 10000 rn:5 rd:5", frinti),
    // Comparison and selection.
    enc!("FCMP", "00011110 ftype:2 1 rm:5 00 1000 rn:5 00000", fcmp),
    enc!("FCMP (zero)", "00011110 ftype:2 1 00000 00 1000 rn:5 01000", fcmp_zero),
    enc!("FCMPE", "00011110 ftype:2 1 rm:5 00 1000 rn:5 10000", fcmpe),
    enc!("FCMPE (zero)", "00011110 ftype:2 1 00000 00 1000 rn:5 11000", fcmpe_zero),
    enc!("FCCMP", "00011110 ftype:2 1 rm:5 cond:4 01 rn:5 0 nzcv:4", fccmp),
    enc!("FCCMPE", "00011110 ftype:2 1 rm:5 cond:4 01 rn:5 1 nzcv:4", fccmpe),
    enc!("FCSEL", "00011110 ftype:2 1 rm:5 cond:4 11 rn:5 rd:5", fcsel),
    enc!("FMOV (scalar, immediate)", "00011110 ftype:2 1 imm8:8 100 00000 rd:5", fmov_immediate),
    // To and from general-purpose registers.
    enc!("FCVTNS (scalar)", "sf:1 0011110 ftype:2 1 00 000 000000 rn:5 rd:5", fcvtns),
    enc!("FCVTNU (scalar)", "sf:1 0011110 ftype:2 1 00 001 000000 rn:5 rd:5", fcvtnu),
    enc!("SCVTF (scalar, integer)", "sf:1 0011110 ftype:2 1 00 010 000000 rn:5 rd:5", scvtf),
    enc!("UCVTF (scalar, integer)", "sf:1 0011110 ftype:2 1 00 011 000000 rn:5 rd:5", ucvtf),
    enc!("FCVTAS (scalar)", "sf:1 0011110 ftype:2 1 00 100 000000 rn:5 rd:5", fcvtas),
    enc!("FCVTAU (scalar)", "sf:1 0011110 ftype:2 1 00 101 000000 rn:5 rd:5", fcvtau),
    enc!("FMOV (general) to general", "sf:1 0011110 ftype:2 1 00 110 000000 rn:5 rd:5", fmov_to_general),
    enc!("FMOV (general) from general", "sf:1 0011110 ftype:2 1 00 111 000000 rn:5 rd:5", fmov_from_general),
    enc!("FCVTPS (scalar)", "sf:1 0011110 ftype:2 1 01 000 000000 rn:5 rd:5", fcvtps),
    enc!("FCVTPU (scalar)", "sf:1 0011110 ftype:2 1 01 001 000000 rn:5 rd:5", fcvtpu),
    enc!("FMOV (general) from top half", "1 0011110 10 1 01 110 000000 rn:5 rd:5", fmov_from_top),
    enc!("FMOV (general) to top half", "1 0011110 10 1 01 111 000000 rn:5 rd:5", fmov_to_top),
    enc!("FCVTMS (scalar)", "sf:1 0011110 ftype:2 1 10 000 000000 rn:5 rd:5", fcvtms),
    enc!("FCVTMU (scalar)", "sf:1 0011110 ftype:2 1 10 001 000000 rn:5 rd:5", fcvtmu),
    enc!("FCVTZS (scalar, integer)", "sf:1 0011110 ftype:2 1 11 000 000000 rn:5 rd:5", fcvtzs),
    enc!("FCVTZU (scalar, integer)", "sf:1 0011110 ftype:2 1 11 001 000000 rn:5 rd:5", fcvtzu),
    enc!("SCVTF (scalar, fixed-point)", "sf:1 0011110 ftype:2 0 00 010 scale:6 rn:5 rd:5", scvtf_fixed),
    enc!("UCVTF (scalar, fixed-point)", "sf:1 0011110 ftype:2 0 00 011 scale:6 rn:5 rd:5", ucvtf_fixed),
    enc!("FCVTZS (scalar, fixed-point)", "sf:1 0011110 ftype:2 0 11 000 scale:6 rn:5 rd:5", fcvtzs_fixed),
    enc!("FCVTZU (scalar, fixed-point)", "sf:1 0011110 ftype:2 0 11 001 scale:6 rn:5 rd:5", fcvtzu_fixed),
];

/// Returns the number in register `n`.
#[inline(always)]
fn read<F: Float>(cpu: &Cpu, n: u8) -> F {
    cpu.z(n).lanes()[0]
}

/// Writes a number to register `n` and zero above.
#[inline(always)]
fn write<F: Float>(cpu: &mut Cpu, n: u8, value: F) {
    *cpu.z_mut(n) = Vreg::from_low(u128::from(value.to_u64()));
}

/// Selects by the format field of a scalar instruction: half, single or double.
fn by_format<T>(w: u32, [half, single, double]: [T; 3]) -> Option<T> {
    match bits(w, 22, 2) {
        0 => Some(single),
        1 => Some(double),
        3 => Some(half),
        _ => None,
    }
}

/// A scalar instruction that does `flops` operations.
fn scalar(w: u32, c: &Ctx, class: &'static str, flops: u8, exec: Exec) -> Decoded {
    let mut d = Decoded::new(c, class, exec);
    d.info.kind = InstKind::FpScalar;
    if flops != 0 {
        let esize = by_format(w, [2, 4, 8]).unwrap_or(8);
        d.info.fp = FpOp { per_element: flops, esize, elements: 1, scalable: false };
    }
    d
}

/// Rd = f(Rn, Rm).
macro_rules! two_sources {
    ($($name:ident: $class:expr, $flops:literal, $f:expr;)*) => {$(
        fn $name(w: u32, c: &Ctx) -> Option<Decoded> {
            fn exec<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
                let (a, b) = (read::<F>(cpu, i.rn), read::<F>(cpu, i.rm));
                let r: F = $f(&mut cpu.fp, a, b);
                write(cpu, i.rd, r);
                Ok(())
            }
            let class = by_format(w, $class)?;
            let mut d = scalar(w, c, class, $flops, by_format(w, [exec::<u16>, exec::<u32>, exec::<u64>])?);
            d.inst.rn = d.src_z(bits(w, 5, 5));
            d.inst.rm = d.src_z(bits(w, 16, 5));
            d.inst.rd = d.dst_z(bits(w, 0, 5));
            Some(d)
        }
    )*};
}
two_sources! {
    fmul: ["fp:FMUL (scalar)"; 3], 1, fp::mul;
    fdiv: ["fp:FDIV (scalar) [R=H]", "fp:FDIV (scalar) [R=S]", "fp:FDIV (scalar) [R=D]"], 1, fp::div;
    fadd: ["fp:FADD (scalar)"; 3], 1, fp::add;
    fsub: ["fp:FSUB (scalar)"; 3], 1, fp::sub;
    fmax: ["fp:FMAX (scalar)"; 3], 0, fp::max;
    fmin: ["fp:FMIN (scalar)"; 3], 0, fp::min;
    fmaxnm: ["fp:FMAXNM (scalar)"; 3], 0, fp::maxnm;
    fminnm: ["fp:FMINNM (scalar)"; 3], 0, fp::minnm;
    fnmul: ["simd:FNMUL"; 3], 1, |env, a, b| fp::neg(fp::mul(env, a, b));
}

/// Rd = f(Ra, Rn, Rm).
macro_rules! three_sources {
    ($($name:ident: $class:literal, $f:expr;)*) => {$(
        fn $name(w: u32, c: &Ctx) -> Option<Decoded> {
            fn exec<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
                let (addend, a, b) = (read::<F>(cpu, i.ra), read::<F>(cpu, i.rn), read::<F>(cpu, i.rm));
                let r: F = $f(&mut cpu.fp, addend, a, b);
                write(cpu, i.rd, r);
                Ok(())
            }
            let mut d = scalar(w, c, $class, 2, by_format(w, [exec::<u16>, exec::<u32>, exec::<u64>])?);
            d.inst.rn = d.src_z(bits(w, 5, 5));
            d.inst.rm = d.src_z(bits(w, 16, 5));
            d.inst.ra = d.src_z(bits(w, 10, 5));
            d.inst.rd = d.dst_z(bits(w, 0, 5));
            Some(d)
        }
    )*};
}
three_sources! {
    fmadd: "simd:FMADD", fp::mul_add;
    fmsub: "simd:FMSUB", |env, addend, a, b| fp::mul_add(env, addend, fp::neg(a), b);
    fnmadd: "simd:FNMADD", |env, addend, a, b| fp::mul_add(env, fp::neg(addend), fp::neg(a), b);
    fnmsub: "simd:FNMSUB", |env, addend, a, b| fp::mul_add(env, fp::neg(addend), a, b);
}

/// Rd = f(Rn).
macro_rules! one_source {
    ($($name:ident: $class:expr, $flops:literal, $f:expr;)*) => {$(
        fn $name(w: u32, c: &Ctx) -> Option<Decoded> {
            fn exec<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
                let a = read::<F>(cpu, i.rn);
                let r: F = $f(&mut cpu.fp, a);
                write(cpu, i.rd, r);
                Ok(())
            }
            let class = by_format(w, $class)?;
            let mut d = scalar(w, c, class, $flops, by_format(w, [exec::<u16>, exec::<u32>, exec::<u64>])?);
            d.inst.rn = d.src_z(bits(w, 5, 5));
            d.inst.rd = d.dst_z(bits(w, 0, 5));
            Some(d)
        }
    )*};
}
one_source! {
    fmov_register: ["simd:FMOV (register)"; 3], 0, |_: &mut FpEnv, a| a;
    fabs: ["fp:FABS (scalar)"; 3], 0, |_: &mut FpEnv, a| fp::abs(a);
    fneg: ["fp:FNEG (scalar)"; 3], 0, |_: &mut FpEnv, a| fp::neg(a);
    fsqrt: ["fp:FSQRT (scalar) [R=H]", "fp:FSQRT (scalar) [R=S]", "fp:FSQRT (scalar) [R=D]"], 1, fp::sqrt;
    frintn: ["fp:FRINTN (scalar)"; 3], 0, |env, a| fp::round_to_int(env, a, Rounding::TiesEven, false);
    frintp: ["fp:FRINTP (scalar)"; 3], 0, |env, a| fp::round_to_int(env, a, Rounding::Plus, false);
    frintm: ["fp:FRINTM (scalar)"; 3], 0, |env, a| fp::round_to_int(env, a, Rounding::Minus, false);
    frintz: ["fp:FRINTZ (scalar)"; 3], 0, |env, a| fp::round_to_int(env, a, Rounding::Zero, false);
    frinta: ["fp:FRINTA (scalar)"; 3], 0, |env, a| fp::round_to_int(env, a, Rounding::TiesAway, false);
    frintx: ["fp:FRINTX (scalar)"; 3], 0, |env: &mut FpEnv, a| {
        let rounding = env.rounding();
        fp::round_to_int(env, a, rounding, true)
    };
    frinti: ["fp:FRINTI (scalar)"; 3], 0, |env: &mut FpEnv, a| {
        let rounding = env.rounding();
        fp::round_to_int(env, a, rounding, false)
    };
}

fn fcvt(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec<S: Float, D: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let a = read::<S>(cpu, i.rn);
        let r: D = fp::convert(&mut cpu.fp, a);
        write(cpu, i.rd, r);
        Ok(())
    }
    let exec = match (bits(w, 22, 2), bits(w, 15, 2)) {
        (0, 1) => exec::<u32, u64>,
        (0, 3) => exec::<u32, u16>,
        (1, 0) => exec::<u64, u32>,
        (1, 3) => exec::<u64, u16>,
        (3, 0) => exec::<u16, u32>,
        (3, 1) => exec::<u16, u64>,
        _ => return None,
    };
    let mut d = scalar(w, c, "simd:FCVT", 0, exec);
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    Some(d)
}

/// FCMP and FCMPE (`SIGNAL`), with register or `ZERO`.
fn exec_compare<F: Float, const SIGNAL: bool, const ZERO: bool>(
    cpu: &mut Cpu,
    _: &mut Memory,
    i: &Inst,
) -> Result<(), Stop> {
    let a = read::<F>(cpu, i.rn);
    let b = if ZERO { F::zero(false) } else { read::<F>(cpu, i.rm) };
    cpu.nzcv = fp::compare(&mut cpu.fp, a, b, SIGNAL);
    Ok(())
}

fn decode_compare<const SIGNAL: bool, const ZERO: bool>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let exec = by_format(
        w,
        [exec_compare::<u16, SIGNAL, ZERO>, exec_compare::<u32, SIGNAL, ZERO>, exec_compare::<u64, SIGNAL, ZERO>],
    )?;
    let mut d = scalar(w, c, class, 0, exec);
    d.inst.rn = d.src_z(bits(w, 5, 5));
    if !ZERO {
        d.inst.rm = d.src_z(bits(w, 16, 5));
    }
    d.dst_flags();
    Some(d)
}

fn fcmp(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_compare::<false, false>(w, c, "simd:FCMP")
}
fn fcmp_zero(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_compare::<false, true>(w, c, "simd:FCMP")
}
fn fcmpe(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_compare::<true, false>(w, c, "simd:FCMPE")
}
fn fcmpe_zero(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_compare::<true, true>(w, c, "simd:FCMPE")
}

/// FCCMP and FCCMPE (`SIGNAL`): the immediate flags when the condition does not hold.
fn exec_conditional_compare<F: Float, const SIGNAL: bool>(
    cpu: &mut Cpu,
    mem: &mut Memory,
    i: &Inst,
) -> Result<(), Stop> {
    if cpu.holds(i.pg) {
        return exec_compare::<F, SIGNAL, false>(cpu, mem, i);
    }
    cpu.nzcv = i.aux as u8;
    Ok(())
}

fn decode_conditional_compare<const SIGNAL: bool>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let exec = by_format(
        w,
        [
            exec_conditional_compare::<u16, SIGNAL>,
            exec_conditional_compare::<u32, SIGNAL>,
            exec_conditional_compare::<u64, SIGNAL>,
        ],
    )?;
    let mut d = scalar(w, c, class, 0, exec);
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rm = d.src_z(bits(w, 16, 5));
    d.inst.pg = bits(w, 12, 4) as u8;
    d.inst.aux = bits(w, 0, 4) as u16;
    d.src_flags();
    d.dst_flags();
    Some(d)
}

fn fccmp(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_conditional_compare::<false>(w, c, "simd:FCCMP")
}
fn fccmpe(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_conditional_compare::<true>(w, c, "simd:FCCMPE")
}

fn fcsel(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let chosen = if cpu.holds(i.pg) { i.rn } else { i.rm };
        let r = read::<F>(cpu, chosen);
        write(cpu, i.rd, r);
        Ok(())
    }
    let mut d = scalar(w, c, "simd:FCSEL", 0, by_format(w, [exec::<u16>, exec::<u32>, exec::<u64>])?);
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rm = d.src_z(bits(w, 16, 5));
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    d.inst.pg = bits(w, 12, 4) as u8;
    d.src_flags();
    Some(d)
}

fn fmov_immediate(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        write(cpu, i.rd, i.imm2);
        Ok(())
    }
    let imm8 = bits(w, 13, 8) as u8;
    let values = [
        fp::expand_immediate::<u16>(imm8).to_u64(),
        fp::expand_immediate::<u32>(imm8).to_u64(),
        fp::expand_immediate::<u64>(imm8),
    ];
    let mut d = scalar(w, c, "fp:FMOV (scalar, immediate)", 0, exec);
    d.inst.imm2 = by_format(w, values)?;
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    Some(d)
}

fn fmov_to_general(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        cpu.set_x(i.rd, read::<F>(cpu, i.rn).to_u64());
        Ok(())
    }
    let exec = by_general_format(w, [exec::<u16>, exec::<u32>, exec::<u64>])?;
    let mut d = scalar(w, c, "simd:FMOV (general) [{Hn|Sn|Dn} to {Wd|Xd}]", 0, exec);
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    Some(d)
}

fn fmov_from_general(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        write(cpu, i.rd, F::from_u64(cpu.x(i.rn)));
        Ok(())
    }
    let exec = by_general_format(w, [exec::<u16>, exec::<u32>, exec::<u64>])?;
    let mut d = scalar(w, c, "simd:FMOV (general) [{Wn|Xn} to {Hd|Sd|Dd|Vd}]", 0, exec);
    d.inst.rn = d.src_x(bits(w, 5, 5));
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    Some(d)
}

/// As [`by_format`], for FMOV: the general-purpose register has the size of the format, or either size for half.
fn by_general_format<T>(w: u32, choices: [T; 3]) -> Option<T> {
    match (bits(w, 31, 1), bits(w, 22, 2)) {
        (0, 0) | (1, 1) | (_, 3) => by_format(w, choices),
        _ => None,
    }
}

fn fmov_from_top(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        cpu.set_x(i.rd, cpu.z(i.rn).0[1]);
        Ok(())
    }
    let mut d = scalar(w, c, "simd:FMOV (general) [Vn.D[1] to Xd]", 0, exec);
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    Some(d)
}

fn fmov_to_top(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let low = cpu.z(i.rd).0[0];
        *cpu.z_mut(i.rd) = Vreg::from_low(u128::from(cpu.x(i.rn)) << 64 | u128::from(low));
        Ok(())
    }
    let mut d = scalar(w, c, "simd:FMOV (general) [{Wn|Xn} to {Hd|Sd|Dd|Vd}]", 0, exec);
    d.inst.rn = d.src_x(bits(w, 5, 5));
    d.inst.rd = d.both_z(bits(w, 0, 5));
    Some(d)
}

/// Conversions to the integer types `$w` (32 bits) and `$x` (64 bits) with a given rounding.
macro_rules! to_general {
    ($($name:ident: $class:literal, $w:ty, $x:ty, $rounding:expr, $fbits:ident;)*) => {$(
        fn $name(w: u32, c: &Ctx) -> Option<Decoded> {
            fn exec<F: Float, I: Integer>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
                let a = read::<F>(cpu, i.rn);
                let r: I = fp::to_int(&mut cpu.fp, a, u32::from(i.aux), $rounding);
                cpu.set_x(i.rd, r.to_bits());
                Ok(())
            }
            let exec = if bits(w, 31, 1) == 1 {
                by_format(w, [exec::<u16, $x>, exec::<u32, $x>, exec::<u64, $x>])?
            } else {
                by_format(w, [exec::<u16, $w>, exec::<u32, $w>, exec::<u64, $w>])?
            };
            let mut d = scalar(w, c, $class, 0, exec);
            d.inst.aux = $fbits(w)?;
            d.inst.rn = d.src_z(bits(w, 5, 5));
            d.inst.rd = d.dst_x(bits(w, 0, 5));
            Some(d)
        }
    )*};
}
to_general! {
    fcvtns: "fp:FCVTNS (scalar)", i32, i64, Rounding::TiesEven, integer;
    fcvtnu: "fp:FCVTNU (scalar)", u32, u64, Rounding::TiesEven, integer;
    fcvtps: "fp:FCVTPS (scalar)", i32, i64, Rounding::Plus, integer;
    fcvtpu: "fp:FCVTPU (scalar)", u32, u64, Rounding::Plus, integer;
    fcvtms: "fp:FCVTMS (scalar)", i32, i64, Rounding::Minus, integer;
    fcvtmu: "fp:FCVTMU (scalar)", u32, u64, Rounding::Minus, integer;
    fcvtas: "fp:FCVTAS (scalar)", i32, i64, Rounding::TiesAway, integer;
    fcvtau: "fp:FCVTAU (scalar)", u32, u64, Rounding::TiesAway, integer;
    fcvtzs: "fp:FCVTZS (scalar, integer)", i32, i64, Rounding::Zero, integer;
    fcvtzu: "fp:FCVTZU (scalar, integer)", u32, u64, Rounding::Zero, integer;
    fcvtzs_fixed: "fp:FCVTZS (scalar, fixed-point)", i32, i64, Rounding::Zero, fixed_point;
    fcvtzu_fixed: "fp:FCVTZU (scalar, fixed-point)", u32, u64, Rounding::Zero, fixed_point;
}

/// An integer conversion has no fraction bits.
fn integer(_: u32) -> Option<u16> {
    Some(0)
}

/// Returns the number of fraction bits of a fixed-point form: 64 − scale, at most the size of the general-purpose register.
fn fixed_point(w: u32) -> Option<u16> {
    let fbits = 64 - bits(w, 10, 6) as u16;
    (bits(w, 31, 1) == 1 || fbits <= 32).then_some(fbits)
}

/// Conversions from the integer types `$w` (32 bits) and `$x` (64 bits).
macro_rules! from_general {
    ($($name:ident: $class:literal, $w:ty, $x:ty, $fbits:ident;)*) => {$(
        fn $name(w: u32, c: &Ctx) -> Option<Decoded> {
            fn exec<F: Float, I: Integer>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
                let value = I::from_bits(cpu.x(i.rn));
                let rounding = cpu.fp.rounding();
                let r: F = fp::from_int(&mut cpu.fp, value, u32::from(i.aux), rounding);
                write(cpu, i.rd, r);
                Ok(())
            }
            let exec = if bits(w, 31, 1) == 1 {
                by_format(w, [exec::<u16, $x>, exec::<u32, $x>, exec::<u64, $x>])?
            } else {
                by_format(w, [exec::<u16, $w>, exec::<u32, $w>, exec::<u64, $w>])?
            };
            let mut d = scalar(w, c, $class, 0, exec);
            d.inst.aux = $fbits(w)?;
            d.inst.rn = d.src_x(bits(w, 5, 5));
            d.inst.rd = d.dst_z(bits(w, 0, 5));
            Some(d)
        }
    )*};
}
from_general! {
    scvtf: "fp:SCVTF (scalar, integer)", i32, i64, integer;
    ucvtf: "fp:UCVTF (scalar, integer)", u32, u64, integer;
    scvtf_fixed: "fp:SCVTF (scalar, fixed-point)", i32, i64, fixed_point;
    ucvtf_fixed: "fp:UCVTF (scalar, fixed-point)", u32, u64, fixed_point;
}
