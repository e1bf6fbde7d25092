//! SVE element counts: of the vector, of predicate patterns, of predicates; registers incremented by them.

use super::sve_common::{BySize, Classes, Done, ELEMENT_BITS, at_least, map1, pattern_elements, size, sve};
use super::sve_element::Int;
use crate::cpu::Cpu;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits, sbits};
use crate::{sizes, sve};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    // Vector length.
    sve!("RDVL", "00000100 101 11111 01010 imm6:6 Rd:5", rdvl, constant as Exec),
    sve!("ADDVL", "00000100 001 Rn:5 01010 imm6:6 Rd:5", add_length::<1>, add_constant as Exec),
    sve!("ADDPL", "00000100 011 Rn:5 01010 imm6:6 Rd:5", add_length::<8>, add_constant as Exec),
    // Elements of a pattern.
    sve!("CNTB", "00000100 00 10 imm4:4 11100 0 pattern:5 Rd:5", cnt, constant as Exec),
    sve!("CNTH", "00000100 01 10 imm4:4 11100 0 pattern:5 Rd:5", cnt, constant as Exec),
    sve!("CNTW", "00000100 10 10 imm4:4 11100 0 pattern:5 Rd:5", cnt, constant as Exec),
    sve!("CNTD", "00000100 11 10 imm4:4 11100 0 pattern:5 Rd:5", cnt, constant as Exec),
    sve!("INCB", "00000100 00 11 imm4:4 11100 0 pattern:5 Rdn:5", inc::<1>, add_constant as Exec),
    sve!("INCH (scalar)", "00000100 01 11 imm4:4 11100 0 pattern:5 Rdn:5", inc::<1>, add_constant as Exec),
    sve!("INCW (scalar)", "00000100 10 11 imm4:4 11100 0 pattern:5 Rdn:5", inc::<1>, add_constant as Exec),
    sve!("INCD (scalar)", "00000100 11 11 imm4:4 11100 0 pattern:5 Rdn:5", inc::<1>, add_constant as Exec),
    sve!("DECB", "00000100 00 11 imm4:4 11100 1 pattern:5 Rdn:5", inc::<-1>, add_constant as Exec),
    sve!("DECH (scalar)", "00000100 01 11 imm4:4 11100 1 pattern:5 Rdn:5", inc::<-1>, add_constant as Exec),
    sve!("DECW (scalar)", "00000100 10 11 imm4:4 11100 1 pattern:5 Rdn:5", inc::<-1>, add_constant as Exec),
    sve!("DECD (scalar)", "00000100 11 11 imm4:4 11100 1 pattern:5 Rdn:5", inc::<-1>, add_constant as Exec),
    // Saturating, of the low word or the whole register.
    sve!("SQINCB", "00000100 00 1 sf:1 imm4:4 1111 00 pattern:5 Rdn:5", saturating, [saturate::<Increment, i32> as Exec, saturate::<Increment, i64>]),
    sve!("UQINCB", "00000100 00 1 sf:1 imm4:4 1111 01 pattern:5 Rdn:5", saturating, [saturate::<Increment, u32> as Exec, saturate::<Increment, u64>]),
    sve!("SQDECB", "00000100 00 1 sf:1 imm4:4 1111 10 pattern:5 Rdn:5", saturating, [saturate::<Decrement, i32> as Exec, saturate::<Decrement, i64>]),
    sve!("UQDECB", "00000100 00 1 sf:1 imm4:4 1111 11 pattern:5 Rdn:5", saturating, [saturate::<Decrement, u32> as Exec, saturate::<Decrement, u64>]),
    sve!("SQINCH (scalar)", "00000100 01 1 sf:1 imm4:4 1111 00 pattern:5 Rdn:5", saturating, [saturate::<Increment, i32> as Exec, saturate::<Increment, i64>]),
    sve!("UQINCH (scalar)", "00000100 01 1 sf:1 imm4:4 1111 01 pattern:5 Rdn:5", saturating, [saturate::<Increment, u32> as Exec, saturate::<Increment, u64>]),
    sve!("SQDECH (scalar)", "00000100 01 1 sf:1 imm4:4 1111 10 pattern:5 Rdn:5", saturating, [saturate::<Decrement, i32> as Exec, saturate::<Decrement, i64>]),
    sve!("UQDECH (scalar)", "00000100 01 1 sf:1 imm4:4 1111 11 pattern:5 Rdn:5", saturating, [saturate::<Decrement, u32> as Exec, saturate::<Decrement, u64>]),
    sve!("SQINCW (scalar)", "00000100 10 1 sf:1 imm4:4 1111 00 pattern:5 Rdn:5", saturating, [saturate::<Increment, i32> as Exec, saturate::<Increment, i64>]),
    sve!("UQINCW (scalar)", "00000100 10 1 sf:1 imm4:4 1111 01 pattern:5 Rdn:5", saturating, [saturate::<Increment, u32> as Exec, saturate::<Increment, u64>]),
    sve!("SQDECW (scalar)", "00000100 10 1 sf:1 imm4:4 1111 10 pattern:5 Rdn:5", saturating, [saturate::<Decrement, i32> as Exec, saturate::<Decrement, i64>]),
    sve!("UQDECW (scalar)", "00000100 10 1 sf:1 imm4:4 1111 11 pattern:5 Rdn:5", saturating, [saturate::<Decrement, u32> as Exec, saturate::<Decrement, u64>]),
    sve!("SQINCD (scalar)", "00000100 11 1 sf:1 imm4:4 1111 00 pattern:5 Rdn:5", saturating, [saturate::<Increment, i32> as Exec, saturate::<Increment, i64>]),
    sve!("UQINCD (scalar)", "00000100 11 1 sf:1 imm4:4 1111 01 pattern:5 Rdn:5", saturating, [saturate::<Increment, u32> as Exec, saturate::<Increment, u64>]),
    sve!("SQDECD (scalar)", "00000100 11 1 sf:1 imm4:4 1111 10 pattern:5 Rdn:5", saturating, [saturate::<Decrement, i32> as Exec, saturate::<Decrement, i64>]),
    sve!("UQDECD (scalar)", "00000100 11 1 sf:1 imm4:4 1111 11 pattern:5 Rdn:5", saturating, [saturate::<Decrement, u32> as Exec, saturate::<Decrement, u64>]),
    // Every element of a vector.
    sve!("INCH (vector)", "00000100 01 11 imm4:4 11000 0 pattern:5 Zdn:5", vector, each::<WrappingIncrement, u16> as Exec),
    sve!("DECH (vector)", "00000100 01 11 imm4:4 11000 1 pattern:5 Zdn:5", vector, each::<WrappingDecrement, u16> as Exec),
    sve!("SQINCH (vector)", "00000100 01 10 imm4:4 1100 00 pattern:5 Zdn:5", vector, each::<Increment, i16> as Exec),
    sve!("UQINCH (vector)", "00000100 01 10 imm4:4 1100 01 pattern:5 Zdn:5", vector, each::<Increment, u16> as Exec),
    sve!("SQDECH (vector)", "00000100 01 10 imm4:4 1100 10 pattern:5 Zdn:5", vector, each::<Decrement, i16> as Exec),
    sve!("UQDECH (vector)", "00000100 01 10 imm4:4 1100 11 pattern:5 Zdn:5", vector, each::<Decrement, u16> as Exec),
    sve!("INCW (vector)", "00000100 10 11 imm4:4 11000 0 pattern:5 Zdn:5", vector, each::<WrappingIncrement, u32> as Exec),
    sve!("DECW (vector)", "00000100 10 11 imm4:4 11000 1 pattern:5 Zdn:5", vector, each::<WrappingDecrement, u32> as Exec),
    sve!("SQINCW (vector)", "00000100 10 10 imm4:4 1100 00 pattern:5 Zdn:5", vector, each::<Increment, i32> as Exec),
    sve!("UQINCW (vector)", "00000100 10 10 imm4:4 1100 01 pattern:5 Zdn:5", vector, each::<Increment, u32> as Exec),
    sve!("SQDECW (vector)", "00000100 10 10 imm4:4 1100 10 pattern:5 Zdn:5", vector, each::<Decrement, i32> as Exec),
    sve!("UQDECW (vector)", "00000100 10 10 imm4:4 1100 11 pattern:5 Zdn:5", vector, each::<Decrement, u32> as Exec),
    sve!("INCD (vector)", "00000100 11 11 imm4:4 11000 0 pattern:5 Zdn:5", vector, each::<WrappingIncrement, u64> as Exec),
    sve!("DECD (vector)", "00000100 11 11 imm4:4 11000 1 pattern:5 Zdn:5", vector, each::<WrappingDecrement, u64> as Exec),
    sve!("SQINCD (vector)", "00000100 11 10 imm4:4 1100 00 pattern:5 Zdn:5", vector, each::<Increment, i64> as Exec),
    sve!("UQINCD (vector)", "00000100 11 10 imm4:4 1100 01 pattern:5 Zdn:5", vector, each::<Increment, u64> as Exec),
    sve!("SQDECD (vector)", "00000100 11 10 imm4:4 1100 10 pattern:5 Zdn:5", vector, each::<Decrement, i64> as Exec),
    sve!("UQDECD (vector)", "00000100 11 10 imm4:4 1100 11 pattern:5 Zdn:5", vector, each::<Decrement, u64> as Exec),
    // Active elements of a predicate.
    sve!("CNTP", "00100101 size:2 100 000 10 Pg:4 0 Pn:4 Rd:5", cntp, cntp_exec as Exec),
    sve!("INCP (scalar)", "00100101 size:2 101 100 10001 00 Pm:4 Rdn:5", incp, [add_active::<WrappingIncrement, u64> as Exec; 2]),
    sve!("DECP (scalar)", "00100101 size:2 101 101 10001 00 Pm:4 Rdn:5", incp, [add_active::<WrappingDecrement, u64> as Exec; 2]),
    sve!("SQINCP (scalar)", "00100101 size:2 101 000 10001 sf:1 0 Pm:4 Rdn:5", incp, [add_active::<Increment, i32> as Exec, add_active::<Increment, i64>]),
    sve!("UQINCP (scalar)", "00100101 size:2 101 001 10001 sf:1 0 Pm:4 Rdn:5", incp, [add_active::<Increment, u32> as Exec, add_active::<Increment, u64>]),
    sve!("SQDECP (scalar)", "00100101 size:2 101 010 10001 sf:1 0 Pm:4 Rdn:5", incp, [add_active::<Decrement, i32> as Exec, add_active::<Decrement, i64>]),
    sve!("UQDECP (scalar)", "00100101 size:2 101 011 10001 sf:1 0 Pm:4 Rdn:5", incp, [add_active::<Decrement, u32> as Exec, add_active::<Decrement, u64>]),
    sve!("INCP (vector)", "00100101 size:2 101 100 10000 00 Pm:4 Zdn:5", incp_vector, at_least(1, sizes!(u: T => each_by_active::<WrappingIncrement, T>))),
    sve!("DECP (vector)", "00100101 size:2 101 101 10000 00 Pm:4 Zdn:5", incp_vector, at_least(1, sizes!(u: T => each_by_active::<WrappingDecrement, T>))),
    sve!("SQINCP (vector)", "00100101 size:2 101 000 10000 00 Pm:4 Zdn:5", incp_vector, at_least(1, sizes!(i: T => each_by_active::<Increment, T>))),
    sve!("UQINCP (vector)", "00100101 size:2 101 001 10000 00 Pm:4 Zdn:5", incp_vector, at_least(1, sizes!(u: T => each_by_active::<Increment, T>))),
    sve!("SQDECP (vector)", "00100101 size:2 101 010 10000 00 Pm:4 Zdn:5", incp_vector, at_least(1, sizes!(i: T => each_by_active::<Decrement, T>))),
    sve!("UQDECP (vector)", "00100101 size:2 101 011 10000 00 Pm:4 Zdn:5", incp_vector, at_least(1, sizes!(u: T => each_by_active::<Decrement, T>))),
];

// ---- Constants: values that depend only on vector length and pattern are known at decode time ----

/// `Xd = imm`.
fn constant(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    cpu.set_x(i.rd, i.imm as u64);
    Ok(())
}

/// `Xd = Xn + imm`.
fn add_constant(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    cpu.set_x(i.rd, cpu.x(i.rn).wrapping_add(i.imm as u64));
    Ok(())
}

fn rdvl(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve(c, classes[0], *exec);
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    d.inst.imm = sbits(w, 5, 6) * c.vl as i64;
    Some(d)
}

/// ADDVL, and ADDPL with `DIVISOR` 8: multiples of the vector length or the predicate length in bytes.
fn add_length<const DIVISOR: i64>(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve(c, classes[0], *exec);
    d.inst.rd = d.dst_sp(bits(w, 0, 5));
    d.inst.rn = d.src_sp(bits(w, 16, 5));
    d.inst.imm = sbits(w, 5, 6) * (c.vl as i64 / DIVISOR);
    Some(d)
}

/// Returns the number of elements of size `size` in the pattern, times the multiplier `imm4 + 1`.
fn pattern_count(w: u32, c: &Ctx) -> i64 {
    let elements = pattern_elements(bits(w, 5, 5), c.vl >> size(w));
    elements as i64 * i64::from(bits(w, 16, 4) + 1)
}

fn cnt(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve(c, classes[0], *exec);
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    d.inst.imm = pattern_count(w, c);
    Some(d)
}

fn inc<const SIGN: i64>(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve(c, classes[0], *exec);
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    d.inst.rn = d.acc_x(bits(w, 0, 5));
    d.inst.imm = SIGN * pattern_count(w, c);
    Some(d)
}

// ---- Saturating forms and vectors ----

/// How a count changes a number.
trait Step {
    fn of<T: Int>(a: T, count: T) -> T;
}

macro_rules! steps {
    ($($name:ident = $method:ident;)+) => { $(
        struct $name;
        impl Step for $name {
            #[inline(always)]
            fn of<T: Int>(a: T, count: T) -> T {
                a.$method(count)
            }
        }
    )+ };
}
steps! {
    Increment = add_saturating;
    Decrement = sub_saturating;
    WrappingIncrement = add;
    WrappingDecrement = sub;
}

/// Changes the number of type `T` in the low bits of `Xdn` and extends the result to 64 bits.
#[inline(always)]
fn change_scalar<S: Step, T: Int>(cpu: &mut Cpu, i: &Inst, count: u64) {
    let value = S::of(T::truncate(cpu.x(i.rn)), T::truncate(count));
    cpu.set_x(i.rd, value.extend());
}

/// Changes every element of `Zdn`.
#[inline(always)]
fn change_elements<S: Step, T: Int>(cpu: &mut Cpu, i: &Inst, count: u64) {
    let count = T::truncate(count);
    *cpu.z_mut(i.rd) = map1(cpu.z(i.rd), |a: T| S::of(a, count));
    cpu.trim(i.rd);
}

fn saturate<S: Step, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    change_scalar::<S, T>(cpu, i, i.imm as u64);
    Ok(())
}

fn saturating(w: u32, c: &Ctx, classes: &Classes, execs: &[Exec; 2]) -> Option<Decoded> {
    inc::<1>(w, c, classes, &execs[bits(w, 20, 1) as usize])
}

fn each<S: Step, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    change_elements::<S, T>(cpu, i, i.imm as u64);
    Ok(())
}

fn vector(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve(c, classes[0], *exec);
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.imm = pattern_count(w, c);
    Some(d)
}

// ---- Active elements ----

fn cntp_exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let active = cpu.p(i.pg) & cpu.p(i.rn) & i.imm2;
    cpu.set_x(i.rd, u64::from(active.count_ones()));
    Ok(())
}

fn cntp(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve(c, classes[0], *exec);
    d.inst.pg = d.src_p(bits(w, 10, 4));
    d.inst.rn = d.src_p(bits(w, 5, 4));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    d.inst.imm2 = ELEMENT_BITS[size(w)];
    Some(d)
}

/// Returns the number of active elements of `Pm`; `imm2` has the significant bits.
#[inline(always)]
fn active_count(cpu: &Cpu, i: &Inst) -> u64 {
    (cpu.p(i.pg) & i.imm2).count_ones().into()
}

fn add_active<S: Step, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    change_scalar::<S, T>(cpu, i, active_count(cpu, i));
    Ok(())
}

fn incp(w: u32, c: &Ctx, classes: &Classes, execs: &[Exec; 2]) -> Option<Decoded> {
    let mut d = sve(c, classes[0], execs[bits(w, 10, 1) as usize]);
    d.inst.pg = d.src_p(bits(w, 5, 4));
    d.inst.rn = d.acc_x(bits(w, 0, 5));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    d.inst.imm2 = ELEMENT_BITS[size(w)];
    Some(d)
}

fn each_by_active<S: Step, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    change_elements::<S, T>(cpu, i, active_count(cpu, i));
    Ok(())
}

fn incp_vector(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.pg = d.src_p(bits(w, 5, 4));
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.imm2 = ELEMENT_BITS[size(w)];
    Some(d)
}
