//! SVE integer compares: vectors, wide elements, immediates. All are zeroing and set the flags.

use super::sve_common::{
    BySize, Classes, Done, active, at_most, from_fn, map1, map2, mask_to_predicate, predicate_test, size, sve,
};
use super::sve_element::Int;
use crate::cpu::{Cpu, Vreg};
use crate::table::{Ctx, Decoded, Encoding, Inst, bits, sbits};
use crate::{sizes, sve};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    sve!("CMPHS (vectors)", "00100100 size:2 0 Zm:5 000 Pg:3 Zn:5 0 Pd:4", vectors, sizes!(u: T => compare::<Ge, T>)),
    sve!("CMPHI (vectors)", "00100100 size:2 0 Zm:5 000 Pg:3 Zn:5 1 Pd:4", vectors, sizes!(u: T => compare::<Gt, T>)),
    sve!("CMPGE (vectors)", "00100100 size:2 0 Zm:5 100 Pg:3 Zn:5 0 Pd:4", vectors, sizes!(i: T => compare::<Ge, T>)),
    sve!("CMPGT (vectors)", "00100100 size:2 0 Zm:5 100 Pg:3 Zn:5 1 Pd:4", vectors, sizes!(i: T => compare::<Gt, T>)),
    sve!("CMPEQ (vectors)", "00100100 size:2 0 Zm:5 101 Pg:3 Zn:5 0 Pd:4", vectors, sizes!(u: T => compare::<Eq, T>)),
    sve!("CMPNE (vectors)", "00100100 size:2 0 Zm:5 101 Pg:3 Zn:5 1 Pd:4", vectors, sizes!(u: T => compare::<Ne, T>)),
    sve!("CMPEQ (wide elements)", "00100100 size:2 0 Zm:5 001 Pg:3 Zn:5 0 Pd:4", vectors, at_most(2, sizes!(i: T => compare_wide::<Eq, T>))),
    sve!("CMPNE (wide elements)", "00100100 size:2 0 Zm:5 001 Pg:3 Zn:5 1 Pd:4", vectors, at_most(2, sizes!(i: T => compare_wide::<Ne, T>))),
    sve!("CMPGE (wide elements)", "00100100 size:2 0 Zm:5 010 Pg:3 Zn:5 0 Pd:4", vectors, at_most(2, sizes!(i: T => compare_wide::<Ge, T>))),
    sve!("CMPGT (wide elements)", "00100100 size:2 0 Zm:5 010 Pg:3 Zn:5 1 Pd:4", vectors, at_most(2, sizes!(i: T => compare_wide::<Gt, T>))),
    sve!("CMPLT (wide elements)", "00100100 size:2 0 Zm:5 011 Pg:3 Zn:5 0 Pd:4", vectors, at_most(2, sizes!(i: T => compare_wide::<Lt, T>))),
    sve!("CMPLE (wide elements)", "00100100 size:2 0 Zm:5 011 Pg:3 Zn:5 1 Pd:4", vectors, at_most(2, sizes!(i: T => compare_wide::<Le, T>))),
    sve!("CMPHS (wide elements)", "00100100 size:2 0 Zm:5 110 Pg:3 Zn:5 0 Pd:4", vectors, at_most(2, sizes!(u: T => compare_wide::<Ge, T>))),
    sve!("CMPHI (wide elements)", "00100100 size:2 0 Zm:5 110 Pg:3 Zn:5 1 Pd:4", vectors, at_most(2, sizes!(u: T => compare_wide::<Gt, T>))),
    sve!("CMPLO (wide elements)", "00100100 size:2 0 Zm:5 111 Pg:3 Zn:5 0 Pd:4", vectors, at_most(2, sizes!(u: T => compare_wide::<Lt, T>))),
    sve!("CMPLS (wide elements)", "00100100 size:2 0 Zm:5 111 Pg:3 Zn:5 1 Pd:4", vectors, at_most(2, sizes!(u: T => compare_wide::<Le, T>))),
    sve!("CMPGE (immediate)", "00100101 size:2 0 imm5:5 000 Pg:3 Zn:5 0 Pd:4", signed, sizes!(i: T => compare_immediate::<Ge, T>)),
    sve!("CMPGT (immediate)", "00100101 size:2 0 imm5:5 000 Pg:3 Zn:5 1 Pd:4", signed, sizes!(i: T => compare_immediate::<Gt, T>)),
    sve!("CMPLT (immediate)", "00100101 size:2 0 imm5:5 001 Pg:3 Zn:5 0 Pd:4", signed, sizes!(i: T => compare_immediate::<Lt, T>)),
    sve!("CMPLE (immediate)", "00100101 size:2 0 imm5:5 001 Pg:3 Zn:5 1 Pd:4", signed, sizes!(i: T => compare_immediate::<Le, T>)),
    sve!("CMPEQ (immediate)", "00100101 size:2 0 imm5:5 100 Pg:3 Zn:5 0 Pd:4", signed, sizes!(u: T => compare_immediate::<Eq, T>)),
    sve!("CMPNE (immediate)", "00100101 size:2 0 imm5:5 100 Pg:3 Zn:5 1 Pd:4", signed, sizes!(u: T => compare_immediate::<Ne, T>)),
    sve!("CMPHS (immediate)", "00100100 size:2 1 imm7:7 0 Pg:3 Zn:5 0 Pd:4", unsigned, sizes!(u: T => compare_immediate::<Ge, T>)),
    sve!("CMPHI (immediate)", "00100100 size:2 1 imm7:7 0 Pg:3 Zn:5 1 Pd:4", unsigned, sizes!(u: T => compare_immediate::<Gt, T>)),
    sve!("CMPLO (immediate)", "00100100 size:2 1 imm7:7 1 Pg:3 Zn:5 0 Pd:4", unsigned, sizes!(u: T => compare_immediate::<Lt, T>)),
    sve!("CMPLS (immediate)", "00100100 size:2 1 imm7:7 1 Pg:3 Zn:5 1 Pd:4", unsigned, sizes!(u: T => compare_immediate::<Le, T>)),
];

/// A relation between two elements.
trait Relation {
    fn holds<T: Int>(a: T, b: T) -> bool;
}

macro_rules! relations {
    ($($name:ident $op:tt;)+) => { $(
        struct $name;
        impl Relation for $name {
            #[inline(always)]
            fn holds<T: Int>(a: T, b: T) -> bool {
                a $op b
            }
        }
    )+ };
}
relations! { Eq ==; Ne !=; Lt <; Le <=; Gt >; Ge >=; }

/// Returns all ones where `condition` holds, else zero.
#[inline(always)]
fn ones_if<T: Int>(condition: bool) -> T {
    if condition { T::ONES } else { T::ZERO }
}

/// `Pd = Pg & mask`, with flags.
#[inline(always)]
fn write_result<T: Int>(cpu: &mut Cpu, i: &Inst, mask: &Vreg) {
    let g = active::<T>(cpu.p(i.pg));
    let result = mask_to_predicate::<T>(mask) & g;
    cpu.nzcv = predicate_test(g, result);
    cpu.set_p(i.rd, result);
}

fn compare<R: Relation, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let mask = map2(cpu.z(i.rn), cpu.z(i.rm), |a: T, b: T| ones_if(R::holds(a, b)));
    write_result::<T>(cpu, i, &mask);
    Ok(())
}

/// Compares each element of `Zn` with the 64-bit element of `Zm` at the same position.
fn compare_wide<R: Relation, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let (n, m) = (cpu.z(i.rn).lanes::<T>(), cpu.z(i.rm).lanes::<T::Wide>());
    let mask = from_fn::<T>(|e| ones_if(R::holds(n[e].widen(), m[e << T::LOG2 >> 3])));
    write_result::<T>(cpu, i, &mask);
    Ok(())
}

fn compare_immediate<R: Relation, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let b = T::truncate(i.imm as u64);
    let mask = map1(cpu.z(i.rn), |a: T| ones_if(R::holds(a, b)));
    write_result::<T>(cpu, i, &mask);
    Ok(())
}

/// Decodes what all compares share: destination and governing predicate, first source, flags.
fn common(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.pg = d.src_p(bits(w, 10, 3));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rd = d.dst_p(bits(w, 0, 4));
    d.dst_flags();
    Some(d)
}

fn vectors(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = common(w, c, classes, execs)?;
    d.inst.rm = d.src_z(bits(w, 16, 5));
    Some(d)
}

fn signed(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = common(w, c, classes, execs)?;
    d.inst.imm = sbits(w, 16, 5);
    Some(d)
}

fn unsigned(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = common(w, c, classes, execs)?;
    d.inst.imm = i64::from(bits(w, 14, 7));
    Some(d)
}
