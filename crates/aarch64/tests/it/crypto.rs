//! AES instructions against FIPS 197. Hexadecimal numbers have byte 0 first, as the standard writes them.

use fxscope_aarch64::{Cpu, Vreg};

use crate::common::{no_memory, step};

const AESE_V0_V1: u32 = 0x4e28_4820;
const AESD_V0_V1: u32 = 0x4e28_5820;
const AESMC_V0_V1: u32 = 0x4e28_6820;
const AESIMC_V0_V1: u32 = 0x4e28_7820;

/// Executes `word` with V0 and V1; returns V0.
fn run(word: u32, v0: u128, v1: u128) -> u128 {
    let mut cpu = Cpu::new(16);
    (cpu.z[0], cpu.z[1]) = (Vreg::from_low(v0.swap_bytes()), Vreg::from_low(v1.swap_bytes()));
    step(word, &mut cpu, &mut no_memory()).expect("no trap");
    cpu.z[0].low().swap_bytes()
}

/// A state whose bytes are all `byte`: rows can be shifted without an effect.
fn all(byte: u8) -> u128 {
    u128::from_le_bytes([byte; 16])
}

#[test]
fn the_substitution_box_is_that_of_fips_197() {
    for (byte, substitute) in [(0, 0x63), (0x53, 0xed), (0xff, 0x16)] {
        assert_eq!(run(AESE_V0_V1, all(byte), 0), all(substitute));
        assert_eq!(run(AESD_V0_V1, all(substitute), 0), all(byte));
    }
}

#[test]
fn decryption_undoes_the_substitution_of_each_byte() {
    for byte in 0..=255 {
        assert_eq!(run(AESD_V0_V1, run(AESE_V0_V1, all(byte), 0), 0), all(byte));
    }
}

#[test]
fn mixing_a_column_and_back_gives_the_example_of_fips_197() {
    let (column, mixed) = (0xdb13_5345 << 96, 0x8e4d_a1bc << 96);
    assert_eq!(run(AESMC_V0_V1, 0, column), mixed);
    assert_eq!(run(AESIMC_V0_V1, 0, mixed), column);
}

#[test]
fn the_first_round_of_the_cipher_example_of_fips_197_has_its_values() {
    let input = 0x3243_f6a8_885a_308d_3131_98a2_e037_0734;
    let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c;
    let shifted = 0xd4bf_5d30_e0b4_52ae_b841_11f1_1e27_98e5;
    let mixed = 0x0466_81e5_e0cb_199a_48f8_d37a_2806_264c;
    assert_eq!(run(AESE_V0_V1, input, key), shifted);
    assert_eq!(run(AESMC_V0_V1, 0, shifted), mixed);
    assert_eq!(run(AESIMC_V0_V1, 0, mixed), shifted);
    assert_eq!(run(AESD_V0_V1, shifted, 0), input ^ key);
}
