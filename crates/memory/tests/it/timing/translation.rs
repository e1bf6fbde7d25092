//! TLBs and page sizes.

use fxscope_memory::tlb::Tlb;
use fxscope_memory::{Bounds, PageRange, Placement};

use super::*;

const PAGE: u64 = 1 << 16;

fn tlb() -> (Tlb, fxscope_machine::spec::Tlb) {
    let spec = machine().tables.tlb;
    (Tlb::new(&spec), spec)
}

/// Where a translation was found.
#[derive(Debug, PartialEq)]
enum Translation {
    L1,
    L2,
    Missed,
}

/// Translates page `n` at `t`: the time it takes and how. Where it is missing, a walk takes no time.
fn touch(tlb: &mut Tlb, n: u64, t: Cycle) -> (Cycle, Translation) {
    let addr = n * PAGE + 24;
    if tlb.hit(addr).is_some() {
        return (0, Translation::L1);
    }
    match tlb.second_level::<true>(addr, 16, t) {
        Ok(hit) => (hit.ready - t, Translation::L2),
        Err(known) => (tlb.insert(addr, 16, n * PAGE, known).ready - t, Translation::Missed),
    }
}

#[test]
fn a_page_that_is_in_neither_level_costs_a_lookup_of_the_second_before_its_walk() {
    let (mut tlb, spec) = tlb();
    assert_eq!(touch(&mut tlb, 5, 1_000), (spec.l2_hit, Translation::Missed));
    assert_eq!(touch(&mut tlb, 5, 2_000), (0, Translation::L1));
}

#[test]
fn the_seventeenth_page_drives_the_first_out_of_the_first_level_but_not_out_of_the_second() {
    let (mut tlb, spec) = tlb();
    for n in 0..16 {
        touch(&mut tlb, n, 1_000 * n);
    }
    assert!((0..16).all(|n| tlb.hit(n * PAGE).is_some()));
    touch(&mut tlb, 16, 20_000);
    assert_eq!(touch(&mut tlb, 0, 30_000), (spec.l2_hit, Translation::L2));
}

#[test]
fn the_first_level_replaces_in_order_of_arrival_whatever_was_used_since() {
    let (mut tlb, _) = tlb();
    for n in 0..16 {
        touch(&mut tlb, n, 1_000 * n);
    }
    assert_eq!(touch(&mut tlb, 0, 20_000), (0, Translation::L1), "used again");
    touch(&mut tlb, 16, 21_000);
    assert!(tlb.hit(0).is_none(), "and replaced all the same");
    assert!(tlb.hit(PAGE).is_some());
}

#[test]
fn a_set_of_the_second_level_keeps_its_four_most_recently_used_pages() {
    let (mut tlb, spec) = tlb();
    let sets = u64::from(spec.l2_entries / spec.l2_ways);
    let flush_l1 = |tlb: &mut Tlb| {
        for n in 1..=16 {
            touch(tlb, n, 0);
        }
    };
    for i in 0..4 {
        touch(&mut tlb, i * sets, 0);
    }
    flush_l1(&mut tlb);
    assert_eq!(touch(&mut tlb, 0, 50_000).1, Translation::L2, "used again in the second level");
    touch(&mut tlb, 4 * sets, 51_000);
    flush_l1(&mut tlb);
    flush_l1(&mut tlb);
    assert_eq!(touch(&mut tlb, 0, 60_000).1, Translation::L2);
    assert_eq!(touch(&mut tlb, sets, 61_000).1, Translation::Missed, "the least recently used has left");
}

#[test]
fn the_second_level_holds_1024_neighbouring_pages_of_any_size() {
    for size in machine().tables.pages.sizes {
        let (mut tlb, spec) = tlb();
        let pages = u64::from(spec.l2_entries);
        for n in 0..pages {
            tlb.insert(n * size, size.trailing_zeros(), n * size, 0);
        }
        let held = |tlb: &mut Tlb, n| tlb.second_level::<true>(n * size + size / 2, size.trailing_zeros(), 0).is_ok();
        assert!((0..pages).all(|n| held(&mut tlb, n)), "pages of {size} bytes");
        assert!(!held(&mut tlb, pages));
    }
}

#[test]
fn a_large_page_takes_one_entry() {
    let (mut tlb, _) = tlb();
    tlb.insert(5 << 21, 21, 0, 1_000);
    assert!((0..32).all(|n| tlb.hit((5 << 21) + n * PAGE).is_some()));
    assert!(tlb.hit((5 << 21) + 32 * PAGE).is_none());
}

#[test]
fn the_page_size_is_that_of_the_range_an_address_lies_in() {
    let mut core = Core::new(&machine());
    let range = |start, end, shift| PageRange {
        start,
        end,
        shift,
        placement: Placement::FirstTouch,
        moved: 0,
        shared: None,
        bounds: Bounds::ALL,
    };
    core.set_pages(0, vec![range(0, 1 << 21, 16), range(1 << 21, 1 << 25, 21)]);
    for n in 0..4 {
        core.memory.run().translate((n * PAGE).into(), 10_000 * n, &mut core.signals);
    }
    assert_eq!(core.get(Signal::L1dTlbRefill), 4);
    for n in 0..4 {
        core.memory.run().translate(((1 << 21) + n * PAGE).into(), 50_000, &mut core.signals);
    }
    assert_eq!(core.get(Signal::L1dTlbRefill), 5);
    assert_eq!(core.get(Signal::L2dTlbRefill), 5);
    // Back in the first range, behind the last address of which there is another one, and beyond both.
    for (n, addr) in [4 * PAGE, 5 * PAGE, (1 << 21) - PAGE, 1 << 25, (1 << 25) + PAGE].into_iter().enumerate() {
        core.memory.run().translate(addr.into(), 60_000 + 10_000 * n as Cycle, &mut core.signals);
    }
    assert_eq!(core.get(Signal::L2dTlbRefill), 10, "each is a page of 64 KiB");
}

#[test]
fn a_second_access_to_a_page_that_is_being_walked_for_waits_for_the_walk() {
    let mut core = Core::new(&machine());
    let first = core.memory.run().translate(0.into(), 1_000, &mut core.signals);
    assert_eq!(core.memory.run().translate(64.into(), 1_001, &mut core.signals).ready, first.ready);
    assert_eq!(core.get(Signal::L2dTlbRefill), 1);
}

#[test]
fn pages_of_different_address_spaces_have_frames_of_their_own_and_come_back_to_them() {
    let mut core = Core::new(&machine());
    let pages = || {
        vec![PageRange {
            start: 0,
            end: 1 << 21,
            shift: 16,
            placement: Placement::FirstTouch,
            moved: 0,
            shared: None,
            bounds: Bounds::ALL,
        }]
    };
    let mut physical = |space| {
        core.set_pages(space, pages());
        core.memory.run().translate(24.into(), 1_000, &mut core.signals).physical
    };
    let (first, second) = (physical(1), physical(2));
    assert_ne!(first, second);
    assert_eq!((first % PAGE, second % PAGE), (24, 24));
    assert_eq!(physical(1), first);
}

#[test]
fn an_unmapped_page_is_translated_anew() {
    let mut core = Core::new(&machine());
    let page = |start, end| PageRange {
        start,
        end,
        shift: 16,
        placement: Placement::Node(1),
        moved: 0,
        shared: None,
        bounds: Bounds::ALL,
    };
    core.set_pages(0, vec![page(0, 2 * PAGE)]);
    core.memory.run().translate(0.into(), 1_000, &mut core.signals);
    core.memory.run().translate(PAGE.into(), 1_000, &mut core.signals);
    core.set_pages(0, vec![page(0, PAGE)]);
    core.set_pages(0, vec![page(0, 2 * PAGE)]);
    core.memory.run().translate(0.into(), 9_000, &mut core.signals);
    assert_eq!(core.get(Signal::L2dTlbRefill), 2, "it stayed mapped");
    core.memory.run().translate(PAGE.into(), 9_000, &mut core.signals);
    assert_eq!(core.get(Signal::L2dTlbRefill), 3);
}

#[test]
fn the_last_page_of_an_address_space_is_unmapped_whatever_its_number() {
    for space in [2, 3] {
        let mut core = Core::new(&machine());
        let (start, end) = ((1 << 48) - PAGE, 1 << 48);
        core.set_pages(
            space,
            vec![PageRange {
                start,
                end,
                shift: 16,
                placement: Placement::FirstTouch,
                moved: 0,
                shared: None,
                bounds: Bounds::ALL,
            }],
        );
        let first = core.memory.run().translate(start.into(), 1_000, &mut core.signals).physical;
        core.set_pages(space, Vec::new());
        core.set_pages(
            space,
            vec![PageRange {
                start: 0,
                end: PAGE,
                shift: 16,
                placement: Placement::FirstTouch,
                moved: 0,
                shared: None,
                bounds: Bounds::ALL,
            }],
        );
        let next = core.memory.run().translate(0.into(), 9_000, &mut core.signals).physical;
        assert_eq!(next, first, "its frame is free again");
    }
}

#[test]
fn a_page_that_has_been_moved_is_translated_anew_to_its_new_node() {
    let mut core = Core::new(&machine());
    let page = |start, node, moved| PageRange {
        start,
        end: start + PAGE,
        shift: 16,
        placement: Placement::Node(node),
        moved,
        shared: None,
        bounds: Bounds::ALL,
    };
    core.set_pages(0, vec![page(0, 0, 0), page(PAGE, 0, 0)]);
    let before = core.memory.run().translate(0.into(), 1_000, &mut core.signals).physical;
    core.memory.run().translate(PAGE.into(), 1_000, &mut core.signals);
    core.set_pages(0, vec![page(0, 2, 1), page(PAGE, 0, 0)]);
    let after = core.memory.run().translate(0.into(), 9_000, &mut core.signals).physical;
    let node = |physical| core.memory.chip().frames().node_of(physical);
    assert_eq!((node(before), node(after)), (0, 2));
    assert_eq!(core.get(Signal::L2dTlbRefill), 3);
    core.memory.run().translate(PAGE.into(), 9_000, &mut core.signals);
    assert_eq!(core.get(Signal::L2dTlbRefill), 3, "the other one stayed where it was");
}

#[test]
fn what_is_mapped_behind_a_segment_is_not_translated_by_its_last_page() {
    let range = |segment, start, end, last, shift| PageRange {
        bounds: Bounds { segment, first: start, last },
        ..PageRange { start, end, shift, placement: Placement::FirstTouch, moved: 0, shared: None, bounds: Bounds::ALL }
    };
    let mut core = Core::new(&machine());
    let large = 1 << 21;
    core.set_pages(0, vec![range(1, 0, PAGE, large - 1, 21)]);
    core.memory.run().translate(0.into(), 1_000, &mut core.signals);
    core.set_pages(0, vec![range(1, 0, 2 * PAGE, large - 1, 21)]);
    core.memory.run().translate(PAGE.into(), 9_000, &mut core.signals);
    assert_eq!(core.get(Signal::L1dTlbRefill), 1, "the segment has grown within its page");
    core.set_pages(0, vec![range(1, 0, 2 * PAGE, 2 * PAGE - 1, 21), range(2, 2 * PAGE, large, large - 1, 16)]);
    core.memory.run().translate((2 * PAGE).into(), 19_000, &mut core.signals);
    assert_eq!(core.get(Signal::L2dTlbRefill), 2, "another segment has a page of its own");
}

#[test]
fn the_large_page_at_the_end_of_a_segment_translates_nothing_of_the_next_one() {
    let large = 1 << 21;
    let range = |segment, start, end, shift| {
        let bounds = Bounds { segment, first: start, last: end - 1 };
        PageRange { start, end, shift, placement: Placement::FirstTouch, moved: 0, shared: None, bounds }
    };
    let translate =
        |core: &mut Core, addr: u64, t| core.memory.run().translate(addr.into(), t, &mut core.signals).physical;
    // Both orders of first accesses, and a second segment with small and with large pages.
    for (first, second, shift) in [(0, PAGE, 16), (PAGE, 0, 16), (0, PAGE, 21), (PAGE, 0, 21)] {
        let mut core = Core::new(&machine());
        core.set_pages(3, vec![range(1, 0, PAGE, 21), range(2, PAGE, 2 * large, shift)]);
        let before = [first, second].map(|addr| translate(&mut core, addr, 1_000 + addr));
        let in_first_level = [first, second].map(|addr| translate(&mut core, addr + 8, 200_000));
        assert_eq!(in_first_level, before.map(|at| at + 8));
        assert_eq!(core.get(Signal::L2dTlbRefill), 2, "a page each, {first:#x} first, {shift} bits");
        // Small pages drive both out of the first level.
        (0..16).for_each(|n| {
            translate(&mut core, large + n * PAGE, 300_000 + 1_000 * n);
        });
        let walks = core.get(Signal::L2dTlbRefill);
        assert_eq!([first, second].map(|addr| translate(&mut core, addr, 400_000)), before);
        assert_eq!(core.get(Signal::L2dTlbRefill), walks, "the second level has both");
    }
}
