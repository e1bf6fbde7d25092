//! The addresses that a block looks up in the data TLB: one per flow, two for a flow that crosses into another line.

use fxscope_isa::Access;
use fxscope_memory::{Bounds, PageRange, Placement};

use crate::common::*;

/// The addresses that the first `executed` of these instructions look up. Memory has pages of 64 KiB.
fn of_first(executed: usize, insts: &[Inst]) -> Vec<u64> {
    let mut rig = Rig::new(machine());
    let page = PageRange {
        start: 0,
        end: 1 << 40,
        shift: 16,
        placement: Placement::Node(0),
        moved: 0,
        shared: None,
        bounds: Bounds::ALL,
    };
    rig.core.memory.follow_pages(0, vec![page].into());
    let block = Block::new(CODE, insts, &rig.spec);
    let mut addresses = vec![7];
    rig.core.data_lookups(block.bound(), executed, block.stream(), &mut addresses);
    assert_eq!(addresses.remove(0), 7, "what was listed before stays");
    addresses
}

fn of(inst: Inst) -> Vec<u64> {
    of_first(1, &[inst])
}

/// A pointer with a tag.
const TAG: u64 = 1 << 56;

#[test]
fn an_access_looks_up_its_first_address_and_its_last_one_in_another_line() {
    assert_eq!(of(ldr(1, 2, DATA + 8)), [DATA + 8]);
    assert_eq!(of(str(1, 2, DATA + LINE - 8)), [DATA + LINE - 8], "up to the end of a line");
    assert_eq!(of(str(1, 2, DATA + LINE - 7)), [DATA + LINE - 7, DATA + LINE]);
    assert_eq!(of(ld1d(1, 2, 0, DATA + 224)), [DATA + 224, DATA + 287]);
    assert_eq!(of(ld1d(1, 2, 0, DATA + 224 + TAG)), [DATA + 224, DATA + 287], "tags are no part of addresses");
    assert_eq!(of(mul(1, 2)), []);
}

#[test]
fn only_instructions_that_were_executed_look_up() {
    let insts = [ldr(1, 2, DATA), mul(3, 3), str(1, 2, DATA + 64), ldr(4, 2, DATA + 128)];
    assert_eq!([0, 1, 2, 3, 4].map(|n| of_first(n, &insts).len()), [0, 1, 1, 2, 3]);
    assert_eq!(of_first(4, &insts), [DATA, DATA + 64, DATA + 128]);
}

#[test]
fn accesses_without_active_elements_look_up_nothing_that_is_listed() {
    let masked = |access, mask| {
        op("sve:LD1D (scalar plus immediate)").based(&[x(2), p(0)]).writes(&[z(1)]).masked(access, 8, DATA, mask)
    };
    assert_eq!(of(masked(Access::Load, 0)), []);
    assert_eq!(of(masked(Access::Load, 1)), [DATA]);
    assert_eq!(of(st1w(1, 2, 0, DATA, 0)), []);
}

/// Addresses of eight elements, so far behind [`DATA`]; those without an offset are inactive.
fn elements(offsets: [Option<u64>; 8]) -> [Option<u64>; 8] {
    offsets.map(|offset| offset.map(|offset| DATA + offset))
}

#[test]
fn pairs_of_a_gather_look_up_once_within_128_bytes_and_twice_otherwise() {
    let all = elements([0, 64, 128, 256, 120, 128, 512, 512 + 127 - 7].map(Some));
    let expected = [0, 128, 256, 120, 128, 512].map(|offset| DATA + offset);
    assert_eq!(of(gather(1, 2, 3, 0, all)), expected);
    assert_eq!(of(gather_prefetch(2, 3, 0, all)), expected);
    let some = elements([None, Some(64), Some(LINE - 4), None, None, None, Some(0), None]);
    assert_eq!(of(gather(1, 2, 3, 0, some)), [DATA + 64, DATA + LINE - 4, DATA + LINE + 3, DATA]);
    assert_eq!(of(gather_prefetch(2, 3, 0, some)), [DATA + 64, DATA + LINE - 4, DATA], "a prefetch is of one byte");
}

#[test]
fn each_active_element_of_a_scatter_is_looked_up_in_order() {
    let some = elements([Some(0), Some(8), None, Some(LINE - 4), None, Some(64), Some(LINE), Some(1_000)]);
    let expected = [0, 8, LINE - 4, LINE + 3, 64, LINE, 1_000].map(|offset| DATA + offset);
    assert_eq!(of(scatter(1, 2, 3, 0, some)), expected);
}

#[test]
fn each_register_of_structures_looks_up_all_blocks_that_it_is_spread_over() {
    let words = |addr| structures("sve:LD3W (scalar plus immediate)", Access::Load, 3, 4, 3, 2, addr);
    assert_eq!(of(words(DATA)), [0, 128, 0, 128, 0, 128].map(|offset| DATA + offset));
    assert_eq!(of(words(DATA + 96)), [96, 128, 256, 96, 128, 256, 96, 128, 256].map(|offset| DATA + offset));
    let bytes = structures("sve:LD2B (scalar plus immediate)", Access::Load, 2, 1, 3, 2, DATA);
    assert_eq!(of(bytes), [0, 32, 64, 96, 0, 32, 64, 96].map(|offset| DATA + offset));
}

#[test]
fn prefetch_instructions_are_listed_when_they_are_strong_and_their_page_exists() {
    let prfm = |addr: u64| op("base:PRFM (immediate)").access(Access::PrefetchLoad(1), 1, addr).based(&[x(1)]);
    let weak = 1 << 60;
    let insts = [prfm(DATA + weak), ldr(1, 2, DATA + 64), prfm(DATA + 128), prfm(1 << 41), prfm(DATA + 192)];
    assert_eq!(of_first(5, &insts), [DATA + 64, DATA + 128, DATA + 192]);
}

#[test]
fn zeroing_a_line_looks_up_its_address() {
    let zero = op("base:SYS").based(&[x(1)]).access(Access::ZeroLine, LINE as u16, DATA + 32);
    assert_eq!(of(zero), [DATA + 32]);
}
