//! Accesses without active elements: whether their pages are looked up, and what it takes when there is none.

use fxscope_counts::Signal;
use fxscope_memory::{Bounds, PageRange, Placement};

use super::*;

const TRAP: Cycle = 3_000;
/// Nothing is mapped from here on.
const END: u64 = 1 << 30;

/// A core whose machine looks up such pages, or does not.
fn core(looks_up: bool) -> (Core, Spec) {
    let settings = [("tlb.inactive_lookup", looks_up.to_string()), ("tlb.absent_trap", TRAP.to_string())];
    let spec = fxscope_machine::load("a64fx", &settings.map(|(key, value)| (key.to_owned(), value))).expect("valid");
    let mut core = Core::new(&spec);
    let all = PageRange {
        start: 0,
        end: END,
        shift: 16,
        placement: Placement::FirstTouch,
        moved: 0,
        shared: None,
        bounds: Bounds::ALL,
    };
    core.set_pages(0, vec![all]);
    (core, spec)
}

fn walks(core: &Core) -> u64 {
    core.signals.get(Signal::L2dTlbRefill)
}

/// What an access without active elements takes.
fn inactive(core: &mut Core, addr: u64, t: Cycle) -> Cycle {
    core.memory.run().inactive(addr.into(), t, &mut core.signals) - t
}

#[test]
fn a_machine_that_does_not_look_them_up_pays_nothing() {
    let (mut core, _) = core(false);
    for addr in [0, END, u64::MAX >> 8] {
        assert_eq!(inactive(&mut core, addr, 100), 0);
    }
    assert_eq!(walks(&core), 0);
}

#[test]
fn a_page_that_is_not_there_is_looked_for_again_each_time() {
    let (mut core, spec) = core(true);
    for (i, addr) in [END, END, END + 64, 5].into_iter().enumerate() {
        let took = inactive(&mut core, addr, 100_000 * (i as u64 + 1));
        // A walk reads descriptors, the last one at least, and the system takes its time.
        let least = spec.tlb.l2_hit + walks::read_from_l2(&spec) + spec.tlb.walk_extra + TRAP;
        assert!(took >= least, "{took} for {least}");
        assert_eq!(walks(&core), i as u64 + 1);
    }
    // The last one was mapped, but never touched, and is not now either.
    core.memory.run().translate(5.into(), 1_000_000, &mut core.signals);
    assert_eq!(walks(&core), 5);
}

#[test]
fn a_page_that_is_there_is_translated_as_for_any_access() {
    let (mut core, _) = core(true);
    core.memory.run().translate(5.into(), 1_000, &mut core.signals);
    assert_eq!(inactive(&mut core, 77, 10_000), 0, "the TLB has it");
    assert_eq!(walks(&core), 1);
}
