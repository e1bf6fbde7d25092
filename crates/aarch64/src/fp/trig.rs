//! The SVE instructions that accelerate exponential and trigonometric functions.

use super::arith::{abs, mul, mul_add, neg};
use super::env::FpEnv;
use super::format::Float;

/// The fractions of 2^(i/64) in double precision, rounded to nearest. Single precision has the same values, rounded; half
/// precision has every second one.
const EXP2_FRACTIONS: [u64; 64] = [
    0x0000000000000,
    0x02c9a3e778061,
    0x059b0d3158574,
    0x0874518759bc8,
    0x0b5586cf9890f,
    0x0e3ec32d3d1a2,
    0x11301d0125b51,
    0x1429aaea92de0,
    0x172b83c7d517b,
    0x1a35beb6fcb75,
    0x1d4873168b9aa,
    0x2063b88628cd6,
    0x2387a6e756238,
    0x26b4565e27cdd,
    0x29e9df51fdee1,
    0x2d285a6e4030b,
    0x306fe0a31b715,
    0x33c08b26416ff,
    0x371a7373aa9cb,
    0x3a7db34e59ff7,
    0x3dea64c123422,
    0x4160a21f72e2a,
    0x44e086061892d,
    0x486a2b5c13cd0,
    0x4bfdad5362a27,
    0x4f9b2769d2ca7,
    0x5342b569d4f82,
    0x56f4736b527da,
    0x5ab07dd485429,
    0x5e76f15ad2148,
    0x6247eb03a5585,
    0x6623882552225,
    0x6a09e667f3bcd,
    0x6dfb23c651a2f,
    0x71f75e8ec5f74,
    0x75feb564267c9,
    0x7a11473eb0187,
    0x7e2f336cf4e62,
    0x82589994cce13,
    0x868d99b4492ed,
    0x8ace5422aa0db,
    0x8f1ae99157736,
    0x93737b0cdc5e5,
    0x97d829fde4e50,
    0x9c49182a3f090,
    0xa0c667b5de565,
    0xa5503b23e255d,
    0xa9e6b5579fdbf,
    0xae89f995ad3ad,
    0xb33a2b84f15fb,
    0xb7f76f2fb5e47,
    0xbcc1e904bc1d2,
    0xc199bdd85529c,
    0xc67f12e57d14b,
    0xcb720dcef9069,
    0xd072d4a07897c,
    0xd5818dcfba487,
    0xda9e603db3285,
    0xdfc97337b9b5f,
    0xe502ee78b3ff6,
    0xea4afa2a490da,
    0xefa1bee615a27,
    0xf50765b6e4540,
    0xfa7c1819e90d8,
];

/// 2^(i/64) (half precision: 2^(i/32)) scaled, where `a` holds i in its lowest 6 (5) bits and the biased
/// exponent above (FEXPA). A table look-up: no rounding, no flags.
#[inline]
#[must_use]
pub fn expa<F: Float>(a: F) -> F {
    let index_bits = if F::BITS == 16 { 5 } else { 6 };
    let index = (a.to_u64() & ((1 << index_bits) - 1)) << (6 - index_bits);
    let fraction = EXP2_FRACTIONS[index as usize];
    let dropped = 52 - F::FRACTION;
    let rounded = if dropped == 0 { fraction } else { (fraction + (1 << (dropped - 1))) >> dropped };
    let exponent = a.to_u64() >> index_bits & F::MAX_BIASED;
    F::from_u64(exponent << F::FRACTION | rounded)
}

/// a² with the lowest bit of `b` as its sign, unless it is a NaN (FTSMUL).
#[must_use]
pub fn tsmul<F: Float>(env: &mut FpEnv, a: F, b: F) -> F {
    let square = mul(env, a, a);
    if square.is_nan() { square } else { F::with_sign(b.to_u64() & 1 != 0, square.magnitude()) }
}

/// a, or 1 when bit 0 of `b` is set; negated when bit 1 of `b` is set (FTSSEL). No flags.
#[must_use]
pub fn tssel<F: Float>(a: F, b: F) -> F {
    let chosen = if b.to_u64() & 1 != 0 { F::power_of_two(false, 0) } else { a };
    if b.to_u64() & 2 != 0 { neg(chosen) } else { chosen }
}

/// coefficient + a × |b|, with coefficient `x` (0–7) of the sine series, or of the cosine series if b is negative (FTMAD).
#[must_use]
pub fn tmad<F: Float>(env: &mut FpEnv, x: usize, a: F, b: F) -> F {
    let series = usize::from(b.sign());
    let coefficient = match F::BITS {
        16 => u64::from(SERIES_HALF[series][x & 7]),
        32 => u64::from(SERIES_SINGLE[series][x & 7]),
        _ => SERIES_DOUBLE[series][x & 7],
    };
    mul_add(env, F::from_u64(coefficient), a, abs(b))
}

// Coefficients of the sine and the cosine series as the architecture defines them (FPTrigMAddCoefficient).

const SERIES_HALF: [[u16; 8]; 2] = [[0x3c00, 0xb155, 0x2030, 0, 0, 0, 0, 0], [0x3c00, 0xb800, 0x293a, 0, 0, 0, 0, 0]];

const SERIES_SINGLE: [[u32; 8]; 2] = [
    [0x3f80_0000, 0xbe2a_aaab, 0x3c08_8886, 0xb950_08b9, 0x3636_9d6d, 0, 0, 0],
    [0x3f80_0000, 0xbf00_0000, 0x3d2a_aaa6, 0xbab6_0705, 0x37cd_37cc, 0, 0, 0],
];

const SERIES_DOUBLE: [[u64; 8]; 2] = [
    [
        0x3ff0_0000_0000_0000,
        0xbfc5_5555_5555_5543,
        0x3f81_1111_1110_f30c,
        0xbf2a_01a0_19b9_2fc6,
        0x3ec7_1de3_51f3_d22b,
        0xbe5a_e5e2_b60f_7b91,
        0x3de5_d840_8868_552f,
        0,
    ],
    [
        0x3ff0_0000_0000_0000,
        0xbfe0_0000_0000_0000,
        0x3fa5_5555_5555_5536,
        0xbf56_c16c_16c1_3a0b,
        0x3efa_01a0_19b1_e8d8,
        0xbe92_7e4f_7282_f468,
        0x3e21_ee96_d264_1b13,
        0xbda8_f763_80fb_b401,
    ],
];
