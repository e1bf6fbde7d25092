//! AdvSIMD moves between elements and registers, permutations, table lookup and immediates.

use crate::cpu::{Cpu, Vreg};
use crate::enc;
use crate::insn::simd_common::*;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};

/// A row of a two-source permutation: `permute!(NAME, PATTERN, CLASS, SEMANTICS)`, where
/// `SEMANTICS(a, b, k, n)` is element `k` of the result for `n` elements.
macro_rules! permute {
    ($name:literal, $pattern:literal, $class:literal, $f:expr) => {
        enc!($name, $pattern, |w, c| {
            let size = bits(w, 22, 2);
            let full = by_size!(size, [u8 u16 u32 u64], |cpu, _, i| {
                rearrange::<T>(cpu, i, |a, b, k| $f(a, b, k, 16 / size_of::<T>()));
                Ok(())
            })?;
            let low = by_size!(size, [u8 u16 u32 u64], |cpu, _, i| {
                rearrange::<T>(cpu, i, |a, b, k| $f(a, b, k, 8 / size_of::<T>()));
                Ok(())
            })?;
            binary(w, same(w, c, $class, size, if is_full(w) { full } else { low })?)
        })
    };
}

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    // Elements and general-purpose registers.
    enc!("DUP (element)", "0 q:1 0 01110000 imm5:5 0 0000 1 rn:5 rd:5", dup_element),
    enc!("DUP (element, scalar)", "01 0 11110000 imm5:5 0 0000 1 rn:5 rd:5", dup_element),
    enc!("DUP (general)", "0 q:1 0 01110000 imm5:5 0 0001 1 rn:5 rd:5", dup_general),
    enc!("INS (general)", "01 0 01110000 imm5:5 0 0011 1 rn:5 rd:5", ins_general),
    enc!("INS (element)", "01 1 01110000 imm5:5 0 imm4:4 1 rn:5 rd:5", ins_element),
    enc!("SMOV", "0 q:1 0 01110000 imm5:5 0 0101 1 rn:5 rd:5", smov),
    enc!("UMOV", "0 q:1 0 01110000 imm5:5 0 0111 1 rn:5 rd:5", umov),

    // Permutations.
    enc!("EXT (vector)", "0 q:1 101110 000 rm:5 0 imm4:4 0 rn:5 rd:5", ext),
    permute!("UZP1 (vector)", "0 q:1 001110 size:2 0 rm:5 0 001 10 rn:5 rd:5", "simd:UZP1",
        |a: &[T], b: &[T], k: usize, n: usize| if k < n / 2 { a[2 * k] } else { b[2 * k - n] }),
    permute!("UZP2 (vector)", "0 q:1 001110 size:2 0 rm:5 0 101 10 rn:5 rd:5", "simd:UZP2",
        |a: &[T], b: &[T], k: usize, n: usize| if k < n / 2 { a[2 * k + 1] } else { b[2 * k - n + 1] }),
    permute!("TRN1 (vector)", "0 q:1 001110 size:2 0 rm:5 0 010 10 rn:5 rd:5", "simd:TRN1",
        |a: &[T], b: &[T], k: usize, _| if k & 1 == 0 { a[k] } else { b[k - 1] }),
    permute!("TRN2 (vector)", "0 q:1 001110 size:2 0 rm:5 0 110 10 rn:5 rd:5", "simd:TRN2",
        |a: &[T], b: &[T], k: usize, _| if k & 1 == 0 { a[k + 1] } else { b[k] }),
    permute!("ZIP1 (vector)", "0 q:1 001110 size:2 0 rm:5 0 011 10 rn:5 rd:5", "simd:ZIP1",
        |a: &[T], b: &[T], k: usize, _| if k & 1 == 0 { a[k / 2] } else { b[k / 2] }),
    permute!("ZIP2 (vector)", "0 q:1 001110 size:2 0 rm:5 0 111 10 rn:5 rd:5", "simd:ZIP2",
        |a: &[T], b: &[T], k: usize, n: usize| if k & 1 == 0 { a[(k + n) / 2] } else { b[(k + n) / 2] }),
    enc!("TBL (vector)", "0 q:1 001110 000 rm:5 0 len:2 0 00 rn:5 rd:5", table_lookup),
    enc!("TBX", "0 q:1 001110 000 rm:5 0 len:2 1 00 rn:5 rd:5", table_lookup),

    // Immediates.
    enc!("MOVI (32-bit)", "0 q:1 0 0111100000 abc:3 0xx0 01 defgh:5 rd:5", |w, c| Some(set(w, c, "simd:MOVI"))),
    enc!("MOVI (16-bit)", "0 q:1 0 0111100000 abc:3 10x0 01 defgh:5 rd:5", |w, c| Some(set(w, c, "simd:MOVI"))),
    enc!("MOVI (shifting ones)", "0 q:1 0 0111100000 abc:3 110x 01 defgh:5 rd:5", |w, c| Some(set(w, c, "simd:MOVI"))),
    enc!("MOVI (8-bit)", "0 q:1 0 0111100000 abc:3 1110 01 defgh:5 rd:5", |w, c| Some(set(w, c, "simd:MOVI"))),
    enc!("MOVI (64-bit)", "0 q:1 1 0111100000 abc:3 1110 01 defgh:5 rd:5", |w, c| Some(set(w, c, "simd:MOVI"))),
    enc!("MVNI (32-bit)", "0 q:1 1 0111100000 abc:3 0xx0 01 defgh:5 rd:5", |w, c| Some(set(w, c, "simd:MVNI"))),
    enc!("MVNI (16-bit)", "0 q:1 1 0111100000 abc:3 10x0 01 defgh:5 rd:5", |w, c| Some(set(w, c, "simd:MVNI"))),
    enc!("MVNI (shifting ones)", "0 q:1 1 0111100000 abc:3 110x 01 defgh:5 rd:5", |w, c| Some(set(w, c, "simd:MVNI"))),
    enc!("ORR (vector, immediate, 32-bit)", "0 q:1 0 0111100000 abc:3 0xx1 01 defgh:5 rd:5", orr),
    enc!("ORR (vector, immediate, 16-bit)", "0 q:1 0 0111100000 abc:3 10x1 01 defgh:5 rd:5", orr),
    enc!("BIC (vector, immediate, 32-bit)", "0 q:1 1 0111100000 abc:3 0xx1 01 defgh:5 rd:5", bic),
    enc!("BIC (vector, immediate, 16-bit)", "0 q:1 1 0111100000 abc:3 10x1 01 defgh:5 rd:5", bic),
];

// ---- elements and general-purpose registers -----------------------------------------------------

/// Returns the element size and index that `imm5` encodes.
fn size_and_index(w: u32) -> Option<(u32, u16)> {
    let imm5 = bits(w, 16, 5);
    let size = imm5.trailing_zeros();
    (size < 4).then(|| (size, (imm5 >> (size + 1)) as u16))
}

/// Element `index` of a register.
#[inline(always)]
fn lane<T: Elem>(v: &Vreg, index: u16) -> T {
    lanes::<T>(v)[usize::from(index) & (16 / size_of::<T>() - 1)]
}

/// Writes element `index` of Vd and clears the bits above 128.
#[inline(always)]
fn insert<T: Elem>(cpu: &mut Cpu, rd: u8, index: u16, value: T) {
    let mut v = Vreg::from_low(cpu.z(rd).low());
    v.lanes_mut()[usize::from(index) & (16 / size_of::<T>() - 1)] = value;
    *cpu.z_mut(rd) = v;
}

fn dup_element(w: u32, c: &Ctx) -> Option<Decoded> {
    let (size, index) = size_and_index(w)?;
    let exec = by_size!(size, [u8 u16 u32 u64], |cpu, _, i| {
        let value = lane::<T>(cpu.z(i.rn), i.aux);
        put(cpu, i, |_| value);
        Ok(())
    })?;
    let mut d = unary(w, same(w, c, "simd:DUP (element)", size, exec)?)?;
    d.inst.aux = index;
    Some(d)
}

fn dup_general(w: u32, c: &Ctx) -> Option<Decoded> {
    let (size, _) = size_and_index(w)?;
    let exec = by_size!(size, [u8 u16 u32 u64], |cpu, _, i| {
        let value = cpu.x(i.rn) as T;
        put(cpu, i, |_| value);
        Ok(())
    })?;
    let mut d = same(w, c, "simd:DUP (general)", size, exec)?;
    d.inst.rn = d.src_x(bits(w, 5, 5));
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    Some(d)
}

fn ins_general(w: u32, c: &Ctx) -> Option<Decoded> {
    let (size, index) = size_and_index(w)?;
    let exec = by_size!(size, [u8 u16 u32 u64], |cpu, _, i| {
        insert(cpu, i.rd, i.aux, cpu.x(i.rn) as T);
        Ok(())
    })?;
    let mut d = same(w, c, "simd:INS (general)", size, exec)?;
    d.inst.rn = d.src_x(bits(w, 5, 5));
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.aux = index;
    Some(d)
}

fn ins_element(w: u32, c: &Ctx) -> Option<Decoded> {
    let (size, index) = size_and_index(w)?;
    let exec = by_size!(size, [u8 u16 u32 u64], |cpu, _, i| {
        let value = lane::<T>(cpu.z(i.rn), i.ra.into());
        insert(cpu, i.rd, i.aux, value);
        Ok(())
    })?;
    let mut d = unary_acc(w, same(w, c, "simd:INS (element)", size, exec)?)?;
    d.inst.aux = index;
    d.inst.ra = (bits(w, 11, 4) >> size) as u8;
    Some(d)
}

/// Decodes a move of element `index` of Vn to a general-purpose register.
fn to_general(w: u32, c: &Ctx, class: &'static str, exec: Exec, index: u16) -> Decoded {
    let mut d = with_live(c, class, exec, 0, 0);
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    d.inst.aux = index;
    d
}

fn smov(w: u32, c: &Ctx) -> Option<Decoded> {
    let (size, index) = size_and_index(w)?;
    let exec = if is_full(w) {
        by_size!(size, [i8 i16 i32 -], |cpu, _, i| {
            cpu.set_x(i.rd, i64::from(lane::<T>(cpu.z(i.rn), i.aux)) as u64);
            Ok(())
        })?
    } else {
        by_size!(size, [i8 i16 - -], |cpu, _, i| {
            cpu.set_w(i.rd, i32::from(lane::<T>(cpu.z(i.rn), i.aux)) as u32);
            Ok(())
        })?
    };
    Some(to_general(w, c, "simd:SMOV", exec, index))
}

fn umov(w: u32, c: &Ctx) -> Option<Decoded> {
    let (size, index) = size_and_index(w)?;
    if is_full(w) != (size == 3) {
        return None;
    }
    let exec = by_size!(size, [u8 u16 u32 u64], |cpu, _, i| {
        cpu.set_x(i.rd, lane::<T>(cpu.z(i.rn), i.aux).int() as u64);
        Ok(())
    })?;
    Some(to_general(w, c, "simd:UMOV", exec, index))
}

// ---- permutations -------------------------------------------------------------------------------

/// Vd = f(Vn, Vm, element number).
#[inline(always)]
fn rearrange<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(&[T], &[T], usize) -> T) {
    let (a, b) = (*cpu.z(i.rn), *cpu.z(i.rm));
    put(cpu, i, |k| f(a.lanes(), b.lanes(), k));
}

fn ext(w: u32, c: &Ctx) -> Option<Decoded> {
    let full: Exec = |cpu, _, i| {
        let (a, b) = (cpu.z(i.rn).low(), cpu.z(i.rm).low());
        // A shift by all 128 bits must give zero.
        let value = a >> i.aux | (b << (127 - i.aux) << 1);
        *cpu.z_mut(i.rd) = Vreg::from_low(value);
        Ok(())
    };
    let low: Exec = |cpu, _, i| {
        let both = u128::from(cpu.z(i.rn).0[0]) | u128::from(cpu.z(i.rm).0[0]) << 64;
        *cpu.z_mut(i.rd) = Vreg::from_low((both >> i.aux) as u64 as u128);
        Ok(())
    };
    let byte = bits(w, 11, 4);
    if !is_full(w) && byte >= 8 {
        return None;
    }
    let mut d = binary(w, same(w, c, "simd:EXT", 0, if is_full(w) { full } else { low })?)?;
    d.inst.aux = (byte * 8) as u16;
    Some(d)
}

/// TBL and TBX: bytes of `REGS` registers from Vn on, selected by the bytes of Vm. For an index out of range, TBL gives zero and
/// TBX (`KEEP`) the byte of Vd.
#[inline(always)]
fn exec_table<const REGS: usize, const KEEP: bool>(cpu: &mut Cpu, i: &Inst) {
    let mut table = [[0; 2]; REGS];
    for (r, entry) in table.iter_mut().enumerate() {
        let v = cpu.z((i.rn + r as u8) & 31);
        *entry = [v.0[0], v.0[1]];
    }
    let table: &[u8] = bytemuck::cast_slice(table.as_flattened());
    let (index, old) = (*cpu.z(i.rm), *cpu.z(i.rd));
    put(cpu, i, |k| match table.get(usize::from(lanes::<u8>(&index)[k])) {
        Some(&byte) => byte,
        None if KEEP => lanes(&old)[k],
        None => 0,
    });
}

fn table_lookup(w: u32, c: &Ctx) -> Option<Decoded> {
    macro_rules! lookup {
        ($regs:literal, $keep:literal) => {
            |cpu, _, i| {
                exec_table::<$regs, $keep>(cpu, i);
                Ok(())
            }
        };
    }
    let (regs, keep) = (bits(w, 13, 2) + 1, bits(w, 12, 1) == 1);
    let (class, exec): (_, Exec) = match (regs, keep) {
        (1, false) => ("simd:TBL [Single register table]", lookup!(1, false)),
        (2, false) => ("simd:TBL [Tow register table]", lookup!(2, false)),
        (3, false) => ("simd:TBL [Three register table]", lookup!(3, false)),
        (_, false) => ("simd:TBL [Four register table]", lookup!(4, false)),
        (1, true) => ("simd:TBX [Single register table]", lookup!(1, true)),
        (2, true) => ("simd:TBX [Tow register table]", lookup!(2, true)),
        (3, true) => ("simd:TBX [Three register table]", lookup!(3, true)),
        (_, true) => ("simd:TBX [Four register table]", lookup!(4, true)),
    };
    let mut d = binary(w, same(w, c, class, 0, exec)?)?;
    for r in 1..regs {
        d.src_z((bits(w, 5, 5) + r) & 31);
    }
    if keep {
        d.acc_z(bits(w, 0, 5));
    }
    Some(d)
}

// ---- immediates ---------------------------------------------------------------------------------

/// Returns the doubleword that a modified immediate encodes (`AdvSIMDExpandImm`), before the inversion by MVNI and BIC.
fn expand(w: u32) -> u64 {
    let imm8 = bits(w, 16, 3) << 5 | bits(w, 5, 5);
    let (op, cmode) = (bits(w, 29, 1), bits(w, 12, 4));
    let twice = |word: u32| u64::from(word) << 32 | u64::from(word);
    match (cmode >> 1, cmode & 1) {
        (n @ 0..=3, _) => twice(imm8 << (8 * n)),
        (n @ 4..=5, _) => twice((imm8 << (8 * (n - 4))) * 0x1_0001),
        (6, 0) => twice(imm8 << 8 | 0xff),
        (6, _) => twice(imm8 << 16 | 0xffff),
        _ if op == 0 => u64::from(imm8) * 0x0101_0101_0101_0101,
        _ => (0..8).filter(|k| imm8 >> k & 1 == 1).map(|k| 0xff << (8 * k)).sum(),
    }
}

/// Decodes an instruction with the immediate `value` in `Inst::imm2`; `Inst::imm` is all ones when the upper doubleword is live.
fn with_value(w: u32, c: &Ctx, class: &'static str, exec: Exec, value: u64) -> Decoded {
    with_live(c, class, exec, value, if is_full(w) { u64::MAX } else { 0 })
}

/// MOVI and MVNI.
fn set(w: u32, c: &Ctx, class: &'static str) -> Decoded {
    let exec: Exec = |cpu, _, i| {
        *cpu.z_mut(i.rd) = Vreg([i.imm2, i.imm2 & i.imm as u64, 0, 0, 0, 0, 0, 0]);
        Ok(())
    };
    let inverted = bits(w, 29, 1) == 1 && bits(w, 12, 4) != 14;
    let value = if inverted { !expand(w) } else { expand(w) };
    let mut d = with_value(w, c, class, exec, value);
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    d
}

fn orr(w: u32, c: &Ctx) -> Option<Decoded> {
    let exec: Exec = |cpu, _, i| {
        let v = cpu.z_mut(i.rd);
        *v = Vreg([v.0[0] | i.imm2, (v.0[1] | i.imm2) & i.imm as u64, 0, 0, 0, 0, 0, 0]);
        Ok(())
    };
    let mut d = with_value(w, c, "simd:ORR (vector, immediate)", exec, expand(w));
    d.inst.rd = d.both_z(bits(w, 0, 5));
    Some(d)
}

fn bic(w: u32, c: &Ctx) -> Option<Decoded> {
    let exec: Exec = |cpu, _, i| {
        let v = cpu.z_mut(i.rd);
        *v = Vreg([v.0[0] & i.imm2, v.0[1] & i.imm2 & i.imm as u64, 0, 0, 0, 0, 0, 0]);
        Ok(())
    };
    let mut d = with_value(w, c, "simd:BIC (vector, immediate)", exec, !expand(w));
    d.inst.rd = d.both_z(bits(w, 0, 5));
    Some(d)
}
