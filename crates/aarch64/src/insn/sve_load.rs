//! SVE contiguous loads: elements widened to register elements, first-fault and non-fault forms,
//! broadcasts, structures, and whole registers.

use fxscope_isa::{Access, MemOp, Reg};

use super::sve_common::{Done, ELEMENT_BITS, Element, active, element_mask, first_elements, low_bits, select, splat};
use super::sve_mem::on_fault::{FIRST, NEVER, TRAP};
use super::sve_mem::{
    MemElement, address, each_active, in_one_page, load_block, masked, memory, structures, sve_mem, whole_register,
    with_imm4, with_index,
};
use crate::cpu::{Cpu, MAX_VL, Stop, Vreg};
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use fxscope_guestmem::{MemFault, Memory};

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    sve_mem!("LD1B (scalar plus immediate)", "1010010 00 size:2 0 imm4:4 101 Pg:3 Rn:5 Zt:5", immediate::<TRAP>),
    sve_mem!("LD1SB (scalar plus immediate)", "1010010 11 size:2 0 imm4:4 101 Pg:3 Rn:5 Zt:5", immediate::<TRAP>, except "1010010 11 11 xxxxx xxxxxxxxxxxxxxxx"),
    sve_mem!("LD1H (scalar plus immediate)", "1010010 01 size:2 0 imm4:4 101 Pg:3 Rn:5 Zt:5", immediate::<TRAP>, except "1010010 01 00 xxxxx xxxxxxxxxxxxxxxx"),
    sve_mem!("LD1SH (scalar plus immediate)", "1010010 100 x 0 imm4:4 101 Pg:3 Rn:5 Zt:5", immediate::<TRAP>),
    sve_mem!("LD1W (scalar plus immediate)", "1010010 101 sz:1 0 imm4:4 101 Pg:3 Rn:5 Zt:5", immediate::<TRAP>),
    sve_mem!("LD1SW (scalar plus immediate)", "1010010 0100 0 imm4:4 101 Pg:3 Rn:5 Zt:5", immediate::<TRAP>),
    sve_mem!("LD1D (scalar plus immediate)", "1010010 1111 0 imm4:4 101 Pg:3 Rn:5 Zt:5", immediate::<TRAP>),
    sve_mem!("LD1B (scalar plus scalar)", "1010010 00 size:2 Rm:5 010 Pg:3 Rn:5 Zt:5", indexed),
    sve_mem!("LD1SB (scalar plus scalar)", "1010010 11 size:2 Rm:5 010 Pg:3 Rn:5 Zt:5", indexed, except "1010010 11 11 xxxxx xxxxxxxxxxxxxxxx"),
    sve_mem!("LD1H (scalar plus scalar)", "1010010 01 size:2 Rm:5 010 Pg:3 Rn:5 Zt:5", indexed, except "1010010 01 00 xxxxx xxxxxxxxxxxxxxxx"),
    sve_mem!("LD1SH (scalar plus scalar)", "1010010 100 x Rm:5 010 Pg:3 Rn:5 Zt:5", indexed),
    sve_mem!("LD1W (scalar plus scalar)", "1010010 101 sz:1 Rm:5 010 Pg:3 Rn:5 Zt:5", indexed),
    sve_mem!("LD1SW (scalar plus scalar)", "1010010 0100 Rm:5 010 Pg:3 Rn:5 Zt:5", indexed),
    sve_mem!("LD1D (scalar plus scalar)", "1010010 1111 Rm:5 010 Pg:3 Rn:5 Zt:5", indexed),
    sve_mem!("LDFF1B (scalar plus scalar)", "1010010 00 size:2 Rm:5 011 Pg:3 Rn:5 Zt:5", first_fault),
    sve_mem!("LDFF1SB (scalar plus scalar)", "1010010 11 size:2 Rm:5 011 Pg:3 Rn:5 Zt:5", first_fault, except "1010010 11 11 xxxxx xxxxxxxxxxxxxxxx"),
    sve_mem!("LDFF1H (scalar plus scalar)", "1010010 01 size:2 Rm:5 011 Pg:3 Rn:5 Zt:5", first_fault, except "1010010 01 00 xxxxx xxxxxxxxxxxxxxxx"),
    sve_mem!("LDFF1SH (scalar plus scalar)", "1010010 100 x Rm:5 011 Pg:3 Rn:5 Zt:5", first_fault),
    sve_mem!("LDFF1W (scalar plus scalar)", "1010010 101 sz:1 Rm:5 011 Pg:3 Rn:5 Zt:5", first_fault),
    sve_mem!("LDFF1SW (scalar plus scalar)", "1010010 0100 Rm:5 011 Pg:3 Rn:5 Zt:5", first_fault),
    sve_mem!("LDFF1D (scalar plus scalar)", "1010010 1111 Rm:5 011 Pg:3 Rn:5 Zt:5", first_fault),
    sve_mem!("LDNF1B", "1010010 00 size:2 1 imm4:4 101 Pg:3 Rn:5 Zt:5", immediate::<NEVER>),
    sve_mem!("LDNF1SB", "1010010 11 size:2 1 imm4:4 101 Pg:3 Rn:5 Zt:5", immediate::<NEVER>, except "1010010 11 11 xxxxx xxxxxxxxxxxxxxxx"),
    sve_mem!("LDNF1H", "1010010 01 size:2 1 imm4:4 101 Pg:3 Rn:5 Zt:5", immediate::<NEVER>, except "1010010 01 00 xxxxx xxxxxxxxxxxxxxxx"),
    sve_mem!("LDNF1SH", "1010010 100 x 1 imm4:4 101 Pg:3 Rn:5 Zt:5", immediate::<NEVER>),
    sve_mem!("LDNF1W", "1010010 101 sz:1 1 imm4:4 101 Pg:3 Rn:5 Zt:5", immediate::<NEVER>),
    sve_mem!("LDNF1SW", "1010010 0100 1 imm4:4 101 Pg:3 Rn:5 Zt:5", immediate::<NEVER>),
    sve_mem!("LDNF1D", "1010010 1111 1 imm4:4 101 Pg:3 Rn:5 Zt:5", immediate::<NEVER>),
    sve_mem!("LDNT1B (scalar plus immediate)", "1010010 00 000 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LDNT1B (scalar plus scalar)", "1010010 00 00 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LDNT1H (scalar plus immediate)", "1010010 01 000 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LDNT1H (scalar plus scalar)", "1010010 01 00 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LDNT1W (scalar plus immediate)", "1010010 10 000 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LDNT1W (scalar plus scalar)", "1010010 10 00 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LDNT1D (scalar plus immediate)", "1010010 11 000 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LDNT1D (scalar plus scalar)", "1010010 11 00 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LD2B (scalar plus immediate)", "1010010 00 01 0 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LD2H (scalar plus immediate)", "1010010 01 01 0 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LD2W (scalar plus immediate)", "1010010 10 01 0 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LD2D (scalar plus immediate)", "1010010 11 01 0 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LD2B (scalar plus scalar)", "1010010 00 01 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LD2H (scalar plus scalar)", "1010010 01 01 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LD2W (scalar plus scalar)", "1010010 10 01 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LD2D (scalar plus scalar)", "1010010 11 01 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LD3B (scalar plus immediate)", "1010010 00 10 0 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LD3H (scalar plus immediate)", "1010010 01 10 0 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LD3W (scalar plus immediate)", "1010010 10 10 0 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LD3D (scalar plus immediate)", "1010010 11 10 0 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LD3B (scalar plus scalar)", "1010010 00 10 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LD3H (scalar plus scalar)", "1010010 01 10 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LD3W (scalar plus scalar)", "1010010 10 10 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LD3D (scalar plus scalar)", "1010010 11 10 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LD4B (scalar plus immediate)", "1010010 00 11 0 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LD4H (scalar plus immediate)", "1010010 01 11 0 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LD4W (scalar plus immediate)", "1010010 10 11 0 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LD4D (scalar plus immediate)", "1010010 11 11 0 imm4:4 111 Pg:3 Rn:5 Zt:5", structures_immediate),
    sve_mem!("LD4B (scalar plus scalar)", "1010010 00 11 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LD4H (scalar plus scalar)", "1010010 01 11 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LD4W (scalar plus scalar)", "1010010 10 11 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LD4D (scalar plus scalar)", "1010010 11 11 Rm:5 110 Pg:3 Rn:5 Zt:5", structures_indexed),
    sve_mem!("LD1RB", "1000010 00 1 imm6:6 1 size:2 Pg:3 Rn:5 Zt:5", broadcast),
    sve_mem!("LD1RSB", "1000010 11 1 imm6:6 1 size:2 Pg:3 Rn:5 Zt:5", broadcast, except "1000010 11 x xxxxxx x 11 xxx xxxxx xxxxx"),
    sve_mem!("LD1RH", "1000010 01 1 imm6:6 1 size:2 Pg:3 Rn:5 Zt:5", broadcast, except "1000010 01 x xxxxxx x 00 xxx xxxxx xxxxx"),
    sve_mem!("LD1RSH", "1000010 10 1 imm6:6 1 0 x Pg:3 Rn:5 Zt:5", broadcast),
    sve_mem!("LD1RW", "1000010 10 1 imm6:6 1 1 sz:1 Pg:3 Rn:5 Zt:5", broadcast),
    sve_mem!("LD1RSW", "1000010 01 1 imm6:6 1 00 Pg:3 Rn:5 Zt:5", broadcast),
    sve_mem!("LD1RD", "1000010 11 1 imm6:6 1 11 Pg:3 Rn:5 Zt:5", broadcast),
    sve_mem!("LD1RQB (scalar plus immediate)", "1010010 00 000 imm4:4 001 Pg:3 Rn:5 Zt:5", quadword_immediate),
    sve_mem!("LD1RQB (scalar plus scalar)", "1010010 00 00 Rm:5 000 Pg:3 Rn:5 Zt:5", quadword_indexed),
    sve_mem!("LD1RQH (scalar plus immediate)", "1010010 01 000 imm4:4 001 Pg:3 Rn:5 Zt:5", quadword_immediate),
    sve_mem!("LD1RQH (scalar plus scalar)", "1010010 01 00 Rm:5 000 Pg:3 Rn:5 Zt:5", quadword_indexed),
    sve_mem!("LD1RQW (scalar plus immediate)", "1010010 10 000 imm4:4 001 Pg:3 Rn:5 Zt:5", quadword_immediate),
    sve_mem!("LD1RQW (scalar plus scalar)", "1010010 10 00 Rm:5 000 Pg:3 Rn:5 Zt:5", quadword_indexed),
    sve_mem!("LD1RQD (scalar plus immediate)", "1010010 11 000 imm4:4 001 Pg:3 Rn:5 Zt:5", quadword_immediate),
    sve_mem!("LD1RQD (scalar plus scalar)", "1010010 11 00 Rm:5 000 Pg:3 Rn:5 Zt:5", quadword_indexed),
    sve_mem!("LDR (vector)", "1000010110 imm9h:6 010 imm9l:3 Rn:5 Zt:5", vector),
    sve_mem!("LDR (predicate)", "1000010110 imm9h:6 000 imm9l:3 Rn:5 0 Pt:4", predicate),
];

// ---- Contiguous loads ----

/// Decodes the `dtype` field: sizes in bytes, and the loads of such elements.
struct Dtype {
    mem_esize: usize,
    reg_esize: usize,
    /// By behaviour on a fault: see [`super::sve_mem::on_fault`].
    contiguous: [Exec; 3],
    broadcast: Exec,
}

const fn dtype<M: MemElement<R>, R: Element>() -> Dtype {
    Dtype {
        mem_esize: size_of::<M>(),
        reg_esize: size_of::<R>(),
        contiguous: [contiguous::<M, R, TRAP>, contiguous::<M, R, FIRST>, contiguous::<M, R, NEVER>],
        broadcast: exec_broadcast::<M, R>,
    }
}

static DTYPES: [Dtype; 16] = [
    dtype::<u8, u8>(),
    dtype::<u8, u16>(),
    dtype::<u8, u32>(),
    dtype::<u8, u64>(),
    dtype::<i32, u64>(),
    dtype::<u16, u16>(),
    dtype::<u16, u32>(),
    dtype::<u16, u64>(),
    dtype::<i16, u64>(),
    dtype::<i16, u32>(),
    dtype::<u32, u32>(),
    dtype::<u32, u64>(),
    dtype::<i8, u64>(),
    dtype::<i8, u32>(),
    dtype::<i8, u16>(),
    dtype::<u64, u64>(),
];

fn contiguous_of<const ON_FAULT: u8>(w: u32, c: &Ctx, class: &'static str) -> (Decoded, &'static Dtype) {
    let t = &DTYPES[bits(w, 21, 4) as usize];
    let op = masked(Access::Load, c, t.mem_esize, t.reg_esize);
    let mut d = memory(w, c, class, t.contiguous[usize::from(ON_FAULT)], op);
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    if ON_FAULT != TRAP {
        d.info.srcs.push(Reg::FFR);
        d.info.dsts.push(Reg::FFR);
    }
    (d, t)
}

fn immediate<const ON_FAULT: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let (d, t) = contiguous_of::<ON_FAULT>(w, c, class);
    Some(with_imm4(d, w, c.vl / t.reg_esize * t.mem_esize))
}

fn indexed(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let (d, t) = contiguous_of::<TRAP>(w, c, class);
    with_index(d, w, t.mem_esize)
}

/// Unlike other forms with an index register, this one allows the zero register.
fn first_fault(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let (d, t) = contiguous_of::<FIRST>(w, c, class);
    with_index(d, w, t.mem_esize).or(Some(d))
}

fn contiguous<M: MemElement<R>, R: Element, const ON_FAULT: u8>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Done {
    let addr = address(cpu, i);
    let p = active::<R>(cpu.p(i.pg));
    cpu.note(addr);
    cpu.note(p);
    // The usual case: a full vector that is not widened.
    if size_of::<M>() == size_of::<R>()
        && p == ELEMENT_BITS[R::LOG2]
        && let Ok(value) = mem.load(addr)
    {
        cpu.z_mut(i.rd).0 = value;
        return Ok(());
    }
    load_elements::<M, R, ON_FAULT>(cpu, mem, i.rd, addr, p)
}

#[inline(never)]
fn load_elements<M: MemElement<R>, R: Element, const ON_FAULT: u8>(
    cpu: &mut Cpu,
    mem: &mut Memory,
    rd: u8,
    addr: u64,
    p: u64,
) -> Done {
    let all = if cpu.vl == MAX_VL {
        load_whole::<M, R>(mem, addr, p, MAX_VL)
    } else {
        load_whole::<M, R>(mem, addr, p, cpu.vl)
    };
    *cpu.z_mut(rd) = match all {
        Some(value) => value,
        None => load_each::<M, R, ON_FAULT>(cpu, mem, addr, p)?,
    };
    Ok(())
}

/// Loads `vl / size_of::<R>()` elements by one access, if that touches no page that the active elements do not touch and nothing
/// faults. Inactive elements are zero.
#[inline(always)]
fn load_whole<M: MemElement<R>, R: Element>(mem: &mut Memory, addr: u64, p: u64, vl: usize) -> Option<Vreg> {
    let elements = vl >> R::LOG2;
    let bytes = elements * size_of::<M>();
    let all = p == first_elements(R::LOG2, elements);
    if !all && (p == 0 || !in_one_page(addr, bytes)) {
        return None;
    }
    let block = load_block(mem, addr, bytes).ok()?;
    let mut out = Vreg::ZERO;
    for (to, from) in out.lanes_mut::<R>().iter_mut().zip(block.lanes::<M>()) {
        *to = from.widen();
    }
    Some(if all { out } else { select(&element_mask::<R>(p), &out, &Vreg::ZERO) })
}

/// Loads active elements one by one. Inactive elements, and elements not loaded because of a suppressed fault, are zero.
#[cold]
#[inline(never)]
fn load_each<M: MemElement<R>, R: Element, const ON_FAULT: u8>(
    cpu: &mut Cpu,
    mem: &mut Memory,
    addr: u64,
    p: u64,
) -> Result<Vreg, Stop> {
    let mut out = Vreg::ZERO;
    let mut may_trap = ON_FAULT != NEVER;
    for e in each_active::<R>(p) {
        match mem.load::<M>(addr.wrapping_add((e * size_of::<M>()) as u64)) {
            Ok(value) => out.lanes_mut::<R>()[e] = value.widen(),
            Err(fault) if may_trap => return Err(cpu.fault(fault)),
            Err(_) => {
                cpu.ffr &= low_bits((e << R::LOG2) as u64);
                break;
            }
        }
        may_trap = ON_FAULT == TRAP;
    }
    Ok(out)
}

// ---- Broadcasts ----

fn broadcast(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let t = &DTYPES[(bits(w, 23, 2) << 2 | bits(w, 13, 2)) as usize];
    let op = MemOp { bytes: t.mem_esize as u16, ..masked(Access::Load, c, t.mem_esize, t.reg_esize) };
    let mut d = memory(w, c, class, t.broadcast, op);
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    d.inst.imm = i64::from(bits(w, 16, 6)) * t.mem_esize as i64;
    Some(d)
}

fn exec_broadcast<M: MemElement<R>, R: Element>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Done {
    let addr = address(cpu, i);
    let p = active::<R>(cpu.p(i.pg));
    cpu.note(addr);
    cpu.note(p);
    let value = if p == 0 { M::zeroed() } else { mem.load(addr).map_err(|f| cpu.fault(f))? };
    *cpu.z_mut(i.rd) = select(&element_mask::<R>(p), &splat::<R>(value.widen()), &Vreg::ZERO);
    Ok(())
}

/// LD1RQ: 16 bytes in each 128-bit part of the register.
fn quadword(w: u32, c: &Ctx, class: &'static str) -> (Decoded, usize) {
    const EXECS: [Exec; 4] = [exec_quadword::<u8>, exec_quadword::<u16>, exec_quadword::<u32>, exec_quadword::<u64>];
    let log2 = bits(w, 23, 2) as usize;
    let op = MemOp { bytes: 16, ..masked(Access::Load, c, 1 << log2, 1 << log2) };
    let mut d = memory(w, c, class, EXECS[log2], op);
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    (d, 1 << log2)
}

fn quadword_immediate(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    Some(with_imm4(quadword(w, c, class).0, w, 16))
}

fn quadword_indexed(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let (d, esize) = quadword(w, c, class);
    with_index(d, w, esize)
}

fn exec_quadword<R: Element + MemElement<R>>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Done {
    let addr = address(cpu, i);
    let p = active::<R>(cpu.p(i.pg)) & low_bits(16);
    cpu.note(addr);
    cpu.note(p);
    let low = match load_whole::<R, R>(mem, addr, p, 16) {
        Some(value) => value,
        None => load_each::<R, R, TRAP>(cpu, mem, addr, p)?,
    };
    *cpu.z_mut(i.rd) = splat::<u128>(low.low());
    cpu.trim(i.rd);
    Ok(())
}

// ---- Structures ----

/// LDNT1 and LD2–LD4: 1 to 4 registers, by field `num` in bits 22:21 and `msz` in bits 24:23.
fn structures_of(w: u32, c: &Ctx, class: &'static str) -> (Decoded, usize) {
    const EXECS: [[Exec; 4]; 4] = [
        [
            contiguous::<u8, u8, TRAP>,
            contiguous::<u16, u16, TRAP>,
            contiguous::<u32, u32, TRAP>,
            contiguous::<u64, u64, TRAP>,
        ],
        [exec_structures::<u8, 2>, exec_structures::<u16, 2>, exec_structures::<u32, 2>, exec_structures::<u64, 2>],
        [exec_structures::<u8, 3>, exec_structures::<u16, 3>, exec_structures::<u32, 3>, exec_structures::<u64, 3>],
        [exec_structures::<u8, 4>, exec_structures::<u16, 4>, exec_structures::<u32, 4>, exec_structures::<u64, 4>],
    ];
    let (log2, num) = (bits(w, 23, 2) as usize, bits(w, 21, 2));
    let op = structures(Access::Load, c, 1 << log2, num as usize + 1);
    let mut d = memory(w, c, class, EXECS[num as usize][log2], op);
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    for r in 1..=num {
        d.dst_z((bits(w, 0, 5) + r) % 32);
    }
    (d, 1 << log2)
}

fn structures_immediate(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    Some(with_imm4(structures_of(w, c, class).0, w, c.vl * (bits(w, 21, 2) as usize + 1)))
}

fn structures_indexed(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let (d, esize) = structures_of(w, c, class);
    with_index(d, w, esize)
}

fn exec_structures<R: Element, const N: usize>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Done {
    let addr = address(cpu, i);
    let p = active::<R>(cpu.p(i.pg));
    cpu.note(addr);
    cpu.note(p);
    let vl = cpu.vl;
    let all = p == first_elements(R::LOG2, vl >> R::LOG2);
    let whole = all || p != 0 && in_one_page(addr, N * vl);
    let image = if whole { load_image::<N>(mem, addr, vl).ok() } else { None };
    let mut out = match image {
        Some(image) => deinterleave::<R, N>(&image, vl),
        None => load_each_structure::<R, N>(mem, addr, p).map_err(|f| cpu.fault(f))?,
    };
    if !all {
        let mask = element_mask::<R>(p);
        out.iter_mut().for_each(|z| *z = select(&mask, z, &Vreg::ZERO));
    }
    for (r, z) in (0..).zip(out) {
        *cpu.z_mut(i.rd + r) = z;
    }
    Ok(())
}

/// Loads `N * vl` bytes in memory order.
#[inline(always)]
fn load_image<const N: usize>(mem: &mut Memory, addr: u64, vl: usize) -> Result<[Vreg; N], MemFault> {
    let mut image = [Vreg::ZERO; N];
    if vl == MAX_VL {
        image = mem.load(addr)?;
    } else {
        for k in 0..N {
            let part = load_block(mem, addr.wrapping_add((k * vl) as u64), vl)?;
            bytemuck::cast_slice_mut::<Vreg, u8>(&mut image)[k * vl..(k + 1) * vl]
                .copy_from_slice(&part.lanes::<u8>()[..vl]);
        }
    }
    Ok(image)
}

#[inline(always)]
fn deinterleave<R: Element, const N: usize>(image: &[Vreg; N], vl: usize) -> [Vreg; N] {
    let mut out = [Vreg::ZERO; N];
    let (structures, _) = bytemuck::cast_slice::<Vreg, R>(image).as_chunks::<N>();
    for (e, elements) in structures[..vl >> R::LOG2].iter().enumerate() {
        for (z, &element) in out.iter_mut().zip(elements) {
            z.lanes_mut::<R>()[e] = element;
        }
    }
    out
}

#[cold]
#[inline(never)]
fn load_each_structure<R: Element, const N: usize>(mem: &mut Memory, addr: u64, p: u64) -> Result<[Vreg; N], MemFault> {
    let mut out = [Vreg::ZERO; N];
    for e in each_active::<R>(p) {
        for (r, z) in out.iter_mut().enumerate() {
            z.lanes_mut::<R>()[e] = mem.load(addr.wrapping_add(((e * N + r) << R::LOG2) as u64))?;
        }
    }
    Ok(out)
}

// ---- Whole registers ----

fn vector(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Done {
        let addr = address(cpu, i);
        cpu.note(addr);
        *cpu.z_mut(i.rd) = load_block(mem, addr, cpu.vl).map_err(|f| cpu.fault(f))?;
        Ok(())
    }
    let mut d = whole_register(w, c, class, exec, Access::Load, c.vl);
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    Some(d)
}

fn predicate(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Done {
        let addr = address(cpu, i);
        cpu.note(addr);
        let value = load_block(mem, addr, cpu.vl / 8).map_err(|f| cpu.fault(f))?;
        cpu.set_p(i.rd, value.0[0]);
        Ok(())
    }
    let mut d = whole_register(w, c, class, exec, Access::Load, c.vl / 8);
    d.inst.rd = d.dst_p(bits(w, 0, 4));
    Some(d)
}
