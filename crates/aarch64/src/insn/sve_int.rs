//! SVE integer arithmetic and logic.

use fxscope_isa::InstKind;

use super::sve_common::{
    BySize, Classes, Done, at_least, from_fn, map1, map2, map3, predicated, size, sve, unary, unpredicated,
    write_merging, write_zeroing,
};
use super::sve_element::Int;
use crate::cpu::Cpu;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits, sbits};
use crate::{sizes, sve};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    // Predicated, destructive.
    sve!("ADD (vectors, predicated)", "00000100 size:2 000 000 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => merging2::<Add, T>)),
    sve!("SUB (vectors, predicated)", "00000100 size:2 000 001 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => merging2::<Sub, T>)),
    sve!("SUBR (vectors)", "00000100 size:2 000 011 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => merging2::<Subr, T>)),
    sve!("SMAX (vectors)", "00000100 size:2 001 000 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(i: T => merging2::<Max, T>)),
    sve!("UMAX (vectors)", "00000100 size:2 001 001 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => merging2::<Max, T>)),
    sve!("SMIN (vectors)", "00000100 size:2 001 010 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(i: T => merging2::<Min, T>)),
    sve!("UMIN (vectors)", "00000100 size:2 001 011 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => merging2::<Min, T>)),
    sve!("SVE SABD" as "SABD", "00000100 size:2 001 100 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(i: T => merging2::<Abd, T>)),
    sve!("SVE UABD" as "UABD", "00000100 size:2 001 101 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => merging2::<Abd, T>)),
    sve!("MUL (vectors)", "00000100 size:2 010 000 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => merging2::<Mul, T>)),
    sve!("SVE SMULH" as "SMULH", "00000100 size:2 010 010 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(i: T => merging2::<Mulh, T>)),
    sve!("SVE UMULH" as "UMULH", "00000100 size:2 010 011 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => merging2::<Mulh, T>)),
    sve!("SVE SDIV" sized "SDIV [T", "00000100 size:2 010 100 000 Pg:3 Zm:5 Zdn:5", predicated, at_least(2, sizes!(i: T => merging2::<Div, T>))),
    sve!("SVE UDIV" sized "UDIV [T", "00000100 size:2 010 101 000 Pg:3 Zm:5 Zdn:5", predicated, at_least(2, sizes!(u: T => merging2::<Div, T>))),
    sve!("SDIVR" sized "SDIVR [T", "00000100 size:2 010 110 000 Pg:3 Zm:5 Zdn:5", predicated, at_least(2, sizes!(i: T => merging2::<Divr, T>))),
    sve!("UDIVR" sized "UDIVR [T", "00000100 size:2 010 111 000 Pg:3 Zm:5 Zdn:5", predicated, at_least(2, sizes!(u: T => merging2::<Divr, T>))),
    sve!("ORR (vectors, predicated)", "00000100 size:2 011 000 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => merging2::<Orr, T>)),
    sve!("EOR (vectors, predicated)", "00000100 size:2 011 001 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => merging2::<Eor, T>)),
    sve!("AND (vectors, predicated)", "00000100 size:2 011 010 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => merging2::<And, T>)),
    sve!("BIC (vectors, predicated)", "00000100 size:2 011 011 000 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => merging2::<Bic, T>)),
    // Multiply-add: into the addend, or into a factor.
    sve!("MLA", "00000100 size:2 0 Zm:5 010 Pg:3 Zn:5 Zda:5", accumulating, sizes!(u: T => mla::<false, T>)),
    sve!("MLS", "00000100 size:2 0 Zm:5 011 Pg:3 Zn:5 Zda:5", accumulating, sizes!(u: T => mla::<true, T>)),
    sve!("MAD", "00000100 size:2 0 Zm:5 110 Pg:3 Za:5 Zdn:5", accumulating, sizes!(u: T => mad::<false, T>)),
    sve!("MSB", "00000100 size:2 0 Zm:5 111 Pg:3 Za:5 Zdn:5", accumulating, sizes!(u: T => mad::<true, T>)),
    // Predicated, one source.
    sve!("SXTB", "00000100 size:2 010 000 101 Pg:3 Zn:5 Zd:5", unary, at_least(1, sizes!(i: T => merging1::<Low<8>, T>))),
    sve!("UXTB", "00000100 size:2 010 001 101 Pg:3 Zn:5 Zd:5", unary, at_least(1, sizes!(u: T => merging1::<Low<8>, T>))),
    sve!("SXTH", "00000100 size:2 010 010 101 Pg:3 Zn:5 Zd:5", unary, at_least(2, sizes!(i: T => merging1::<Low<16>, T>))),
    sve!("UXTH", "00000100 size:2 010 011 101 Pg:3 Zn:5 Zd:5", unary, at_least(2, sizes!(u: T => merging1::<Low<16>, T>))),
    sve!("SXTW", "00000100 size:2 010 100 101 Pg:3 Zn:5 Zd:5", unary, at_least(3, sizes!(i: T => merging1::<Low<32>, T>))),
    sve!("UXTW", "00000100 size:2 010 101 101 Pg:3 Zn:5 Zd:5", unary, at_least(3, sizes!(u: T => merging1::<Low<32>, T>))),
    sve!("SVE ABS" as "ABS", "00000100 size:2 010 110 101 Pg:3 Zn:5 Zd:5", unary, sizes!(i: T => merging1::<Abs, T>)),
    sve!("SVE NEG" as "NEG", "00000100 size:2 010 111 101 Pg:3 Zn:5 Zd:5", unary, sizes!(u: T => merging1::<Neg, T>)),
    sve!("SVE CLS" as "CLS", "00000100 size:2 011 000 101 Pg:3 Zn:5 Zd:5", unary, sizes!(i: T => merging1::<Cls, T>)),
    sve!("SVE CLZ" as "CLZ", "00000100 size:2 011 001 101 Pg:3 Zn:5 Zd:5", unary, sizes!(u: T => merging1::<Clz, T>)),
    sve!("SVE CNT" as "CNT", "00000100 size:2 011 010 101 Pg:3 Zn:5 Zd:5", unary, sizes!(u: T => merging1::<Cnt, T>)),
    sve!("CNOT", "00000100 size:2 011 011 101 Pg:3 Zn:5 Zd:5", unary, sizes!(u: T => merging1::<Cnot, T>)),
    sve!("SVE NOT (vector)" as "NOT (vector)", "00000100 size:2 011 110 101 Pg:3 Zn:5 Zd:5", unary, sizes!(u: T => merging1::<Complement, T>)),
    // Unpredicated.
    sve!("ADD (vectors, unpredicated)", "00000100 size:2 1 Zm:5 000 000 Zn:5 Zd:5", unpredicated, sizes!(u: T => plain2::<Add, T>)),
    sve!("SUB (vectors, unpredicated)", "00000100 size:2 1 Zm:5 000 001 Zn:5 Zd:5", unpredicated, sizes!(u: T => plain2::<Sub, T>)),
    sve!("SQADD (vectors)", "00000100 size:2 1 Zm:5 000 100 Zn:5 Zd:5", unpredicated, sizes!(i: T => plain2::<AddSaturating, T>)),
    sve!("UQADD (vectors)", "00000100 size:2 1 Zm:5 000 101 Zn:5 Zd:5", unpredicated, sizes!(u: T => plain2::<AddSaturating, T>)),
    sve!("SQSUB (vectors)", "00000100 size:2 1 Zm:5 000 110 Zn:5 Zd:5", unpredicated, sizes!(i: T => plain2::<SubSaturating, T>)),
    sve!("UQSUB (vectors)", "00000100 size:2 1 Zm:5 000 111 Zn:5 Zd:5", unpredicated, sizes!(u: T => plain2::<SubSaturating, T>)),
    sve!("AND (vectors, unpredicated)", "00000100 00 1 Zm:5 001 100 Zn:5 Zd:5", unpredicated, [Some(plain2::<And, u64> as Exec); 4]),
    sve!("ORR (vectors, unpredicated)", "00000100 01 1 Zm:5 001 100 Zn:5 Zd:5", unpredicated, [Some(plain2::<Orr, u64> as Exec); 4]),
    sve!("EOR (vectors, unpredicated)", "00000100 10 1 Zm:5 001 100 Zn:5 Zd:5", unpredicated, [Some(plain2::<Eor, u64> as Exec); 4]),
    sve!("BIC (vectors, unpredicated)", "00000100 11 1 Zm:5 001 100 Zn:5 Zd:5", unpredicated, [Some(plain2::<Bic, u64> as Exec); 4]),
    // Immediate.
    sve!("SVE ADD (immediate)" as "ADD (immediate)", "00100101 size:2 100 000 11 sh:1 imm8:8 Zdn:5", shifted_immediate, sizes!(u: T => with_immediate::<Add, T>)),
    sve!("SVE SUB (immediate)" as "SUB (immediate)", "00100101 size:2 100 001 11 sh:1 imm8:8 Zdn:5", shifted_immediate, sizes!(u: T => with_immediate::<Sub, T>)),
    sve!("SUBR (immediate)", "00100101 size:2 100 011 11 sh:1 imm8:8 Zdn:5", shifted_immediate, sizes!(u: T => with_immediate::<Subr, T>)),
    sve!("SQADD (immediate)", "00100101 size:2 100 100 11 sh:1 imm8:8 Zdn:5", shifted_immediate, sizes!(i: T => with_immediate::<AddUnsigned, T>)),
    sve!("UQADD (immediate)", "00100101 size:2 100 101 11 sh:1 imm8:8 Zdn:5", shifted_immediate, sizes!(u: T => with_immediate::<AddUnsigned, T>)),
    sve!("SQSUB (immediate)", "00100101 size:2 100 110 11 sh:1 imm8:8 Zdn:5", shifted_immediate, sizes!(i: T => with_immediate::<SubUnsigned, T>)),
    sve!("UQSUB (immediate)", "00100101 size:2 100 111 11 sh:1 imm8:8 Zdn:5", shifted_immediate, sizes!(u: T => with_immediate::<SubUnsigned, T>)),
    sve!("SMAX (immediate)", "00100101 size:2 101 000 110 imm8:8 Zdn:5", signed_immediate, sizes!(i: T => with_immediate::<Max, T>)),
    sve!("UMAX (immediate)", "00100101 size:2 101 001 110 imm8:8 Zdn:5", unsigned_immediate, sizes!(u: T => with_immediate::<Max, T>)),
    sve!("SMIN (immediate)", "00100101 size:2 101 010 110 imm8:8 Zdn:5", signed_immediate, sizes!(i: T => with_immediate::<Min, T>)),
    sve!("UMIN (immediate)", "00100101 size:2 101 011 110 imm8:8 Zdn:5", unsigned_immediate, sizes!(u: T => with_immediate::<Min, T>)),
    sve!("MUL (immediate)", "00100101 size:2 110 000 110 imm8:8 Zdn:5", signed_immediate, sizes!(u: T => with_immediate::<Mul, T>)),
    // Dot products of four elements.
    sve!("SDOT (vectors)", "01000100 1 size:1 0 Zm:5 000000 Zn:5 Zda:5", dot, [None, None, Some(dot_vectors::<i8, i32> as Exec), Some(dot_vectors::<i16, i64>)]),
    sve!("UDOT (vectors)", "01000100 1 size:1 0 Zm:5 000001 Zn:5 Zda:5", dot, [None, None, Some(dot_vectors::<u8, u32> as Exec), Some(dot_vectors::<u16, u64>)]),
    sve!("SDOT (indexed)", "01000100 1 size:1 1 opc:5 000000 Zn:5 Zda:5", dot_by_element, [None, None, Some(dot_indexed::<i8, i32> as Exec), Some(dot_indexed::<i16, i64>)]),
    sve!("UDOT (indexed)", "01000100 1 size:1 1 opc:5 000001 Zn:5 Zda:5", dot_by_element, [None, None, Some(dot_indexed::<u8, u32> as Exec), Some(dot_indexed::<u16, u64>)]),
    // Addresses and indices.
    sve!("ADR (packed offsets)" as "ADR [Packed offsets]", "00000100 1 sz:1 1 Zm:5 1010 msz:2 Zn:5 Zd:5", adr, [None, None, Some(adr_packed::<u32> as Exec), Some(adr_packed::<u64>)]),
    sve!("ADR (unpacked signed offsets)" as "ADR [otherwise]", "00000100 00 1 Zm:5 1010 msz:2 Zn:5 Zd:5", adr, [Some(adr_unpacked::<i32> as Exec); 4]),
    sve!("ADR (unpacked unsigned offsets)" as "ADR [otherwise]", "00000100 01 1 Zm:5 1010 msz:2 Zn:5 Zd:5", adr, [Some(adr_unpacked::<u32> as Exec); 4]),
    sve!("INDEX (immediates)" classes INDEX_II, "00000100 size:2 1 imm5b:5 010000 imm5:5 Zd:5", index::<false, false>, sizes!(u: T => ramp::<T, false, false>)),
    sve!("INDEX (scalar, immediate)" classes INDEX_RI, "00000100 size:2 1 imm5:5 010001 Rn:5 Zd:5", index::<true, false>, sizes!(u: T => ramp::<T, true, false>)),
    sve!("INDEX (immediate, scalar)" classes INDEX_IR, "00000100 size:2 1 Rm:5 010010 imm5:5 Zd:5", index::<false, true>, sizes!(u: T => ramp::<T, false, true>)),
    sve!("INDEX (scalars)" classes INDEX_RR, "00000100 size:2 1 Rm:5 010011 Rn:5 Zd:5", index::<true, true>, sizes!(u: T => ramp::<T, true, true>)),
    // Prefixes, executed as moves.
    sve!("MOVPRFX (unpredicated)", "00000100 00 1 00000 101111 Zn:5 Zd:5", movprfx, [Some(copy as Exec); 4]),
    sve!("MOVPRFX (predicated)", "00000100 size:2 010 00 M:1 001 Pg:3 Zn:5 Zd:5", movprfx_predicated, sizes!(u: T => copy_predicated::<T>)),
];

const INDEX_II: Classes = index_classes("sve:INDEX (immediates) [T={B|H}]", "sve:INDEX (immediates) [T={S|D}]");
const INDEX_RI: Classes =
    index_classes("sve:INDEX (scalar, immediate) [T={B|H}]", "sve:INDEX (scalar, immediate) [T={S|D}]");
const INDEX_IR: Classes =
    index_classes("sve:INDEX (immediate, scalar) [T={B|H}]", "sve:INDEX (immediate, scalar) [T={S|D}]");
const INDEX_RR: Classes = index_classes("sve:INDEX (scalars) [T={B|H}]", "sve:INDEX (scalars) [T={S|D}]");

const fn index_classes(narrow: &'static str, wide: &'static str) -> Classes {
    [narrow, narrow, wide, wide]
}

// ---- Operations on one element ----

/// An operation on two elements.
trait Binary {
    fn of<T: Int>(a: T, b: T) -> T;
}

/// An operation on one element.
trait Unary {
    fn of<T: Int>(a: T) -> T;
}

macro_rules! binary {
    ($($name:ident = |$a:ident, $b:ident| $value:expr;)+) => { $(
        struct $name;
        impl Binary for $name {
            #[inline(always)]
            fn of<T: Int>($a: T, $b: T) -> T {
                $value
            }
        }
    )+ };
}

macro_rules! unary {
    ($($name:ident = |$a:ident| $value:expr;)+) => { $(
        struct $name;
        impl Unary for $name {
            #[inline(always)]
            fn of<T: Int>($a: T) -> T {
                $value
            }
        }
    )+ };
}

binary! {
    Add = |a, b| a.add(b);
    Sub = |a, b| a.sub(b);
    Subr = |a, b| b.sub(a);
    Max = |a, b| a.max(b);
    Min = |a, b| a.min(b);
    Abd = |a, b| a.abs_diff(b);
    Mul = |a, b| a.mul(b);
    Mulh = |a, b| a.mul_high(b);
    Div = |a, b| a.div(b);
    Divr = |a, b| b.div(a);
    And = |a, b| a & b;
    Orr = |a, b| a | b;
    Eor = |a, b| a ^ b;
    Bic = |a, b| a & !b;
    AddSaturating = |a, b| a.add_saturating(b);
    SubSaturating = |a, b| a.sub_saturating(b);
    AddUnsigned = |a, b| a.add_unsigned(b);
    SubUnsigned = |a, b| a.sub_unsigned(b);
}

unary! {
    Abs = |a| if a < T::ZERO { T::ZERO.sub(a) } else { a };
    Neg = |a| T::ZERO.sub(a);
    Cls = |a| T::truncate(u64::from(if a < T::ZERO { !a } else { a }.leading_zeros()) - 1);
    Clz = |a| T::truncate(u64::from(a.leading_zeros()));
    Cnt = |a| T::truncate(u64::from(a.count_ones()));
    Cnot = |a| T::truncate(u64::from(a == T::ZERO));
    Complement = |a| !a;
}

/// The low `BITS` bits, sign- or zero-extended according to the element type.
struct Low<const BITS: u32>;

impl<const BITS: u32> Unary for Low<BITS> {
    #[inline(always)]
    fn of<T: Int>(a: T) -> T {
        let up = u64::from(T::BITS - BITS);
        a.shift_left(up).shift_right(up)
    }
}

// ---- Execution ----

/// `Zdn = Pg ? Zdn op Zm : Zdn`.
fn merging2<O: Binary, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let value = map2(cpu.z(i.rd), cpu.z(i.rm), O::of::<T>);
    write_merging::<T>(cpu, i.rd, i.pg, &value);
    Ok(())
}

/// `Zd = Pg ? op Zn : Zd`.
fn merging1<O: Unary, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let value = map1(cpu.z(i.rn), O::of::<T>);
    write_merging::<T>(cpu, i.rd, i.pg, &value);
    Ok(())
}

/// `Zd = Zn op Zm`, for operations that give zero for zero operands.
fn plain2<O: Binary, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    *cpu.z_mut(i.rd) = map2(cpu.z(i.rn), cpu.z(i.rm), O::of::<T>);
    Ok(())
}

/// `Zdn = Zdn op imm`.
fn with_immediate<O: Binary, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let b = T::truncate(i.imm as u64);
    *cpu.z_mut(i.rd) = map1(cpu.z(i.rd), |a| O::of::<T>(a, b));
    cpu.trim(i.rd);
    Ok(())
}

/// `Zda = Pg ? Zda ± Zn × Zm : Zda`.
fn mla<const SUB: bool, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let value = map3(cpu.z(i.rd), cpu.z(i.rn), cpu.z(i.rm), multiply_add::<SUB, T>);
    write_merging::<T>(cpu, i.rd, i.pg, &value);
    Ok(())
}

/// `Zdn = Pg ? Za ± Zdn × Zm : Zdn`, with `Za` in the position of `Zn` in MLA.
fn mad<const SUB: bool, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let value = map3(cpu.z(i.rn), cpu.z(i.rd), cpu.z(i.rm), multiply_add::<SUB, T>);
    write_merging::<T>(cpu, i.rd, i.pg, &value);
    Ok(())
}

#[inline(always)]
fn multiply_add<const SUB: bool, T: Int>(a: T, n: T, m: T) -> T {
    if SUB { a.sub(n.mul(m)) } else { a.add(n.mul(m)) }
}

fn accumulating(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.pg = d.src_p(bits(w, 10, 3));
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rm = d.src_z(bits(w, 16, 5));
    Some(d)
}

// ---- Immediates ----

fn immediate(w: u32, c: &Ctx, classes: &Classes, execs: &BySize, imm: i64) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.imm = imm;
    Some(d)
}

fn signed_immediate(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    immediate(w, c, classes, execs, sbits(w, 5, 8))
}

fn unsigned_immediate(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    immediate(w, c, classes, execs, i64::from(bits(w, 5, 8)))
}

fn shifted_immediate(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let shifted = bits(w, 13, 1);
    if size(w) == 0 && shifted == 1 {
        return None;
    }
    immediate(w, c, classes, execs, i64::from(bits(w, 5, 8) << (8 * shifted)))
}

// ---- Dot products ----

/// `acc` plus the products of the four elements of type `N` in `n` and in `m`.
#[inline(always)]
fn dot4<N: Int, W: Int>(acc: W, n: W, m: W) -> W {
    // Shifts sign- or zero-extend according to the type, and vector shifts exist.
    let part =
        |a: W, k: u32| a.shift_left(u64::from(W::BITS - (k + 1) * N::BITS)).shift_right(u64::from(W::BITS - N::BITS));
    (0..4).fold(acc, |sum, k| sum.add(part(n, k).mul(part(m, k))))
}

fn dot_vectors<N: Int, W: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    *cpu.z_mut(i.rd) = map3(cpu.z(i.rd), cpu.z(i.rn), cpu.z(i.rm), dot4::<N, W>);
    Ok(())
}

/// Returns the four elements of `Zm` are those at index `aux` of each 128-bit segment.
fn dot_indexed<N: Int, W: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let m = cpu.z(i.rm).lanes::<W>();
    let segment = 16 / size_of::<W>();
    let index = usize::from(i.aux) & (segment - 1);
    let factors = from_fn::<W>(|e| m[e / segment * segment + index]);
    *cpu.z_mut(i.rd) = map3(cpu.z(i.rd), cpu.z(i.rn), &factors, dot4::<N, W>);
    Ok(())
}

fn dot(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rm = d.src_z(bits(w, 16, 5));
    Some(d)
}

fn dot_by_element(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    // The index needs log2 of the number of wide elements in a segment; the register has the remaining bits.
    let register_bits = if size(w) == 2 { 3 } else { 4 };
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rm = d.element_z(bits(w, 16, register_bits));
    d.inst.aux = bits(w, 16 + register_bits, 5 - register_bits) as u16;
    Some(d)
}

// ---- Addresses and indices ----

/// `Zd = Zn + (Zm << aux)`.
fn adr_packed<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let shift = u64::from(i.aux);
    *cpu.z_mut(i.rd) = map2(cpu.z(i.rn), cpu.z(i.rm), |n: T, m: T| n.add(m.shift_left(shift)));
    Ok(())
}

/// `Zd.D = Zn.D + (extend(low half of Zm.D) << aux)`.
fn adr_unpacked<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let shift = u64::from(i.aux);
    *cpu.z_mut(i.rd) =
        map2(cpu.z(i.rn), cpu.z(i.rm), |n: u64, m: u64| n.wrapping_add(T::truncate(m).extend() << shift));
    Ok(())
}

fn adr(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = unpredicated(w, c, classes, execs)?;
    d.inst.aux = bits(w, 10, 2) as u16;
    Some(d)
}

/// Element `e` is base + `e` × step: each a general-purpose register, or an immediate (`imm`, `imm2`).
fn ramp<T: Int, const BASE_REG: bool, const STEP_REG: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let base = T::truncate(if BASE_REG { cpu.x(i.rn) } else { i.imm as u64 });
    let step = T::truncate(if STEP_REG { cpu.x(i.rm) } else { i.imm2 });
    *cpu.z_mut(i.rd) = from_fn::<T>(|e| base.add(T::truncate(e as u64).mul(step)));
    cpu.trim(i.rd);
    Ok(())
}

fn index<const BASE_REG: bool, const STEP_REG: bool>(
    w: u32,
    c: &Ctx,
    classes: &Classes,
    execs: &BySize,
) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    if BASE_REG {
        d.inst.rn = d.src_x(bits(w, 5, 5));
    } else {
        d.inst.imm = sbits(w, 5, 5);
    }
    if STEP_REG {
        d.inst.rm = d.src_x(bits(w, 16, 5));
    } else {
        d.inst.imm2 = sbits(w, 16, 5) as u64;
    }
    Some(d)
}

// ---- Prefixes ----

fn copy(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    *cpu.z_mut(i.rd) = *cpu.z(i.rn);
    Ok(())
}

/// Inactive elements keep their value when `aux` is 1, else become zero.
fn copy_predicated<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let value = *cpu.z(i.rn);
    if i.aux == 1 {
        write_merging::<T>(cpu, i.rd, i.pg, &value);
    } else {
        write_zeroing::<T>(cpu, i.rd, i.pg, &value);
    }
    Ok(())
}

fn movprfx(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.info.kind = InstKind::MovPrfx;
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    Some(d)
}

fn movprfx_predicated(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let merging = bits(w, 16, 1);
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.info.kind = InstKind::MovPrfx;
    d.inst.pg = d.src_p(bits(w, 10, 3));
    d.inst.rd = if merging == 1 { d.both_z(bits(w, 0, 5)) } else { d.dst_z(bits(w, 0, 5)) };
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.aux = merging as u16;
    Some(d)
}
