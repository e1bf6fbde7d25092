//! Exclusives, acquire/release, and LSE atomics.
//!
//! One host thread executes all guest threads, whole instructions at a time, so every access is atomic and sequentially
//! consistent; acquire and release only select the timing class. The exclusive monitor remembers what the load-exclusive read;
//! the store succeeds if memory still holds that value.

use std::ops::{BitAnd, BitOr, BitXor, Not};

use bytemuck::Pod;
use fxscope_isa::{Access, InstKind, MemOp};

use crate::cpu::{Cpu, Monitor, Stop, Trap};
use crate::insn::base_pair::pair_op;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use fxscope_guestmem::Memory;

/// An LSE operation of one size: mnemonic, its `o3:opc` field, size suffix and field, decode function. With `alias`, the forms
/// that discard the old value have separate timing classes.
macro_rules! lse {
    ($op:literal, $opc:literal, $suffix:literal, $size:literal, $decode:expr) => {
        lse!(@row $op, $opc, $suffix, $size, $decode,
            concat!("base:", $op, $suffix), concat!("base:", $op, "L", $suffix))
    };
    ($op:literal, $opc:literal, $suffix:literal, $size:literal, $decode:expr, alias $st:literal) => {
        lse!(@row $op, $opc, $suffix, $size, $decode,
            concat!("base:", $op, $suffix, " {", $st, $suffix, "}"),
            concat!("base:", $op, "L", $suffix, " {", $st, "L", $suffix, "}"))
    };
    (@row $op:literal, $opc:literal, $suffix:literal, $size:literal, $decode:expr, $st:expr, $stl:expr) => {
        $crate::enc!(
            concat!($op, $suffix),
            concat!($size, " 111000 a:1 r:1 1 rs:5 ", $opc, " 00 rn:5 rt:5"),
            |w, c| {
                let class = match (bits(w, 22, 2), bits(w, 0, 5)) {
                    (0, 31) => $st,
                    (1, 31) => $stl,
                    (0, _) => concat!("base:", $op, $suffix),
                    (1, _) => concat!("base:", $op, "L", $suffix),
                    (2, _) => concat!("base:", $op, "A", $suffix),
                    _ => concat!("base:", $op, "AL", $suffix),
                };
                $decode(w, c, class)
            }
        )
    };
}

/// Encodings of this group.
pub static TABLE: &[Encoding] = &[
    base!("LDXRB", "00 001000 010 11111 0 11111 rn:5 rt:5", load_exclusive::<u8>),
    base!("LDXRH", "01 001000 010 11111 0 11111 rn:5 rt:5", load_exclusive::<u16>),
    base!("LDXR", "1 sz:1 001000 010 11111 0 11111 rn:5 rt:5", load_exclusive_word),
    base!("LDAXRB", "00 001000 010 11111 1 11111 rn:5 rt:5", load_exclusive::<u8>),
    base!("LDAXRH", "01 001000 010 11111 1 11111 rn:5 rt:5", load_exclusive::<u16>),
    base!("LDAXR", "1 sz:1 001000 010 11111 1 11111 rn:5 rt:5", load_exclusive_word),
    base!("LDXP", "1 sz:1 001000 011 11111 0 rt2:5 rn:5 rt:5", load_exclusive_pair),
    base!("LDAXP", "1 sz:1 001000 011 11111 1 rt2:5 rn:5 rt:5", load_exclusive_pair),
    base!("STXRB", "00 001000 000 rs:5 0 11111 rn:5 rt:5", store_exclusive::<u8>),
    base!("STXRH", "01 001000 000 rs:5 0 11111 rn:5 rt:5", store_exclusive::<u16>),
    base!("STXR", "1 sz:1 001000 000 rs:5 0 11111 rn:5 rt:5", store_exclusive_word),
    base!("STLXRB", "00 001000 000 rs:5 1 11111 rn:5 rt:5", store_exclusive::<u8>),
    base!("STLXRH", "01 001000 000 rs:5 1 11111 rn:5 rt:5", store_exclusive::<u16>),
    base!("STLXR", "1 sz:1 001000 000 rs:5 1 11111 rn:5 rt:5", store_exclusive_word),
    base!("STXP", "1 sz:1 001000 001 rs:5 0 rt2:5 rn:5 rt:5", store_exclusive_pair),
    base!("STLXP", "1 sz:1 001000 001 rs:5 1 rt2:5 rn:5 rt:5", store_exclusive_pair),
    base!("LDARB", "00 001000 110 11111 1 11111 rn:5 rt:5", load_ordered::<u8>),
    base!("LDARH", "01 001000 110 11111 1 11111 rn:5 rt:5", load_ordered::<u16>),
    base!("LDAR", "1 sz:1 001000 110 11111 1 11111 rn:5 rt:5", load_ordered_word),
    base!("LDLARB", "00 001000 110 11111 0 11111 rn:5 rt:5", load_ordered::<u8>),
    base!("LDLARH", "01 001000 110 11111 0 11111 rn:5 rt:5", load_ordered::<u16>),
    base!("LDLAR", "1 sz:1 001000 110 11111 0 11111 rn:5 rt:5", load_ordered_word),
    base!("STLRB", "00 001000 100 11111 1 11111 rn:5 rt:5", store_ordered::<u8>),
    base!("STLRH", "01 001000 100 11111 1 11111 rn:5 rt:5", store_ordered::<u16>),
    base!("STLR", "1 sz:1 001000 100 11111 1 11111 rn:5 rt:5", store_ordered_word),
    base!("STLLRB", "00 001000 100 11111 0 11111 rn:5 rt:5", store_ordered::<u8>),
    base!("STLLRH", "01 001000 100 11111 0 11111 rn:5 rt:5", store_ordered::<u16>),
    base!("STLLR", "1 sz:1 001000 100 11111 0 11111 rn:5 rt:5", store_ordered_word),
    base!("CAS{|A|AL|L}B", "00 001000 1 l:1 1 rs:5 o0:1 11111 rn:5 rt:5", compare_and_swap::<u8>),
    base!("CAS{|A|AL|L}H", "01 001000 1 l:1 1 rs:5 o0:1 11111 rn:5 rt:5", compare_and_swap::<u16>),
    base!("CAS{|A|AL|L}", "1 sz:1 001000 1 l:1 1 rs:5 o0:1 11111 rn:5 rt:5", compare_and_swap_word),
    base!("CASP{|A|AL|L}", "0 sz:1 001000 0 l:1 1 rs:5 o0:1 11111 rn:5 rt:5", compare_and_swap_pair),
    base!("SWP{|A|AL|L}B", "00 111000 a:1 r:1 1 rs:5 1 000 00 rn:5 rt:5", read_modify_write::<u8, Swap>),
    base!("SWP{|A|AL|L}H", "01 111000 a:1 r:1 1 rs:5 1 000 00 rn:5 rt:5", read_modify_write::<u16, Swap>),
    base!("SWP{|A|AL|L}", "1 sz:1 111000 a:1 r:1 1 rs:5 1 000 00 rn:5 rt:5", read_modify_write_word::<Swap>),
    lse!("LDADD", "0 000", "B", "00", read_modify_write::<u8, Add>),
    lse!("LDADD", "0 000", "H", "01", read_modify_write::<u16, Add>),
    lse!("LDADD", "0 000", "", "1 sz:1", read_modify_write_word::<Add>),
    lse!("LDCLR", "0 001", "B", "00", read_modify_write::<u8, Clear>),
    lse!("LDCLR", "0 001", "H", "01", read_modify_write::<u16, Clear>),
    lse!("LDCLR", "0 001", "", "1 sz:1", read_modify_write_word::<Clear>),
    lse!("LDEOR", "0 010", "B", "00", read_modify_write::<u8, Eor>),
    lse!("LDEOR", "0 010", "H", "01", read_modify_write::<u16, Eor>),
    lse!("LDEOR", "0 010", "", "1 sz:1", read_modify_write_word::<Eor>),
    lse!("LDSET", "0 011", "B", "00", read_modify_write::<u8, Set>),
    lse!("LDSET", "0 011", "H", "01", read_modify_write::<u16, Set>),
    lse!("LDSET", "0 011", "", "1 sz:1", read_modify_write_word::<Set>),
    lse!("LDSMAX", "0 100", "B", "00", read_modify_write::<u8, SignedMax>, alias "STSMAX"),
    lse!("LDSMAX", "0 100", "H", "01", read_modify_write::<u16, SignedMax>, alias "STSMAX"),
    lse!("LDSMAX", "0 100", "", "1 sz:1", read_modify_write_word::<SignedMax>, alias "STSMAX"),
    lse!("LDSMIN", "0 101", "B", "00", read_modify_write::<u8, SignedMin>, alias "STSMIN"),
    lse!("LDSMIN", "0 101", "H", "01", read_modify_write::<u16, SignedMin>, alias "STSMIN"),
    lse!("LDSMIN", "0 101", "", "1 sz:1", read_modify_write_word::<SignedMin>, alias "STSMIN"),
    lse!("LDUMAX", "0 110", "B", "00", read_modify_write::<u8, UnsignedMax>, alias "STUMAX"),
    lse!("LDUMAX", "0 110", "H", "01", read_modify_write::<u16, UnsignedMax>, alias "STUMAX"),
    lse!("LDUMAX", "0 110", "", "1 sz:1", read_modify_write_word::<UnsignedMax>, alias "STUMAX"),
    lse!("LDUMIN", "0 111", "B", "00", read_modify_write::<u8, UnsignedMin>, alias "STUMIN"),
    lse!("LDUMIN", "0 111", "H", "01", read_modify_write::<u16, UnsignedMin>, alias "STUMIN"),
    lse!("LDUMIN", "0 111", "", "1 sz:1", read_modify_write_word::<UnsignedMin>, alias "STUMIN"),
];

// ---- values -----------------------------------------------------------------------------------

/// An unsigned integer in memory that atomics work on.
trait Cell: Pod + Ord + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self> {
    /// Returns the low bits of a register.
    fn low(v: u64) -> Self;
    /// Zero-extends.
    fn widen(self) -> u64;
    /// Returns the sum, modulo the size.
    fn plus(self, b: Self) -> Self;
    /// The same bits as a signed number.
    fn signed(self) -> i64;
}

macro_rules! cell {
    ($($u:ident $i:ident;)*) => {$(
        impl Cell for $u {
            #[inline(always)]
            fn low(v: u64) -> $u {
                v as $u
            }
            #[inline(always)]
            fn widen(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn plus(self, b: $u) -> $u {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn signed(self) -> i64 {
                self as $i as i64
            }
        }
    )*};
}
cell! { u8 i8; u16 i16; u32 i32; u64 i64; }

/// Two cells as one number, for the monitor.
fn joined<T: Cell>([first, second]: [T; 2]) -> u128 {
    u128::from(first.widen()) | u128::from(second.widen()) << (8 * size_of::<T>())
}

/// Returns the address in base register `rn`, recorded as accessed, if it is aligned to `bytes` bytes.
#[inline(always)]
fn aligned(cpu: &mut Cpu, i: &Inst, bytes: usize) -> Result<u64, Stop> {
    let addr = cpu.x(i.rn);
    cpu.note(addr);
    if addr & (bytes as u64 - 1) == 0 { Ok(addr) } else { Err(cpu.stop(Trap::Misaligned(addr))) }
}

#[inline(always)]
fn read<T: Pod>(cpu: &mut Cpu, mem: &mut Memory, addr: u64) -> Result<T, Stop> {
    mem.load(addr).map_err(|fault| cpu.fault(fault))
}

#[inline(always)]
fn write<T: Pod>(cpu: &mut Cpu, mem: &mut Memory, addr: u64, value: T) -> Result<(), Stop> {
    mem.store(addr, value).map_err(|fault| cpu.fault(fault))
}

/// A memory instruction with base register `rn`.
fn based(w: u32, c: &Ctx, class: &'static str, exec: Exec, op: MemOp) -> Decoded {
    let mut d = Decoded::new(c, class, exec);
    d.info.synchronises = true;
    d.info.kind = InstKind::Memory;
    d.info.mem = Some(op);
    d.inst.rn = d.addr_sp(bits(w, 5, 5));
    d
}

// ---- acquire and release ----------------------------------------------------------------------

/// LDAR, LDLAR.
fn load_ordered<T: Cell>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<T: Cell>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let addr = aligned(cpu, i, size_of::<T>())?;
        let value: T = read(cpu, mem, addr)?;
        cpu.set_x(i.rd, value.widen());
        Ok(())
    }
    let mut d = based(w, c, class, exec::<T>, MemOp::single(Access::Load, size_of::<T>() as u16));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    Some(d)
}

fn load_ordered_word(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    if bits(w, 30, 1) == 1 { load_ordered::<u64>(w, c, class) } else { load_ordered::<u32>(w, c, class) }
}

/// STLR, STLLR.
fn store_ordered<T: Cell>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<T: Cell>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let addr = aligned(cpu, i, size_of::<T>())?;
        let value = T::low(cpu.x(i.rd));
        write(cpu, mem, addr, value)
    }
    let mut d = based(w, c, class, exec::<T>, MemOp::single(Access::Store, size_of::<T>() as u16));
    d.inst.rd = d.src_x(bits(w, 0, 5));
    Some(d)
}

fn store_ordered_word(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    if bits(w, 30, 1) == 1 { store_ordered::<u64>(w, c, class) } else { store_ordered::<u32>(w, c, class) }
}

// ---- exclusives -------------------------------------------------------------------------------

fn load_exclusive<T: Cell>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<T: Cell>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let addr = aligned(cpu, i, size_of::<T>())?;
        let value: T = read(cpu, mem, addr)?;
        cpu.monitor = Some(Monitor { addr, bytes: size_of::<T>() as u8, value: value.widen().into() });
        cpu.set_x(i.rd, value.widen());
        Ok(())
    }
    let mut d = based(w, c, class, exec::<T>, MemOp::single(Access::Load, size_of::<T>() as u16));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    Some(d)
}

fn load_exclusive_word(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    if bits(w, 30, 1) == 1 { load_exclusive::<u64>(w, c, class) } else { load_exclusive::<u32>(w, c, class) }
}

fn load_exclusive_pair(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<T: Cell>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop>
    where
        [T; 2]: Pod,
    {
        let addr = aligned(cpu, i, 2 * size_of::<T>())?;
        let pair: [T; 2] = read(cpu, mem, addr)?;
        cpu.monitor = Some(Monitor { addr, bytes: 2 * size_of::<T>() as u8, value: joined(pair) });
        cpu.set_x(i.rd, pair[0].widen());
        cpu.set_x(i.ra, pair[1].widen());
        Ok(())
    }
    let mut d = match bits(w, 30, 1) {
        1 => based(w, c, class, exec::<u64>, pair_op(Access::Load, 8)),
        _ => based(w, c, class, exec::<u32>, pair_op(Access::Load, 4)),
    };
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    d.inst.ra = d.dst_x(bits(w, 10, 5));
    Some(d)
}

/// Stores `value` if the monitor was armed here and memory is unchanged since; status 0 or 1 to `rd`.
fn store_if_unchanged<T: Pod>(
    cpu: &mut Cpu,
    mem: &mut Memory,
    i: &Inst,
    value: T,
    as_number: fn(T) -> u128,
) -> Result<(), Stop> {
    let bytes = size_of::<T>();
    let addr = aligned(cpu, i, bytes)?;
    let armed = cpu.monitor.take().filter(|m| m.addr == addr && usize::from(m.bytes) == bytes);
    let success = match armed {
        Some(m) => as_number(read(cpu, mem, addr)?) == m.value,
        None => false,
    };
    if success {
        write(cpu, mem, addr, value)?;
    }
    cpu.set_x(i.rd, u64::from(!success));
    Ok(())
}

fn store_exclusive<T: Cell>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<T: Cell>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let value = T::low(cpu.x(i.rm));
        store_if_unchanged(cpu, mem, i, value, |v: T| v.widen().into())
    }
    let mut d = based(w, c, class, exec::<T>, MemOp::single(Access::Atomic, size_of::<T>() as u16));
    d.inst.rm = d.src_x(bits(w, 0, 5));
    d.inst.rd = d.dst_x(bits(w, 16, 5));
    Some(d)
}

fn store_exclusive_word(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    if bits(w, 30, 1) == 1 { store_exclusive::<u64>(w, c, class) } else { store_exclusive::<u32>(w, c, class) }
}

fn store_exclusive_pair(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<T: Cell>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop>
    where
        [T; 2]: Pod,
    {
        let pair = [T::low(cpu.x(i.rm)), T::low(cpu.x(i.ra))];
        store_if_unchanged(cpu, mem, i, pair, joined)
    }
    let mut d = match bits(w, 30, 1) {
        1 => based(w, c, class, exec::<u64>, pair_op(Access::Atomic, 8)),
        _ => based(w, c, class, exec::<u32>, pair_op(Access::Atomic, 4)),
    };
    d.inst.rm = d.src_x(bits(w, 0, 5));
    d.inst.ra = d.src_x(bits(w, 10, 5));
    d.inst.rd = d.dst_x(bits(w, 16, 5));
    Some(d)
}

// ---- LSE --------------------------------------------------------------------------------------

/// What an atomic operation computes from the old value and its operand.
trait Operation {
    fn apply<T: Cell>(old: T, operand: T) -> T;
}

macro_rules! operations {
    ($($name:ident, |$old:ident, $operand:ident| $body:expr;)*) => {$(
        enum $name {}
        impl Operation for $name {
            #[inline(always)]
            fn apply<T: Cell>($old: T, $operand: T) -> T {
                $body
            }
        }
    )*};
}

operations! {
    Swap, |_old, new| new;
    Add, |old, b| old.plus(b);
    Clear, |old, b| old & !b;
    Eor, |old, b| old ^ b;
    Set, |old, b| old | b;
    SignedMax, |old, b| if old.signed() > b.signed() { old } else { b };
    SignedMin, |old, b| if old.signed() < b.signed() { old } else { b };
    UnsignedMax, |old, b| old.max(b);
    UnsignedMin, |old, b| old.min(b);
}

fn read_modify_write<T: Cell, Op: Operation>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<T: Cell, Op: Operation>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let addr = aligned(cpu, i, size_of::<T>())?;
        let old: T = read(cpu, mem, addr)?;
        let operand = T::low(cpu.x(i.rm));
        write(cpu, mem, addr, Op::apply(old, operand))?;
        cpu.set_x(i.rd, old.widen());
        Ok(())
    }
    let mut d = based(w, c, class, exec::<T, Op>, MemOp::single(Access::Atomic, size_of::<T>() as u16));
    d.inst.rm = d.src_x(bits(w, 16, 5));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    Some(d)
}

fn read_modify_write_word<Op: Operation>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    match bits(w, 30, 1) {
        1 => read_modify_write::<u64, Op>(w, c, class),
        _ => read_modify_write::<u32, Op>(w, c, class),
    }
}

/// CAS. A failed comparison writes the old value back, so the page must be writable in either case.
fn compare_and_swap<T: Cell>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<T: Cell>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let addr = aligned(cpu, i, size_of::<T>())?;
        let old: T = read(cpu, mem, addr)?;
        let (expected, new) = (T::low(cpu.x(i.ra)), T::low(cpu.x(i.rm)));
        write(cpu, mem, addr, if old == expected { new } else { old })?;
        cpu.set_x(i.rd, old.widen());
        Ok(())
    }
    let mut d = based(w, c, class, exec::<T>, MemOp::single(Access::Atomic, size_of::<T>() as u16));
    d.inst.ra = d.src_x(bits(w, 16, 5));
    d.inst.rm = d.src_x(bits(w, 0, 5));
    d.inst.rd = d.dst_x(bits(w, 16, 5));
    Some(d)
}

fn compare_and_swap_word(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    if bits(w, 30, 1) == 1 { compare_and_swap::<u64>(w, c, class) } else { compare_and_swap::<u32>(w, c, class) }
}

/// CASP, whose operands are even-odd register pairs; register 31 as the second of a pair is zero. `rm` and `ra` hold the new
/// values. `rd` holds the first expected value and receives the first old value; the second is expected in `aux` and received in
/// `pg`.
fn compare_and_swap_pair(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<T: Cell>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop>
    where
        [T; 2]: Pod,
    {
        let addr = aligned(cpu, i, 2 * size_of::<T>())?;
        let old: [T; 2] = read(cpu, mem, addr)?;
        let expected = [T::low(cpu.x(i.rd)), T::low(cpu.x(i.aux as u8))];
        let new = [T::low(cpu.x(i.rm)), T::low(cpu.x(i.ra))];
        write(cpu, mem, addr, if old == expected { new } else { old })?;
        cpu.set_x(i.rd, old[0].widen());
        cpu.set_x(i.pg, old[1].widen());
        Ok(())
    }
    let (rs, rt) = (bits(w, 16, 5), bits(w, 0, 5));
    if rs & 1 == 1 || rt & 1 == 1 {
        return None;
    }
    let mut d = match bits(w, 30, 1) {
        1 => based(w, c, class, exec::<u64>, pair_op(Access::Atomic, 8)),
        _ => based(w, c, class, exec::<u32>, pair_op(Access::Atomic, 4)),
    };
    d.src_x(rs);
    d.inst.aux = u16::from(d.src_x(rs + 1));
    d.inst.rm = d.src_x(rt);
    d.inst.ra = d.src_x(rt + 1);
    d.inst.rd = d.dst_x(rs);
    d.inst.pg = d.dst_x(rs + 1);
    Some(d)
}
