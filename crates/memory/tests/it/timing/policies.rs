//! The policies that a machine selects, at work in the hierarchy.

use super::*;
use fxscope_machine::spec::{PrefetchPolicy, Replacement};

fn with(prefetch: PrefetchPolicy) -> Spec {
    let mut spec = fxscope_machine::load("a64fx", &[]).expect("built in");
    spec.tables.prefetch.policy = prefetch;
    spec
}

/// Loads `n` lines, `step` lines apart, one each 2,000 cycles, when all that they have caused is done.
fn loads(core: &mut Core, n: u64, step: u64) {
    let mut t = 1_000;
    for i in 0..n {
        let line = i * step;
        t = core.memory.run().translate((line * LINE).into(), t, &mut Signals::default()).ready;
        core.load(line * LINE, t);
        t = core.now(t + 2_000);
    }
}

#[test]
fn next_line_finds_every_line_of_a_stream_but_the_first_one_of_each_page() {
    let mut core = Core::new(&with(PrefetchPolicy::NextLine));
    let page = (64 << 10) / LINE;
    loads(&mut core, 3 * page, 1);
    // The prefetch that leaves a page misses the TLB, and is dropped.
    assert_eq!(core.get(Signal::L1dCacheRefillDm), 3);
    assert_eq!(core.get(Signal::L1dCacheRefillHwprf), 3 * (page - 1));
    assert_eq!(core.get(Signal::BusReadTotalMem), 3 * page, "no line is read for nothing");
}

#[test]
fn next_line_reads_a_line_for_nothing_at_each_access_of_a_stride_of_two_lines_or_more() {
    let mut core = Core::new(&with(PrefetchPolicy::NextLine));
    loads(&mut core, 100, 2);
    assert_eq!((core.get(Signal::L1dCacheRefillDm), core.get(Signal::L1dCacheRefillHwprf)), (100, 100));
}

#[test]
fn the_stream_policy_ignores_misses_without_neighbours_and_next_line_does_not() {
    let prefetched = |policy| {
        let mut core = Core::new(&with(policy));
        loads(&mut core, 50, 7);
        core.get(Signal::L1dCacheRefillHwprf)
    };
    assert_eq!((prefetched(PrefetchPolicy::Stream), prefetched(PrefetchPolicy::NextLine)), (0, 50));
}

#[test]
fn each_cache_has_the_replacement_policy_that_the_machine_selects_for_it() {
    // Five lines of one set of four ways in turn: LRU misses every time in L1D, and L2 has them all.
    let misses = |l1d, l2| {
        let mut spec = machine();
        spec.tables.l1d.replacement = l1d;
        spec.tables.l2.replacement = l2;
        let mut core = Core::new(&spec);
        let mut t = 1_000;
        for i in 0..500 {
            let addr = i % 5 * L1_SET;
            t = core.memory.run().translate(addr.into(), t, &mut Signals::default()).ready;
            core.load(addr, t);
            t = core.now(t + 2_000);
        }
        core.get(Signal::L1dCacheRefillDm)
    };
    assert_eq!(misses(Replacement::Lru, Replacement::Random), 500);
    let random = misses(Replacement::Random, Replacement::Lru);
    // 2 of 5, as in a set of its own.
    assert!((150..250).contains(&random), "{random}");
}
