//! Integer vector elements: the same arithmetic for eight types.

use std::ops::{BitAnd, BitOr, BitXor, Not};

use super::sve_common::Element;

/// An integer element. As in the instructions, `Ord`, division, right shift, widening and saturation depend on the signedness of
/// the type.
pub trait Int:
    Element + Ord + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    /// The 64-bit type of the same signedness.
    type Wide: Int;
    /// Bits of the element.
    const BITS: u32;
    /// Smallest value.
    const MIN: Self;
    /// Largest value.
    const MAX: Self;
    /// Zero.
    const ZERO: Self;
    /// All bits set.
    const ONES: Self;

    /// Returns the low bits of `v`.
    fn truncate(v: u64) -> Self;
    /// Returns the bits of the 64-bit value that equals `self`: sign- or zero-extended.
    fn extend(self) -> u64;
    /// Returns the 64-bit value that equals `self`.
    fn widen(self) -> Self::Wide;
    /// Sum, modulo the element size.
    fn add(self, b: Self) -> Self;
    /// Difference, modulo the element size.
    fn sub(self, b: Self) -> Self;
    /// Product, modulo the element size.
    fn mul(self, b: Self) -> Self;
    /// High half of the double-width product.
    fn mul_high(self, b: Self) -> Self;
    /// Quotient rounded towards zero; 0 for division by zero. The smallest value divided by -1 is itself.
    fn div(self, b: Self) -> Self;
    /// Sum, saturating.
    fn add_saturating(self, b: Self) -> Self;
    /// Difference, saturating.
    fn sub_saturating(self, b: Self) -> Self;
    /// Sum with the bits of `b` interpreted as an unsigned number, saturating.
    fn add_unsigned(self, b: Self) -> Self;
    /// Difference with the bits of `b` interpreted as an unsigned number, saturating.
    fn sub_unsigned(self, b: Self) -> Self;
    /// Absolute difference, modulo the element size.
    fn abs_diff(self, b: Self) -> Self;
    /// Shifted left by `n` bits; 0 when `n` is the element size or more.
    fn shift_left(self, n: u64) -> Self;
    /// Shifted right by `n` bits; only sign bits remain when `n` is the element size or more.
    fn shift_right(self, n: u64) -> Self;
    /// Number of leading zero bits.
    fn leading_zeros(self) -> u32;
    /// Number of one bits.
    fn count_ones(self) -> u32;
    /// Returns the bits in opposite order.
    fn reverse_bits(self) -> Self;
}

macro_rules! integers {
    ($($t:ident $unsigned:ident $double:ident $wide:ident $other_add:ident $other_sub:ident;)+) => { $(
        impl Int for $t {
            type Wide = $wide;
            const BITS: u32 = $t::BITS;
            const MIN: $t = $t::MIN;
            const MAX: $t = $t::MAX;
            const ZERO: $t = 0;
            const ONES: $t = !0;

            #[inline(always)]
            fn truncate(v: u64) -> $t {
                v as $t
            }
            #[inline(always)]
            fn extend(self) -> u64 {
                self as $wide as u64
            }
            #[inline(always)]
            fn widen(self) -> $wide {
                $wide::from(self)
            }
            #[inline(always)]
            fn add(self, b: $t) -> $t {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn sub(self, b: $t) -> $t {
                self.wrapping_sub(b)
            }
            #[inline(always)]
            fn mul(self, b: $t) -> $t {
                self.wrapping_mul(b)
            }
            #[inline(always)]
            fn mul_high(self, b: $t) -> $t {
                ($double::from(self) * $double::from(b) >> $t::BITS) as $t
            }
            #[inline(always)]
            fn div(self, b: $t) -> $t {
                if b == 0 { 0 } else { self.wrapping_div(b) }
            }
            #[inline(always)]
            fn add_saturating(self, b: $t) -> $t {
                self.saturating_add(b)
            }
            #[inline(always)]
            fn sub_saturating(self, b: $t) -> $t {
                self.saturating_sub(b)
            }
            #[inline(always)]
            fn add_unsigned(self, b: $t) -> $t {
                self.$other_add(b as $unsigned)
            }
            #[inline(always)]
            fn sub_unsigned(self, b: $t) -> $t {
                self.$other_sub(b as $unsigned)
            }
            #[inline(always)]
            fn abs_diff(self, b: $t) -> $t {
                $t::abs_diff(self, b) as $t
            }
            #[inline(always)]
            fn shift_left(self, n: u64) -> $t {
                if n < u64::from($t::BITS) { self << n } else { 0 }
            }
            #[inline(always)]
            fn shift_right(self, n: u64) -> $t {
                if n < u64::from($t::BITS) { self >> n } else if self < Self::ZERO { !0 } else { 0 }
            }
            #[inline(always)]
            fn leading_zeros(self) -> u32 {
                $t::leading_zeros(self)
            }
            #[inline(always)]
            fn count_ones(self) -> u32 {
                $t::count_ones(self)
            }
            #[inline(always)]
            fn reverse_bits(self) -> $t {
                $t::reverse_bits(self)
            }
        }
    )+ };
}

integers! {
    u8 u8 u16 u64 saturating_add saturating_sub;
    u16 u16 u32 u64 saturating_add saturating_sub;
    u32 u32 u64 u64 saturating_add saturating_sub;
    u64 u64 u128 u64 saturating_add saturating_sub;
    i8 u8 i16 i64 saturating_add_unsigned saturating_sub_unsigned;
    i16 u16 i32 i64 saturating_add_unsigned saturating_sub_unsigned;
    i32 u32 i64 i64 saturating_add_unsigned saturating_sub_unsigned;
    i64 u64 i128 i64 saturating_add_unsigned saturating_sub_unsigned;
}
