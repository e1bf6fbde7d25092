//! SVE contiguous stores: elements narrowed to memory elements, structures, and whole registers.

use fxscope_isa::Access;

use super::sve_common::{Done, ELEMENT_BITS, Element, active, first_elements};
use super::sve_mem::{
    MemElement, address, each_active, in_one_page, masked, memory, store_block, structures, sve_mem, whole_register,
    with_imm4, with_index,
};
use crate::cpu::{Cpu, MAX_VL, Vreg};
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use fxscope_guestmem::{MemFault, Memory, Touch};

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    sve_mem!("ST1B (scalar plus immediate)", "1110010 00 size:2 0 imm4:4 111 Pg:3 Rn:5 Zt:5", immediate),
    sve_mem!("ST1H (scalar plus immediate)", "1110010 01 size:2 0 imm4:4 111 Pg:3 Rn:5 Zt:5", immediate),
    sve_mem!("ST1W (scalar plus immediate)", "1110010 101 sz:1 0 imm4:4 111 Pg:3 Rn:5 Zt:5", immediate),
    sve_mem!("ST1D (scalar plus immediate)", "1110010 1111 0 imm4:4 111 Pg:3 Rn:5 Zt:5", immediate),
    sve_mem!("ST1B (scalar plus scalar)", "1110010 00 size:2 Rm:5 010 Pg:3 Rn:5 Zt:5", indexed),
    sve_mem!("ST1H (scalar plus scalar)", "1110010 01 size:2 Rm:5 010 Pg:3 Rn:5 Zt:5", indexed),
    sve_mem!("ST1W (scalar plus scalar)", "1110010 101 sz:1 Rm:5 010 Pg:3 Rn:5 Zt:5", indexed),
    sve_mem!("ST1D (scalar plus scalar)", "1110010 1111 Rm:5 010 Pg:3 Rn:5 Zt:5", indexed),
    sve_mem!("STNT1B (scalar plus immediate)", "1110010 00 001 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("STNT1H (scalar plus immediate)", "1110010 01 001 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("STNT1W (scalar plus immediate)", "1110010 10 001 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("STNT1D (scalar plus immediate)", "1110010 11 001 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("STNT1B (scalar plus scalar)", "1110010 00 00 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("STNT1H (scalar plus scalar)", "1110010 01 00 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("STNT1W (scalar plus scalar)", "1110010 10 00 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("STNT1D (scalar plus scalar)", "1110010 11 00 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("ST2B (scalar plus immediate)", "1110010 00 01 1 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("ST2H (scalar plus immediate)", "1110010 01 01 1 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("ST2W (scalar plus immediate)", "1110010 10 01 1 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("ST2D (scalar plus immediate)", "1110010 11 01 1 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("ST2B (scalar plus scalar)", "1110010 00 01 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("ST2H (scalar plus scalar)", "1110010 01 01 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("ST2W (scalar plus scalar)", "1110010 10 01 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("ST2D (scalar plus scalar)", "1110010 11 01 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("ST3B (scalar plus immediate)", "1110010 00 10 1 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("ST3H (scalar plus immediate)", "1110010 01 10 1 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("ST3W (scalar plus immediate)", "1110010 10 10 1 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("ST3D (scalar plus immediate)", "1110010 11 10 1 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("ST3B (scalar plus scalar)", "1110010 00 10 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("ST3H (scalar plus scalar)", "1110010 01 10 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("ST3W (scalar plus scalar)", "1110010 10 10 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("ST3D (scalar plus scalar)", "1110010 11 10 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("ST4B (scalar plus immediate)", "1110010 00 11 1 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("ST4H (scalar plus immediate)", "1110010 01 11 1 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("ST4W (scalar plus immediate)", "1110010 10 11 1 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("ST4D (scalar plus immediate)", "1110010 11 11 1 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("ST4B (scalar plus scalar)", "1110010 00 11 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("ST4H (scalar plus scalar)", "1110010 01 11 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("ST4W (scalar plus scalar)", "1110010 10 11 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("ST4D (scalar plus scalar)", "1110010 11 11 Rm:5 011 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("STR (vector)", "1110010110 imm9h:6 010 imm9l:3 Rn:5 Zt:5", vector),
    sve_mem!("STR (predicate)", "1110010110 imm9h:6 000 imm9l:3 Rn:5 0 Pt:4", predicate),
];

/// Calls `store` for each active element, in order. Only active elements are touched.
///
/// # Errors
/// The first fault. Nothing has then been stored: an access within one page faults at its first element or not at all, and a
/// longer one, of `bytes` bytes per element, is checked first.
#[inline(always)]
fn each<R: Element>(
    mem: &mut Memory,
    addr: u64,
    p: u64,
    bytes: usize,
    store: impl Fn(&mut Memory, u64, usize) -> Result<(), MemFault>,
) -> Result<(), MemFault> {
    if !in_one_page(addr, bytes * (MAX_VL >> R::LOG2)) {
        for e in each_active::<R>(p) {
            mem.check(addr.wrapping_add((e * bytes) as u64), bytes as u64, Touch::Write)?;
        }
    }
    each_active::<R>(p).try_for_each(|e| store(mem, addr.wrapping_add((e * bytes) as u64), e))
}

// ---- Contiguous stores ----

/// Stores of register elements by log2 of their size, for each log2 of the size in memory.
const CONTIGUOUS: [[Option<Exec>; 4]; 4] = [
    [Some(contiguous::<u8, u8>), Some(contiguous::<u8, u16>), Some(contiguous::<u8, u32>), Some(contiguous::<u8, u64>)],
    [None, Some(contiguous::<u16, u16>), Some(contiguous::<u16, u32>), Some(contiguous::<u16, u64>)],
    [None, None, Some(contiguous::<u32, u32>), Some(contiguous::<u32, u64>)],
    [None, None, None, Some(contiguous::<u64, u64>)],
];

fn contiguous_of(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let (mem_log2, reg_log2) = (bits(w, 23, 2) as usize, bits(w, 21, 2) as usize);
    let op = masked(Access::Store, c, 1 << mem_log2, 1 << reg_log2);
    let mut d = memory(w, c, class, CONTIGUOUS[mem_log2][reg_log2]?, op);
    d.inst.rd = d.src_z(bits(w, 0, 5));
    Some(d)
}

fn immediate(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    Some(with_imm4(contiguous_of(w, c, class)?, w, c.vl >> bits(w, 21, 2) << bits(w, 23, 2)))
}

fn indexed(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    with_index(contiguous_of(w, c, class)?, w, 1 << bits(w, 23, 2))
}

fn contiguous<M: MemElement<R>, R: Element>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Done {
    let addr = address(cpu, i);
    let p = active::<R>(cpu.p(i.pg));
    cpu.note(addr);
    cpu.note(p);
    let z = cpu.z(i.rd);
    // The usual case: a full vector that is not narrowed.
    let stored = if size_of::<M>() == size_of::<R>() && p == ELEMENT_BITS[R::LOG2] {
        mem.store(addr, z.0)
    } else {
        store_elements::<M, R>(mem, addr, p, z, cpu.vl)
    };
    stored.map_err(|f| cpu.fault(f))
}

#[inline(never)]
fn store_elements<M: MemElement<R>, R: Element>(
    mem: &mut Memory,
    addr: u64,
    p: u64,
    z: &Vreg,
    vl: usize,
) -> Result<(), MemFault> {
    if vl == MAX_VL { store::<M, R>(mem, addr, p, z, MAX_VL) } else { store::<M, R>(mem, addr, p, z, vl) }
}

#[inline(always)]
fn store<M: MemElement<R>, R: Element>(
    mem: &mut Memory,
    addr: u64,
    p: u64,
    z: &Vreg,
    vl: usize,
) -> Result<(), MemFault> {
    let elements = vl >> R::LOG2;
    if p == first_elements(R::LOG2, elements) {
        let mut block = Vreg::ZERO;
        for (to, &from) in block.lanes_mut::<M>().iter_mut().zip(z.lanes::<R>()) {
            *to = M::narrow(from);
        }
        return store_block(mem, addr, elements * size_of::<M>(), &block);
    }
    each::<R>(mem, addr, p, size_of::<M>(), |mem, at, e| mem.store(at, M::narrow(z.lanes::<R>()[e])))
}

// ---- Structures ----

/// STNT1 and ST2–ST4: 1 to 4 registers, by field `num` in bits 22:21 and `msz` in bits 24:23.
fn structures_of(w: u32, c: &Ctx, class: &'static str) -> Decoded {
    const EXECS: [[Exec; 4]; 4] = [
        [contiguous::<u8, u8>, contiguous::<u16, u16>, contiguous::<u32, u32>, contiguous::<u64, u64>],
        [exec_structures::<u8, 2>, exec_structures::<u16, 2>, exec_structures::<u32, 2>, exec_structures::<u64, 2>],
        [exec_structures::<u8, 3>, exec_structures::<u16, 3>, exec_structures::<u32, 3>, exec_structures::<u64, 3>],
        [exec_structures::<u8, 4>, exec_structures::<u16, 4>, exec_structures::<u32, 4>, exec_structures::<u64, 4>],
    ];
    let (log2, num) = (bits(w, 23, 2) as usize, bits(w, 21, 2));
    let op = structures(Access::Store, c, 1 << log2, num as usize + 1);
    let mut d = memory(w, c, class, EXECS[num as usize][log2], op);
    d.inst.rd = bits(w, 0, 5) as u8;
    for r in 0..=num {
        d.src_z((bits(w, 0, 5) + r) % 32);
    }
    d
}

fn structures_immediate(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    Some(with_imm4(structures_of(w, c, class), w, c.vl * (bits(w, 21, 2) as usize + 1)))
}

fn structures_indexed(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    with_index(structures_of(w, c, class), w, 1 << bits(w, 23, 2))
}

fn exec_structures<R: Element, const N: usize>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Done {
    let addr = address(cpu, i);
    let p = active::<R>(cpu.p(i.pg));
    cpu.note(addr);
    cpu.note(p);
    let elements = cpu.vl >> R::LOG2;
    let image = interleave::<R, N>(cpu, i.rd, elements);
    let structures = bytemuck::cast_slice::<Vreg, [R; N]>(&image);
    let stored = if cpu.vl == MAX_VL && p == first_elements(R::LOG2, elements) {
        mem.store(addr, image)
    } else {
        each::<R>(mem, addr, p, size_of::<[R; N]>(), |mem, at, e| mem.store(at, structures[e]))
    };
    stored.map_err(|f| cpu.fault(f))
}

/// Returns the structures in memory order.
#[inline(always)]
fn interleave<R: Element, const N: usize>(cpu: &Cpu, first: u8, elements: usize) -> [Vreg; N] {
    let mut image = [Vreg::ZERO; N];
    let (structures, _) = bytemuck::cast_slice_mut::<Vreg, R>(&mut image).as_chunks_mut::<N>();
    for (e, structure) in structures[..elements].iter_mut().enumerate() {
        for (r, element) in (0..).zip(structure) {
            *element = cpu.z(first + r).lanes::<R>()[e];
        }
    }
    image
}

// ---- Whole registers ----

fn vector(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Done {
        let addr = address(cpu, i);
        cpu.note(addr);
        store_block(mem, addr, cpu.vl, cpu.z(i.rd)).map_err(|f| cpu.fault(f))
    }
    let mut d = whole_register(w, c, class, exec, Access::Store, c.vl);
    d.inst.rd = d.src_z(bits(w, 0, 5));
    Some(d)
}

fn predicate(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Done {
        let addr = address(cpu, i);
        cpu.note(addr);
        let value = Vreg::from_low(u128::from(cpu.p(i.rd)));
        store_block(mem, addr, cpu.vl / 8, &value).map_err(|f| cpu.fault(f))
    }
    let mut d = whole_register(w, c, class, exec, Access::Store, c.vl / 8);
    d.inst.rd = d.src_p(bits(w, 0, 4));
    Some(d)
}
