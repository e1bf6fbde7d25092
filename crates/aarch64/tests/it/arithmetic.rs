//! Arithmetic with general-purpose registers, its flags, and the conditions on them.

use fxscope_aarch64::Cpu;
use fxscope_aarch64::cpu::condition_holds;
use fxscope_aarch64::insn::alu::Word;

use crate::common::{no_memory, step};

#[test]
fn conditions_follow_the_architecture() {
    assert!(condition_holds(0, 0b0100)); // EQ with Z
    assert!(!condition_holds(1, 0b0100)); // NE
    assert!(condition_holds(8, 0b0010)); // HI: C and not Z
    assert!(!condition_holds(8, 0b0110));
    assert!(condition_holds(11, 0b1000)); // LT: N != V
    assert!(condition_holds(10, 0b1001)); // GE: N == V
    assert!(condition_holds(14, 0) && condition_holds(15, 0)); // AL, NV
}

#[test]
fn addition_with_carry_sets_flags_as_the_architecture_specifies() {
    assert_eq!(u32::MAX.add_with_carry(0, true), (0, 0b0110));
    assert_eq!(0x7fff_ffffu32.add_with_carry(0, true), (0x8000_0000, 0b1001));
    assert_eq!(5u64.add_with_carry(!5, true), (0, 0b0110));
    assert_eq!(0u64.add_with_carry(!1, true), (u64::MAX, 0b1000));
    assert_eq!((1u64 << 63).add_with_carry(!1, true), (u64::MAX >> 1, 0b0011));
}

#[test]
fn sums_and_differences_have_the_flags_of_addition_with_carry() {
    for a in [0, 1, 5, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        for b in [0, 1, 5, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            assert_eq!(a.plus_flags(b), a.add_with_carry(b, false));
            assert_eq!(a.minus_flags(b), a.add_with_carry(!b, true));
        }
    }
}

#[test]
fn division_has_no_exceptional_cases() {
    assert_eq!(7u64.quotient(0), 0);
    assert_eq!(7u32.signed_quotient(0), 0);
    assert_eq!(0x8000_0000u32.signed_quotient(u32::MAX), 0x8000_0000);
}

/// Runs one instruction with x1 and x2 set, and returns x0.
fn run(word: u32, x1: u64, x2: u64) -> u64 {
    let mut cpu = Cpu::new(16);
    (cpu.x[1], cpu.x[2]) = (x1, x2);
    step(word, &mut cpu, &mut no_memory()).expect("no trap");
    cpu.x[0]
}

#[test]
fn the_crc_of_the_check_string_is_the_published_value() {
    // "123456789": CRC-32 is cbf43926, CRC-32C is e3069283, both with inversion before and after.
    let (crc32x, crc32b, crc32cx, crc32cb) = (0x9ac2_4c20, 0x1ac2_4020, 0x9ac2_5c20, 0x1ac2_5020);
    let eight = u64::from_le_bytes(*b"12345678");
    let check = |x, b| !(run(b, run(x, 0xffff_ffff, eight), u64::from(b'9')) as u32);
    assert_eq!(check(crc32x, crc32b), 0xcbf4_3926);
    assert_eq!(check(crc32cx, crc32cb), 0xe306_9283);
}

#[test]
fn leading_sign_bits_exclude_the_sign() {
    let cls = 0xdac0_1420;
    assert_eq!(run(cls, 0, 0), 63);
    assert_eq!(run(cls, u64::MAX, 0), 63);
    assert_eq!(run(cls, 1 << 62, 0), 0);
    assert_eq!(run(0x5ac0_1420, 0xffff_fff0, 0), 27);
}
