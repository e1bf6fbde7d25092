//! SVE permutes: interleaving, reversal, table lookup, extraction of elements, unpacking; the same of predicates.

use super::sve_common::{
    BySize, Classes, Done, active, at_least, elements, from_fn, last_active, map1, predicated, size, splat, sve,
    sve_predicate, unary, unpredicated, write_merging,
};
use super::sve_element::Int;
use crate::cpu::{Cpu, MAX_VL, Vreg};
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use crate::{sizes, sve};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    // Interleave, deinterleave, transpose.
    sve!("ZIP1 (vectors)", "00000101 size:2 1 Zm:5 011 000 Zn:5 Zd:5", unpredicated, sizes!(u: T => zip::<T, false>)),
    sve!("ZIP2 (vectors)", "00000101 size:2 1 Zm:5 011 001 Zn:5 Zd:5", unpredicated, sizes!(u: T => zip::<T, true>)),
    sve!("UZP1 (vectors)", "00000101 size:2 1 Zm:5 011 010 Zn:5 Zd:5", unpredicated, sizes!(u: T => uzp::<T, 0>)),
    sve!("UZP2 (vectors)", "00000101 size:2 1 Zm:5 011 011 Zn:5 Zd:5", unpredicated, sizes!(u: T => uzp::<T, 1>)),
    sve!("TRN1 (vectors)", "00000101 size:2 1 Zm:5 011 100 Zn:5 Zd:5", unpredicated, sizes!(u: T => trn::<T, 0>)),
    sve!("TRN2 (vectors)", "00000101 size:2 1 Zm:5 011 101 Zn:5 Zd:5", unpredicated, sizes!(u: T => trn::<T, 1>)),
    // Reversal and lookup.
    sve!("REV (vector)", "00000101 size:2 111000 001110 Zn:5 Zd:5", one_source, sizes!(u: T => rev::<T>)),
    sve!("REVB", "00000101 size:2 100 100 100 Pg:3 Zn:5 Zd:5", unary, at_least(1, sizes!(u: T => reverse_within::<u8, T>))),
    sve!("REVH", "00000101 size:2 100 101 100 Pg:3 Zn:5 Zd:5", unary, at_least(2, sizes!(u: T => reverse_within::<u16, T>))),
    sve!("REVW", "00000101 size:2 100 110 100 Pg:3 Zn:5 Zd:5", unary, at_least(3, sizes!(u: T => reverse_within::<u32, T>))),
    sve!("SVE RBIT" as "RBIT", "00000101 size:2 100 111 100 Pg:3 Zn:5 Zd:5", unary, sizes!(u: T => rbit::<T>)),
    sve!("TBL", "00000101 size:2 1 Zm:5 001100 Zn:5 Zd:5", unpredicated, sizes!(u: T => tbl::<T>)),
    // Shifts of whole elements.
    sve!("SVE EXT" as "EXT", "00000101 00 1 imm8h:5 000 imm8l:3 Zm:5 Zdn:5", ext, ext_exec as Exec),
    sve!("INSR (scalar)", "00000101 size:2 100100 001110 Rm:5 Zdn:5", insr::<false>, sizes!(u: T => insr_exec::<T, false>)),
    sve!("INSR (SIMD&FP scalar)", "00000101 size:2 110100 001110 Vm:5 Zdn:5", insr::<true>, sizes!(u: T => insr_exec::<T, true>)),
    sve!("SPLICE", "00000101 size:2 101 100 100 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => splice::<T>)),
    sve!("COMPACT", "00000101 size:2 100 001 100 Pg:3 Zn:5 Zd:5", last_vector, at_least(2, sizes!(u: T => compact::<T>))),
    // Last active element, or the one after it.
    sve!("CLASTA (vectors)", "00000101 size:2 101 000 100 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => clast_vector::<T, true>)),
    sve!("CLASTB (vectors)", "00000101 size:2 101 001 100 Pg:3 Zm:5 Zdn:5", predicated, sizes!(u: T => clast_vector::<T, false>)),
    sve!("CLASTA (SIMD&FP scalar)", "00000101 size:2 101 010 100 Pg:3 Zm:5 Vdn:5", predicated, sizes!(u: T => clast_simd::<T, true>)),
    sve!("CLASTB (SIMD&FP scalar)", "00000101 size:2 101 011 100 Pg:3 Zm:5 Vdn:5", predicated, sizes!(u: T => clast_simd::<T, false>)),
    sve!("CLASTA (scalar)", "00000101 size:2 110 000 101 Pg:3 Zm:5 Rdn:5", clast_general, sizes!(u: T => clast_scalar::<T, true>)),
    sve!("CLASTB (scalar)", "00000101 size:2 110 001 101 Pg:3 Zm:5 Rdn:5", clast_general, sizes!(u: T => clast_scalar::<T, false>)),
    sve!("LASTA (scalar)", "00000101 size:2 100 000 101 Pg:3 Zn:5 Rd:5", last_general, sizes!(u: T => last_scalar::<T, true>)),
    sve!("LASTB (scalar)", "00000101 size:2 100 001 101 Pg:3 Zn:5 Rd:5", last_general, sizes!(u: T => last_scalar::<T, false>)),
    sve!("LASTA (SIMD&FP scalar)", "00000101 size:2 100 010 100 Pg:3 Zn:5 Vd:5", last_vector, sizes!(u: T => last_simd::<T, true>)),
    sve!("LASTB (SIMD&FP scalar)", "00000101 size:2 100 011 100 Pg:3 Zn:5 Vd:5", last_vector, sizes!(u: T => last_simd::<T, false>)),
    // Widening of one half.
    sve!("SUNPKLO", "00000101 size:2 110000 001110 Zn:5 Zd:5", one_source, [None, Some(unpack::<i8, i16, false> as Exec), Some(unpack::<i16, i32, false>), Some(unpack::<i32, i64, false>)]),
    sve!("SUNPKHI", "00000101 size:2 110001 001110 Zn:5 Zd:5", one_source, [None, Some(unpack::<i8, i16, true> as Exec), Some(unpack::<i16, i32, true>), Some(unpack::<i32, i64, true>)]),
    sve!("UUNPKLO", "00000101 size:2 110010 001110 Zn:5 Zd:5", one_source, [None, Some(unpack::<u8, u16, false> as Exec), Some(unpack::<u16, u32, false>), Some(unpack::<u32, u64, false>)]),
    sve!("UUNPKHI", "00000101 size:2 110011 001110 Zn:5 Zd:5", one_source, [None, Some(unpack::<u8, u16, true> as Exec), Some(unpack::<u16, u32, true>), Some(unpack::<u32, u64, true>)]),
    // Predicates.
    sve!("ZIP1 (predicates)", "00000101 size:2 10 Pm:4 010 000 0 Pn:4 0 Pd:4", predicates, zip_p::<false> as Exec),
    sve!("ZIP2 (predicates)", "00000101 size:2 10 Pm:4 010 001 0 Pn:4 0 Pd:4", predicates, zip_p::<true> as Exec),
    sve!("UZP1 (predicates)", "00000101 size:2 10 Pm:4 010 010 0 Pn:4 0 Pd:4", predicates, uzp_p::<0> as Exec),
    sve!("UZP2 (predicates)", "00000101 size:2 10 Pm:4 010 011 0 Pn:4 0 Pd:4", predicates, uzp_p::<1> as Exec),
    sve!("TRN1 (predicates)", "00000101 size:2 10 Pm:4 010 100 0 Pn:4 0 Pd:4", predicates, trn_p::<0> as Exec),
    sve!("TRN2 (predicates)", "00000101 size:2 10 Pm:4 010 101 0 Pn:4 0 Pd:4", predicates, trn_p::<1> as Exec),
    sve!("REV (predicate)", "00000101 size:2 1101000100000 Pn:4 0 Pd:4", predicate, rev_p as Exec),
    sve!("PUNPKLO", "00000101 00 110000 0100000 Pn:4 0 Pd:4", predicate, punpk::<false> as Exec),
    sve!("PUNPKHI", "00000101 00 110001 0100000 Pn:4 0 Pd:4", predicate, punpk::<true> as Exec),
];

/// Returns a register whose element `i` is `f(i)` for the `n` elements of the vector, and zero beyond.
#[inline(always)]
fn first_n<T: Int>(n: usize, f: impl Fn(usize) -> T) -> Vreg {
    if n == MAX_VL >> T::LOG2 {
        return from_fn(f);
    }
    let mut out = Vreg::ZERO;
    for (i, o) in out.lanes_mut::<T>().iter_mut().take(n).enumerate() {
        *o = f(i);
    }
    out
}

/// Returns element `i`, which must exist; the mask avoids the bounds check.
#[inline(always)]
fn lane<T: Int>(z: &Vreg, i: usize) -> T {
    let all = z.lanes::<T>();
    all[i & (all.len() - 1)]
}

// ---- Vectors ----

fn zip<T: Int, const HIGH: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let (count, n, m) = (elements::<T>(cpu), cpu.z(i.rn), cpu.z(i.rm));
    let base = if HIGH { count / 2 } else { 0 };
    *cpu.z_mut(i.rd) = first_n(count, |e| lane::<T>(if e & 1 == 0 { n } else { m }, base + e / 2));
    Ok(())
}

fn uzp<T: Int, const ODD: usize>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let (count, n, m) = (elements::<T>(cpu), cpu.z(i.rn), cpu.z(i.rm));
    let half = count / 2;
    *cpu.z_mut(i.rd) =
        first_n(count, |e| if e < half { lane::<T>(n, 2 * e + ODD) } else { lane::<T>(m, 2 * (e - half) + ODD) });
    Ok(())
}

fn trn<T: Int, const ODD: usize>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let (n, m) = (cpu.z(i.rn), cpu.z(i.rm));
    *cpu.z_mut(i.rd) = from_fn(|e| lane::<T>(if e & 1 == 0 { n } else { m }, (e & !1) + ODD));
    Ok(())
}

fn rev<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let (count, n) = (elements::<T>(cpu), cpu.z(i.rn));
    *cpu.z_mut(i.rd) = first_n(count, |e| lane::<T>(n, count - 1 - e));
    Ok(())
}

/// Reverses the parts of type `P` within each element of type `T`.
fn reverse_within<P: Int, T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let parts = (T::BITS / P::BITS) as usize;
    let n = cpu.z(i.rn);
    let value = from_fn(|e| lane::<P>(n, e ^ (parts - 1)));
    write_merging::<T>(cpu, i.rd, i.pg, &value);
    Ok(())
}

fn rbit<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let value = map1(cpu.z(i.rn), T::reverse_bits);
    write_merging::<T>(cpu, i.rd, i.pg, &value);
    Ok(())
}

fn tbl<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let (count, n, m) = (elements::<T>(cpu) as u64, cpu.z(i.rn), cpu.z(i.rm));
    let value = first_n(count as usize, |e| {
        let at = lane::<T>(m, e).extend();
        if at < count { lane::<T>(n, at as usize) } else { T::ZERO }
    });
    *cpu.z_mut(i.rd) = value;
    Ok(())
}

/// `Zd = op Zn`, unpredicated.
fn one_source(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    Some(d)
}

/// Takes the bytes from position `aux` on of `Zdn` followed by `Zm`.
fn ext_exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let (vl, from) = (cpu.vl.min(MAX_VL), usize::from(i.aux));
    let mut both = [0u8; 2 * MAX_VL];
    both[..vl].copy_from_slice(&cpu.z(i.rd).lanes()[..vl]);
    both[vl..2 * vl].copy_from_slice(&cpu.z(i.rm).lanes()[..vl]);
    cpu.z_mut(i.rd).lanes_mut()[..vl].copy_from_slice(&both[from..from + vl]);
    Ok(())
}

fn ext(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let position = (bits(w, 16, 5) << 3 | bits(w, 10, 3)) as u16;
    let mut d = sve(c, classes[0], *exec);
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.rm = d.src_z(bits(w, 5, 5));
    d.inst.aux = if usize::from(position) < c.vl { position } else { 0 };
    Some(d)
}

fn insr_exec<T: Int, const SIMD: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let first = if SIMD { lane::<T>(cpu.z(i.rm), 0) } else { T::truncate(cpu.x(i.rm)) };
    let z = cpu.z_mut(i.rd);
    let old = *z;
    let lanes = z.lanes_mut::<T>();
    let last = lanes.len() - 1;
    lanes[1..].copy_from_slice(&old.lanes()[..last]);
    lanes[0] = first;
    cpu.trim(i.rd);
    Ok(())
}

fn insr<const SIMD: bool>(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.rm = if SIMD { d.src_z(bits(w, 5, 5)) } else { d.src_x(bits(w, 5, 5)) };
    Some(d)
}

/// Returns the elements of `Zdn` from the first to the last active one, followed by the first elements of `Zm`.
fn splice<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let (count, g) = (elements::<T>(cpu), active::<T>(cpu.p(i.pg)));
    let first = g.trailing_zeros() as usize >> T::LOG2;
    let length = last_active::<T>(g).map_or(0, |last| last + 1 - first);
    let (n, m) = (cpu.z(i.rd), cpu.z(i.rm));
    *cpu.z_mut(i.rd) = first_n(count, |e| if e < length { lane::<T>(n, first + e) } else { lane(m, e - length) });
    Ok(())
}

/// Moves the active elements to the lowest positions and fills the rest with zeros.
fn compact<T: Int>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let mut left = active::<T>(cpu.p(i.pg));
    let mut out = Vreg::ZERO;
    for o in out.lanes_mut::<T>() {
        if left == 0 {
            break;
        }
        *o = lane(cpu.z(i.rn), left.trailing_zeros() as usize >> T::LOG2);
        left &= left - 1;
    }
    *cpu.z_mut(i.rd) = out;
    Ok(())
}

// ---- Last active element ----

/// Returns the element after the last active one, wrapping around (`AFTER`), or the last active one itself; `None` when no
/// element is active.
#[inline(always)]
fn conditional_last<T: Int, const AFTER: bool>(cpu: &Cpu, pg: u8, z: u8) -> Option<T> {
    let last = last_active::<T>(active::<T>(cpu.p(pg)))?;
    // The element count is a power of two.
    let at = if AFTER { (last + 1) & (elements::<T>(cpu) - 1) } else { last };
    Some(lane(cpu.z(z), at))
}

/// As [`conditional_last`]; if no element is active, the first element (`AFTER`) or the last one.
#[inline(always)]
fn last<T: Int, const AFTER: bool>(cpu: &Cpu, pg: u8, z: u8) -> T {
    let default = if AFTER { 0 } else { elements::<T>(cpu) - 1 };
    conditional_last::<T, AFTER>(cpu, pg, z).unwrap_or_else(|| lane(cpu.z(z), default))
}

/// Returns a register with `value` in element 0 and zeros elsewhere.
#[inline(always)]
fn scalar<T: Int>(value: T) -> Vreg {
    let mut out = Vreg::ZERO;
    out.lanes_mut::<T>()[0] = value;
    out
}

fn clast_vector<T: Int, const AFTER: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    if let Some(value) = conditional_last::<T, AFTER>(cpu, i.pg, i.rm) {
        *cpu.z_mut(i.rd) = splat(value);
        cpu.trim(i.rd);
    }
    Ok(())
}

fn clast_simd<T: Int, const AFTER: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let value = conditional_last::<T, AFTER>(cpu, i.pg, i.rm).unwrap_or_else(|| lane(cpu.z(i.rd), 0));
    *cpu.z_mut(i.rd) = scalar(value);
    Ok(())
}

fn clast_scalar<T: Int, const AFTER: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let value = conditional_last::<T, AFTER>(cpu, i.pg, i.rm).unwrap_or_else(|| T::truncate(cpu.x(i.rn)));
    cpu.set_x(i.rd, value.extend());
    Ok(())
}

fn clast_general(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.pg = d.src_p(bits(w, 10, 3));
    d.inst.rn = d.acc_x(bits(w, 0, 5));
    d.inst.rm = d.src_z(bits(w, 5, 5));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    Some(d)
}

fn last_scalar<T: Int, const AFTER: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    cpu.set_x(i.rd, last::<T, AFTER>(cpu, i.pg, i.rn).extend());
    Ok(())
}

fn last_general(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.pg = d.src_p(bits(w, 10, 3));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    Some(d)
}

fn last_simd<T: Int, const AFTER: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    *cpu.z_mut(i.rd) = scalar(last::<T, AFTER>(cpu, i.pg, i.rn));
    Ok(())
}

/// `NAME Zd, Pg, Zn`, where all of `Zd` is written.
fn last_vector(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.pg = d.src_p(bits(w, 10, 3));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    Some(d)
}

/// Elements of type `N` from one half of `Zn`, widened to type `W`.
fn unpack<N: Int, W: Int, const HIGH: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let (count, n) = (elements::<W>(cpu), cpu.z(i.rn));
    let base = if HIGH { count } else { 0 };
    *cpu.z_mut(i.rd) = first_n(count, |e| W::truncate(lane::<N>(n, base + e).extend()));
    Ok(())
}

// ---- Predicates: elements of 2^esz bits, moved as a whole ----

/// The steps of [`spread`] and [`gather`]: distance and mask of the bits that stay.
const STEPS: [(u32, u64); 5] = [
    (16, 0x0000_ffff_0000_ffff),
    (8, 0x00ff_00ff_00ff_00ff),
    (4, 0x0f0f_0f0f_0f0f_0f0f),
    (2, 0x3333_3333_3333_3333),
    (1, 0x5555_5555_5555_5555),
];

/// Spreads the groups of 2^`log2` bits in the low half of `p`, with a zero group after each.
#[inline(always)]
fn spread(p: u64, log2: u8) -> u64 {
    let mut p = p & 0xffff_ffff;
    for (distance, mask) in STEPS.into_iter().filter(|s| s.0 >= 1 << log2) {
        p = (p | p << distance) & mask;
    }
    p
}

/// Compacts the even groups of 2^`log2` bits: the reverse of [`spread`].
#[inline(always)]
fn gather(p: u64, log2: u8) -> u64 {
    let mut p = p & even_groups(log2);
    for k in (1..STEPS.len()).rev().filter(|&k| STEPS[k].0 >= 1 << log2) {
        p = (p | p >> STEPS[k].0) & STEPS[k - 1].1;
    }
    (p | p >> 16) & 0xffff_ffff
}

/// Returns the bits of all even groups of 2^`log2` bits.
#[inline(always)]
fn even_groups(log2: u8) -> u64 {
    STEPS[4 - usize::from(log2 & 3)].1
}

fn zip_p<const HIGH: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let shift = if HIGH { cpu.vl / 2 } else { 0 };
    let (n, m) = (spread(cpu.p(i.rn) >> shift, i.esz), spread(cpu.p(i.rm) >> shift, i.esz));
    cpu.set_p(i.rd, n | m << (1 << i.esz));
    Ok(())
}

fn uzp_p<const ODD: u32>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let shift = ODD << i.esz;
    let (n, m) = (gather(cpu.p(i.rn) >> shift, i.esz), gather(cpu.p(i.rm) >> shift, i.esz));
    cpu.set_p(i.rd, n | m << (cpu.vl / 2));
    Ok(())
}

fn trn_p<const ODD: u32>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let (even, shift) = (even_groups(i.esz), ODD << i.esz);
    let (n, m) = (cpu.p(i.rn) >> shift & even, cpu.p(i.rm) >> shift & even);
    cpu.set_p(i.rd, n | m << (1 << i.esz));
    Ok(())
}

fn rev_p(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let mut p = cpu.p(i.rn).reverse_bits() >> (64 - cpu.vl);
    // The bits of each group are now in reverse order; restore it.
    for (distance, mask) in STEPS.into_iter().filter(|s| s.0 < 1 << i.esz) {
        p = p >> distance & mask | (p & mask) << distance;
    }
    cpu.set_p(i.rd, p);
    Ok(())
}

/// Each bit of one half becomes the lowest of two.
fn punpk<const HIGH: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let shift = if HIGH { cpu.vl / 2 } else { 0 };
    cpu.set_p(i.rd, spread(cpu.p(i.rn) >> shift, 0));
    Ok(())
}

fn predicate(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve_predicate(c, classes[0], *exec);
    d.inst.rn = d.src_p(bits(w, 5, 4));
    d.inst.rd = d.dst_p(bits(w, 0, 4));
    d.inst.esz = size(w) as u8;
    Some(d)
}

fn predicates(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = predicate(w, c, classes, exec)?;
    d.inst.rm = d.src_p(bits(w, 16, 4));
    Some(d)
}
