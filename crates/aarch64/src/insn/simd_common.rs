//! Shared by the AdvSIMD groups: element types, operand decoding, and loops over elements.
//!
//! One handler serves the 128-bit, 64-bit and scalar forms of an operation: it computes all 128 bits and keeps those of the *live
//! mask*, which decoding puts into `Inst::imm2` (low doubleword) and `Inst::imm` (high doubleword). `Inst::pg` is 1 for the forms
//! that work on the upper half of a register (`SADDL2`, `XTN2`). `Inst::aux` is the shift amount, or the index of the element by
//! which all others are multiplied.

use std::ops::{BitAnd, BitOr};

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use fxscope_isa::InstKind;

use crate::cpu::{Cpu, Vreg};
use crate::table::{Ctx, Decoded, Exec, Inst, bits};

/// The cumulative saturation bit of FPSR.
pub const FPSR_QC: u32 = 1 << 27;

/// Second operand of a handler: a vector register.
pub const VECTOR: bool = false;
/// Second operand of a handler: one element of a vector register, used for all elements.
pub const ELEMENT: bool = true;

/// An integer element.
pub trait Elem: Pod + PartialEq + BitAnd<Output = Self> + BitOr<Output = Self> {
    /// The element type of twice the size and the same signedness.
    type Wide: Pod;
    /// Size in bits.
    const BITS: u32;
    /// Returns the value in twice the size.
    fn widen(self) -> Self::Wide;
    /// Returns the value as an unbounded integer.
    fn int(self) -> i128;
    /// Returns the low bits of an unbounded integer.
    fn wrap(x: i128) -> Self;
    /// Returns the representable value nearest to `x`, and whether it differs from `x`.
    fn saturate(x: i128) -> (Self, bool);
    /// Returns all bits set if `condition`, else zero.
    fn ones_if(condition: bool) -> Self;
    /// Shifts left; zero if the amount is the element size or more.
    fn shl(self, amount: u32) -> Self;
    /// Shifts right, rounding down; all sign bits if the amount is the element size or more.
    fn shr(self, amount: u32) -> Self;
    /// Shifted right by 1 to the element size, rounded to nearest, halves up.
    fn shr_round(self, amount: u32) -> Self;
    /// Returns the low byte, which is the amount of a shift by register.
    fn amount(self) -> i8;
}

macro_rules! elem {
    ($($t:ident $wide:ident),*) => {
        $(impl Elem for $t {
            type Wide = $wide;
            const BITS: u32 = $t::BITS;
            #[inline(always)]
            fn widen(self) -> $wide {
                $wide::from(self)
            }
            #[inline(always)]
            fn int(self) -> i128 {
                self as i128
            }
            #[inline(always)]
            fn wrap(x: i128) -> $t {
                x as $t
            }
            #[inline(always)]
            fn saturate(x: i128) -> ($t, bool) {
                let near = x.clamp($t::MIN as i128, $t::MAX as i128);
                (near as $t, near != x)
            }
            #[inline(always)]
            fn ones_if(condition: bool) -> $t {
                if condition { !0 } else { 0 }
            }
            #[inline(always)]
            fn shl(self, amount: u32) -> $t {
                self << amount.min($t::BITS - 1) << u32::from(amount >= $t::BITS)
            }
            #[inline(always)]
            fn shr(self, amount: u32) -> $t {
                self >> amount.min($t::BITS - 1) >> u32::from(amount >= $t::BITS)
            }
            #[inline(always)]
            fn shr_round(self, amount: u32) -> $t {
                let half = self >> (amount - 1);
                (half >> 1).wrapping_add(half & 1)
            }
            #[inline(always)]
            fn amount(self) -> i8 {
                self as i8
            }
        })*
    };
}
elem!(u8 u16, u16 u32, u32 u64, u64 u128, i8 i16, i16 i32, i32 i64, i64 i128);

/// Returns the value nearest to `x` in an unsigned type of the size of `T`, and whether it differs from `x`.
#[inline(always)]
pub fn saturate_unsigned<T: Elem>(x: i128) -> (T, bool) {
    let near = x.clamp(0, (1 << T::BITS) - 1);
    (T::wrap(near), near != x)
}

// ---- choosing the handler -----------------------------------------------------------------------

/// Selects a handler by log2 of the element size in bytes: `by_size!(size, [i8 i16 i32 -], handler)`. The handler refers to the
/// element type as `T`; `-` stands for an unallocated size, which gives `None`.
macro_rules! by_size {
    ($size:expr, [$b:tt $h:tt $s:tt $d:tt], $exec:expr) => {
        match $size {
            0 => by_size!(@one $b, $exec),
            1 => by_size!(@one $h, $exec),
            2 => by_size!(@one $s, $exec),
            3 => by_size!(@one $d, $exec),
            _ => None,
        }
    };
    (@one -, $exec:expr) => { None };
    (@one $t:tt, $exec:expr) => {{
        type T = $t;
        let exec: $crate::table::Exec = $exec;
        Some(exec)
    }};
}
pub(crate) use by_size;

/// The timing class: one, or one for 8- and 16-bit source elements and one for larger ones; `high_half` stands for the notation
/// of these two for multiplications that return the high half.
macro_rules! class_of {
    ($size:expr, $class:literal) => {
        $class
    };
    ($size:expr, ($small:literal, $large:literal)) => {
        if $size < 2 { $small } else { $large }
    };
    ($size:expr, (high_half $class:literal)) => {
        if $size < 2 {
            concat!($class, " [Scalar V=H, Vector T={4H|8H}]")
        } else {
            concat!($class, " [Scalar V=S, Vector T={2S|4S}]")
        }
    };
}
pub(crate) use class_of;

/// A row whose element size is bits 23–22:
/// `lanewise!(NAME, PATTERN, CLASS, WIDTH REGISTERS, [TYPES] HELPER, SEMANTICS)`. `WIDTH` is [`same`], [`long`]
/// or [`narrow`], `REGISTERS` one of [`unary`], [`binary`], …; `HELPER` loops `SEMANTICS` over the elements.
macro_rules! lanewise {
    ($name:literal, $pattern:literal, $class:tt, $width:ident $regs:ident, $types:tt $helper:path, $f:expr) => {
        $crate::enc!($name, $pattern, |w, c| {
            let size = $crate::table::bits(w, 22, 2);
            let exec = by_size!(size, $types, |cpu, _, i| {
                $helper(cpu, i, $f);
                Ok(())
            })?;
            $regs(w, $width(w, c, class_of!(size, $class), size, exec)?)
        })
    };
}
pub(crate) use lanewise;

// ---- decoding -----------------------------------------------------------------------------------

/// Returns whether the word is a scalar AdvSIMD form.
fn is_scalar(w: u32) -> bool {
    bits(w, 28, 1) == 1
}

/// Returns whether the word is a 128-bit form, or works on the upper half.
pub fn is_full(w: u32) -> bool {
    bits(w, 30, 1) == 1
}

/// Decodes an AdvSIMD instruction that keeps `low` and `high` of its 128-bit result.
pub fn with_live(c: &Ctx, class: &'static str, exec: Exec, low: u64, high: u64) -> Decoded {
    let mut d = Decoded::new(c, class, exec);
    d.info.kind = InstKind::AdvSimd;
    d.inst.imm2 = low;
    d.inst.imm = high as i64;
    d
}

/// Returns the mask of one element of log2 size `size`.
fn element_mask(size: u32) -> u64 {
    u64::MAX >> (64 - (8 << size))
}

/// Sources and result have elements of the same size: a scalar, 64 or 128 bits. There is no vector of a single doubleword.
pub fn same(w: u32, c: &Ctx, class: &'static str, size: u32, exec: Exec) -> Option<Decoded> {
    if is_scalar(w) {
        Some(with_live(c, class, exec, element_mask(size), 0))
    } else if is_full(w) {
        Some(with_live(c, class, exec, u64::MAX, u64::MAX))
    } else {
        (size < 3).then(|| with_live(c, class, exec, u64::MAX, 0))
    }
}

/// The result has elements twice as large as those of a source, which is half a register.
pub fn long(w: u32, c: &Ctx, class: &'static str, size: u32, exec: Exec) -> Option<Decoded> {
    if is_scalar(w) {
        return Some(with_live(c, class, exec, element_mask(size + 1), 0));
    }
    let mut d = with_live(c, class, exec, u64::MAX, u64::MAX);
    d.inst.pg = bits(w, 30, 1) as u8;
    Some(d)
}

/// The result has elements half as large as those of the source, and is half a register; writing the
/// upper half keeps the lower.
pub fn narrow(w: u32, c: &Ctx, class: &'static str, size: u32, exec: Exec) -> Option<Decoded> {
    if is_scalar(w) {
        return Some(with_live(c, class, exec, element_mask(size), 0));
    }
    let mut d = with_live(c, class, exec, u64::MAX, 0);
    d.inst.pg = bits(w, 30, 1) as u8;
    if d.inst.pg == 1 {
        d.acc_z(bits(w, 0, 5));
    }
    Some(d)
}

/// Registers Vd, Vn.
pub fn unary(w: u32, mut d: Decoded) -> Option<Decoded> {
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    Some(d)
}

/// Registers Vd (also read), Vn.
pub fn unary_acc(w: u32, mut d: Decoded) -> Option<Decoded> {
    d.acc_z(bits(w, 0, 5));
    unary(w, d)
}

/// Registers Vd, Vn, Vm.
pub fn binary(w: u32, mut d: Decoded) -> Option<Decoded> {
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rm = d.src_z(bits(w, 16, 5));
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    Some(d)
}

/// Registers Vd (also read), Vn, Vm.
pub fn binary_acc(w: u32, mut d: Decoded) -> Option<Decoded> {
    d.acc_z(bits(w, 0, 5));
    binary(w, d)
}

/// Registers Vd, Vn and an element of Vm; 16-bit elements come from V0 to V15.
pub fn element(w: u32, mut d: Decoded) -> Option<Decoded> {
    let (h, l, m) = (bits(w, 11, 1), bits(w, 21, 1), bits(w, 20, 1));
    let (index, rm) = match bits(w, 22, 2) {
        1 => (h << 2 | l << 1 | m, bits(w, 16, 4)),
        2 => (h << 1 | l, bits(w, 16, 5)),
        _ => return None,
    };
    d.inst.aux = index as u16;
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rm = d.element_z(rm);
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    Some(d)
}

/// Registers Vd (also read), Vn and an element of Vm.
pub fn element_acc(w: u32, mut d: Decoded) -> Option<Decoded> {
    d.acc_z(bits(w, 0, 5));
    element(w, d)
}

// ---- reading and writing ------------------------------------------------------------------------
//
// Results are computed directly in the destination, from copies of the sources: the compiler vectorises this form, but not a
// local array for the result.

/// Returns the 128 bits of a register as elements.
#[inline(always)]
pub fn lanes<T: Pod>(v: &Vreg) -> &[T] {
    &v.lanes::<T>()[..16 / size_of::<T>()]
}

/// Returns the doubleword of `v` that a long operation reads.
#[inline(always)]
pub fn half(v: &Vreg, i: &Inst) -> u64 {
    v.0[usize::from(i.pg & 1)]
}

/// Returns a doubleword as elements.
#[inline(always)]
fn half_lanes<T: Pod>(word: &u64) -> &[T] {
    cast_slice(std::slice::from_ref(word))
}

/// Element `k` of Vd = `f(k)`, where it is live, and zero elsewhere.
#[inline(always)]
pub fn put<T: Pod>(cpu: &mut Cpu, i: &Inst, f: impl Fn(usize) -> T) {
    let rd = cpu.z_mut(i.rd);
    *rd = Vreg::ZERO;
    for (k, lane) in rd.lanes_mut::<T>()[..16 / size_of::<T>()].iter_mut().enumerate() {
        *lane = f(k);
    }
    rd.0[0] &= i.imm2;
    rd.0[1] &= i.imm as u64;
}

/// As [`put`], for results that may saturate: sets QC when a live element did.
#[inline(always)]
fn put_saturating<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(usize) -> (T, bool)) {
    let live = Vreg([i.imm2, i.imm as u64, 0, 0, 0, 0, 0, 0]);
    let live = lanes::<T>(&live);
    let rd = cpu.z_mut(i.rd);
    *rd = Vreg::ZERO;
    let mut saturated = T::ones_if(false);
    for (k, lane) in rd.lanes_mut::<T>()[..16 / size_of::<T>()].iter_mut().enumerate() {
        let (value, mark) = f(k);
        *lane = value & live[k];
        saturated = saturated | T::ones_if(mark) & live[k];
    }
    if saturated != T::ones_if(false) {
        cpu.fp.fpsr |= FPSR_QC;
    }
}

/// Element `k` of the lower or the upper half of Vd = `f(k)`. Writing the lower half clears the upper half; writing the upper
/// half keeps the lower.
#[inline(always)]
fn put_half<T: Pod>(cpu: &mut Cpu, i: &Inst, mut f: impl FnMut(usize) -> T) {
    let rd = cpu.z_mut(i.rd);
    let part = usize::from(i.pg & 1);
    rd.0[1..].fill(0);
    for (k, lane) in cast_slice_mut::<u64, T>(&mut rd.0[part..=part]).iter_mut().enumerate() {
        *lane = f(k);
    }
    // Scalar forms never use the upper half.
    rd.0[0] &= i.imm2;
}

/// Returns the second operand: a register, or one of its elements broadcast.
#[inline(always)]
fn second<T: Elem, const BY: bool>(cpu: &Cpu, i: &Inst) -> Vreg {
    let mut rm = *cpu.z(i.rm);
    if BY {
        let factor = lanes::<T>(&rm)[usize::from(i.aux) & (16 / size_of::<T>() - 1)];
        rm.lanes_mut().fill(factor);
    }
    rm
}

// ---- elements of the same size ------------------------------------------------------------------

/// Vd = f(Vn).
#[inline(always)]
pub fn map1<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T) -> T) {
    let a = *cpu.z(i.rn);
    put(cpu, i, |k| f(lanes(&a)[k]));
}

/// Vd = f(Vd, Vn).
#[inline(always)]
pub fn acc1<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T, T) -> T) {
    let (d, a) = (*cpu.z(i.rd), *cpu.z(i.rn));
    put(cpu, i, |k| f(lanes(&d)[k], lanes(&a)[k]));
}

/// Vd = f(Vn, Vm).
#[inline(always)]
pub fn map2<T: Elem, const BY: bool>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T, T) -> T) {
    let (a, b) = (*cpu.z(i.rn), second::<T, BY>(cpu, i));
    put(cpu, i, |k| f(lanes(&a)[k], lanes(&b)[k]));
}

/// Vd = f(Vd, Vn, Vm).
#[inline(always)]
pub fn acc2<T: Elem, const BY: bool>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T, T, T) -> T) {
    let (d, a, b) = (*cpu.z(i.rd), *cpu.z(i.rn), second::<T, BY>(cpu, i));
    put(cpu, i, |k| f(lanes(&d)[k], lanes(&a)[k], lanes(&b)[k]));
}

/// Vd = f(Vn), saturating.
#[inline(always)]
pub fn sat1<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T) -> (T, bool)) {
    let a = *cpu.z(i.rn);
    put_saturating(cpu, i, |k| f(lanes(&a)[k]));
}

/// Vd = f(Vd, Vn), saturating.
#[inline(always)]
pub fn sat_acc1<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T, T) -> (T, bool)) {
    let (d, a) = (*cpu.z(i.rd), *cpu.z(i.rn));
    put_saturating(cpu, i, |k| f(lanes(&d)[k], lanes(&a)[k]));
}

/// Vd = f(Vn, Vm), saturating.
#[inline(always)]
pub fn sat2<T: Elem, const BY: bool>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T, T) -> (T, bool)) {
    let (a, b) = (*cpu.z(i.rn), second::<T, BY>(cpu, i));
    put_saturating(cpu, i, |k| f(lanes(&a)[k], lanes(&b)[k]));
}

/// Vd = f(Vd, Vn, Vm), saturating.
#[inline(always)]
pub fn sat_acc2<T: Elem, const BY: bool>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T, T, T) -> (T, bool)) {
    let (d, a, b) = (*cpu.z(i.rd), *cpu.z(i.rn), second::<T, BY>(cpu, i));
    put_saturating(cpu, i, |k| f(lanes(&d)[k], lanes(&a)[k], lanes(&b)[k]));
}

// ---- elements of two sizes ----------------------------------------------------------------------

/// Element `k` of a doubleword, widened.
#[inline(always)]
fn widened<T: Elem>(word: &u64, k: usize) -> T::Wide {
    half_lanes::<T>(word)[k].widen()
}

/// Vd = f(half of Vn), elements widened first.
#[inline(always)]
pub fn long1<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T::Wide) -> T::Wide) {
    let a = half(cpu.z(i.rn), i);
    put(cpu, i, |k| f(widened::<T>(&a, k)));
}

/// Vd = f(half of Vn, half of Vm), elements widened first.
#[inline(always)]
pub fn long2<T: Elem, const BY: bool>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T::Wide, T::Wide) -> T::Wide) {
    let (a, b) = (half(cpu.z(i.rn), i), half(&second::<T, BY>(cpu, i), i));
    put(cpu, i, |k| f(widened::<T>(&a, k), widened::<T>(&b, k)));
}

/// Vd = f(Vd, half of Vn, half of Vm), elements widened first.
#[inline(always)]
pub fn long_acc2<T: Elem, const BY: bool>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T::Wide, T::Wide, T::Wide) -> T::Wide) {
    let (d, a, b) = (*cpu.z(i.rd), half(cpu.z(i.rn), i), half(&second::<T, BY>(cpu, i), i));
    put(cpu, i, |k| f(lanes(&d)[k], widened::<T>(&a, k), widened::<T>(&b, k)));
}

/// As [`long2`], saturating.
#[inline(always)]
pub fn long_sat2<T: Elem, const BY: bool>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T::Wide, T::Wide) -> (T::Wide, bool))
where
    T::Wide: Elem,
{
    let (a, b) = (half(cpu.z(i.rn), i), half(&second::<T, BY>(cpu, i), i));
    put_saturating(cpu, i, |k| f(widened::<T>(&a, k), widened::<T>(&b, k)));
}

/// As [`long_acc2`], saturating.
#[inline(always)]
pub fn long_sat_acc2<T: Elem, const BY: bool>(
    cpu: &mut Cpu,
    i: &Inst,
    f: impl Fn(T::Wide, T::Wide, T::Wide) -> (T::Wide, bool),
) where
    T::Wide: Elem,
{
    let (d, a, b) = (*cpu.z(i.rd), half(cpu.z(i.rn), i), half(&second::<T, BY>(cpu, i), i));
    put_saturating(cpu, i, |k| f(lanes(&d)[k], widened::<T>(&a, k), widened::<T>(&b, k)));
}

/// Vd = f(Vn, half of Vm), the elements of Vm widened first.
#[inline(always)]
pub fn wide2<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T::Wide, T::Wide) -> T::Wide) {
    let (a, b) = (*cpu.z(i.rn), half(cpu.z(i.rm), i));
    put(cpu, i, |k| f(lanes(&a)[k], widened::<T>(&b, k)));
}

/// Half of Vd = f(Vn), with elements of half the size.
#[inline(always)]
pub fn narrow1<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T::Wide) -> T) {
    let a = *cpu.z(i.rn);
    put_half(cpu, i, |k| f(lanes(&a)[k]));
}

/// Half of Vd = f(Vn, Vm), with elements of half the size.
#[inline(always)]
pub fn narrow2<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T::Wide, T::Wide) -> T) {
    let (a, b) = (*cpu.z(i.rn), *cpu.z(i.rm));
    put_half(cpu, i, |k| f(lanes(&a)[k], lanes(&b)[k]));
}

/// Half of Vd = f(Vn), with elements of half the size, saturating.
#[inline(always)]
pub fn narrow_sat1<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T::Wide) -> (T, bool)) {
    let a = *cpu.z(i.rn);
    let mut saturated = 0;
    put_half(cpu, i, |k| {
        let (value, mark) = f(lanes(&a)[k]);
        saturated |= u64::from(mark) << (k * size_of::<T>() * 8);
        value
    });
    if saturated & i.imm2 != 0 {
        cpu.fp.fpsr |= FPSR_QC;
    }
}
