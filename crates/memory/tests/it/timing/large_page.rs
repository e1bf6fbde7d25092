//! A set-associative TLB beside the fully associative one, and misses that software handles.

use fxscope_memory::tlb::Tlb;
use fxscope_memory::{Bounds, PageRange, Placement};

use super::*;

const MIB: u64 = 1 << 20;
/// The size that the set-associative TLB serves, and one that it does not.
const SERVED: u64 = 4 * MIB;
const OTHER: u64 = 32 * MIB;

fn spec() -> Spec {
    fxscope_machine::load("k-computer", &[]).expect("built in")
}

/// Translates page `n` of pages of `bytes`: whether it was there.
fn touch(tlb: &mut Tlb, bytes: u64, n: u64) -> bool {
    let (addr, shift) = (n * bytes + 24, bytes.trailing_zeros());
    if tlb.hit(addr).is_some() {
        return true;
    }
    assert_eq!(tlb.second_level::<true>(addr, shift, 1_000), Err(1_000), "both are asked at once");
    tlb.insert(addr, shift, n * bytes, 1_000);
    false
}

#[test]
fn a_set_holds_as_many_pages_as_it_has_ways_and_gives_up_the_least_recently_used() {
    let tables = spec().tables.tlb;
    let (mut tlb, sets) = (Tlb::new(&tables), u64::from(tables.l2_entries / tables.l2_ways));
    assert!(!touch(&mut tlb, SERVED, 0) && !touch(&mut tlb, SERVED, sets));
    assert!(touch(&mut tlb, SERVED, 0), "used again");
    assert!(!touch(&mut tlb, SERVED, 2 * sets), "a third page of the set");
    assert!(touch(&mut tlb, SERVED, 0) && !touch(&mut tlb, SERVED, sets));
}

#[test]
fn three_pages_of_one_set_in_turn_miss_each_time_and_in_three_sets_never_again() {
    let tables = spec().tables.tlb;
    let sets = u64::from(tables.l2_entries / tables.l2_ways);
    let misses = |distance: u64| {
        let mut tlb = Tlb::new(&tables);
        (0..30).filter(|i| !touch(&mut tlb, SERVED, i % 3 * distance)).count()
    };
    assert_eq!((misses(sets), misses(1)), (30, 3));
}

#[test]
fn pages_of_other_sizes_have_the_fully_associative_tlb_for_themselves() {
    let tables = spec().tables.tlb;
    let mut tlb = Tlb::new(&tables);
    let entries = u64::from(tables.l1_entries);
    (0..entries).for_each(|n| assert!(!touch(&mut tlb, OTHER, n)));
    (1 << 20..(1 << 20) + 256).for_each(|n| assert!(!touch(&mut tlb, SERVED, n)));
    (0..entries).for_each(|n| assert!(touch(&mut tlb, OTHER, n), "page {n}"));
    (1 << 20..(1 << 20) + 256).for_each(|n| assert!(touch(&mut tlb, SERVED, n)));
    assert!(!touch(&mut tlb, OTHER, entries), "one more than there are entries");
    assert!(!touch(&mut tlb, OTHER, 0) && touch(&mut tlb, OTHER, 2), "the least recently used has left");
}

#[test]
fn what_is_forgotten_is_gone_from_both_and_its_place_is_filled_first() {
    let tables = spec().tables.tlb;
    let mut tlb = Tlb::new(&tables);
    let sets = u64::from(tables.l2_entries / tables.l2_ways);
    for n in 0..2 {
        touch(&mut tlb, SERVED, n * sets);
        touch(&mut tlb, OTHER, (1 << 20) + n);
    }
    tlb.forget(sets * SERVED, sets * SERVED + SERVED);
    tlb.forget(OTHER << 20, (OTHER << 20) + OTHER);
    assert!(!touch(&mut tlb, SERVED, 2 * sets), "in place of the forgotten one");
    assert!(touch(&mut tlb, SERVED, 0) && !touch(&mut tlb, OTHER, 1 << 20) && touch(&mut tlb, OTHER, (1 << 20) + 1));
}

#[test]
fn asking_whether_a_page_is_there_is_no_use_of_it() {
    let tables = spec().tables.tlb;
    let mut tlb = Tlb::new(&tables);
    let sets = u64::from(tables.l2_entries / tables.l2_ways);
    touch(&mut tlb, SERVED, 0);
    touch(&mut tlb, SERVED, sets);
    assert!(tlb.peek(0).is_some() && tlb.holds(0, SERVED.trailing_zeros(), 2_000));
    touch(&mut tlb, SERVED, 2 * sets);
    assert!(tlb.peek(0).is_none() && !tlb.holds(0, SERVED.trailing_zeros(), 2_000));
}

#[test]
fn a_miss_costs_a_trap_and_reads_no_tables_and_traps_wait_for_each_other() {
    let spec = spec();
    let trap = spec.tlb.miss_trap;
    let mut core = Core::new(&spec);
    let shift = SERVED.trailing_zeros();
    core.set_pages(
        0,
        vec![PageRange {
            start: 0,
            end: 1 << 40,
            shift,
            placement: Placement::Node(0),
            moved: 0,
            shared: None,
            bounds: Bounds::ALL,
        }],
    );
    let mut translate = |addr: u64, t: Cycle| core.memory.run().translate(addr.into(), t, &mut core.signals).ready - t;
    assert_eq!(translate(0, 1_000), trap);
    assert_eq!(translate(8, 5_000), 0);
    assert_eq!((translate(SERVED, 10_000), translate(2 * SERVED, 10_000)), (trap, 2 * trap));
    assert_eq!((core.get(Signal::L2dTlbRefill), core.get(Signal::L2dCacheRefillDm)), (3, 0));
}
