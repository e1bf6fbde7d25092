//! Shared by the integer groups: the two register widths, shifts and extensions, and the operations that occur with immediate,
//! shifted and extended operands. Each is written once and instantiated at decode time, so a handler contains no test of width,
//! shift kind or flag setting.

use std::ops::{BitAnd, BitOr, BitXor, Not};

use crate::cpu::{Cpu, Nzcv};

/// A general-purpose register's value at one of its two widths.
pub trait Word:
    Copy + PartialEq + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    /// Width in bits.
    const BITS: u32;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// Reads a general-purpose register by decoder index.
    fn read(cpu: &Cpu, r: u8) -> Self;
    /// Writes a general-purpose register by decoder index; a 32-bit value clears the upper half.
    fn write(self, cpu: &mut Cpu, r: u8);
    /// Returns the low bits of `v`.
    fn low(v: u64) -> Self;
    /// Zero-extends.
    fn widen(self) -> u64;
    /// Returns the sum modulo 2^BITS.
    fn plus(self, b: Self) -> Self;
    /// Returns the difference modulo 2^BITS.
    fn minus(self, b: Self) -> Self;
    /// Returns the product modulo 2^BITS.
    fn times(self, b: Self) -> Self;
    /// Unsigned quotient, 0 when `b` is 0.
    fn quotient(self, b: Self) -> Self;
    /// Signed quotient rounded towards zero, 0 when `b` is 0; the most negative value by −1 is itself.
    fn signed_quotient(self, b: Self) -> Self;
    /// Logical shift left by `n` modulo BITS.
    fn lsl(self, n: u32) -> Self;
    /// Logical shift right by `n` modulo BITS.
    fn lsr(self, n: u32) -> Self;
    /// Arithmetic shift right by `n` modulo BITS.
    fn asr(self, n: u32) -> Self;
    /// Rotation right by `n` modulo BITS.
    fn ror(self, n: u32) -> Self;
    /// Returns the low half of the double word `self:low` shifted right by `n` < BITS.
    fn extract(self, low: Self, n: u32) -> Self;
    /// Number of zero bits above the highest one bit.
    fn clz(self) -> u32;
    /// Bits in reverse order.
    fn rbit(self) -> Self;
    /// Bytes in reverse order.
    fn rev(self) -> Self;
    /// `self + b` with flags.
    fn plus_flags(self, b: Self) -> (Self, Nzcv);
    /// `self - b` with flags; C is set when there is no borrow.
    fn minus_flags(self, b: Self) -> (Self, Nzcv);
    /// `self + b + carry` with flags: Arm's `AddWithCarry`.
    fn add_with_carry(self, b: Self, carry: bool) -> (Self, Nzcv);
    /// Returns the flags of a logical result: N and Z of the value, C and V clear.
    fn sign_and_zero(self) -> Nzcv;
}

macro_rules! word {
    ($u:ident, $i:ident, $double:ident, $read:ident, $write:ident) => {
        impl Word for $u {
            const BITS: u32 = $u::BITS;
            const ZERO: $u = 0;
            const ONE: $u = 1;

            #[inline(always)]
            fn read(cpu: &Cpu, r: u8) -> $u {
                cpu.$read(r)
            }
            #[inline(always)]
            fn write(self, cpu: &mut Cpu, r: u8) {
                cpu.$write(r, self);
            }
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
            fn minus(self, b: $u) -> $u {
                self.wrapping_sub(b)
            }
            #[inline(always)]
            fn times(self, b: $u) -> $u {
                self.wrapping_mul(b)
            }
            #[inline(always)]
            fn quotient(self, b: $u) -> $u {
                self.checked_div(b).unwrap_or(0)
            }
            #[inline(always)]
            fn signed_quotient(self, b: $u) -> $u {
                if b == 0 { 0 } else { (self as $i).wrapping_div(b as $i) as $u }
            }
            #[inline(always)]
            fn lsl(self, n: u32) -> $u {
                self.wrapping_shl(n)
            }
            #[inline(always)]
            fn lsr(self, n: u32) -> $u {
                self.wrapping_shr(n)
            }
            #[inline(always)]
            fn asr(self, n: u32) -> $u {
                (self as $i).wrapping_shr(n) as $u
            }
            #[inline(always)]
            fn ror(self, n: u32) -> $u {
                self.rotate_right(n)
            }
            #[inline(always)]
            fn extract(self, low: $u, n: u32) -> $u {
                ($double::from(self) << $u::BITS | $double::from(low)).wrapping_shr(n) as $u
            }
            #[inline(always)]
            fn clz(self) -> u32 {
                self.leading_zeros()
            }
            #[inline(always)]
            fn rbit(self) -> $u {
                self.reverse_bits()
            }
            #[inline(always)]
            fn rev(self) -> $u {
                self.swap_bytes()
            }
            #[inline(always)]
            fn plus_flags(self, b: $u) -> ($u, Nzcv) {
                let (sum, carry) = self.overflowing_add(b);
                let overflow = (self as $i).overflowing_add(b as $i).1;
                (sum, sum.sign_and_zero() | u8::from(carry) << 1 | u8::from(overflow))
            }
            #[inline(always)]
            fn minus_flags(self, b: $u) -> ($u, Nzcv) {
                let overflow = (self as $i).overflowing_sub(b as $i).1;
                let difference = self.wrapping_sub(b);
                (difference, difference.sign_and_zero() | u8::from(self >= b) << 1 | u8::from(overflow))
            }
            #[inline(always)]
            fn add_with_carry(self, b: $u, carry: bool) -> ($u, Nzcv) {
                let (sum, c1) = self.overflowing_add(b);
                let (sum, c2) = sum.overflowing_add(carry as $u);
                let v = ((self ^ sum) & (b ^ sum)) >> ($u::BITS - 1);
                (sum, sum.sign_and_zero() | u8::from(c1 | c2) << 1 | v as u8)
            }
            #[inline(always)]
            fn sign_and_zero(self) -> Nzcv {
                ((self >> ($u::BITS - 1)) as u8) << 3 | u8::from(self == 0) << 2
            }
        }
    };
}

word!(u32, i32, u64, w, set_w);
word!(u64, i64, u128, x, set_x);

/// An operation on two operands that may set the flags.
pub trait Alu {
    /// Whether it writes the flags.
    const FLAGS: bool;
    /// Result and, if [`Alu::FLAGS`], flags.
    fn apply<W: Word>(a: W, b: W) -> (W, Nzcv);
}

macro_rules! alu {
    ($($(#[$doc:meta])* $name:ident, $flags:literal, |$a:ident, $b:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        pub enum $name {}
        impl Alu for $name {
            const FLAGS: bool = $flags;
            #[inline(always)]
            fn apply<W: Word>($a: W, $b: W) -> (W, Nzcv) {
                $body
            }
        }
    )*};
}

/// Returns a logical result with its flags.
#[inline(always)]
fn tested<W: Word>(r: W) -> (W, Nzcv) {
    (r, r.sign_and_zero())
}

alu! {
    /// Addition.
    Add, false, |a, b| (a.plus(b), 0);
    /// Addition, setting the flags.
    Adds, true, |a, b| a.plus_flags(b);
    /// Subtraction.
    Sub, false, |a, b| (a.minus(b), 0);
    /// Subtraction, setting the flags.
    Subs, true, |a, b| a.minus_flags(b);
    /// Bitwise AND.
    And, false, |a, b| (a & b, 0);
    /// Bitwise AND, setting the flags.
    Ands, true, |a, b| tested(a & b);
    /// Bitwise AND with the complement.
    Bic, false, |a, b| (a & !b, 0);
    /// Bitwise AND with the complement, setting the flags.
    Bics, true, |a, b| tested(a & !b);
    /// Bitwise OR.
    Orr, false, |a, b| (a | b, 0);
    /// Bitwise OR with the complement.
    Orn, false, |a, b| (a | !b, 0);
    /// Bitwise exclusive OR.
    Eor, false, |a, b| (a ^ b, 0);
    /// Bitwise exclusive OR with the complement.
    Eon, false, |a, b| (a ^ !b, 0);
}

/// Shift kinds as encoded; a decoder uses [`UNSHIFTED`] instead when the amount is 0.
pub const LSL: u8 = 0;
/// Logical shift right.
pub const LSR: u8 = 1;
/// Arithmetic shift right.
pub const ASR: u8 = 2;
/// Rotation right.
pub const ROR: u8 = 3;
/// No shift.
pub const UNSHIFTED: u8 = 4;

/// Shifts `v` by `n` modulo its width.
#[inline(always)]
pub fn shift<W: Word, const KIND: u8>(v: W, n: u32) -> W {
    match KIND {
        LSL => v.lsl(n),
        LSR => v.lsr(n),
        ASR => v.asr(n),
        ROR => v.ror(n),
        _ => v,
    }
}

/// Extends `v` from the part that `OPTION` selects: UXTB, UXTH, UXTW, UXTX, SXTB, SXTH, SXTW, SXTX (0–7).
#[inline(always)]
#[must_use]
pub fn extend<const OPTION: u8>(v: u64) -> u64 {
    match OPTION {
        0 => u64::from(v as u8),
        1 => u64::from(v as u16),
        2 => u64::from(v as u32),
        4 => v as i8 as u64,
        5 => v as i16 as u64,
        6 => v as i32 as u64,
        _ => v,
    }
}

/// Selects the 64-bit or 32-bit instance of a generic handler by the `sf` bit of instruction word `$w`.
macro_rules! by_width {
    ($w:expr, $exec:ident $(, $arg:tt)*) => {
        if $w >> 31 == 1 { $exec::<u64 $(, $arg)*> as $crate::table::Exec } else { $exec::<u32 $(, $arg)*> }
    };
}
pub(crate) use by_width;
