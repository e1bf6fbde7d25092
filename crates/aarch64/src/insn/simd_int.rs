//! AdvSIMD integer arithmetic, comparison and logic on elements of one size.

use bytemuck::Pod;

use crate::cpu::{Cpu, Vreg};
use crate::enc;
use crate::insn::simd_common::*;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst};

/// A row of a bitwise operation: `logic!(NAME, PATTERN, CLASS, REGISTERS, HELPER, SEMANTICS)`.
macro_rules! logic {
    ($name:literal, $pattern:literal, $class:literal, $regs:ident, $helper:path, $f:expr) => {
        enc!($name, $pattern, |w, c| {
            let exec: Exec = |cpu, _, i| {
                $helper(cpu, i, $f);
                Ok(())
            };
            $regs(w, same(w, c, $class, 0, exec)?)
        })
    };
}

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    // Add, subtract, multiply.
    lanewise!("ADD (vector)", "0 q:1 0 01110 size:2 1 rm:5 100001 rn:5 rd:5", "simd:ADD (vector)",
        same binary, [u8 u16 u32 u64] map2::<T, VECTOR>, |a, b| a.wrapping_add(b)),
    lanewise!("ADD (scalar)", "01 0 11110 11 1 rm:5 100001 rn:5 rd:5", "simd:ADD (vector)",
        same binary, [- - - u64] map2::<T, VECTOR>, |a, b| a.wrapping_add(b)),
    lanewise!("SUB (vector)", "0 q:1 1 01110 size:2 1 rm:5 100001 rn:5 rd:5", "simd:SUB (vector)",
        same binary, [u8 u16 u32 u64] map2::<T, VECTOR>, |a, b| a.wrapping_sub(b)),
    lanewise!("SUB (scalar)", "01 1 11110 11 1 rm:5 100001 rn:5 rd:5", "simd:SUB (vector)",
        same binary, [- - - u64] map2::<T, VECTOR>, |a, b| a.wrapping_sub(b)),
    lanewise!("MUL (vector)", "0 q:1 0 01110 size:2 1 rm:5 100111 rn:5 rd:5", "simd:MUL (vector)",
        same binary, [u8 u16 u32 -] map2::<T, VECTOR>, |a, b| a.wrapping_mul(b)),
    lanewise!("MLA (vector)", "0 q:1 0 01110 size:2 1 rm:5 100101 rn:5 rd:5", "simd:MLA (vector)",
        same binary_acc, [u8 u16 u32 -] acc2::<T, VECTOR>, |d, a, b| d.wrapping_add(a.wrapping_mul(b))),
    lanewise!("MLS (vector)", "0 q:1 1 01110 size:2 1 rm:5 100101 rn:5 rd:5", "simd:MLS (vector)",
        same binary_acc, [u8 u16 u32 -] acc2::<T, VECTOR>, |d, a, b| d.wrapping_sub(a.wrapping_mul(b))),
    lanewise!("MUL (by element)", "0 q:1 0 01111 size:2 l:1 m:1 rm:4 1000 h:1 0 rn:5 rd:5", "simd:MUL (by element)",
        same element, [- u16 u32 -] map2::<T, ELEMENT>, |a, b| a.wrapping_mul(b)),
    lanewise!("MLA (by element)", "0 q:1 1 01111 size:2 l:1 m:1 rm:4 0000 h:1 0 rn:5 rd:5", "simd:MLA (by element)",
        same element_acc, [- u16 u32 -] acc2::<T, ELEMENT>, |d, a, b| d.wrapping_add(a.wrapping_mul(b))),
    lanewise!("MLS (by element)", "0 q:1 1 01111 size:2 l:1 m:1 rm:4 0100 h:1 0 rn:5 rd:5", "simd:MLS (by element)",
        same element_acc, [- u16 u32 -] acc2::<T, ELEMENT>, |d, a, b| d.wrapping_sub(a.wrapping_mul(b))),
    lanewise!("PMUL", "0 q:1 1 01110 size:2 1 rm:5 100111 rn:5 rd:5", "simd:PMUL",
        same binary, [u8 - - -] map2::<T, VECTOR>, |a, b| carryless_product(a.into(), b.into()) as u8),

    // Absolute value, negation, absolute difference.
    lanewise!("ABS (vector)", "0 q:1 0 01110 size:2 10000 01011 10 rn:5 rd:5", "simd:ABS",
        same unary, [i8 i16 i32 i64] map1::<T>, |a| a.wrapping_abs()),
    lanewise!("ABS (scalar)", "01 0 11110 11 10000 01011 10 rn:5 rd:5", "simd:ABS",
        same unary, [- - - i64] map1::<T>, |a| a.wrapping_abs()),
    lanewise!("NEG (vector)", "0 q:1 1 01110 size:2 10000 01011 10 rn:5 rd:5", "simd:NEG (vector)",
        same unary, [i8 i16 i32 i64] map1::<T>, |a| a.wrapping_neg()),
    lanewise!("NEG (scalar)", "01 1 11110 11 10000 01011 10 rn:5 rd:5", "simd:NEG (vector)",
        same unary, [- - - i64] map1::<T>, |a| a.wrapping_neg()),
    lanewise!("SABD (vector)", "0 q:1 0 01110 size:2 1 rm:5 011101 rn:5 rd:5", "simd:SABD",
        same binary, [i8 i16 i32 -] map2::<T, VECTOR>, |a, b| a.abs_diff(b) as T),
    lanewise!("UABD (vector)", "0 q:1 1 01110 size:2 1 rm:5 011101 rn:5 rd:5", "simd:UABD",
        same binary, [u8 u16 u32 -] map2::<T, VECTOR>, |a, b| a.abs_diff(b)),
    lanewise!("SABA", "0 q:1 0 01110 size:2 1 rm:5 011111 rn:5 rd:5", "simd:SABA",
        same binary_acc, [i8 i16 i32 -] acc2::<T, VECTOR>, |d, a, b| d.wrapping_add(a.abs_diff(b) as T)),
    lanewise!("UABA", "0 q:1 1 01110 size:2 1 rm:5 011111 rn:5 rd:5", "simd:UABA",
        same binary_acc, [u8 u16 u32 -] acc2::<T, VECTOR>, |d, a, b| d.wrapping_add(a.abs_diff(b))),

    // Halving.
    lanewise!("SHADD", "0 q:1 0 01110 size:2 1 rm:5 000001 rn:5 rd:5", "simd:SHADD",
        same binary, [i8 i16 i32 -] map2::<T, VECTOR>, |a, b| (a & b).wrapping_add((a ^ b) >> 1)),
    lanewise!("UHADD", "0 q:1 1 01110 size:2 1 rm:5 000001 rn:5 rd:5", "simd:UHADD",
        same binary, [u8 u16 u32 -] map2::<T, VECTOR>, |a, b| (a & b).wrapping_add((a ^ b) >> 1)),
    lanewise!("SRHADD", "0 q:1 0 01110 size:2 1 rm:5 000101 rn:5 rd:5", "simd:SRHADD",
        same binary, [i8 i16 i32 -] map2::<T, VECTOR>, |a, b| (a | b).wrapping_sub((a ^ b) >> 1)),
    lanewise!("URHADD", "0 q:1 1 01110 size:2 1 rm:5 000101 rn:5 rd:5", "simd:URHADD",
        same binary, [u8 u16 u32 -] map2::<T, VECTOR>, |a, b| (a | b).wrapping_sub((a ^ b) >> 1)),
    lanewise!("SHSUB", "0 q:1 0 01110 size:2 1 rm:5 001001 rn:5 rd:5", "simd:SHSUB",
        same binary, [i8 i16 i32 -] map2::<T, VECTOR>, |a, b| ((a ^ b) >> 1).wrapping_sub(!a & b)),
    lanewise!("UHSUB", "0 q:1 1 01110 size:2 1 rm:5 001001 rn:5 rd:5", "simd:UHSUB",
        same binary, [u8 u16 u32 -] map2::<T, VECTOR>, |a, b| ((a ^ b) >> 1).wrapping_sub(!a & b)),

    // Saturating.
    lanewise!("SQADD (vector)", "0 q:1 0 01110 size:2 1 rm:5 000011 rn:5 rd:5", "simd:SQADD",
        same binary, [i8 i16 i32 i64] sat2::<T, VECTOR>, |a, b| (a.saturating_add(b), a.checked_add(b).is_none())),
    lanewise!("SQADD (scalar)", "01 0 11110 size:2 1 rm:5 000011 rn:5 rd:5", "simd:SQADD",
        same binary, [i8 i16 i32 i64] sat2::<T, VECTOR>, |a, b| (a.saturating_add(b), a.checked_add(b).is_none())),
    lanewise!("UQADD (vector)", "0 q:1 1 01110 size:2 1 rm:5 000011 rn:5 rd:5", "simd:UQADD",
        same binary, [u8 u16 u32 u64] sat2::<T, VECTOR>, |a, b| (a.saturating_add(b), a.checked_add(b).is_none())),
    lanewise!("UQADD (scalar)", "01 1 11110 size:2 1 rm:5 000011 rn:5 rd:5", "simd:UQADD",
        same binary, [u8 u16 u32 u64] sat2::<T, VECTOR>, |a, b| (a.saturating_add(b), a.checked_add(b).is_none())),
    lanewise!("SQSUB (vector)", "0 q:1 0 01110 size:2 1 rm:5 001011 rn:5 rd:5", "simd:SQSUB",
        same binary, [i8 i16 i32 i64] sat2::<T, VECTOR>, |a, b| (a.saturating_sub(b), a.checked_sub(b).is_none())),
    lanewise!("SQSUB (scalar)", "01 0 11110 size:2 1 rm:5 001011 rn:5 rd:5", "simd:SQSUB",
        same binary, [i8 i16 i32 i64] sat2::<T, VECTOR>, |a, b| (a.saturating_sub(b), a.checked_sub(b).is_none())),
    lanewise!("UQSUB (vector)", "0 q:1 1 01110 size:2 1 rm:5 001011 rn:5 rd:5", "simd:UQSUB",
        same binary, [u8 u16 u32 u64] sat2::<T, VECTOR>, |a, b| (a.saturating_sub(b), a.checked_sub(b).is_none())),
    lanewise!("UQSUB (scalar)", "01 1 11110 size:2 1 rm:5 001011 rn:5 rd:5", "simd:UQSUB",
        same binary, [u8 u16 u32 u64] sat2::<T, VECTOR>, |a, b| (a.saturating_sub(b), a.checked_sub(b).is_none())),
    lanewise!("SUQADD (vector)", "0 q:1 0 01110 size:2 10000 00011 10 rn:5 rd:5", "simd:SUQADD",
        same unary_acc, [i8 i16 i32 i64] sat_acc1::<T>, |d, a| T::saturate(d.int() + unsigned(a))),
    lanewise!("SUQADD (scalar)", "01 0 11110 size:2 10000 00011 10 rn:5 rd:5", "simd:SUQADD",
        same unary_acc, [i8 i16 i32 i64] sat_acc1::<T>, |d, a| T::saturate(d.int() + unsigned(a))),
    lanewise!("USQADD (vector)", "0 q:1 1 01110 size:2 10000 00011 10 rn:5 rd:5", "simd:USQADD",
        same unary_acc, [i8 i16 i32 i64] sat_acc1::<T>, |d, a| saturate_unsigned(unsigned(d) + a.int())),
    lanewise!("USQADD (scalar)", "01 1 11110 size:2 10000 00011 10 rn:5 rd:5", "simd:USQADD",
        same unary_acc, [i8 i16 i32 i64] sat_acc1::<T>, |d, a| saturate_unsigned(unsigned(d) + a.int())),
    lanewise!("SQABS (vector)", "0 q:1 0 01110 size:2 10000 00111 10 rn:5 rd:5", "simd:SQABS",
        same unary, [i8 i16 i32 i64] sat1::<T>, |a| (a.saturating_abs(), a == T::MIN)),
    lanewise!("SQABS (scalar)", "01 0 11110 size:2 10000 00111 10 rn:5 rd:5", "simd:SQABS",
        same unary, [i8 i16 i32 i64] sat1::<T>, |a| (a.saturating_abs(), a == T::MIN)),
    lanewise!("SQNEG (vector)", "0 q:1 1 01110 size:2 10000 00111 10 rn:5 rd:5", "simd:SQNEG",
        same unary, [i8 i16 i32 i64] sat1::<T>, |a| (a.saturating_neg(), a == T::MIN)),
    lanewise!("SQNEG (scalar)", "01 1 11110 size:2 10000 00111 10 rn:5 rd:5", "simd:SQNEG",
        same unary, [i8 i16 i32 i64] sat1::<T>, |a| (a.saturating_neg(), a == T::MIN)),

    // Doubling multiplications that return the high half.
    lanewise!("SQDMULH (vector)", "0 q:1 0 01110 size:2 1 rm:5 101101 rn:5 rd:5", (high_half "simd:SQDMULH (vector)"),
        same binary, [- i16 i32 -] sat2::<T, VECTOR>, sqdmulh),
    lanewise!("SQDMULH (scalar)", "01 0 11110 size:2 1 rm:5 101101 rn:5 rd:5", (high_half "simd:SQDMULH (vector)"),
        same binary, [- i16 i32 -] sat2::<T, VECTOR>, sqdmulh),
    lanewise!("SQDMULH (by element)", "0 q:1 0 01111 size:2 l:1 m:1 rm:4 1100 h:1 0 rn:5 rd:5",
        (high_half "simd:SQDMULH (by element)"),
        same element, [- i16 i32 -] sat2::<T, ELEMENT>, sqdmulh),
    lanewise!("SQDMULH (by element, scalar)", "01 0 11111 size:2 l:1 m:1 rm:4 1100 h:1 0 rn:5 rd:5",
        (high_half "simd:SQDMULH (by element)"),
        same element, [- i16 i32 -] sat2::<T, ELEMENT>, sqdmulh),
    lanewise!("SQRDMULH (vector)", "0 q:1 1 01110 size:2 1 rm:5 101101 rn:5 rd:5", (high_half "simd:SQRDMULH (vector)"),
        same binary, [- i16 i32 -] sat2::<T, VECTOR>, sqrdmulh),
    lanewise!("SQRDMULH (scalar)", "01 1 11110 size:2 1 rm:5 101101 rn:5 rd:5", (high_half "simd:SQRDMULH (vector)"),
        same binary, [- i16 i32 -] sat2::<T, VECTOR>, sqrdmulh),
    lanewise!("SQRDMULH (by element)", "0 q:1 0 01111 size:2 l:1 m:1 rm:4 1101 h:1 0 rn:5 rd:5",
        (high_half "simd:SQRDMULH (by element)"),
        same element, [- i16 i32 -] sat2::<T, ELEMENT>, sqrdmulh),
    lanewise!("SQRDMULH (by element, scalar)", "01 0 11111 size:2 l:1 m:1 rm:4 1101 h:1 0 rn:5 rd:5",
        (high_half "simd:SQRDMULH (by element)"),
        same element, [- i16 i32 -] sat2::<T, ELEMENT>, sqrdmulh),
    lanewise!("SQRDMLAH (vector)", "0 q:1 1 01110 size:2 0 rm:5 100001 rn:5 rd:5", (high_half "simd:SQRDMLAH (vector)"),
        same binary_acc, [- i16 i32 -] sat_acc2::<T, VECTOR>, sqrdmlah),
    lanewise!("SQRDMLAH (scalar)", "01 1 11110 size:2 0 rm:5 100001 rn:5 rd:5", (high_half "simd:SQRDMLAH (vector)"),
        same binary_acc, [- i16 i32 -] sat_acc2::<T, VECTOR>, sqrdmlah),
    lanewise!("SQRDMLAH (by element)", "0 q:1 1 01111 size:2 l:1 m:1 rm:4 1101 h:1 0 rn:5 rd:5",
        (high_half "simd:SQRDMLAH (by element)"),
        same element_acc, [- i16 i32 -] sat_acc2::<T, ELEMENT>, sqrdmlah),
    lanewise!("SQRDMLAH (by element, scalar)", "01 1 11111 size:2 l:1 m:1 rm:4 1101 h:1 0 rn:5 rd:5",
        (high_half "simd:SQRDMLAH (by element)"),
        same element_acc, [- i16 i32 -] sat_acc2::<T, ELEMENT>, sqrdmlah),
    lanewise!("SQRDMLSH (vector)", "0 q:1 1 01110 size:2 0 rm:5 100011 rn:5 rd:5", (high_half "simd:SQRDMLSH (vector)"),
        same binary_acc, [- i16 i32 -] sat_acc2::<T, VECTOR>, sqrdmlsh),
    lanewise!("SQRDMLSH (scalar)", "01 1 11110 size:2 0 rm:5 100011 rn:5 rd:5", (high_half "simd:SQRDMLSH (vector)"),
        same binary_acc, [- i16 i32 -] sat_acc2::<T, VECTOR>, sqrdmlsh),
    lanewise!("SQRDMLSH (by element)", "0 q:1 1 01111 size:2 l:1 m:1 rm:4 1111 h:1 0 rn:5 rd:5",
        (high_half "simd:SQRDMLSH (by element)"),
        same element_acc, [- i16 i32 -] sat_acc2::<T, ELEMENT>, sqrdmlsh),
    lanewise!("SQRDMLSH (by element, scalar)", "01 1 11111 size:2 l:1 m:1 rm:4 1111 h:1 0 rn:5 rd:5",
        (high_half "simd:SQRDMLSH (by element)"),
        same element_acc, [- i16 i32 -] sat_acc2::<T, ELEMENT>, sqrdmlsh),

    // Minimum and maximum.
    lanewise!("SMAX (vector)", "0 q:1 0 01110 size:2 1 rm:5 011001 rn:5 rd:5", "simd:SMAX",
        same binary, [i8 i16 i32 -] map2::<T, VECTOR>, |a, b| a.max(b)),
    lanewise!("UMAX (vector)", "0 q:1 1 01110 size:2 1 rm:5 011001 rn:5 rd:5", "simd:UMAX",
        same binary, [u8 u16 u32 -] map2::<T, VECTOR>, |a, b| a.max(b)),
    lanewise!("SMIN (vector)", "0 q:1 0 01110 size:2 1 rm:5 011011 rn:5 rd:5", "simd:SMIN",
        same binary, [i8 i16 i32 -] map2::<T, VECTOR>, |a, b| a.min(b)),
    lanewise!("UMIN (vector)", "0 q:1 1 01110 size:2 1 rm:5 011011 rn:5 rd:5", "simd:UMIN",
        same binary, [u8 u16 u32 -] map2::<T, VECTOR>, |a, b| a.min(b)),

    // Pairwise, and across the vector.
    lanewise!("ADDP (vector)", "0 q:1 0 01110 size:2 1 rm:5 101111 rn:5 rd:5", "simd:ADDP (vector)",
        same binary, [u8 u16 u32 u64] pairwise::<T>, |a, b| a.wrapping_add(b)),
    lanewise!("SMAXP (vector)", "0 q:1 0 01110 size:2 1 rm:5 101001 rn:5 rd:5", "simd:SMAXP",
        same binary, [i8 i16 i32 -] pairwise::<T>, |a, b| a.max(b)),
    lanewise!("UMAXP (vector)", "0 q:1 1 01110 size:2 1 rm:5 101001 rn:5 rd:5", "simd:UMAXP",
        same binary, [u8 u16 u32 -] pairwise::<T>, |a, b| a.max(b)),
    lanewise!("SMINP (vector)", "0 q:1 0 01110 size:2 1 rm:5 101011 rn:5 rd:5", "simd:SMINP",
        same binary, [i8 i16 i32 -] pairwise::<T>, |a, b| a.min(b)),
    lanewise!("UMINP (vector)", "0 q:1 1 01110 size:2 1 rm:5 101011 rn:5 rd:5", "simd:UMINP",
        same binary, [u8 u16 u32 -] pairwise::<T>, |a, b| a.min(b)),
    lanewise!("ADDP (scalar)", "01 0 11110 11 11000 11011 10 rn:5 rd:5", "fp:ADDP (scalar)",
        across unary, [- - - u64] reduce::<T, T>, |v| v[0].wrapping_add(v[1])),
    lanewise!("ADDV", "0 q:1 0 01110 size:2 11000 11011 10 rn:5 rd:5", "simd:ADDV",
        across unary, [u8 u16 u32 -] reduce::<T, T>, |v| v.iter().fold(0, |s, &x| s.wrapping_add(x))),
    lanewise!("SADDLV", "0 q:1 0 01110 size:2 11000 00011 10 rn:5 rd:5", "simd:SADDLV",
        across unary, [i8 i16 i32 -] reduce::<T, <T as Elem>::Wide>, |v| v.iter().map(|x| x.widen()).sum()),
    lanewise!("UADDLV", "0 q:1 1 01110 size:2 11000 00011 10 rn:5 rd:5", "simd:UADDLV",
        across unary, [u8 u16 u32 -] reduce::<T, <T as Elem>::Wide>, |v| v.iter().map(|x| x.widen()).sum()),
    lanewise!("SMAXV (vector)", "0 q:1 0 01110 size:2 11000 01010 10 rn:5 rd:5", "simd:SMAXV",
        across unary, [i8 i16 i32 -] reduce::<T, T>, |v| v.iter().fold(T::MIN, |s, &x| s.max(x))),
    lanewise!("UMAXV (vector)", "0 q:1 1 01110 size:2 11000 01010 10 rn:5 rd:5", "simd:UMAXV",
        across unary, [u8 u16 u32 -] reduce::<T, T>, |v| v.iter().fold(T::MIN, |s, &x| s.max(x))),
    lanewise!("SMINV (vector)", "0 q:1 0 01110 size:2 11000 11010 10 rn:5 rd:5", "simd:SMINV",
        across unary, [i8 i16 i32 -] reduce::<T, T>, |v| v.iter().fold(T::MAX, |s, &x| s.min(x))),
    lanewise!("UMINV (vector)", "0 q:1 1 01110 size:2 11000 11010 10 rn:5 rd:5", "simd:UMINV",
        across unary, [u8 u16 u32 -] reduce::<T, T>, |v| v.iter().fold(T::MAX, |s, &x| s.min(x))),

    // Comparison: all bits set where it holds.
    lanewise!("CMEQ (register)", "0 q:1 1 01110 size:2 1 rm:5 100011 rn:5 rd:5", "simd:CMEQ (register)",
        same binary, [i8 i16 i32 i64] map2::<T, VECTOR>, |a, b| T::ones_if(a == b)),
    lanewise!("CMEQ (register, scalar)", "01 1 11110 11 1 rm:5 100011 rn:5 rd:5", "simd:CMEQ (register)",
        same binary, [- - - i64] map2::<T, VECTOR>, |a, b| T::ones_if(a == b)),
    lanewise!("CMGE (register)", "0 q:1 0 01110 size:2 1 rm:5 001111 rn:5 rd:5", "simd:CMGE (register)",
        same binary, [i8 i16 i32 i64] map2::<T, VECTOR>, |a, b| T::ones_if(a >= b)),
    lanewise!("CMGE (register, scalar)", "01 0 11110 11 1 rm:5 001111 rn:5 rd:5", "simd:CMGE (register)",
        same binary, [- - - i64] map2::<T, VECTOR>, |a, b| T::ones_if(a >= b)),
    lanewise!("CMGT (register)", "0 q:1 0 01110 size:2 1 rm:5 001101 rn:5 rd:5", "simd:CMGT (register)",
        same binary, [i8 i16 i32 i64] map2::<T, VECTOR>, |a, b| T::ones_if(a > b)),
    lanewise!("CMGT (register, scalar)", "01 0 11110 11 1 rm:5 001101 rn:5 rd:5", "simd:CMGT (register)",
        same binary, [- - - i64] map2::<T, VECTOR>, |a, b| T::ones_if(a > b)),
    lanewise!("CMHI (register)", "0 q:1 1 01110 size:2 1 rm:5 001101 rn:5 rd:5", "simd:CMHI (register)",
        same binary, [u8 u16 u32 u64] map2::<T, VECTOR>, |a, b| T::ones_if(a > b)),
    lanewise!("CMHI (register, scalar)", "01 1 11110 11 1 rm:5 001101 rn:5 rd:5", "simd:CMHI (register)",
        same binary, [- - - u64] map2::<T, VECTOR>, |a, b| T::ones_if(a > b)),
    lanewise!("CMHS (register)", "0 q:1 1 01110 size:2 1 rm:5 001111 rn:5 rd:5", "simd:CMHS (register)",
        same binary, [u8 u16 u32 u64] map2::<T, VECTOR>, |a, b| T::ones_if(a >= b)),
    lanewise!("CMHS (register, scalar)", "01 1 11110 11 1 rm:5 001111 rn:5 rd:5", "simd:CMHS (register)",
        same binary, [- - - u64] map2::<T, VECTOR>, |a, b| T::ones_if(a >= b)),
    lanewise!("CMTST", "0 q:1 0 01110 size:2 1 rm:5 100011 rn:5 rd:5", "simd:CMTST",
        same binary, [u8 u16 u32 u64] map2::<T, VECTOR>, |a, b| T::ones_if(a & b != 0)),
    lanewise!("CMTST (scalar)", "01 0 11110 11 1 rm:5 100011 rn:5 rd:5", "simd:CMTST",
        same binary, [- - - u64] map2::<T, VECTOR>, |a, b| T::ones_if(a & b != 0)),
    lanewise!("CMEQ (zero)", "0 q:1 0 01110 size:2 10000 01001 10 rn:5 rd:5", "simd:CMEQ (zero)",
        same unary, [i8 i16 i32 i64] map1::<T>, |a| T::ones_if(a == 0)),
    lanewise!("CMEQ (zero, scalar)", "01 0 11110 11 10000 01001 10 rn:5 rd:5", "simd:CMEQ (zero)",
        same unary, [- - - i64] map1::<T>, |a| T::ones_if(a == 0)),
    lanewise!("CMGE (zero)", "0 q:1 1 01110 size:2 10000 01000 10 rn:5 rd:5", "simd:CMGE (zero)",
        same unary, [i8 i16 i32 i64] map1::<T>, |a| T::ones_if(a >= 0)),
    lanewise!("CMGE (zero, scalar)", "01 1 11110 11 10000 01000 10 rn:5 rd:5", "simd:CMGE (zero)",
        same unary, [- - - i64] map1::<T>, |a| T::ones_if(a >= 0)),
    lanewise!("CMGT (zero)", "0 q:1 0 01110 size:2 10000 01000 10 rn:5 rd:5", "simd:CMGT (zero)",
        same unary, [i8 i16 i32 i64] map1::<T>, |a| T::ones_if(a > 0)),
    lanewise!("CMGT (zero, scalar)", "01 0 11110 11 10000 01000 10 rn:5 rd:5", "simd:CMGT (zero)",
        same unary, [- - - i64] map1::<T>, |a| T::ones_if(a > 0)),
    lanewise!("CMLE (zero)", "0 q:1 1 01110 size:2 10000 01001 10 rn:5 rd:5", "simd:CMLE (zero)",
        same unary, [i8 i16 i32 i64] map1::<T>, |a| T::ones_if(a <= 0)),
    lanewise!("CMLE (zero, scalar)", "01 1 11110 11 10000 01001 10 rn:5 rd:5", "simd:CMLE (zero)",
        same unary, [- - - i64] map1::<T>, |a| T::ones_if(a <= 0)),
    lanewise!("CMLT (zero)", "0 q:1 0 01110 size:2 10000 01010 10 rn:5 rd:5", "simd:CMLT (zero)",
        same unary, [i8 i16 i32 i64] map1::<T>, |a| T::ones_if(a < 0)),
    lanewise!("CMLT (zero, scalar)", "01 0 11110 11 10000 01010 10 rn:5 rd:5", "simd:CMLT (zero)",
        same unary, [- - - i64] map1::<T>, |a| T::ones_if(a < 0)),

    // Logic. The size field belongs to the operation code; elements do not matter.
    logic!("AND (vector)", "0 q:1 0 01110 001 rm:5 000111 rn:5 rd:5", "simd:AND (vector)",
        binary, map2::<u64, VECTOR>, |a, b| a & b),
    logic!("BIC (vector, register)", "0 q:1 0 01110 011 rm:5 000111 rn:5 rd:5", "simd:BIC (vector, register)",
        binary, map2::<u64, VECTOR>, |a, b| a & !b),
    logic!("ORR (vector, register)", "0 q:1 0 01110 101 rm:5 000111 rn:5 rd:5", "simd:ORR (vector, register)",
        binary, map2::<u64, VECTOR>, |a, b| a | b),
    logic!("ORN (vector)", "0 q:1 0 01110 111 rm:5 000111 rn:5 rd:5", "simd:ORN (vector)",
        binary, map2::<u64, VECTOR>, |a, b| a | !b),
    logic!("EOR (vector)", "0 q:1 1 01110 001 rm:5 000111 rn:5 rd:5", "simd:EOR (vector)",
        binary, map2::<u64, VECTOR>, |a, b| a ^ b),
    logic!("BSL", "0 q:1 1 01110 011 rm:5 000111 rn:5 rd:5", "simd:BSL",
        binary_acc, acc2::<u64, VECTOR>, |d, a, b| b ^ (a ^ b) & d),
    logic!("BIT", "0 q:1 1 01110 101 rm:5 000111 rn:5 rd:5", "simd:BIT",
        binary_acc, acc2::<u64, VECTOR>, |d, a, b| d ^ (d ^ a) & b),
    logic!("BIF", "0 q:1 1 01110 111 rm:5 000111 rn:5 rd:5", "simd:BIF",
        binary_acc, acc2::<u64, VECTOR>, |d, a, b| d ^ (d ^ a) & !b),
    logic!("NOT (vector)", "0 q:1 1 01110 00 10000 00101 10 rn:5 rd:5", "simd:NOT", unary, map1::<u64>, |a| !a),
    logic!("RBIT (vector)", "0 q:1 1 01110 01 10000 00101 10 rn:5 rd:5", "simd:RBIT (vector)",
        unary, map1::<u8>, |a| a.reverse_bits()),

    // Counting bits, reversing the order of elements.
    lanewise!("CNT (vector)", "0 q:1 0 01110 size:2 10000 00101 10 rn:5 rd:5", "simd:CNT",
        same unary, [u8 - - -] map1::<T>, |a| a.count_ones() as T),
    lanewise!("CLZ (vector)", "0 q:1 1 01110 size:2 10000 00100 10 rn:5 rd:5", "simd:CLZ (vector)",
        same unary, [u8 u16 u32 -] map1::<T>, |a| a.leading_zeros() as T),
    lanewise!("CLS (vector)", "0 q:1 0 01110 size:2 10000 00100 10 rn:5 rd:5", "simd:CLS (vector)",
        same unary, [i8 i16 i32 -] map1::<T>, |a| ((a ^ a >> (T::BITS - 1)).leading_zeros() - 1) as T),
    lanewise!("REV64", "0 q:1 0 01110 size:2 10000 00000 10 rn:5 rd:5", "simd:REV64",
        same unary, [u8 u16 u32 -] reverse::<T>, 8),
    lanewise!("REV32 (vector)", "0 q:1 1 01110 size:2 10000 00000 10 rn:5 rd:5", "simd:REV32 (vector)",
        same unary, [u8 u16 - -] reverse::<T>, 4),
    lanewise!("REV16 (vector)", "0 q:1 0 01110 size:2 10000 00001 10 rn:5 rd:5", "simd:REV16 (vector)",
        same unary, [u8 - - -] reverse::<T>, 2),
];

/// Returns the value interpreted as unsigned.
#[inline(always)]
fn unsigned<T: Elem>(x: T) -> i128 {
    x.int() & ((1 << T::BITS) - 1)
}

/// Product of polynomials over {0, 1}.
pub(super) fn carryless_product(a: u64, mut b: u64) -> u128 {
    let (mut a, mut product) = (u128::from(a), 0);
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a <<= 1;
        b >>= 1;
    }
    product
}

/// High half of the doubled `product`, added to `acc`; `ROUND`ed to nearest or truncated.
#[inline(always)]
fn doubling_high<T: Elem, const ROUND: bool>(acc: i128, product: i128) -> (T, bool) {
    let shift = T::BITS - 1;
    T::saturate(((acc << shift) + product + if ROUND { 1 << (shift - 1) } else { 0 }) >> shift)
}

#[inline(always)]
fn sqdmulh<T: Elem>(a: T, b: T) -> (T, bool) {
    doubling_high::<T, false>(0, a.int() * b.int())
}

#[inline(always)]
fn sqrdmulh<T: Elem>(a: T, b: T) -> (T, bool) {
    doubling_high::<T, true>(0, a.int() * b.int())
}

#[inline(always)]
fn sqrdmlah<T: Elem>(d: T, a: T, b: T) -> (T, bool) {
    doubling_high::<T, true>(d.int(), a.int() * b.int())
}

#[inline(always)]
fn sqrdmlsh<T: Elem>(d: T, a: T, b: T) -> (T, bool) {
    doubling_high::<T, true>(d.int(), -(a.int() * b.int()))
}

/// Vd = f of adjacent elements, first those of Vn, then those of Vm.
#[inline(always)]
fn pairwise<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T, T) -> T) {
    let (a, b) = (cpu.z(i.rn).0, cpu.z(i.rm).0);
    let full = i.imm != 0;
    let both = Vreg([a[0], if full { a[1] } else { b[0] }, b[0], b[1], 0, 0, 0, 0]);
    put(cpu, i, |k| f(both.lanes()[2 * k], both.lanes()[2 * k + 1]));
}

/// Returns the form of a reduction: `Inst::aux` is the number of bytes reduced.
fn across(w: u32, c: &Ctx, class: &'static str, size: u32, exec: Exec) -> Option<Decoded> {
    // Fewer than four elements are reserved, except for the scalar form, which adds two doublewords.
    let full = is_full(w);
    if size == 2 && !full {
        return None;
    }
    let mut d = with_live(c, class, exec, u64::MAX, 0);
    d.inst.aux = if full { 16 } else { 8 };
    Some(d)
}

/// Element 0 of Vd = f(all elements of Vn), zero above.
#[inline(always)]
fn reduce<T: Pod, R: Pod>(cpu: &mut Cpu, i: &Inst, f: impl Fn(&[T]) -> R) {
    let elements = usize::from(i.aux) / size_of::<T>();
    let result = f(&lanes::<T>(cpu.z(i.rn))[..elements]);
    let mut out = Vreg::ZERO;
    out.lanes_mut()[0] = result;
    *cpu.z_mut(i.rd) = out;
}

/// Vd = Vn with the order of elements reversed inside each container of `container` bytes.
#[inline(always)]
fn reverse<T: Elem>(cpu: &mut Cpu, i: &Inst, container: usize) {
    let flip = container / size_of::<T>() - 1;
    let a = *cpu.z(i.rn);
    put(cpu, i, |k| lanes::<T>(&a)[k ^ flip]);
}
