//! Loads and stores of one general-purpose or SIMD&FP register, and prefetches. Pairs are in [`super::base_pair`].

use std::marker::PhantomData;

use bytemuck::Pod;
use fxscope_isa::{Access, InstKind, MemOp, Reg};

use crate::cpu::{Cpu, Stop, Vreg};
use crate::insn::alu::extend;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits, sbits};
use fxscope_guestmem::Memory;

/// Encodings of this group.
pub static TABLE: &[Encoding] = &[
    base!("STRB (immediate) [Post-index]", "00 111000 00 0 imm9:9 01 rn:5 rt:5", store::<u8, POST>),
    base!("STRB (immediate) [Pre-index]", "00 111000 00 0 imm9:9 11 rn:5 rt:5", store::<u8, PRE>),
    base!("STRB (immediate) [Unsigned offset]", "00 111001 00 imm12:12 rn:5 rt:5", store::<u8, UNSIGNED>),
    base!("STRB (register)", "00 111000 00 1 rm:5 option:3 s:1 10 rn:5 rt:5", store::<u8, REGISTER>),
    base!("STURB", "00 111000 00 0 imm9:9 00 rn:5 rt:5", store::<u8, OFFSET>),
    base!("STTRB", "00 111000 00 0 imm9:9 10 rn:5 rt:5", store::<u8, OFFSET>),
    base!("LDRB (immediate) [Post-index]", "00 111000 01 0 imm9:9 01 rn:5 rt:5", load::<u8, POST>),
    base!("LDRB (immediate) [Pre-index]", "00 111000 01 0 imm9:9 11 rn:5 rt:5", load::<u8, PRE>),
    base!("LDRB (immediate) [Unsigned offset]", "00 111001 01 imm12:12 rn:5 rt:5", load::<u8, UNSIGNED>),
    base!("LDRB (register)", "00 111000 01 1 rm:5 option:3 s:1 10 rn:5 rt:5", load::<u8, REGISTER>),
    base!("LDURB", "00 111000 01 0 imm9:9 00 rn:5 rt:5", load::<u8, OFFSET>),
    base!("LDTRB", "00 111000 01 0 imm9:9 10 rn:5 rt:5", load::<u8, OFFSET>),
    base!("LDRSB (immediate) [Post-index]", "00 111000 1 opc0:1 0 imm9:9 01 rn:5 rt:5", ldrsb::<POST>),
    base!("LDRSB (immediate) [Pre-index]", "00 111000 1 opc0:1 0 imm9:9 11 rn:5 rt:5", ldrsb::<PRE>),
    base!("LDRSB (immediate) [Unsigned offset]", "00 111001 1 opc0:1 imm12:12 rn:5 rt:5", ldrsb::<UNSIGNED>),
    base!("LDRSB (register)", "00 111000 1 opc0:1 1 rm:5 option:3 s:1 10 rn:5 rt:5", ldrsb::<REGISTER>),
    base!("LDURSB", "00 111000 1 opc0:1 0 imm9:9 00 rn:5 rt:5", ldrsb::<OFFSET>),
    base!("LDTRSB", "00 111000 1 opc0:1 0 imm9:9 10 rn:5 rt:5", ldrsb::<OFFSET>),
    base!("STRH (immediate) [Post-index]", "01 111000 00 0 imm9:9 01 rn:5 rt:5", store::<u16, POST>),
    base!("STRH (immediate) [Pre-index]", "01 111000 00 0 imm9:9 11 rn:5 rt:5", store::<u16, PRE>),
    base!("STRH (immediate) [Unsigned offset]", "01 111001 00 imm12:12 rn:5 rt:5", store::<u16, UNSIGNED>),
    base!("STRH (register)", "01 111000 00 1 rm:5 option:3 s:1 10 rn:5 rt:5", store::<u16, REGISTER>),
    base!("STURH", "01 111000 00 0 imm9:9 00 rn:5 rt:5", store::<u16, OFFSET>),
    base!("STTRH", "01 111000 00 0 imm9:9 10 rn:5 rt:5", store::<u16, OFFSET>),
    base!("LDRH (immediate) [Post-index]", "01 111000 01 0 imm9:9 01 rn:5 rt:5", load::<u16, POST>),
    base!("LDRH (immediate) [Pre-index]", "01 111000 01 0 imm9:9 11 rn:5 rt:5", load::<u16, PRE>),
    base!("LDRH (immediate) [Unsigned offset]", "01 111001 01 imm12:12 rn:5 rt:5", load::<u16, UNSIGNED>),
    base!("LDRH (register)", "01 111000 01 1 rm:5 option:3 s:1 10 rn:5 rt:5", load::<u16, REGISTER>),
    base!("LDURH", "01 111000 01 0 imm9:9 00 rn:5 rt:5", load::<u16, OFFSET>),
    base!("LDTRH", "01 111000 01 0 imm9:9 10 rn:5 rt:5", load::<u16, OFFSET>),
    base!("LDRSH (immediate) [Post-index]", "01 111000 1 opc0:1 0 imm9:9 01 rn:5 rt:5", ldrsh::<POST>),
    base!("LDRSH (immediate) [Pre-index]", "01 111000 1 opc0:1 0 imm9:9 11 rn:5 rt:5", ldrsh::<PRE>),
    base!("LDRSH (immediate) [Unsigned offset]", "01 111001 1 opc0:1 imm12:12 rn:5 rt:5", ldrsh::<UNSIGNED>),
    base!("LDRSH (register)", "01 111000 1 opc0:1 1 rm:5 option:3 s:1 10 rn:5 rt:5", ldrsh::<REGISTER>),
    base!("LDURSH", "01 111000 1 opc0:1 0 imm9:9 00 rn:5 rt:5", ldrsh::<OFFSET>),
    base!("LDTRSH", "01 111000 1 opc0:1 0 imm9:9 10 rn:5 rt:5", ldrsh::<OFFSET>),
    base!("STR (immediate) [Post-index]", "1 sz:1 111000 00 0 imm9:9 01 rn:5 rt:5", str::<POST>),
    base!("STR (immediate) [Pre-index]", "1 sz:1 111000 00 0 imm9:9 11 rn:5 rt:5", str::<PRE>),
    base!("STR (immediate) [Unsigned offset]", "1 sz:1 111001 00 imm12:12 rn:5 rt:5", str::<UNSIGNED>),
    base!("STR (register)", "1 sz:1 111000 00 1 rm:5 option:3 s:1 10 rn:5 rt:5", str::<REGISTER>),
    base!("STUR", "1 sz:1 111000 00 0 imm9:9 00 rn:5 rt:5", str::<OFFSET>),
    base!("STTR", "1 sz:1 111000 00 0 imm9:9 10 rn:5 rt:5", str::<OFFSET>),
    base!("LDR (immediate) [Post-index]", "1 sz:1 111000 01 0 imm9:9 01 rn:5 rt:5", ldr::<POST>),
    base!("LDR (immediate) [Pre-index]", "1 sz:1 111000 01 0 imm9:9 11 rn:5 rt:5", ldr::<PRE>),
    base!("LDR (immediate) [Unsigned offset]", "1 sz:1 111001 01 imm12:12 rn:5 rt:5", ldr::<UNSIGNED>),
    base!("LDR (register)", "1 sz:1 111000 01 1 rm:5 option:3 s:1 10 rn:5 rt:5", ldr::<REGISTER>),
    base!("LDUR", "1 sz:1 111000 01 0 imm9:9 00 rn:5 rt:5", ldr::<OFFSET>),
    base!("LDTR", "1 sz:1 111000 01 0 imm9:9 10 rn:5 rt:5", ldr::<OFFSET>),
    base!("LDR (literal)", "0 sz:1 011000 imm19:19 rt:5", ldr::<LITERAL>),
    base!("LDRSW (immediate) [Post-index]", "10 111000 10 0 imm9:9 01 rn:5 rt:5", load::<i32, POST>),
    base!("LDRSW (immediate) [Pre-index]", "10 111000 10 0 imm9:9 11 rn:5 rt:5", load::<i32, PRE>),
    base!("LDRSW (immediate) [Unsigned offset]", "10 111001 10 imm12:12 rn:5 rt:5", load::<i32, UNSIGNED>),
    base!("LDRSW (register)", "10 111000 10 1 rm:5 option:3 s:1 10 rn:5 rt:5", load::<i32, REGISTER>),
    base!("LDURSW", "10 111000 10 0 imm9:9 00 rn:5 rt:5", load::<i32, OFFSET>),
    base!("LDTRSW", "10 111000 10 0 imm9:9 10 rn:5 rt:5", load::<i32, OFFSET>),
    base!("LDRSW (literal)", "10 011000 imm19:19 rt:5", load::<i32, LITERAL>),
    base!("PRFM (immediate)", "11 111001 10 imm12:12 rn:5 rt:5", prefetch::<UNSIGNED>),
    base!("PRFM (register)", "11 111000 10 1 rm:5 option:3 s:1 10 rn:5 rt:5", prefetch::<REGISTER>),
    base!("PRFM (unscaled offset)", "11 111000 10 0 imm9:9 00 rn:5 rt:5", prefetch::<OFFSET>),
    base!("PRFM (literal)", "11 011000 imm19:19 rt:5", prefetch::<LITERAL>),
    simd!("STR (immediate, SIMD&FP) [Post-index]", "size:2 111100 q:1 00 imm9:9 01 rn:5 rt:5", str_v::<POST>),
    simd!("STR (immediate, SIMD&FP) [Pre-index]", "size:2 111100 q:1 00 imm9:9 11 rn:5 rt:5", str_v::<PRE>),
    simd!("STR (immediate, SIMD&FP) [Unsigned offset]", "size:2 111101 q:1 0 imm12:12 rn:5 rt:5", str_v::<UNSIGNED>),
    simd!("STR (register, SIMD&FP)", "size:2 111100 q:1 01 rm:5 option:3 s:1 10 rn:5 rt:5", str_v::<REGISTER>),
    simd!("STUR (SIMD&FP)", "size:2 111100 q:1 00 imm9:9 00 rn:5 rt:5", str_v::<OFFSET>),
    simd!("LDR (immediate, SIMD&FP) [Post-index]", "size:2 111100 q:1 10 imm9:9 01 rn:5 rt:5", ldr_v::<POST>),
    simd!("LDR (immediate, SIMD&FP) [Pre-index]", "size:2 111100 q:1 10 imm9:9 11 rn:5 rt:5", ldr_v::<PRE>),
    simd!("LDR (immediate, SIMD&FP) [Unsigned offset]", "size:2 111101 q:1 1 imm12:12 rn:5 rt:5", ldr_v::<UNSIGNED>),
    simd!("LDR (register, SIMD&FP)", "size:2 111100 q:1 11 rm:5 option:3 s:1 10 rn:5 rt:5", ldr_v::<REGISTER>),
    simd!("LDUR (SIMD&FP)", "size:2 111100 q:1 10 imm9:9 00 rn:5 rt:5", ldr_v::<OFFSET>),
    simd!("LDR (literal, SIMD&FP)", "opc:2 011100 imm19:19 rt:5", ldr_v_literal),
];

// ---- registers transferred --------------------------------------------------------------------

/// A register file as source or destination of an access.
pub trait Transfer {
    /// The type in memory.
    type Mem: Pod;
    /// Records register `n` as a result and returns its index.
    fn result(d: &mut Decoded, n: u32) -> u8;
    /// Writes a loaded value to register `r`.
    fn put(cpu: &mut Cpu, r: u8, v: Self::Mem);
}

/// A transfer that can also store.
pub trait Storable: Transfer {
    /// Records register `n` as data and returns its index.
    fn data(d: &mut Decoded, n: u32) -> u8;
    /// Returns the value of register `r` as stored to memory.
    fn get(cpu: &Cpu, r: u8) -> Self::Mem;
}

/// Loads into a general-purpose register; the value is converted through `$via`, which determines how it is extended.
macro_rules! general {
    ($($transfer:ty, $mem:ident, $via:ident;)*) => {$(
        impl Transfer for $transfer {
            type Mem = $mem;
            #[inline(always)]
            fn result(d: &mut Decoded, n: u32) -> u8 {
                d.dst_x(n)
            }
            #[inline(always)]
            fn put(cpu: &mut Cpu, r: u8, v: $mem) {
                cpu.set_x(r, v as $via as u64);
            }
        }
    )*};
}

/// A load that sign-extends to 32 bits and then zero-extends.
pub struct ToW<T>(PhantomData<T>);

general! {
    u8, u8, u64;
    u16, u16, u64;
    u32, u32, u64;
    u64, u64, u64;
    i8, i8, i64;
    i16, i16, i64;
    i32, i32, i64;
    ToW<i8>, i8, u32;
    ToW<i16>, i16, u32;
}

/// The low part of a SIMD&FP register; a load clears the rest.
pub struct V<T>(PhantomData<T>);

macro_rules! storable {
    ($($t:ident)*) => {$(
        impl Storable for $t {
            #[inline(always)]
            fn data(d: &mut Decoded, n: u32) -> u8 {
                d.src_x(n)
            }
            #[inline(always)]
            fn get(cpu: &Cpu, r: u8) -> $t {
                cpu.x(r) as $t
            }
        }
    )*};
}
storable!(u8 u16 u32 u64);

macro_rules! vector {
    ($($t:ident)*) => {$(
        impl Transfer for V<$t> {
            type Mem = $t;
            #[inline(always)]
            fn result(d: &mut Decoded, n: u32) -> u8 {
                d.dst_z(n)
            }
            #[inline(always)]
            fn put(cpu: &mut Cpu, r: u8, v: $t) {
                *cpu.z_mut(r) = Vreg::from_low(v as u128);
            }
        }
        impl Storable for V<$t> {
            #[inline(always)]
            fn data(d: &mut Decoded, n: u32) -> u8 {
                d.src_z(n)
            }
            #[inline(always)]
            fn get(cpu: &Cpu, r: u8) -> $t {
                cpu.z(r).low() as $t
            }
        }
    )*};
}
vector!(u8 u16 u32 u64 u128);

// ---- addressing -------------------------------------------------------------------------------

/// Base and signed immediate offset.
pub const OFFSET: u8 = 0;
/// Base, which is updated afterwards.
pub const POST: u8 = 1;
/// Base and offset; the base is updated to this address first.
pub const PRE: u8 = 2;
/// Relative to the program counter.
pub const LITERAL: u8 = 3;
/// Base and 64-bit index in the encoding; handlers also use the modes below.
const REGISTER: u8 = 4;
const REGISTER_UXTW: u8 = 5;
const REGISTER_SXTW: u8 = 6;
/// Base and unsigned offset in units of the access size; executed as [`OFFSET`].
const UNSIGNED: u8 = 7;

/// Returns the address of an access.
#[inline(always)]
pub fn address<const MODE: u8>(cpu: &Cpu, i: &Inst) -> u64 {
    let base = if MODE == LITERAL { 0 } else { cpu.x(i.rn) };
    let offset = match MODE {
        POST => 0,
        REGISTER => cpu.x(i.rm) << (i.aux & 7),
        REGISTER_UXTW => extend::<2>(cpu.x(i.rm)) << (i.aux & 7),
        REGISTER_SXTW => extend::<6>(cpu.x(i.rm)) << (i.aux & 7),
        _ => i.imm as u64,
    };
    base.wrapping_add(offset)
}

/// Updates the base register in the modes with write-back.
#[inline(always)]
pub fn write_back<const MODE: u8>(cpu: &mut Cpu, i: &Inst) {
    if MODE == PRE || MODE == POST {
        cpu.set_x(i.rn, cpu.x(i.rn).wrapping_add(i.imm as u64));
    }
}

/// Records base register `n` (31: the stack pointer), also as a result in the modes with write-back.
pub fn base_register<const MODE: u8>(d: &mut Decoded, n: u32) {
    d.inst.rn = d.addr_sp(n);
    if MODE == PRE || MODE == POST {
        d.info.writeback = Some(Reg::gpr(n as u8));
    }
}

fn exec_load<T: Transfer, const MODE: u8>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
    #[cold]
    #[inline(never)]
    fn slow<T: Transfer, const MODE: u8>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let value = mem.load(address::<MODE>(cpu, i)).map_err(|fault| cpu.fault(fault))?;
        write_back::<MODE>(cpu, i);
        T::put(cpu, i.rd, value);
        Ok(())
    }
    let addr = address::<MODE>(cpu, i);
    cpu.note(addr);
    let Some(value) = mem.load_hit(addr) else { return slow::<T, MODE>(cpu, mem, i) };
    write_back::<MODE>(cpu, i);
    T::put(cpu, i.rd, value);
    Ok(())
}

fn exec_store<T: Storable, const MODE: u8>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
    #[cold]
    #[inline(never)]
    fn slow<T: Storable, const MODE: u8>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
        mem.store(address::<MODE>(cpu, i), T::get(cpu, i.rd)).map_err(|fault| cpu.fault(fault))?;
        write_back::<MODE>(cpu, i);
        Ok(())
    }
    let addr = address::<MODE>(cpu, i);
    cpu.note(addr);
    if !mem.store_hit(addr, T::get(cpu, i.rd)) {
        return slow::<T, MODE>(cpu, mem, i);
    }
    write_back::<MODE>(cpu, i);
    Ok(())
}

fn exec_prefetch<const MODE: u8>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    cpu.note(address::<MODE>(cpu, i));
    Ok(())
}

/// Reads the address operands of mode `MODE` for an access of `bytes` bytes. `exec` returns the handler for a mode.
fn addressed<const MODE: u8>(
    w: u32,
    c: &Ctx,
    class: &'static str,
    bytes: usize,
    exec: impl Fn(u8) -> Exec,
) -> Option<Decoded> {
    let mode = match (MODE, bits(w, 13, 3)) {
        (REGISTER, 2) => REGISTER_UXTW,
        (REGISTER, 6) => REGISTER_SXTW,
        (REGISTER, 3 | 7) => REGISTER,
        (REGISTER, _) => return None,
        (UNSIGNED, _) => OFFSET,
        _ => MODE,
    };
    let mut d = Decoded::new(c, class, exec(mode));
    d.info.kind = InstKind::Memory;
    if MODE == LITERAL {
        d.inst.imm = c.pc.wrapping_add((sbits(w, 5, 19) * 4) as u64) as i64;
        return Some(d);
    }
    base_register::<MODE>(&mut d, bits(w, 5, 5));
    match MODE {
        UNSIGNED => d.inst.imm = i64::from(bits(w, 10, 12)) * bytes as i64,
        REGISTER => {
            d.inst.rm = d.addr_x(bits(w, 16, 5));
            d.inst.aux = if bits(w, 12, 1) == 1 { bytes.trailing_zeros() as u16 } else { 0 };
        }
        _ => d.inst.imm = sbits(w, 12, 9),
    }
    Some(d)
}

fn load<T: Transfer, const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let bytes = size_of::<T::Mem>();
    let mut d = addressed::<MODE>(w, c, class, bytes, |mode| match mode {
        OFFSET => exec_load::<T, OFFSET>,
        POST => exec_load::<T, POST>,
        PRE => exec_load::<T, PRE>,
        LITERAL => exec_load::<T, LITERAL>,
        REGISTER_UXTW => exec_load::<T, REGISTER_UXTW>,
        REGISTER_SXTW => exec_load::<T, REGISTER_SXTW>,
        _ => exec_load::<T, REGISTER>,
    })?;
    d.inst.rd = T::result(&mut d, bits(w, 0, 5));
    d.info.mem = Some(MemOp::single(Access::Load, bytes as u16));
    Some(d)
}

fn store<T: Storable, const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let bytes = size_of::<T::Mem>();
    let mut d = addressed::<MODE>(w, c, class, bytes, |mode| match mode {
        OFFSET => exec_store::<T, OFFSET>,
        POST => exec_store::<T, POST>,
        PRE => exec_store::<T, PRE>,
        REGISTER_UXTW => exec_store::<T, REGISTER_UXTW>,
        REGISTER_SXTW => exec_store::<T, REGISTER_SXTW>,
        _ => exec_store::<T, REGISTER>,
    })?;
    d.inst.rd = T::data(&mut d, bits(w, 0, 5));
    d.info.mem = Some(MemOp::single(Access::Store, bytes as u16));
    Some(d)
}

/// Returns what a prefetch operation (`prfop`) does; `None` for those without effect here: instruction prefetches, levels beyond
/// the second, and unallocated ones.
#[must_use]
pub fn prefetch_access(prfop: u32) -> Option<Access> {
    let level = (prfop >> 1 & 3) as u8 + 1;
    match (prfop >> 3, level) {
        (0, 1 | 2) => Some(Access::PrefetchLoad(level)),
        (2, 1 | 2) => Some(Access::PrefetchStore(level)),
        _ => None,
    }
}

fn prefetch<const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec_nothing(_: &mut Cpu, _: &mut Memory, _: &Inst) -> Result<(), Stop> {
        Ok(())
    }
    let mut d = addressed::<MODE>(w, c, class, 8, |mode| match mode {
        OFFSET => exec_prefetch::<OFFSET>,
        LITERAL => exec_prefetch::<LITERAL>,
        REGISTER_UXTW => exec_prefetch::<REGISTER_UXTW>,
        REGISTER_SXTW => exec_prefetch::<REGISTER_SXTW>,
        _ => exec_prefetch::<REGISTER>,
    })?;
    match prefetch_access(bits(w, 0, 5)) {
        Some(access) => d.info.mem = Some(MemOp::single(access, 1)),
        None => {
            d.inst.exec = exec_nothing;
            d.info.kind = InstKind::System;
        }
    }
    Some(d)
}

// ---- by width ---------------------------------------------------------------------------------

fn ldr<const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    if bits(w, 30, 1) == 1 { load::<u64, MODE>(w, c, class) } else { load::<u32, MODE>(w, c, class) }
}

fn str<const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    if bits(w, 30, 1) == 1 { store::<u64, MODE>(w, c, class) } else { store::<u32, MODE>(w, c, class) }
}

fn ldrsb<const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    if bits(w, 22, 1) == 1 { load::<ToW<i8>, MODE>(w, c, class) } else { load::<i8, MODE>(w, c, class) }
}

fn ldrsh<const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    if bits(w, 22, 1) == 1 { load::<ToW<i16>, MODE>(w, c, class) } else { load::<i16, MODE>(w, c, class) }
}

fn ldr_v<const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    match (bits(w, 23, 1), w >> 30) {
        (0, 0) => load::<V<u8>, MODE>(w, c, class),
        (0, 1) => load::<V<u16>, MODE>(w, c, class),
        (0, 2) => load::<V<u32>, MODE>(w, c, class),
        (0, _) => load::<V<u64>, MODE>(w, c, class),
        (_, 0) => load::<V<u128>, MODE>(w, c, class),
        _ => None,
    }
}

fn str_v<const MODE: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    match (bits(w, 23, 1), w >> 30) {
        (0, 0) => store::<V<u8>, MODE>(w, c, class),
        (0, 1) => store::<V<u16>, MODE>(w, c, class),
        (0, 2) => store::<V<u32>, MODE>(w, c, class),
        (0, _) => store::<V<u64>, MODE>(w, c, class),
        (_, 0) => store::<V<u128>, MODE>(w, c, class),
        _ => None,
    }
}

fn ldr_v_literal(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    match w >> 30 {
        0 => load::<V<u32>, LITERAL>(w, c, class),
        1 => load::<V<u64>, LITERAL>(w, c, class),
        2 => load::<V<u128>, LITERAL>(w, c, class),
        _ => None,
    }
}
