//! AdvSIMD integer arithmetic whose result elements are twice or half as large as those of a source.

use crate::cpu::{Cpu, Vreg};
use crate::enc;
use crate::insn::simd_common::*;
use crate::insn::simd_int::carryless_product;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    // Add and subtract into elements twice as large.
    lanewise!("SADDL, SADDL2", "0 q:1 0 01110 size:2 1 rm:5 0000 00 rn:5 rd:5", "simd:SADDL, SADDL2",
        long binary, [i8 i16 i32 -] long2::<T, VECTOR>, |a, b| a + b),
    lanewise!("UADDL, UADDL2", "0 q:1 1 01110 size:2 1 rm:5 0000 00 rn:5 rd:5", "simd:UADDL, UADDL2",
        long binary, [u8 u16 u32 -] long2::<T, VECTOR>, |a, b| a + b),
    lanewise!("SADDW, SADDW2", "0 q:1 0 01110 size:2 1 rm:5 0001 00 rn:5 rd:5", "simd:SADDW, SADDW2",
        long binary, [i8 i16 i32 -] wide2::<T>, |a, b| a.wrapping_add(b)),
    lanewise!("UADDW, UADDW2", "0 q:1 1 01110 size:2 1 rm:5 0001 00 rn:5 rd:5", "simd:UADDW, UADDW2",
        long binary, [u8 u16 u32 -] wide2::<T>, |a, b| a.wrapping_add(b)),
    lanewise!("SSUBL, SSUBL2", "0 q:1 0 01110 size:2 1 rm:5 0010 00 rn:5 rd:5", "simd:SSUBL, SSUBL2",
        long binary, [i8 i16 i32 -] long2::<T, VECTOR>, |a, b| a.wrapping_sub(b)),
    lanewise!("USUBL, USUBL2", "0 q:1 1 01110 size:2 1 rm:5 0010 00 rn:5 rd:5", "simd:USUBL, USUBL2",
        long binary, [u8 u16 u32 -] long2::<T, VECTOR>, |a, b| a.wrapping_sub(b)),
    lanewise!("SSUBW, SSUBW2", "0 q:1 0 01110 size:2 1 rm:5 0011 00 rn:5 rd:5", "simd:SSUBW, SSUBW2",
        long binary, [i8 i16 i32 -] wide2::<T>, |a, b| a.wrapping_sub(b)),
    lanewise!("USUBW, USUBW2", "0 q:1 1 01110 size:2 1 rm:5 0011 00 rn:5 rd:5", "simd:USUBW, USUBW2",
        long binary, [u8 u16 u32 -] wide2::<T>, |a, b| a.wrapping_sub(b)),
    lanewise!("SABDL, SABDL2", "0 q:1 0 01110 size:2 1 rm:5 0111 00 rn:5 rd:5", "simd:SABDL, SABDL2",
        long binary, [i8 i16 i32 -] long2::<T, VECTOR>, |a, b| a.max(b) - a.min(b)),
    lanewise!("UABDL, UABDL2", "0 q:1 1 01110 size:2 1 rm:5 0111 00 rn:5 rd:5", "simd:UABDL, UABDL2",
        long binary, [u8 u16 u32 -] long2::<T, VECTOR>, |a, b| a.max(b) - a.min(b)),
    lanewise!("SABAL, SABAL2", "0 q:1 0 01110 size:2 1 rm:5 0101 00 rn:5 rd:5", "simd:SABAL, SABAL2",
        long binary_acc, [i8 i16 i32 -] long_acc2::<T, VECTOR>, |d, a, b| d.wrapping_add(a.max(b) - a.min(b))),
    lanewise!("UABAL, UABAL2", "0 q:1 1 01110 size:2 1 rm:5 0101 00 rn:5 rd:5", "simd:UABAL, UABAL2",
        long binary_acc, [u8 u16 u32 -] long_acc2::<T, VECTOR>, |d, a, b| d.wrapping_add(a.max(b) - a.min(b))),

    // Sums of adjacent elements, twice as large.
    lanewise!("SADDLP", "0 q:1 0 01110 size:2 10000 00010 10 rn:5 rd:5", "simd:SADDLP",
        same unary, [i8 i16 i32 -] pairwise_long::<T>, |a, b| a + b),
    lanewise!("UADDLP", "0 q:1 1 01110 size:2 10000 00010 10 rn:5 rd:5", "simd:UADDLP",
        same unary, [u8 u16 u32 -] pairwise_long::<T>, |a, b| a + b),
    lanewise!("SADALP", "0 q:1 0 01110 size:2 10000 00110 10 rn:5 rd:5",
        "simd:SADALP",
        same unary_acc, [i8 i16 i32 -] pairwise_long_acc::<T>, |d, a, b| d.wrapping_add(a + b)),
    lanewise!("UADALP", "0 q:1 1 01110 size:2 10000 00110 10 rn:5 rd:5",
        ("simd:UADALP [Ta={4H|8H|2S|4S}]", "simd:UADALP [Ta={1D|2D}]"),
        same unary_acc, [u8 u16 u32 -] pairwise_long_acc::<T>, |d, a, b| d.wrapping_add(a + b)),

    // Multiply into elements twice as large.
    lanewise!("SMULL, SMULL2 (vector)", "0 q:1 0 01110 size:2 1 rm:5 1100 00 rn:5 rd:5",
        ("simd:SMULL, SMULL2 (vector) [Ta={8H|4S}]", "simd:SMULL, SMULL2 (vector) [Ta=2D]"),
        long binary, [i8 i16 i32 -] long2::<T, VECTOR>, |a, b| a * b),
    lanewise!("UMULL, UMULL2 (vector)", "0 q:1 1 01110 size:2 1 rm:5 1100 00 rn:5 rd:5",
        ("simd:UMULL, UMULL2 (vector) [Ta={8H|4S}]", "simd:UMULL, UMULL2 (vector) [Ta=2D]"),
        long binary, [u8 u16 u32 -] long2::<T, VECTOR>, |a, b| a * b),
    lanewise!("SMULL, SMULL2 (by element)", "0 q:1 0 01111 size:2 l:1 m:1 rm:4 1010 h:1 0 rn:5 rd:5",
        ("simd:SMULL, SMULL2 (by element) [Ta=4S]", "simd:SMULL, SMULL2 (by element) [Ta=2D]"),
        long element, [- i16 i32 -] long2::<T, ELEMENT>, |a, b| a * b),
    lanewise!("UMULL, UMULL2 (by element)", "0 q:1 1 01111 size:2 l:1 m:1 rm:4 1010 h:1 0 rn:5 rd:5",
        ("simd:UMULL, UMULL2 (by element) [Ta=4S]", "simd:UMULL, UMULL2 (by element) [Ta=2D]"),
        long element, [- u16 u32 -] long2::<T, ELEMENT>, |a, b| a * b),
    lanewise!("SMLAL, SMLAL2 (vector)", "0 q:1 0 01110 size:2 1 rm:5 1000 00 rn:5 rd:5",
        ("simd:SMLAL, SMLAL2 (vector) [Ta={8H|4S}]", "simd:SMLAL, SMLAL2 (vector) [Ta=2D]"),
        long binary_acc, [i8 i16 i32 -] long_acc2::<T, VECTOR>, |d, a, b| d.wrapping_add(a * b)),
    lanewise!("UMLAL, UMLAL2 (vector)", "0 q:1 1 01110 size:2 1 rm:5 1000 00 rn:5 rd:5",
        ("simd:UMLAL, UMLAL2 (vector) [Ta={8H|4S}]", "simd:UMLAL, UMLAL2 (vector) [Ta=2D]"),
        long binary_acc, [u8 u16 u32 -] long_acc2::<T, VECTOR>, |d, a, b| d.wrapping_add(a * b)),
    lanewise!("SMLAL, SMLAL2 (by element)", "0 q:1 0 01111 size:2 l:1 m:1 rm:4 0010 h:1 0 rn:5 rd:5",
        ("simd:SMLAL, SMLAL2 (by element) [Ta=4S]", "simd:SMLAL, SMLAL2 (by element) [Ta=2D]"),
        long element_acc, [- i16 i32 -] long_acc2::<T, ELEMENT>, |d, a, b| d.wrapping_add(a * b)),
    lanewise!("UMLAL, UMLAL2 (by element)", "0 q:1 1 01111 size:2 l:1 m:1 rm:4 0010 h:1 0 rn:5 rd:5",
        ("simd:UMLAL, UMLAL2 (by element) [Ta=4S]", "simd:UMLAL, UMLAL2 (by element) [Ta=2D]"),
        long element_acc, [- u16 u32 -] long_acc2::<T, ELEMENT>, |d, a, b| d.wrapping_add(a * b)),
    lanewise!("SMLSL, SMLSL2 (vector)", "0 q:1 0 01110 size:2 1 rm:5 1010 00 rn:5 rd:5",
        ("simd:SMLSL, SMLSL2 (vector) [Ta={8H|4S}]", "simd:SMLSL, SMLSL2 (vector) [Ta=2D]"),
        long binary_acc, [i8 i16 i32 -] long_acc2::<T, VECTOR>, |d, a, b| d.wrapping_sub(a * b)),
    lanewise!("UMLSL, UMLSL2 (vector)", "0 q:1 1 01110 size:2 1 rm:5 1010 00 rn:5 rd:5",
        ("simd:UMLSL, UMLSL2 (vector) [Ta={8H|4S}]", "simd:UMLSL, UMLSL2 (vector) [Ta=2D]"),
        long binary_acc, [u8 u16 u32 -] long_acc2::<T, VECTOR>, |d, a, b| d.wrapping_sub(a * b)),
    lanewise!("SMLSL, SMLSL2 (by element)", "0 q:1 0 01111 size:2 l:1 m:1 rm:4 0110 h:1 0 rn:5 rd:5",
        ("simd:SMLSL, SMLSL2 (by element) [Ta=4S]", "simd:SMLSL, SMLSL2 (by element) [Ta=2D]"),
        long element_acc, [- i16 i32 -] long_acc2::<T, ELEMENT>, |d, a, b| d.wrapping_sub(a * b)),
    lanewise!("UMLSL, UMLSL2 (by element)", "0 q:1 1 01111 size:2 l:1 m:1 rm:4 0110 h:1 0 rn:5 rd:5",
        ("simd:UMLSL, UMLSL2 (by element) [Ta=4S]", "simd:UMLSL, UMLSL2 (by element) [Ta=2D]"),
        long element_acc, [- u16 u32 -] long_acc2::<T, ELEMENT>, |d, a, b| d.wrapping_sub(a * b)),

    // Doubled products, saturating.
    lanewise!("SQDMULL, SQDMULL2 (vector)", "0 q:1 0 01110 size:2 1 rm:5 1101 00 rn:5 rd:5",
        ("simd:SQDMULL, SQDMULL2 (vector) [Vector Ta=4S]", "simd:SQDMULL, SQDMULL2 (vector) [Vector Ta=2D]"),
        long binary, [- i16 i32 -] long_sat2::<T, VECTOR>, |a, b| doubled(a * b)),
    lanewise!("SQDMULL, SQDMULL2 (by element)", "0 q:1 0 01111 size:2 l:1 m:1 rm:4 1011 h:1 0 rn:5 rd:5",
        ("simd:SQDMULL, SQDMULL2 (by element) [Vector Ta=4S]", "simd:SQDMULL, SQDMULL2 (by element) [Vector Ta=2D]"),
        long element, [- i16 i32 -] long_sat2::<T, ELEMENT>, |a, b| doubled(a * b)),
    lanewise!("SQDMULL (scalar)", "01 0 11110 size:2 1 rm:5 1101 00 rn:5 rd:5",
        ("simd:SQDMULL, SQDMULL2 (vector) [Scalar Va=S]", "simd:SQDMULL, SQDMULL2 (vector) [Scalar Va=D]"),
        long binary, [- i16 i32 -] long_sat2::<T, VECTOR>, |a, b| doubled(a * b)),
    lanewise!("SQDMULL (by element, scalar)", "01 0 11111 size:2 l:1 m:1 rm:4 1011 h:1 0 rn:5 rd:5",
        ("simd:SQDMULL, SQDMULL2 (by element) [Scalar Va=S]", "simd:SQDMULL, SQDMULL2 (by element) [Scalar Va=D]"),
        long element, [- i16 i32 -] long_sat2::<T, ELEMENT>, |a, b| doubled(a * b)),
    lanewise!("SQDMLAL, SQDMLAL2 (vector)", "0 q:1 0 01110 size:2 1 rm:5 1001 00 rn:5 rd:5",
        ("simd:SQDMLAL, SQDMLAL2 (vector) [Vector Ta=4S]", "simd:SQDMLAL, SQDMLAL2 (vector) [Vector Ta=2D]"),
        long binary_acc, [- i16 i32 -] long_sat_acc2::<T, VECTOR>, |d, a, b| {
            let (product, saturated) = doubled(a * b);
            (d.saturating_add(product), saturated | d.checked_add(product).is_none())
        }),
    lanewise!("SQDMLAL, SQDMLAL2 (by element)", "0 q:1 0 01111 size:2 l:1 m:1 rm:4 0011 h:1 0 rn:5 rd:5",
        ("simd:SQDMLAL, SQDMLAL2 (by element) [Vector Ta=4S]", "simd:SQDMLAL, SQDMLAL2 (by element) [Vector Ta=2D]"),
        long element_acc, [- i16 i32 -] long_sat_acc2::<T, ELEMENT>, |d, a, b| {
            let (product, saturated) = doubled(a * b);
            (d.saturating_add(product), saturated | d.checked_add(product).is_none())
        }),
    lanewise!("SQDMLAL (scalar)", "01 0 11110 size:2 1 rm:5 1001 00 rn:5 rd:5",
        ("simd:SQDMLAL, SQDMLAL2 (vector) [Scalar Va=S]", "simd:SQDMLAL, SQDMLAL2 (vector) [Scalar Va=D]"),
        long binary_acc, [- i16 i32 -] long_sat_acc2::<T, VECTOR>, |d, a, b| {
            let (product, saturated) = doubled(a * b);
            (d.saturating_add(product), saturated | d.checked_add(product).is_none())
        }),
    lanewise!("SQDMLAL (by element, scalar)", "01 0 11111 size:2 l:1 m:1 rm:4 0011 h:1 0 rn:5 rd:5",
        ("simd:SQDMLAL, SQDMLAL2 (by element) [Scalar Va=S]", "simd:SQDMLAL, SQDMLAL2 (by element) [Scalar Va=D]"),
        long element_acc, [- i16 i32 -] long_sat_acc2::<T, ELEMENT>, |d, a, b| {
            let (product, saturated) = doubled(a * b);
            (d.saturating_add(product), saturated | d.checked_add(product).is_none())
        }),
    lanewise!("SQDMLSL, SQDMLSL2 (vector)", "0 q:1 0 01110 size:2 1 rm:5 1011 00 rn:5 rd:5",
        ("simd:SQDMLSL, SQDMLSL2 (vector) [Vector Ta=4S]", "simd:SQDMLSL, SQDMLSL2 (vector) [Vector Ta=2D]"),
        long binary_acc, [- i16 i32 -] long_sat_acc2::<T, VECTOR>, |d, a, b| {
            let (product, saturated) = doubled(a * b);
            (d.saturating_sub(product), saturated | d.checked_sub(product).is_none())
        }),
    lanewise!("SQDMLSL, SQDMLSL2 (by element)", "0 q:1 0 01111 size:2 l:1 m:1 rm:4 0111 h:1 0 rn:5 rd:5",
        ("simd:SQDMLSL, SQDMLSL2 (by element) [Vector Ta=4S]", "simd:SQDMLSL, SQDMLSL2 (by element) [Vector Ta=2D]"),
        long element_acc, [- i16 i32 -] long_sat_acc2::<T, ELEMENT>, |d, a, b| {
            let (product, saturated) = doubled(a * b);
            (d.saturating_sub(product), saturated | d.checked_sub(product).is_none())
        }),
    lanewise!("SQDMLSL (scalar)", "01 0 11110 size:2 1 rm:5 1011 00 rn:5 rd:5",
        ("simd:SQDMLSL, SQDMLSL2 (vector) [Scalar Va=S]", "simd:SQDMLSL, SQDMLSL2 (vector) [Scalar Va=D]"),
        long binary_acc, [- i16 i32 -] long_sat_acc2::<T, VECTOR>, |d, a, b| {
            let (product, saturated) = doubled(a * b);
            (d.saturating_sub(product), saturated | d.checked_sub(product).is_none())
        }),
    lanewise!("SQDMLSL (by element, scalar)", "01 0 11111 size:2 l:1 m:1 rm:4 0111 h:1 0 rn:5 rd:5",
        ("simd:SQDMLSL, SQDMLSL2 (by element) [Scalar Va=S]", "simd:SQDMLSL, SQDMLSL2 (by element) [Scalar Va=D]"),
        long element_acc, [- i16 i32 -] long_sat_acc2::<T, ELEMENT>, |d, a, b| {
            let (product, saturated) = doubled(a * b);
            (d.saturating_sub(product), saturated | d.checked_sub(product).is_none())
        }),

    // The high half of sums and differences.
    lanewise!("ADDHN, ADDHN2", "0 q:1 0 01110 size:2 1 rm:5 0100 00 rn:5 rd:5", "simd:ADDHN, ADDHN2",
        narrow binary, [u8 u16 u32 -] narrow2::<T>, |a, b| (a.wrapping_add(b) >> T::BITS) as T),
    lanewise!("RADDHN, RADDHN2", "0 q:1 1 01110 size:2 1 rm:5 0100 00 rn:5 rd:5", "simd:RADDHN, RADDHN2",
        narrow binary, [u8 u16 u32 -] narrow2::<T>,
        |a, b| (a.wrapping_add(b).wrapping_add(1 << (T::BITS - 1)) >> T::BITS) as T),
    lanewise!("SUBHN, SUBHN2", "0 q:1 0 01110 size:2 1 rm:5 0110 00 rn:5 rd:5", "simd:SUBHN, SUBHN2",
        narrow binary, [u8 u16 u32 -] narrow2::<T>, |a, b| (a.wrapping_sub(b) >> T::BITS) as T),
    lanewise!("RSUBHN, RSUBHN2", "0 q:1 1 01110 size:2 1 rm:5 0110 00 rn:5 rd:5", "simd:RSUBHN, RSUBHN2",
        narrow binary, [u8 u16 u32 -] narrow2::<T>,
        |a, b| (a.wrapping_sub(b).wrapping_add(1 << (T::BITS - 1)) >> T::BITS) as T),

    // Narrowing and widening moves.
    lanewise!("XTN, XTN2", "0 q:1 0 01110 size:2 10000 10010 10 rn:5 rd:5", "simd:XTN, XTN2",
        narrow unary, [u8 u16 u32 -] narrow1::<T>, |a| a as T),
    lanewise!("SQXTN, SQXTN2", "0 q:1 0 01110 size:2 10000 10100 10 rn:5 rd:5", "simd:SQXTN, SQXTN2",
        narrow unary, [i8 i16 i32 -] narrow_sat1::<T>, |a| T::saturate(a.into())),
    lanewise!("SQXTN (scalar)", "01 0 11110 size:2 10000 10100 10 rn:5 rd:5", "simd:SQXTN, SQXTN2",
        narrow unary, [i8 i16 i32 -] narrow_sat1::<T>, |a| T::saturate(a.into())),
    lanewise!("UQXTN, UQXTN2", "0 q:1 1 01110 size:2 10000 10100 10 rn:5 rd:5", "simd:UQXTN, UQXTN2",
        narrow unary, [u8 u16 u32 -] narrow_sat1::<T>, |a| T::saturate(a.into())),
    lanewise!("UQXTN (scalar)", "01 1 11110 size:2 10000 10100 10 rn:5 rd:5", "simd:UQXTN, UQXTN2",
        narrow unary, [u8 u16 u32 -] narrow_sat1::<T>, |a| T::saturate(a.into())),
    lanewise!("SQXTUN, SQXTUN2", "0 q:1 1 01110 size:2 10000 10010 10 rn:5 rd:5", "simd:SQXTUN, SQXTUN2",
        narrow unary, [i8 i16 i32 -] narrow_sat1::<T>, |a| saturate_unsigned(a.into())),
    lanewise!("SQXTUN (scalar)", "01 1 11110 size:2 10000 10010 10 rn:5 rd:5", "simd:SQXTUN, SQXTUN2",
        narrow unary, [i8 i16 i32 -] narrow_sat1::<T>, |a| saturate_unsigned(a.into())),
    lanewise!("SHLL, SHLL2", "0 q:1 1 01110 size:2 10000 10011 10 rn:5 rd:5", "simd:SHLL, SHLL2",
        long unary, [u8 u16 u32 -] long1::<T>, |a| a << T::BITS),

    // Products of polynomials over {0, 1}.
    enc!("PMULL, PMULL2", "0 q:1 0 01110 size:2 1 rm:5 1110 00 rn:5 rd:5", pmull),
];

/// Twice the product.
#[inline(always)]
fn doubled<W: Elem>(product: W) -> (W, bool) {
    W::saturate(2 * product.int())
}

/// Vd = f of adjacent elements of Vn, widened first.
#[inline(always)]
fn pairwise_long<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T::Wide, T::Wide) -> T::Wide) {
    let a = *cpu.z(i.rn);
    let wide = |k: usize| lanes::<T>(&a)[k].widen();
    put(cpu, i, |k| f(wide(2 * k), wide(2 * k + 1)));
}

/// Vd = f(Vd, adjacent elements of Vn), the latter widened first.
#[inline(always)]
fn pairwise_long_acc<T: Elem>(cpu: &mut Cpu, i: &Inst, f: impl Fn(T::Wide, T::Wide, T::Wide) -> T::Wide) {
    let (d, a) = (*cpu.z(i.rd), *cpu.z(i.rn));
    let wide = |k: usize| lanes::<T>(&a)[k].widen();
    put(cpu, i, |k| f(lanes(&d)[k], wide(2 * k), wide(2 * k + 1)));
}

fn pmull(w: u32, c: &Ctx) -> Option<Decoded> {
    let bytes: Exec = |cpu, _, i| {
        long2::<u8, VECTOR>(cpu, i, |a, b| carryless_product(a.into(), b.into()) as u16);
        Ok(())
    };
    let doubleword: Exec = |cpu, _, i| {
        let product = carryless_product(half(cpu.z(i.rn), i), half(cpu.z(i.rm), i));
        *cpu.z_mut(i.rd) = Vreg::from_low(product);
        Ok(())
    };
    let size = bits(w, 22, 2);
    let exec = match size {
        0 => bytes,
        3 => doubleword,
        _ => return None,
    };
    binary(w, long(w, c, "simd:PMULL, PMULL2", size, exec)?)
}
