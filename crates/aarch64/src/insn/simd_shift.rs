//! AdvSIMD shifts, by an immediate or by another register.

use crate::cpu::Cpu;
use crate::enc;
use crate::insn::simd_common::*;
use crate::table::{Encoding, Inst, bits};

/// A row whose element size and shift amount are in the field immh:immb: as `lanewise!`, with the direction, [`left`] or
/// [`right`], before the types. `immh` = 0 encodes the modified immediates.
macro_rules! shift {
    ($name:literal, $pattern:literal, $class:literal,
     $width:ident $regs:ident, $amount:ident, $types:tt $helper:path, $f:expr) => {
        enc!($name, $pattern, |w, c| {
            let size = bits(w, 19, 4).ilog2();
            let exec = by_size!(size, $types, |cpu, _, i| {
                $helper(cpu, i, $f);
                Ok(())
            })?;
            let mut d = $regs(w, $width(w, c, $class, size, exec)?)?;
            d.inst.aux = $amount(w, size);
            Some(d)
        }, except "xxxxxxxxx0000xxxxxxxxxxxxxxxxxxx")
    };
}

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    // Right.
    shift!("SSHR", "0 q:1 0 011110 immh:4 immb:3 00000 1 rn:5 rd:5", "simd:SSHR",
        same unary, right, [i8 i16 i32 i64] shift1::<T>, |a, s| a.shr(s)),
    shift!("SSHR (scalar)", "01 0 111110 immh:4 immb:3 00000 1 rn:5 rd:5", "simd:SSHR",
        same unary, right, [- - - i64] shift1::<T>, |a, s| a.shr(s)),
    shift!("USHR", "0 q:1 1 011110 immh:4 immb:3 00000 1 rn:5 rd:5", "simd:USHR",
        same unary, right, [u8 u16 u32 u64] shift1::<T>, |a, s| a.shr(s)),
    shift!("USHR (scalar)", "01 1 111110 immh:4 immb:3 00000 1 rn:5 rd:5", "simd:USHR",
        same unary, right, [- - - u64] shift1::<T>, |a, s| a.shr(s)),
    shift!("SSRA", "0 q:1 0 011110 immh:4 immb:3 00010 1 rn:5 rd:5", "simd:SSRA",
        same unary_acc, right, [i8 i16 i32 i64] shift_acc::<T>, |d, a, s| d.wrapping_add(a.shr(s))),
    shift!("SSRA (scalar)", "01 0 111110 immh:4 immb:3 00010 1 rn:5 rd:5", "simd:SSRA",
        same unary_acc, right, [- - - i64] shift_acc::<T>, |d, a, s| d.wrapping_add(a.shr(s))),
    shift!("USRA", "0 q:1 1 011110 immh:4 immb:3 00010 1 rn:5 rd:5", "simd:USRA",
        same unary_acc, right, [u8 u16 u32 u64] shift_acc::<T>, |d, a, s| d.wrapping_add(a.shr(s))),
    shift!("USRA (scalar)", "01 1 111110 immh:4 immb:3 00010 1 rn:5 rd:5", "simd:USRA",
        same unary_acc, right, [- - - u64] shift_acc::<T>, |d, a, s| d.wrapping_add(a.shr(s))),
    shift!("SRSHR", "0 q:1 0 011110 immh:4 immb:3 00100 1 rn:5 rd:5", "simd:SRSHR",
        same unary, right, [i8 i16 i32 i64] shift1::<T>, |a, s| a.shr_round(s)),
    shift!("SRSHR (scalar)", "01 0 111110 immh:4 immb:3 00100 1 rn:5 rd:5", "simd:SRSHR",
        same unary, right, [- - - i64] shift1::<T>, |a, s| a.shr_round(s)),
    shift!("URSHR", "0 q:1 1 011110 immh:4 immb:3 00100 1 rn:5 rd:5", "simd:URSHR",
        same unary, right, [u8 u16 u32 u64] shift1::<T>, |a, s| a.shr_round(s)),
    shift!("URSHR (scalar)", "01 1 111110 immh:4 immb:3 00100 1 rn:5 rd:5", "simd:URSHR",
        same unary, right, [- - - u64] shift1::<T>, |a, s| a.shr_round(s)),
    shift!("SRSRA", "0 q:1 0 011110 immh:4 immb:3 00110 1 rn:5 rd:5", "simd:SRSRA",
        same unary_acc, right, [i8 i16 i32 i64] shift_acc::<T>, |d, a, s| d.wrapping_add(a.shr_round(s))),
    shift!("SRSRA (scalar)", "01 0 111110 immh:4 immb:3 00110 1 rn:5 rd:5", "simd:SRSRA",
        same unary_acc, right, [- - - i64] shift_acc::<T>, |d, a, s| d.wrapping_add(a.shr_round(s))),
    shift!("URSRA", "0 q:1 1 011110 immh:4 immb:3 00110 1 rn:5 rd:5", "simd:URSRA",
        same unary_acc, right, [u8 u16 u32 u64] shift_acc::<T>, |d, a, s| d.wrapping_add(a.shr_round(s))),
    shift!("URSRA (scalar)", "01 1 111110 immh:4 immb:3 00110 1 rn:5 rd:5", "simd:URSRA",
        same unary_acc, right, [- - - u64] shift_acc::<T>, |d, a, s| d.wrapping_add(a.shr_round(s))),
    shift!("SRI", "0 q:1 1 011110 immh:4 immb:3 01000 1 rn:5 rd:5", "simd:SRI",
        same unary_acc, right, [u8 u16 u32 u64] shift_acc::<T>, |d, a, s| d & !T::MAX.shr(s) | a.shr(s)),
    shift!("SRI (scalar)", "01 1 111110 immh:4 immb:3 01000 1 rn:5 rd:5", "simd:SRI",
        same unary_acc, right, [- - - u64] shift_acc::<T>, |d, a, s| d & !T::MAX.shr(s) | a.shr(s)),

    // Left.
    shift!("SHL", "0 q:1 0 011110 immh:4 immb:3 01010 1 rn:5 rd:5", "simd:SHL",
        same unary, left, [u8 u16 u32 u64] shift1::<T>, |a, s| a << s),
    shift!("SHL (scalar)", "01 0 111110 immh:4 immb:3 01010 1 rn:5 rd:5", "simd:SHL",
        same unary, left, [- - - u64] shift1::<T>, |a, s| a << s),
    shift!("SLI", "0 q:1 1 011110 immh:4 immb:3 01010 1 rn:5 rd:5", "simd:SLI",
        same unary_acc, left, [u8 u16 u32 u64] shift_acc::<T>, |d, a, s| d & !(T::MAX << s) | a << s),
    shift!("SLI (scalar)", "01 1 111110 immh:4 immb:3 01010 1 rn:5 rd:5", "simd:SLI",
        same unary_acc, left, [- - - u64] shift_acc::<T>, |d, a, s| d & !(T::MAX << s) | a << s),
    shift!("SQSHL (immediate)", "0 q:1 0 011110 immh:4 immb:3 01110 1 rn:5 rd:5", "simd:SQSHL (immediate)",
        same unary, left, [i8 i16 i32 i64] shift_sat::<T>, |a, s| T::saturate(a.int() << s)),
    shift!("SQSHL (immediate, scalar)", "01 0 111110 immh:4 immb:3 01110 1 rn:5 rd:5", "simd:SQSHL (immediate)",
        same unary, left, [i8 i16 i32 i64] shift_sat::<T>, |a, s| T::saturate(a.int() << s)),
    shift!("UQSHL (immediate)", "0 q:1 1 011110 immh:4 immb:3 01110 1 rn:5 rd:5", "simd:UQSHL (immediate)",
        same unary, left, [u8 u16 u32 u64] shift_sat::<T>, |a, s| T::saturate(a.int() << s)),
    shift!("UQSHL (immediate, scalar)", "01 1 111110 immh:4 immb:3 01110 1 rn:5 rd:5", "simd:UQSHL (immediate)",
        same unary, left, [u8 u16 u32 u64] shift_sat::<T>, |a, s| T::saturate(a.int() << s)),
    shift!("SQSHLU", "0 q:1 1 011110 immh:4 immb:3 01100 1 rn:5 rd:5", "simd:SQSHLU",
        same unary, left, [i8 i16 i32 i64] shift_sat::<T>, |a, s| saturate_unsigned(a.int() << s)),
    shift!("SQSHLU (scalar)", "01 1 111110 immh:4 immb:3 01100 1 rn:5 rd:5", "simd:SQSHLU",
        same unary, left, [i8 i16 i32 i64] shift_sat::<T>, |a, s| saturate_unsigned(a.int() << s)),

    // Left into elements twice as large.
    shift!("SSHLL, SSHLL2", "0 q:1 0 011110 immh:4 immb:3 10100 1 rn:5 rd:5", "simd:SSHLL, SSHLL2",
        long unary, left, [i8 i16 i32 -] shift_long::<T>, |a, s| a << s),
    shift!("USHLL, USHLL2", "0 q:1 1 011110 immh:4 immb:3 10100 1 rn:5 rd:5", "simd:USHLL, USHLL2",
        long unary, left, [u8 u16 u32 -] shift_long::<T>, |a, s| a << s),

    // Right into elements half as large.
    shift!("SHRN, SHRN2", "0 q:1 0 011110 immh:4 immb:3 10000 1 rn:5 rd:5", "simd:SHRN, SHRN2",
        narrow unary, right, [u8 u16 u32 -] shift_narrow::<T>, |a, s| (a >> s) as T),
    shift!("RSHRN, RSHRN2", "0 q:1 0 011110 immh:4 immb:3 10001 1 rn:5 rd:5", "simd:RSHRN, RSHRN2",
        narrow unary, right, [u8 u16 u32 -] shift_narrow::<T>, |a, s| a.shr_round(s) as T),
    shift!("SQSHRN, SQSHRN2", "0 q:1 0 011110 immh:4 immb:3 10010 1 rn:5 rd:5", "simd:SQSHRN, SQSHRN2",
        narrow unary, right, [i8 i16 i32 -] shift_narrow_sat::<T>, |a, s| T::saturate((a >> s).into())),
    shift!("SQSHRN (scalar)", "01 0 111110 immh:4 immb:3 10010 1 rn:5 rd:5", "simd:SQSHRN, SQSHRN2",
        narrow unary, right, [i8 i16 i32 -] shift_narrow_sat::<T>, |a, s| T::saturate((a >> s).into())),
    shift!("UQSHRN, UQSHRN2", "0 q:1 1 011110 immh:4 immb:3 10010 1 rn:5 rd:5", "simd:UQSHRN, UQSHRN2",
        narrow unary, right, [u8 u16 u32 -] shift_narrow_sat::<T>, |a, s| T::saturate((a >> s).into())),
    shift!("UQSHRN (scalar)", "01 1 111110 immh:4 immb:3 10010 1 rn:5 rd:5", "simd:UQSHRN, UQSHRN2",
        narrow unary, right, [u8 u16 u32 -] shift_narrow_sat::<T>, |a, s| T::saturate((a >> s).into())),
    shift!("SQSHRUN, SQSHRUN2", "0 q:1 1 011110 immh:4 immb:3 10000 1 rn:5 rd:5", "simd:SQSHRUN, SQSHRUN2",
        narrow unary, right, [i8 i16 i32 -] shift_narrow_sat::<T>, |a, s| saturate_unsigned((a >> s).into())),
    shift!("SQSHRUN (scalar)", "01 1 111110 immh:4 immb:3 10000 1 rn:5 rd:5", "simd:SQSHRUN, SQSHRUN2",
        narrow unary, right, [i8 i16 i32 -] shift_narrow_sat::<T>, |a, s| saturate_unsigned((a >> s).into())),
    shift!("SQRSHRN, SQRSHRN2", "0 q:1 0 011110 immh:4 immb:3 10011 1 rn:5 rd:5", "simd:SQRSHRN, SQRSHRN2",
        narrow unary, right, [i8 i16 i32 -] shift_narrow_sat::<T>, |a, s| T::saturate(a.shr_round(s).into())),
    shift!("SQRSHRN (scalar)", "01 0 111110 immh:4 immb:3 10011 1 rn:5 rd:5", "simd:SQRSHRN, SQRSHRN2",
        narrow unary, right, [i8 i16 i32 -] shift_narrow_sat::<T>, |a, s| T::saturate(a.shr_round(s).into())),
    shift!("UQRSHRN, UQRSHRN2", "0 q:1 1 011110 immh:4 immb:3 10011 1 rn:5 rd:5", "simd:UQRSHRN, UQRSHRN2",
        narrow unary, right, [u8 u16 u32 -] shift_narrow_sat::<T>, |a, s| T::saturate(a.shr_round(s).into())),
    shift!("UQRSHRN (scalar)", "01 1 111110 immh:4 immb:3 10011 1 rn:5 rd:5", "simd:UQRSHRN, UQRSHRN2",
        narrow unary, right, [u8 u16 u32 -] shift_narrow_sat::<T>, |a, s| T::saturate(a.shr_round(s).into())),
    shift!("SQRSHRUN, SQRSHRUN2", "0 q:1 1 011110 immh:4 immb:3 10001 1 rn:5 rd:5", "simd:SQRSHRUN, SQRSHRUN2",
        narrow unary, right, [i8 i16 i32 -] shift_narrow_sat::<T>, |a, s| saturate_unsigned(a.shr_round(s).into())),
    shift!("SQRSHRUN (scalar)", "01 1 111110 immh:4 immb:3 10001 1 rn:5 rd:5", "simd:SQRSHRUN, SQRSHRUN2",
        narrow unary, right, [i8 i16 i32 -] shift_narrow_sat::<T>, |a, s| saturate_unsigned(a.shr_round(s).into())),

    // By the signed low byte of each element of Vm: left, or right when negative.
    lanewise!("SSHL", "0 q:1 0 01110 size:2 1 rm:5 01000 1 rn:5 rd:5", "simd:SSHL",
        same binary, [i8 i16 i32 i64] map2::<T, VECTOR>, |a, b| shift(a, b.amount())),
    lanewise!("SSHL (scalar)", "01 0 11110 11 1 rm:5 01000 1 rn:5 rd:5", "simd:SSHL",
        same binary, [- - - i64] map2::<T, VECTOR>, |a, b| shift(a, b.amount())),
    lanewise!("USHL", "0 q:1 1 01110 size:2 1 rm:5 01000 1 rn:5 rd:5", "simd:USHL",
        same binary, [u8 u16 u32 u64] map2::<T, VECTOR>, |a, b| shift(a, b.amount())),
    lanewise!("USHL (scalar)", "01 1 11110 11 1 rm:5 01000 1 rn:5 rd:5", "simd:USHL",
        same binary, [- - - u64] map2::<T, VECTOR>, |a, b| shift(a, b.amount())),
    lanewise!("SRSHL", "0 q:1 0 01110 size:2 1 rm:5 01010 1 rn:5 rd:5", "simd:SRSHL",
        same binary, [i8 i16 i32 i64] map2::<T, VECTOR>, |a, b| T::wrap(shifted::<true>(a.int(), b.amount()))),
    lanewise!("SRSHL (scalar)", "01 0 11110 11 1 rm:5 01010 1 rn:5 rd:5", "simd:SRSHL",
        same binary, [- - - i64] map2::<T, VECTOR>, |a, b| T::wrap(shifted::<true>(a.int(), b.amount()))),
    lanewise!("URSHL", "0 q:1 1 01110 size:2 1 rm:5 01010 1 rn:5 rd:5", "simd:URSHL",
        same binary, [u8 u16 u32 u64] map2::<T, VECTOR>, |a, b| T::wrap(shifted::<true>(a.int(), b.amount()))),
    lanewise!("URSHL (scalar)", "01 1 11110 11 1 rm:5 01010 1 rn:5 rd:5", "simd:URSHL",
        same binary, [- - - u64] map2::<T, VECTOR>, |a, b| T::wrap(shifted::<true>(a.int(), b.amount()))),
    lanewise!("SQSHL (register)", "0 q:1 0 01110 size:2 1 rm:5 01001 1 rn:5 rd:5", "simd:SQSHL (register)",
        same binary, [i8 i16 i32 i64] sat2::<T, VECTOR>, |a, b| T::saturate(shifted::<false>(a.int(), b.amount()))),
    lanewise!("SQSHL (register, scalar)", "01 0 11110 size:2 1 rm:5 01001 1 rn:5 rd:5", "simd:SQSHL (register)",
        same binary, [i8 i16 i32 i64] sat2::<T, VECTOR>, |a, b| T::saturate(shifted::<false>(a.int(), b.amount()))),
    lanewise!("UQSHL (register)", "0 q:1 1 01110 size:2 1 rm:5 01001 1 rn:5 rd:5", "simd:UQSHL (register)",
        same binary, [u8 u16 u32 u64] sat2::<T, VECTOR>, |a, b| T::saturate(shifted::<false>(a.int(), b.amount()))),
    lanewise!("UQSHL (register, scalar)", "01 1 11110 size:2 1 rm:5 01001 1 rn:5 rd:5", "simd:UQSHL (register)",
        same binary, [u8 u16 u32 u64] sat2::<T, VECTOR>, |a, b| T::saturate(shifted::<false>(a.int(), b.amount()))),
    lanewise!("SQRSHL", "0 q:1 0 01110 size:2 1 rm:5 01011 1 rn:5 rd:5", "simd:SQRSHL",
        same binary, [i8 i16 i32 i64] sat2::<T, VECTOR>, |a, b| T::saturate(shifted::<true>(a.int(), b.amount()))),
    lanewise!("SQRSHL (scalar)", "01 0 11110 size:2 1 rm:5 01011 1 rn:5 rd:5", "simd:SQRSHL",
        same binary, [i8 i16 i32 i64] sat2::<T, VECTOR>, |a, b| T::saturate(shifted::<true>(a.int(), b.amount()))),
    lanewise!("UQRSHL", "0 q:1 1 01110 size:2 1 rm:5 01011 1 rn:5 rd:5", "simd:UQRSHL",
        same binary, [u8 u16 u32 u64] sat2::<T, VECTOR>, |a, b| T::saturate(shifted::<true>(a.int(), b.amount()))),
    lanewise!("UQRSHL (scalar)", "01 1 11110 size:2 1 rm:5 01011 1 rn:5 rd:5", "simd:UQRSHL",
        same binary, [u8 u16 u32 u64] sat2::<T, VECTOR>, |a, b| T::saturate(shifted::<true>(a.int(), b.amount()))),
];

/// Returns the amount of a shift to the right, 1 to the element size in bits.
fn right(w: u32, size: u32) -> u16 {
    ((16 << size) - bits(w, 16, 7)) as u16
}

/// Returns the amount of a shift to the left, 0 to the element size in bits less one.
fn left(w: u32, size: u32) -> u16 {
    (bits(w, 16, 7) - (8 << size)) as u16
}

/// Shifts `a` left by `amount`, or right if it is negative.
#[inline(always)]
fn shift<T: Elem>(a: T, amount: i8) -> T {
    let bits = amount.unsigned_abs().into();
    if amount >= 0 { a.shl(bits) } else { a.shr(bits) }
}

/// Shifts `x` left by `amount`, or right if it is negative, `ROUND`ed to nearest or down.
#[inline(always)]
fn shifted<const ROUND: bool>(x: i128, amount: i8) -> i128 {
    match amount {
        // Out of range for every element type, with all low bits zero.
        64.. => x.signum() << 66,
        0.. => x << amount,
        _ => {
            // Beyond 66, a 64-bit value is all sign bits, or rounds to zero.
            let right = u32::from(amount.unsigned_abs()).min(67);
            (if ROUND { x + (1 << (right - 1)) } else { x }) >> right
        }
    }
}

/// Vd = f(Vn, amount).
#[inline(always)]
fn shift1<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T, u32) -> T) {
    map1::<T>(cpu, i, |a| f(a, i.aux.into()));
}

/// Vd = f(Vd, Vn, amount).
#[inline(always)]
fn shift_acc<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T, T, u32) -> T) {
    acc1::<T>(cpu, i, |d, a| f(d, a, i.aux.into()));
}

/// Vd = f(Vn, amount), saturating.
#[inline(always)]
fn shift_sat<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T, u32) -> (T, bool)) {
    sat1::<T>(cpu, i, |a| f(a, i.aux.into()));
}

/// Vd = f(half of Vn, amount), elements widened first.
#[inline(always)]
fn shift_long<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T::Wide, u32) -> T::Wide) {
    long1::<T>(cpu, i, |a| f(a, i.aux.into()));
}

/// Half of Vd = f(Vn, amount), with elements of half the size.
#[inline(always)]
fn shift_narrow<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T::Wide, u32) -> T) {
    narrow1::<T>(cpu, i, |a| f(a, i.aux.into()));
}

/// Half of Vd = f(Vn, amount), with elements of half the size, saturating.
#[inline(always)]
fn shift_narrow_sat<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T::Wide, u32) -> (T, bool)) {
    narrow_sat1::<T>(cpu, i, |a| f(a, i.aux.into()));
}
