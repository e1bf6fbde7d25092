//! The immediates of logical instructions.

use std::collections::HashSet;

use fxscope_aarch64::insn::base_dp_imm::bit_mask;

#[test]
fn logical_immediates_are_repeated_rotated_runs() {
    assert_eq!(bit_mask(1, 0, 0), Some(1));
    assert_eq!(bit_mask(0, 0, 0b111100), Some(0x5555_5555_5555_5555));
    assert_eq!(bit_mask(0, 1, 0b110000), Some(0x8080_8080_8080_8080));
    assert_eq!(bit_mask(1, 4, 7), Some(0xf000_0000_0000_000f));
    assert_eq!(bit_mask(1, 0, 63), None);
    assert_eq!(bit_mask(0, 0, 0b111111), None);
}

#[test]
fn there_are_5334_logical_immediates() {
    // Runs of 1..size-1 ones at each of size rotations, for sizes 2, 4, …, 64.
    let expected: u32 = (1..=6).map(|n| (1u32 << n) * ((1 << n) - 1)).sum();
    let masks: HashSet<u64> = (0..1 << 13).filter_map(|f| bit_mask(f >> 12, f >> 6 & 63, f & 63)).collect();
    assert_eq!(masks.len() as u32, expected);
}
