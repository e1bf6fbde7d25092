//! Cryptographic instructions: AES, SHA-1, SHA-256.

use std::array::from_fn;

use fxscope_isa::InstKind;

use crate::cpu::{Cpu, Vreg};
use crate::enc;
use crate::insn::simd_common::*;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst};

/// A row: `crypto!(NAME, PATTERN, CLASS, REGISTERS, SEMANTICS)`, where the semantics give the 128 bits of
/// Vd from those of Vd, Vn and Vm.
macro_rules! crypto {
    ($name:literal, $pattern:literal, $class:literal, $regs:ident, $f:expr) => {
        enc!($name, $pattern, |w, c| {
            let exec: Exec = |cpu, _, i| {
                apply(cpu, i, $f);
                Ok(())
            };
            $regs(w, whole(c, $class, exec))
        })
    };
}

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    crypto!("AESE", "01001110 00 10100 00100 10 rn:5 rd:5", "simd:AESE", unary_acc, |d, n, _| aes_encrypt(d ^ n)),
    crypto!("AESD", "01001110 00 10100 00101 10 rn:5 rd:5", "simd:AESD", unary_acc, |d, n, _| aes_decrypt(d ^ n)),
    crypto!("AESMC", "01001110 00 10100 00110 10 rn:5 rd:5", "simd:AESMC", unary,
        |_, n, _| mix_columns(n, [2, 3, 1, 1])),
    crypto!("AESIMC", "01001110 00 10100 00111 10 rn:5 rd:5", "simd:AESIMC", unary,
        |_, n, _| mix_columns(n, [14, 11, 13, 9])),
    crypto!("SHA1C", "01011110 000 rm:5 000000 rn:5 rd:5", "simd:SHA1C", binary_acc,
        |d, n, m| sha1_rounds(d, n, m, |x, y, z| x & y | !x & z)),
    crypto!("SHA1P", "01011110 000 rm:5 000100 rn:5 rd:5", "simd:SHA1P", binary_acc,
        |d, n, m| sha1_rounds(d, n, m, |x, y, z| x ^ y ^ z)),
    crypto!("SHA1M", "01011110 000 rm:5 001000 rn:5 rd:5", "simd:SHA1M", binary_acc,
        |d, n, m| sha1_rounds(d, n, m, |x, y, z| x & y | x & z | y & z)),
    crypto!("SHA1SU0", "01011110 000 rm:5 001100 rn:5 rd:5", "simd:SHA1SU0", binary_acc,
        |d, n, m| (d >> 64 | n << 64) ^ d ^ m),
    crypto!("SHA1SU1", "01011110 00 10100 00001 10 rn:5 rd:5", "simd:SHA1SU1", unary_acc,
        |d, n, _| sha1_schedule(d, n)),
    crypto!("SHA1H", "01011110 00 10100 00000 10 rn:5 rd:5", "simd:SHA1H", unary,
        |_, n, _| (n as u32).rotate_left(30).into()),
    crypto!("SHA256H", "01011110 000 rm:5 010000 rn:5 rd:5", "simd:SHA256H", binary_acc,
        |d, n, m| sha256_rounds(d, n, m).0),
    crypto!("SHA256H2", "01011110 000 rm:5 010100 rn:5 rd:5", "simd:SHA256H2", binary_acc,
        |d, n, m| sha256_rounds(n, d, m).1),
    crypto!("SHA256SU0", "01011110 00 10100 00010 10 rn:5 rd:5", "simd:SHA256SU0", unary_acc,
        |d, n, _| sha256_schedule_0(d, n)),
    crypto!("SHA256SU1", "01011110 000 rm:5 011000 rn:5 rd:5", "simd:SHA256SU1", binary_acc, sha256_schedule_1),
];

/// Returns a cryptographic instruction that writes 128 bits.
fn whole(c: &Ctx, class: &'static str, exec: Exec) -> Decoded {
    let mut d = with_live(c, class, exec, u64::MAX, u64::MAX);
    d.info.kind = InstKind::Crypto;
    d
}

/// Vd = f(Vd, Vn, Vm).
#[inline(always)]
fn apply(cpu: &mut Cpu, i: &Inst, f: impl Fn(u128, u128, u128) -> u128) {
    let result = f(cpu.z(i.rd).low(), cpu.z(i.rn).low(), cpu.z(i.rm).low());
    *cpu.z_mut(i.rd) = Vreg::from_low(result);
}

// ---- AES ----------------------------------------------------------------------------------------

/// Product in the field of AES, GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
const fn field_product(a: u8, b: u8) -> u8 {
    let (mut a, mut b, mut product) = (a, b, 0);
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ ((a >> 7) * 0x1b);
        b >>= 1;
    }
    product
}

/// The substitution box: inverse in the field, then an affine map (FIPS 197, section 5.1.1).
const SBOX: [u8; 256] = {
    let mut table = [0; 256];
    let mut x = 0;
    while x < 256 {
        // The inverse is the 254th power; the inverse of zero is zero.
        let (mut inverse, mut n) = (1, 0);
        while n < 254 {
            inverse = field_product(inverse, x as u8);
            n += 1;
        }
        let i = inverse;
        table[x] = i ^ i.rotate_left(1) ^ i.rotate_left(2) ^ i.rotate_left(3) ^ i.rotate_left(4) ^ 0x63;
        x += 1;
    }
    table
};

/// The inverse of [`SBOX`].
const INVERSE_SBOX: [u8; 256] = {
    let mut table = [0; 256];
    let mut x = 0;
    while x < 256 {
        table[SBOX[x] as usize] = x as u8;
        x += 1;
    }
    table
};

/// ShiftRows and SubBytes. Byte `4 * column + row` of the state moves by `row` columns.
fn aes_encrypt(state: u128) -> u128 {
    let s = state.to_le_bytes();
    u128::from_le_bytes(from_fn(|k| SBOX[usize::from(s[(k + 4 * (k % 4)) % 16])]))
}

/// The inverses of ShiftRows and SubBytes.
fn aes_decrypt(state: u128) -> u128 {
    let s = state.to_le_bytes();
    u128::from_le_bytes(from_fn(|k| INVERSE_SBOX[usize::from(s[(k + 12 * (k % 4)) % 16])]))
}

/// Multiplies each column by the circulant matrix whose first row is `row`.
fn mix_columns(state: u128, row: [u8; 4]) -> u128 {
    let s = state.to_le_bytes();
    u128::from_le_bytes(from_fn(|k| {
        let (column, r) = (k & !3, k & 3);
        (0..4).fold(0, |sum, j| sum ^ field_product(s[column + (r + j) % 4], row[j]))
    }))
}

// ---- SHA ----------------------------------------------------------------------------------------

/// Returns the words of a register, word 0 lowest.
fn words(v: u128) -> [u32; 4] {
    from_fn(|k| (v >> (32 * k)) as u32)
}

/// Returns the register with these words.
fn from_words(w: [u32; 4]) -> u128 {
    (0..4).fold(0, |v, k| v | u128::from(w[k]) << (32 * k))
}

/// Four rounds of SHA-1: `abcd` and `e` are the state, `wk` schedule words plus constant.
fn sha1_rounds(abcd: u128, e: u128, wk: u128, f: impl Fn(u32, u32, u32) -> u32) -> u128 {
    let ([mut a, mut b, mut c, mut d], mut e) = (words(abcd), e as u32);
    for wk in words(wk) {
        let t = e.wrapping_add(a.rotate_left(5)).wrapping_add(f(b, c, d)).wrapping_add(wk);
        (a, b, c, d, e) = (t, a, b.rotate_left(30), c, d);
    }
    from_words([a, b, c, d])
}

/// Second half of the SHA-1 schedule update.
fn sha1_schedule(d: u128, n: u128) -> u128 {
    let mut t = words(d ^ n >> 32).map(|x| x.rotate_left(1));
    t[3] ^= t[0].rotate_left(1);
    from_words(t)
}

/// Four rounds of SHA-256 on the state `abcd`, `efgh`.
fn sha256_rounds(abcd: u128, efgh: u128, wk: u128) -> (u128, u128) {
    let ([mut a, mut b, mut c, mut d], [mut e, mut f, mut g, mut h]) = (words(abcd), words(efgh));
    for wk in words(wk) {
        let sum1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let sum0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let t1 = h.wrapping_add(sum1).wrapping_add(e & f ^ !e & g).wrapping_add(wk);
        let t2 = sum0.wrapping_add(a & b ^ a & c ^ b & c);
        (a, b, c, d, e, f, g, h) = (t1.wrapping_add(t2), a, b, c, d.wrapping_add(t1), e, f, g);
    }
    (from_words([a, b, c, d]), from_words([e, f, g, h]))
}

/// Word `k` of the schedule plus sigma0 of word `k + 1`, for the four words of `d`.
fn sha256_schedule_0(d: u128, n: u128) -> u128 {
    let (w, next) = (words(d), words(d >> 32 | n << 96));
    from_words(from_fn(|k| {
        let x = next[k];
        w[k].wrapping_add(x.rotate_right(7) ^ x.rotate_right(18) ^ x >> 3)
    }))
}

/// The other half: adds words 9 to 12 and sigma1 of words 14 to 17, the last two of which are new.
fn sha256_schedule_1(d: u128, n: u128, m: u128) -> u128 {
    let sigma1 = |x: u32| x.rotate_right(17) ^ x.rotate_right(19) ^ x >> 10;
    let (w, earlier, last) = (words(d), words(n >> 32 | m << 96), words(m));
    let mut out = [0; 4];
    for k in 0..4 {
        let recent = if k < 2 { last[k + 2] } else { out[k - 2] };
        out[k] = w[k].wrapping_add(earlier[k]).wrapping_add(sigma1(recent));
    }
    from_words(out)
}
