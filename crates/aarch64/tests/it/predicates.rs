//! Predicates, element masks and predicate constraints.

use fxscope_aarch64::Vreg;
use fxscope_aarch64::insn::sve_common::{active, element_mask, mask_to_predicate, pattern_elements, predicate_test};

#[test]
fn only_the_lowest_predicate_bit_of_an_element_counts() {
    let mask = element_mask::<u32>(0b0001_1110_0000_0001);
    assert_eq!(mask.lanes::<u32>()[..4], [u32::MAX, 0, 0, u32::MAX]);
}

#[test]
fn masks_and_predicates_convert_back_and_forth() {
    let p = 0x8123_4567_89ab_cdef;
    assert_eq!(mask_to_predicate::<u8>(&element_mask::<u8>(p)), p);
    assert_eq!(mask_to_predicate::<u16>(&element_mask::<u16>(p)), active::<u16>(p));
    assert_eq!(mask_to_predicate::<u32>(&element_mask::<u32>(p)), active::<u32>(p));
    assert_eq!(mask_to_predicate::<u64>(&element_mask::<u64>(p)), active::<u64>(p));
}

#[test]
fn each_byte_of_a_mask_gives_its_bit_of_the_predicate() {
    let single = (0..64).map(|byte| 1 << byte);
    let some = (1..1000).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for p in single.clone().chain(single.map(|p: u64| !p)).chain(some).chain([0, u64::MAX]) {
        let mut mask = Vreg::ZERO;
        for (byte, value) in mask.lanes_mut::<u8>().iter_mut().enumerate() {
            *value = if p >> byte & 1 == 1 { 0xff } else { 0 };
        }
        assert_eq!(mask_to_predicate::<u8>(&mask), p, "{p:#x}");
        assert_eq!(element_mask::<u8>(p), mask, "{p:#x}");
    }
}

#[test]
fn predicate_test_reports_first_none_and_not_last() {
    assert_eq!(predicate_test(0b0110, 0b0110), 0b1000);
    assert_eq!(predicate_test(0b0110, 0b0010), 0b1010);
    assert_eq!(predicate_test(0b0110, 0b0100), 0b0000);
    assert_eq!(predicate_test(0b0110, 0b1001), 0b0110);
    assert_eq!(predicate_test(0, 0b1), 0b0110);
}

#[test]
fn patterns_that_do_not_fit_select_no_element() {
    assert_eq!(pattern_elements(8, 8), 8);
    assert_eq!(pattern_elements(9, 8), 0);
    assert_eq!(pattern_elements(10, 64), 32);
    assert_eq!(pattern_elements(30, 16), 15);
    assert_eq!(pattern_elements(31, 4), 4);
    assert_eq!(pattern_elements(20, 64), 0);
}
