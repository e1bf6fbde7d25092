//! Shared by the SVE memory groups: memory elements, addresses, and the decoding of operand forms.

use bytemuck::Pod;
use fxscope_isa::{Access, InstKind, MemOp, Shape};

use super::sve_common::Element;
use crate::cpu::{Cpu, Vreg};
use crate::table::{Ctx, Decoded, Exec, Inst, bits, sbits};
use fxscope_guestmem::{MemFault, Memory, PAGE};

/// An element in memory that is widened to, or narrowed from, a register element of type `R`.
pub trait MemElement<R>: Pod {
    /// Sign- or zero-extends, according to the type.
    fn widen(self) -> R;
    /// Keeps the low part.
    fn narrow(value: R) -> Self;
}

macro_rules! mem_elements {
    ($($m:ty => $($r:ty)+;)+) => {
        $($(impl MemElement<$r> for $m {
            #[inline(always)]
            fn widen(self) -> $r {
                self as $r
            }
            #[inline(always)]
            fn narrow(value: $r) -> $m {
                value as $m
            }
        })+)+
    };
}
mem_elements! {
    u8 => u8 u16 u32 u64;
    i8 => u16 u32 u64;
    u16 => u16 u32 u64;
    i16 => u32 u64;
    u32 => u32 u64;
    i32 => u64;
    u64 => u64;
}

/// What a load does when an element faults.
pub mod on_fault {
    /// Trap.
    pub const TRAP: u8 = 0;
    /// Trap for the first active element; a later one ends the load and clears the first-fault register.
    pub const FIRST: u8 = 1;
    /// End the load and clear the first-fault register (non-faulting loads).
    pub const NEVER: u8 = 2;
}

/// Iterates over the active elements in `p`, which has one bit for each element of type `R`, in order.
#[inline(always)]
pub fn each_active<R: Element>(mut p: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = p.trailing_zeros();
        (p != 0).then(|| {
            p &= p - 1;
            bit as usize >> R::LOG2
        })
    })
}

/// Returns the address of element 0: base, immediate (already in bytes) and scaled index. Forms without index use the zero
/// register.
#[inline(always)]
#[must_use]
pub fn address(cpu: &Cpu, i: &Inst) -> u64 {
    cpu.x(i.rn).wrapping_add(i.imm as u64).wrapping_add(cpu.x(i.rm) << (i.aux & 63))
}

/// Returns whether `bytes` bytes at `addr` lie in one page, so that either all of them can be accessed or none.
#[inline(always)]
#[must_use]
pub fn in_one_page(addr: u64, bytes: usize) -> bool {
    addr & (PAGE - 1) <= PAGE - bytes as u64
}

/// Loads `bytes` bytes (2, 4, 8, 16, 32 or 64) as the low part of a register.
///
/// # Errors
/// The fault of the first byte that cannot be read.
#[inline(always)]
pub fn load_block(mem: &mut Memory, addr: u64, bytes: usize) -> Result<Vreg, MemFault> {
    let mut out = Vreg::ZERO;
    match bytes {
        64 => out.0 = mem.load(addr)?,
        32 => out.lanes_mut::<[u64; 4]>()[0] = mem.load(addr)?,
        16 => out.lanes_mut::<[u64; 2]>()[0] = mem.load(addr)?,
        8 => out.lanes_mut::<u64>()[0] = mem.load(addr)?,
        4 => out.lanes_mut::<u32>()[0] = mem.load(addr)?,
        _ => out.lanes_mut::<u16>()[0] = mem.load(addr)?,
    }
    Ok(out)
}

/// Stores the lowest `bytes` bytes (2, 4, 8, 16, 32 or 64) of `value`.
///
/// # Errors
/// The fault of the first byte that cannot be written; nothing is then written.
#[inline(always)]
pub fn store_block(mem: &mut Memory, addr: u64, bytes: usize, value: &Vreg) -> Result<(), MemFault> {
    match bytes {
        64 => mem.store(addr, value.0),
        32 => mem.store(addr, value.lanes::<[u64; 4]>()[0]),
        16 => mem.store(addr, value.lanes::<[u64; 2]>()[0]),
        8 => mem.store(addr, value.lanes::<u64>()[0]),
        4 => mem.store(addr, value.lanes::<u32>()[0]),
        _ => mem.store(addr, value.lanes::<u16>()[0]),
    }
}

// ---- Decoding ----

/// Decodes an SVE memory instruction with base register (bits 9:5) and governing predicate (bits 12:10).
#[must_use]
pub fn memory(w: u32, c: &Ctx, class: &'static str, exec: Exec, op: MemOp) -> Decoded {
    let mut d = Decoded::new(c, class, exec);
    d.info.kind = InstKind::Memory;
    d.info.mem = Some(op);
    d.inst.rn = d.addr_sp(bits(w, 5, 5));
    d.inst.rm = Cpu::XZR;
    d.inst.pg = d.addr_p(bits(w, 10, 3));
    d
}

/// Describes a contiguous access of elements of `mem_esize` bytes in memory and `reg_esize` bytes in the register.
#[must_use]
pub fn masked(access: Access, c: &Ctx, mem_esize: usize, reg_esize: usize) -> MemOp {
    MemOp {
        access,
        shape: Shape::Masked,
        bytes: (c.vl / reg_esize * mem_esize) as u16,
        mem_esize: mem_esize as u8,
        reg_esize: reg_esize as u8,
        regs: 1,
        structure: false,
    }
}

/// Describes an access to structures of `regs` elements of `esize` bytes.
#[must_use]
pub fn structures(access: Access, c: &Ctx, esize: usize, regs: usize) -> MemOp {
    MemOp { bytes: (regs * c.vl) as u16, regs: regs as u8, structure: regs > 1, ..masked(access, c, esize, esize) }
}

/// Adds the index register in bits 20:16, scaled by `bytes`. The zero register is not allowed.
#[must_use]
pub fn with_index(mut d: Decoded, w: u32, bytes: usize) -> Option<Decoded> {
    if bits(w, 16, 5) == 31 {
        return None;
    }
    d.inst.rm = d.addr_x(bits(w, 16, 5));
    d.inst.aux = bytes.trailing_zeros() as u16;
    Some(d)
}

/// Adds the signed immediate in bits 19:16, in units of `step` bytes.
#[must_use]
pub fn with_imm4(mut d: Decoded, w: u32, step: usize) -> Decoded {
    d.inst.imm = sbits(w, 16, 4) * step as i64;
    d
}

/// Decodes LDR and STR of a register of `bytes` bytes: the 9-bit immediate counts registers.
#[must_use]
pub fn whole_register(w: u32, c: &Ctx, class: &'static str, exec: Exec, access: Access, bytes: usize) -> Decoded {
    let mut d = Decoded::new(c, class, exec);
    d.info.kind = InstKind::Memory;
    d.info.mem = Some(MemOp::single(access, bytes as u16));
    d.inst.rn = d.addr_sp(bits(w, 5, 5));
    d.inst.rm = Cpu::XZR;
    d.inst.imm = (sbits(w, 16, 6) << 3 | i64::from(bits(w, 10, 3))) * bytes as i64;
    d
}

/// Writes one row of an SVE memory table: `sve_mem!("NAME", "PATTERN", form)`, where `form` is `fn(word, ctx, class) ->
/// Option<Decoded>`. The timing class is the machine's row `sve:NAME`, or, with `as "ROW"` after the name, `sve:ROW`. The name
/// may be given in two parts.
macro_rules! sve_mem {
    ($op:literal $way:literal, $pattern:expr, $form:expr) => {
        $crate::enc!(concat!($op, $way), $pattern, |w, c| $form(w, c, concat!("sve:", $op, $way)))
    };
    ($name:literal, $pattern:literal, $form:expr $(, except $($except:literal),+)?) => {
        sve_mem!($name as $name, $pattern, $form $(, except $($except),+)?)
    };
    ($name:literal as $row:literal, $pattern:literal, $form:expr $(, except $($except:literal),+)?) => {
        $crate::enc!($name, $pattern, |w, c| $form(w, c, concat!("sve:", $row)) $(, except $($except),+)?)
    };
}
pub(crate) use sve_mem;

/// Writes one row of an access whose element addresses come from a vector, in one of five ways: `by_vector!(WAY "OP", "CASE",
/// "PATTERN", form)`. `CASE` is the suffix of the machine's row.
macro_rules! by_vector {
    (offsets32 $($row:tt)+) => {
        by_vector!(@row "(scalar plus vector", ", 32-bit offset)", $($row)+)
    };
    (offsets32_unpacked $($row:tt)+) => {
        by_vector!(@row "(scalar plus vector", ", 32-bit unpacked offset)", $($row)+)
    };
    (offsets64 $($row:tt)+) => {
        by_vector!(@row "(scalar plus vector", ", 64-bit offset)", $($row)+)
    };
    (addresses32 $($row:tt)+) => {
        by_vector!(@row "(vector plus immediate", ", 32-bit element)", $($row)+)
    };
    (addresses64 $($row:tt)+) => {
        by_vector!(@row "(vector plus immediate", ", 64-bit element)", $($row)+)
    };
    (@row $way:literal, $elements:literal, $op:literal, $case:literal, $pattern:expr, $form:expr) => {
        $crate::enc!(concat!($op, " ", $way, $elements), $pattern, |w, c| $form(
            w,
            c,
            concat!("sve:", $op, " ", $way, ")", $case)
        ))
    };
}
pub(crate) use by_vector;
