//! Loads and stores of register pairs, general-purpose and SIMD&FP.

use bytemuck::Pod;
use fxscope_isa::{Access, InstKind, MemOp, Shape};

use crate::cpu::{Cpu, Stop};
use crate::insn::base_mem::{OFFSET, POST, PRE, Storable, Transfer, V, address, base_register, write_back};
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits, sbits};
use fxscope_guestmem::Memory;

/// Encodings of this group.
pub static TABLE: &[Encoding] = &[
    base!("STNP", "sf:1 0 101 0 000 0 imm7:7 rt2:5 rn:5 rt:5", stp::<OFFSET>),
    base!("LDNP", "sf:1 0 101 0 000 1 imm7:7 rt2:5 rn:5 rt:5", ldp::<OFFSET>),
    base!("STP [Post-index]", "sf:1 0 101 0 001 0 imm7:7 rt2:5 rn:5 rt:5", stp::<POST>),
    base!("STP [Pre-index]", "sf:1 0 101 0 011 0 imm7:7 rt2:5 rn:5 rt:5", stp::<PRE>),
    base!("STP [Signed offset]", "sf:1 0 101 0 010 0 imm7:7 rt2:5 rn:5 rt:5", stp::<OFFSET>),
    base!("LDP [Post-index]", "sf:1 0 101 0 001 1 imm7:7 rt2:5 rn:5 rt:5", ldp::<POST>),
    base!("LDP [Pre-index]", "sf:1 0 101 0 011 1 imm7:7 rt2:5 rn:5 rt:5", ldp::<PRE>),
    base!("LDP [Signed offset]", "sf:1 0 101 0 010 1 imm7:7 rt2:5 rn:5 rt:5", ldp::<OFFSET>),
    base!("LDPSW [Post-index]", "01 101 0 001 1 imm7:7 rt2:5 rn:5 rt:5", load_pair::<i32, POST>),
    base!("LDPSW [Pre-index]", "01 101 0 011 1 imm7:7 rt2:5 rn:5 rt:5", load_pair::<i32, PRE>),
    base!("LDPSW [Signed offset]", "01 101 0 010 1 imm7:7 rt2:5 rn:5 rt:5", load_pair::<i32, OFFSET>),
    simd!("STNP (SIMD&FP)", "opc:2 101 1 000 0 imm7:7 rt2:5 rn:5 rt:5", stp_v::<OFFSET>),
    simd!("LDNP (SIMD&FP)", "opc:2 101 1 000 1 imm7:7 rt2:5 rn:5 rt:5", ldp_v::<OFFSET>),
    simd!("STP (SIMD&FP) [Post-index]", "opc:2 101 1 001 0 imm7:7 rt2:5 rn:5 rt:5", stp_v::<POST>),
    simd!("STP (SIMD&FP) [Pre-index]", "opc:2 101 1 011 0 imm7:7 rt2:5 rn:5 rt:5", stp_v::<PRE>),
    simd!("STP (SIMD&FP) [Signed offset]", "opc:2 101 1 010 0 imm7:7 rt2:5 rn:5 rt:5", stp_v::<OFFSET>),
    simd!("LDP (SIMD&FP) [Post-index]", "opc:2 101 1 001 1 imm7:7 rt2:5 rn:5 rt:5", ldp_v::<POST>),
    simd!("LDP (SIMD&FP) [Pre-index]", "opc:2 101 1 011 1 imm7:7 rt2:5 rn:5 rt:5", ldp_v::<PRE>),
    simd!("LDP (SIMD&FP) [Signed offset]", "opc:2 101 1 010 1 imm7:7 rt2:5 rn:5 rt:5", ldp_v::<OFFSET>),
];

/// Returns the memory operation of a pair of values of `bytes` bytes each.
pub fn pair_op(access: Access, bytes: usize) -> MemOp {
    let esize = bytes as u8;
    MemOp {
        access,
        shape: Shape::Single,
        bytes: 2 * u16::from(esize),
        mem_esize: esize,
        reg_esize: esize,
        regs: 2,
        structure: false,
    }
}

fn exec_load<T: Transfer, const MODE: u8>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop>
where
    [T::Mem; 2]: Pod,
{
    #[cold]
    #[inline(never)]
    fn slow<T: Transfer, const MODE: u8>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop>
    where
        [T::Mem; 2]: Pod,
    {
        let pair = mem.load(address::<MODE>(cpu, i)).map_err(|fault| cpu.fault(fault))?;
        finish_load::<T, MODE>(cpu, i, pair);
        Ok(())
    }
    let addr = address::<MODE>(cpu, i);
    cpu.note(addr);
    let Some(pair) = mem.load_hit(addr) else { return slow::<T, MODE>(cpu, mem, i) };
    finish_load::<T, MODE>(cpu, i, pair);
    Ok(())
}

#[inline(always)]
fn finish_load<T: Transfer, const MODE: u8>(cpu: &mut Cpu, i: &Inst, [first, second]: [T::Mem; 2]) {
    write_back::<MODE>(cpu, i);
    T::put(cpu, i.rd, first);
    T::put(cpu, i.ra, second);
}

fn exec_store<T: Storable, const MODE: u8>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop>
where
    [T::Mem; 2]: Pod,
{
    #[cold]
    #[inline(never)]
    fn slow<T: Storable, const MODE: u8>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop>
    where
        [T::Mem; 2]: Pod,
    {
        let pair = [T::get(cpu, i.rd), T::get(cpu, i.ra)];
        mem.store(address::<MODE>(cpu, i), pair).map_err(|fault| cpu.fault(fault))?;
        write_back::<MODE>(cpu, i);
        Ok(())
    }
    let addr = address::<MODE>(cpu, i);
    cpu.note(addr);
    if !mem.store_hit(addr, [T::get(cpu, i.rd), T::get(cpu, i.ra)]) {
        return slow::<T, MODE>(cpu, mem, i);
    }
    write_back::<MODE>(cpu, i);
    Ok(())
}

/// Reads base register and offset of a pair access in units of `bytes`.
fn addressed<const MODE: u8>(
    w: u32,
    c: &Ctx,
    class: &'static str,
    exec: Exec,
    access: Access,
    bytes: usize,
) -> Decoded {
    let mut d = Decoded::new(c, class, exec);
    d.info.kind = InstKind::Memory;
    d.info.mem = Some(pair_op(access, bytes));
    base_register::<MODE>(&mut d, bits(w, 5, 5));
    d.inst.imm = sbits(w, 15, 7) * bytes as i64;
    d
}

fn load_pair<T: Transfer, const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded>
where
    [T::Mem; 2]: Pod,
{
    let mut d = addressed::<MODE>(w, c, class, exec_load::<T, MODE>, Access::Load, size_of::<T::Mem>());
    d.inst.rd = T::result(&mut d, bits(w, 0, 5));
    d.inst.ra = T::result(&mut d, bits(w, 10, 5));
    Some(d)
}

fn store_pair<T: Storable, const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded>
where
    [T::Mem; 2]: Pod,
{
    let mut d = addressed::<MODE>(w, c, class, exec_store::<T, MODE>, Access::Store, size_of::<T::Mem>());
    d.inst.rd = T::data(&mut d, bits(w, 0, 5));
    d.inst.ra = T::data(&mut d, bits(w, 10, 5));
    Some(d)
}

fn ldp<const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    if w >> 31 == 1 { load_pair::<u64, MODE>(w, c, class) } else { load_pair::<u32, MODE>(w, c, class) }
}

fn stp<const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    if w >> 31 == 1 { store_pair::<u64, MODE>(w, c, class) } else { store_pair::<u32, MODE>(w, c, class) }
}

fn ldp_v<const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    match w >> 30 {
        0 => load_pair::<V<u32>, MODE>(w, c, class),
        1 => load_pair::<V<u64>, MODE>(w, c, class),
        2 => load_pair::<V<u128>, MODE>(w, c, class),
        _ => None,
    }
}

fn stp_v<const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    match w >> 30 {
        0 => store_pair::<V<u32>, MODE>(w, c, class),
        1 => store_pair::<V<u64>, MODE>(w, c, class),
        2 => store_pair::<V<u128>, MODE>(w, c, class),
        _ => None,
    }
}
