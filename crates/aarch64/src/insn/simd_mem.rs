//! AdvSIMD loads and stores of structures.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use fxscope_isa::{Access, InstKind, MemOp, Reg, Shape};

use crate::cpu::{Cpu, Stop, Vreg};
use crate::enc;
use crate::insn::simd_common::{by_size, is_full};
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    enc!("LD1 (multiple structures, 1 register)", "0 q:1 0011000 1 000000 0111 size:2 rn:5 rt:5", multiple),
    enc!("LD1 (multiple structures, 1 register, post-index)",
        "0 q:1 0011001 1 0 rm:5 0111 size:2 rn:5 rt:5", multiple),
    enc!("LD1 (multiple structures, 2 registers)", "0 q:1 0011000 1 000000 1010 size:2 rn:5 rt:5", multiple),
    enc!("LD1 (multiple structures, 2 registers, post-index)",
        "0 q:1 0011001 1 0 rm:5 1010 size:2 rn:5 rt:5", multiple),
    enc!("LD1 (multiple structures, 3 registers)", "0 q:1 0011000 1 000000 0110 size:2 rn:5 rt:5", multiple),
    enc!("LD1 (multiple structures, 3 registers, post-index)",
        "0 q:1 0011001 1 0 rm:5 0110 size:2 rn:5 rt:5", multiple),
    enc!("LD1 (multiple structures, 4 registers)", "0 q:1 0011000 1 000000 0010 size:2 rn:5 rt:5", multiple),
    enc!("LD1 (multiple structures, 4 registers, post-index)",
        "0 q:1 0011001 1 0 rm:5 0010 size:2 rn:5 rt:5", multiple),
    enc!("LD2 (multiple structures)", "0 q:1 0011000 1 000000 1000 size:2 rn:5 rt:5", multiple),
    enc!("LD2 (multiple structures, post-index)", "0 q:1 0011001 1 0 rm:5 1000 size:2 rn:5 rt:5", multiple),
    enc!("LD3 (multiple structures)", "0 q:1 0011000 1 000000 0100 size:2 rn:5 rt:5", multiple),
    enc!("LD3 (multiple structures, post-index)", "0 q:1 0011001 1 0 rm:5 0100 size:2 rn:5 rt:5", multiple),
    enc!("LD4 (multiple structures)", "0 q:1 0011000 1 000000 0000 size:2 rn:5 rt:5", multiple),
    enc!("LD4 (multiple structures, post-index)", "0 q:1 0011001 1 0 rm:5 0000 size:2 rn:5 rt:5", multiple),
    enc!("ST1 (multiple structures, 1 register)", "0 q:1 0011000 0 000000 0111 size:2 rn:5 rt:5", multiple),
    enc!("ST1 (multiple structures, 1 register, post-index)",
        "0 q:1 0011001 0 0 rm:5 0111 size:2 rn:5 rt:5", multiple),
    enc!("ST1 (multiple structures, 2 registers)", "0 q:1 0011000 0 000000 1010 size:2 rn:5 rt:5", multiple),
    enc!("ST1 (multiple structures, 2 registers, post-index)",
        "0 q:1 0011001 0 0 rm:5 1010 size:2 rn:5 rt:5", multiple),
    enc!("ST1 (multiple structures, 3 registers)", "0 q:1 0011000 0 000000 0110 size:2 rn:5 rt:5", multiple),
    enc!("ST1 (multiple structures, 3 registers, post-index)",
        "0 q:1 0011001 0 0 rm:5 0110 size:2 rn:5 rt:5", multiple),
    enc!("ST1 (multiple structures, 4 registers)", "0 q:1 0011000 0 000000 0010 size:2 rn:5 rt:5", multiple),
    enc!("ST1 (multiple structures, 4 registers, post-index)",
        "0 q:1 0011001 0 0 rm:5 0010 size:2 rn:5 rt:5", multiple),
    enc!("ST2 (multiple structures)", "0 q:1 0011000 0 000000 1000 size:2 rn:5 rt:5", multiple),
    enc!("ST2 (multiple structures, post-index)", "0 q:1 0011001 0 0 rm:5 1000 size:2 rn:5 rt:5", multiple),
    enc!("ST3 (multiple structures)", "0 q:1 0011000 0 000000 0100 size:2 rn:5 rt:5", multiple),
    enc!("ST3 (multiple structures, post-index)", "0 q:1 0011001 0 0 rm:5 0100 size:2 rn:5 rt:5", multiple),
    enc!("ST4 (multiple structures)", "0 q:1 0011000 0 000000 0000 size:2 rn:5 rt:5", multiple),
    enc!("ST4 (multiple structures, post-index)", "0 q:1 0011001 0 0 rm:5 0000 size:2 rn:5 rt:5", multiple),
    enc!("LD1 (single structure)", "0 q:1 0011010 1 0 00000 scale:2 0 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("LD1 (single structure, post-index)", "0 q:1 0011011 1 0 rm:5 scale:2 0 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("LD2 (single structure)", "0 q:1 0011010 1 1 00000 scale:2 0 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("LD2 (single structure, post-index)", "0 q:1 0011011 1 1 rm:5 scale:2 0 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("LD3 (single structure)", "0 q:1 0011010 1 0 00000 scale:2 1 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("LD3 (single structure, post-index)", "0 q:1 0011011 1 0 rm:5 scale:2 1 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("LD4 (single structure)", "0 q:1 0011010 1 1 00000 scale:2 1 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("LD4 (single structure, post-index)", "0 q:1 0011011 1 1 rm:5 scale:2 1 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("ST1 (single structure)", "0 q:1 0011010 0 0 00000 scale:2 0 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("ST1 (single structure, post-index)", "0 q:1 0011011 0 0 rm:5 scale:2 0 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("ST2 (single structure)", "0 q:1 0011010 0 1 00000 scale:2 0 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("ST2 (single structure, post-index)", "0 q:1 0011011 0 1 rm:5 scale:2 0 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("ST3 (single structure)", "0 q:1 0011010 0 0 00000 scale:2 1 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("ST3 (single structure, post-index)", "0 q:1 0011011 0 0 rm:5 scale:2 1 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("ST4 (single structure)", "0 q:1 0011010 0 1 00000 scale:2 1 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("ST4 (single structure, post-index)", "0 q:1 0011011 0 1 rm:5 scale:2 1 s:1 size:2 rn:5 rt:5", single,
        except "xxxxxxxxxxxxxxxx11xxxxxxxxxxxxxx"),
    enc!("LD1R", "0 q:1 0011010 1 0 00000 11 0 0 size:2 rn:5 rt:5", replicate),
    enc!("LD1R (post-index)", "0 q:1 0011011 1 0 rm:5 11 0 0 size:2 rn:5 rt:5", replicate),
    enc!("LD2R", "0 q:1 0011010 1 1 00000 11 0 0 size:2 rn:5 rt:5", replicate),
    enc!("LD2R (post-index)", "0 q:1 0011011 1 1 rm:5 11 0 0 size:2 rn:5 rt:5", replicate),
    enc!("LD3R", "0 q:1 0011010 1 0 00000 11 1 0 size:2 rn:5 rt:5", replicate),
    enc!("LD3R (post-index)", "0 q:1 0011011 1 0 rm:5 11 1 0 size:2 rn:5 rt:5", replicate),
    enc!("LD4R", "0 q:1 0011010 1 1 00000 11 1 0 size:2 rn:5 rt:5", replicate),
    enc!("LD4R (post-index)", "0 q:1 0011011 1 1 rm:5 11 1 0 size:2 rn:5 rt:5", replicate),
];

// ---- timing classes, by addressing and number of registers --------------------------------------

type Classes = [[&'static str; 4]; 2];

/// LD1 of 8B, 4H, 2S, 2D and 1D.
#[rustfmt::skip]
const LD1_WIDE: Classes = [
    ["simd:LD1 (multiple structures) [No offset 1 register T={8B|4H|2S|2D|1D}]",
     "simd:LD1 (multiple structures) [No offset 2 registers T={8B|4H|2S|2D|1D}]",
     "simd:LD1 (multiple structures) [No offset 3 registers T={8B|4H|2S|2D|1D}]",
     "simd:LD1 (multiple structures) [No offset 4 registers T={8B|4H|2S|2D|1D}]"],
    ["simd:LD1 (multiple structures) [Post-index 1 register T={8B|4H|2S|2D|1D}]",
     "simd:LD1 (multiple structures) [Post-index 2 registers T={8B|4H|2S|2D|1D}]",
     "simd:LD1 (multiple structures) [Post-index 3 registers T={8B|4H|2S|2D|1D}]",
     "simd:LD1 (multiple structures) [Post-index 4 registers T={8B|4H|2S|2D|1D}]"],
];
/// LD1 of 16B, 8H and 4S.
#[rustfmt::skip]
const LD1_NARROW: Classes = [
    ["simd:LD1 (multiple structures) [No offset 1 register T={16B|8H|4S}]",
     "simd:LD1 (multiple structures) [No offset 2 registers T={16B|8H|4S}]",
     "simd:LD1 (multiple structures) [No offset 3 registers T={16B|8H|4S}]",
     "simd:LD1 (multiple structures) [No offset 4 registers T={16B|8H|4S}]"],
    ["simd:LD1 (multiple structures) [Post-index 1 register T={16B|8H|4S}]",
     "simd:LD1 (multiple structures) [Post-index 2 registers T={16B|8H|4S}]",
     "simd:LD1 (multiple structures) [Post-index 3 registers T={16B|8H|4S}]",
     "simd:LD1 (multiple structures) [Post-index 4 registers T={16B|8H|4S}]"],
];
#[rustfmt::skip]
const ST1: Classes = [
    ["simd:ST1 (multiple structures) [No offset 1 register]",
     "simd:ST1 (multiple structures) [No offset 2 registers]",
     "simd:ST1 (multiple structures) [No offset 3 registers]",
     "simd:ST1 (multiple structures) [No offset 4 registers]"],
    ["simd:ST1 (multiple structures) [Post-index 1 register]",
     "simd:ST1 (multiple structures) [Post-index 2 registers]",
     "simd:ST1 (multiple structures) [Post-index 3 registers]",
     "simd:ST1 (multiple structures) [Post-index 4 registers]"],
];

/// The classes `simd:<prefix><registers><suffix>` without and with post-index.
macro_rules! classes {
    ($prefix:literal, $suffix:literal) => {
        [
            [
                concat!("simd:", $prefix, "1", $suffix, " [No offset]"),
                concat!("simd:", $prefix, "2", $suffix, " [No offset]"),
                concat!("simd:", $prefix, "3", $suffix, " [No offset]"),
                concat!("simd:", $prefix, "4", $suffix, " [No offset]"),
            ],
            [
                concat!("simd:", $prefix, "1", $suffix, " [Post-index]"),
                concat!("simd:", $prefix, "2", $suffix, " [Post-index]"),
                concat!("simd:", $prefix, "3", $suffix, " [Post-index]"),
                concat!("simd:", $prefix, "4", $suffix, " [Post-index]"),
            ],
        ]
    };
}

/// Interleaved structures. The form with one register is LD1, which is above.
const LD_MULTIPLE: Classes = classes!("LD", " (multiple structures)");
const ST_MULTIPLE: Classes = classes!("ST", " (multiple structures)");
const LD_SINGLE: Classes = classes!("LD", " (single structure)");
const ST_SINGLE: Classes = classes!("ST", " (single structure)");
const LD_REPLICATE: Classes = classes!("LD", "R");

// ---- decoding -----------------------------------------------------------------------------------

/// Decodes what all forms share: the base, its update, and the memory access of `regs` registers, `bytes` in all, with elements
/// of log2 size `size`.
fn access(w: u32, c: &Ctx, classes: &Classes, exec: Exec, regs: u32, bytes: u32, size: u32) -> Decoded {
    let (post, load, rm, rn) = (bits(w, 23, 1) == 1, is_load(w), bits(w, 16, 5), bits(w, 5, 5));
    let mut d = Decoded::new(c, classes[usize::from(post)][regs as usize - 1], exec);
    d.info.kind = InstKind::Memory;
    d.inst.rn = d.addr_sp(rn);
    d.inst.rm = Cpu::XZR;
    d.inst.ra = Cpu::SINK;
    if post {
        d.inst.ra = d.inst.rn;
        d.info.writeback = Some(if rn == 31 { Reg::SP } else { Reg::gpr(rn as u8) });
        if rm == 31 {
            d.inst.imm = i64::from(bytes);
        } else {
            d.inst.rm = d.addr_x(rm);
        }
    }
    d.info.mem = Some(MemOp {
        access: if load { Access::Load } else { Access::Store },
        shape: Shape::Single,
        bytes: bytes as u16,
        mem_esize: 1 << size,
        reg_esize: 1 << size,
        regs: regs as u8,
        structure: regs > 1,
    });
    d
}

fn is_load(w: u32) -> bool {
    bits(w, 22, 1) == 1
}

/// Adds the registers from Vt on: loaded, stored, or (`merge`) loaded into one element.
fn transferred(w: u32, mut d: Decoded, regs: u32, merge: bool) -> Decoded {
    let rt = bits(w, 0, 5);
    for r in 0..regs {
        let v = (rt + r) & 31;
        if merge || !is_load(w) {
            d.src_z(v);
        }
        if is_load(w) {
            d.dst_z(v);
        }
    }
    d.inst.rd = rt as u8;
    d
}

fn multiple(w: u32, c: &Ctx) -> Option<Decoded> {
    /// The handler for whole registers.
    macro_rules! plain {
        ($words:literal, $full:literal) => {
            if is_load(w) { load_plain::<$words, $full> } else { store_plain::<$words, $full> }
        };
    }
    /// The handler for interleaved structures of `$words` doublewords in all.
    macro_rules! interleaved {
        ($regs:literal, $words:literal, $types:tt) => {
            if is_load(w) {
                by_size!(bits(w, 10, 2), $types, load_structures::<T, $regs, $words>)?
            } else {
                by_size!(bits(w, 10, 2), $types, store_structures::<T, $regs, $words>)?
            }
        };
    }
    let (size, full) = (bits(w, 10, 2), is_full(w));
    let (regs, structure, exec): (_, _, Exec) = match (bits(w, 12, 4), full) {
        (0b0111, false) => (1, false, plain!(1, false)),
        (0b0111, true) => (1, false, plain!(2, true)),
        (0b1010, false) => (2, false, plain!(2, false)),
        (0b1010, true) => (2, false, plain!(4, true)),
        (0b0110, false) => (3, false, plain!(3, false)),
        (0b0110, true) => (3, false, plain!(6, true)),
        (0b0010, false) => (4, false, plain!(4, false)),
        (0b0010, true) => (4, false, plain!(8, true)),
        (0b1000, false) => (2, true, interleaved!(2, 2, [u8 u16 u32 -])),
        (0b1000, true) => (2, true, interleaved!(2, 4, [u8 u16 u32 u64])),
        (0b0100, false) => (3, true, interleaved!(3, 3, [u8 u16 u32 -])),
        (0b0100, true) => (3, true, interleaved!(3, 6, [u8 u16 u32 u64])),
        (0b0000, false) => (4, true, interleaved!(4, 4, [u8 u16 u32 -])),
        (0b0000, true) => (4, true, interleaved!(4, 8, [u8 u16 u32 u64])),
        _ => return None,
    };
    let classes = match (is_load(w), structure) {
        (true, true) => &LD_MULTIPLE,
        (false, true) => &ST_MULTIPLE,
        (true, false) if full && size < 3 => &LD1_NARROW,
        (true, false) => &LD1_WIDE,
        (false, false) => &ST1,
    };
    let mut d = access(w, c, classes, exec, regs, regs * if full { 16 } else { 8 }, size);
    if let Some(mem) = &mut d.info.mem {
        mem.structure = structure;
    }
    Some(transferred(w, d, regs, false))
}

/// Number of registers of the single-structure forms.
fn single_regs(w: u32) -> u32 {
    (bits(w, 13, 1) << 1 | bits(w, 21, 1)) + 1
}

fn single(w: u32, c: &Ctx) -> Option<Decoded> {
    macro_rules! one_element {
        ($regs:literal, $size:expr) => {
            if is_load(w) {
                by_size!($size, [u8 u16 u32 u64], load_element::<T, $regs>)?
            } else {
                by_size!($size, [u8 u16 u32 u64], store_element::<T, $regs>)?
            }
        };
    }
    // Index bits from the top: Q, S, size.
    let index = bits(w, 30, 1) << 3 | bits(w, 12, 1) << 2 | bits(w, 10, 2);
    let (size, index) = match (bits(w, 14, 2), index & 3) {
        (0, _) => (0, index),
        (1, 0 | 2) => (1, index >> 1),
        (2, 0) => (2, index >> 2),
        (2, 1) if index & 4 == 0 => (3, index >> 3),
        _ => return None,
    };
    let regs = single_regs(w);
    let exec: Exec = match regs {
        1 => one_element!(1, size),
        2 => one_element!(2, size),
        3 => one_element!(3, size),
        _ => one_element!(4, size),
    };
    let classes = if is_load(w) { &LD_SINGLE } else { &ST_SINGLE };
    let mut d = access(w, c, classes, exec, regs, regs << size, size);
    d.inst.aux = index as u16;
    Some(transferred(w, d, regs, is_load(w)))
}

fn replicate(w: u32, c: &Ctx) -> Option<Decoded> {
    macro_rules! replicated {
        ($regs:literal, $size:expr) => {
            by_size!($size, [u8 u16 u32 u64], load_replicated::<T, $regs>)?
        };
    }
    let (size, regs) = (bits(w, 10, 2), single_regs(w));
    let exec: Exec = match regs {
        1 => replicated!(1, size),
        2 => replicated!(2, size),
        3 => replicated!(3, size),
        _ => replicated!(4, size),
    };
    let mut d = access(w, c, &LD_REPLICATE, exec, regs, regs << size, size);
    d.inst.imm2 = if is_full(w) { u64::MAX } else { 0 };
    Some(transferred(w, d, regs, false))
}

// ---- semantics ----------------------------------------------------------------------------------

/// Loads a value from the base address.
#[inline(always)]
fn load<T: Pod>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<T, Stop> {
    let addr = cpu.x(i.rn);
    cpu.note(addr);
    mem.load(addr).map_err(|fault| cpu.fault(fault))
}

/// Stores a value at the base address as a whole, so that a fault leaves memory unchanged.
#[inline(always)]
fn store<T: Pod>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst, value: T) -> Result<(), Stop> {
    let addr = cpu.x(i.rn);
    cpu.note(addr);
    mem.store(addr, value).map_err(|fault| cpu.fault(fault))
}

/// Updates the base: adds `Inst::imm` or register `Inst::rm`. The forms without post-index write to [`Cpu::SINK`].
#[inline(always)]
fn write_back(cpu: &mut Cpu, i: &Inst) {
    let next = cpu.x(i.rn).wrapping_add(i.imm as u64).wrapping_add(cpu.x(i.rm));
    cpu.set_x(i.ra, next);
}

/// Returns the `r`-th register transferred.
#[inline(always)]
fn register(i: &Inst, r: usize) -> u8 {
    (i.rd + r as u8) & 31
}

/// LD1 of whole registers: `WORDS` doublewords in all, two for each register if `FULL`.
fn load_plain<const WORDS: usize, const FULL: bool>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let words: [u64; WORDS] = load(cpu, mem, i)?;
    for (r, v) in words.chunks_exact(if FULL { 2 } else { 1 }).enumerate() {
        *cpu.z_mut(register(i, r)) = Vreg([v[0], if FULL { v[1] } else { 0 }, 0, 0, 0, 0, 0, 0]);
    }
    write_back(cpu, i);
    Ok(())
}

/// ST1 of whole registers.
fn store_plain<const WORDS: usize, const FULL: bool>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let mut words = [0; WORDS];
    let per_register = if FULL { 2 } else { 1 };
    for (r, v) in words.chunks_exact_mut(per_register).enumerate() {
        v.copy_from_slice(&cpu.z(register(i, r)).0[..per_register]);
    }
    store(cpu, mem, i, words)?;
    write_back(cpu, i);
    Ok(())
}

/// LD2, LD3, LD4: structures of `REGS` elements, `WORDS` doublewords in all.
fn load_structures<T: Pod, const REGS: usize, const WORDS: usize>(
    cpu: &mut Cpu,
    mem: &mut Memory,
    i: &Inst,
) -> Result<(), Stop> {
    let words: [u64; WORDS] = load(cpu, mem, i)?;
    let elements = cast_slice::<u64, T>(&words);
    for r in 0..REGS {
        let mut v = Vreg::ZERO;
        for (k, lane) in v.lanes_mut::<T>()[..elements.len() / REGS].iter_mut().enumerate() {
            *lane = elements[k * REGS + r];
        }
        *cpu.z_mut(register(i, r)) = v;
    }
    write_back(cpu, i);
    Ok(())
}

/// ST2, ST3, ST4.
fn store_structures<T: Pod, const REGS: usize, const WORDS: usize>(
    cpu: &mut Cpu,
    mem: &mut Memory,
    i: &Inst,
) -> Result<(), Stop> {
    let mut words = [0; WORDS];
    let elements = cast_slice_mut::<u64, T>(&mut words);
    for r in 0..REGS {
        let v = cpu.z(register(i, r)).lanes::<T>();
        for k in 0..elements.len() / REGS {
            elements[k * REGS + r] = v[k];
        }
    }
    store(cpu, mem, i, words)?;
    write_back(cpu, i);
    Ok(())
}

/// LD1 to LD4 of one structure: element `Inst::aux` of each register.
fn load_element<T: Pod, const REGS: usize>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let elements: [T; REGS] = load(cpu, mem, i)?;
    for (r, &element) in elements.iter().enumerate() {
        let mut v = Vreg::from_low(cpu.z(register(i, r)).low());
        v.lanes_mut()[element_index::<T>(i)] = element;
        *cpu.z_mut(register(i, r)) = v;
    }
    write_back(cpu, i);
    Ok(())
}

/// ST1 to ST4 of one structure.
fn store_element<T: Pod, const REGS: usize>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let elements: [T; REGS] = std::array::from_fn(|r| cpu.z(register(i, r)).lanes()[element_index::<T>(i)]);
    store(cpu, mem, i, elements)?;
    write_back(cpu, i);
    Ok(())
}

#[inline(always)]
fn element_index<T>(i: &Inst) -> usize {
    usize::from(i.aux) & (16 / size_of::<T>() - 1)
}

/// LD1R to LD4R: one structure, its elements replicated.
fn load_replicated<T: Pod, const REGS: usize>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let elements: [T; REGS] = load(cpu, mem, i)?;
    for (r, &element) in elements.iter().enumerate() {
        let mut word = [0];
        cast_slice_mut::<u64, T>(&mut word).fill(element);
        *cpu.z_mut(register(i, r)) = Vreg([word[0], word[0] & i.imm2, 0, 0, 0, 0, 0, 0]);
    }
    write_back(cpu, i);
    Ok(())
}
