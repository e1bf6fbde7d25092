//! The stream prefetcher at work.

use super::*;

fn streaming() -> Spec {
    let mut spec = fxscope_machine::load("a64fx", &[]).expect("built in");
    spec.tables.prefetch.l2_stop_hits = 0;
    spec
}

/// Loads `n` lines from `first` on, one each 300 cycles. Walks are waited for; what they read is not counted.
fn stream(core: &mut Core, first: u64, n: u64, mut t: Cycle) -> Cycle {
    for line in first..first + n {
        t = core.memory.translate((line * LINE).into(), t, &mut Signals::default()).ready;
        core.load(line * LINE, t);
        t = core.now(t + 300);
    }
    t
}

#[test]
fn a_stream_finds_its_lines_in_l1_once_it_runs() {
    let mut core = Core::new(&streaming());
    let t = stream(&mut core, 0, 20, 1_000);
    let before = core.get(Signal::L1dCacheRefillDm);
    stream(&mut core, 20, 100, t);
    assert_eq!(core.get(Signal::L1dCacheRefillDm), before);
    assert!(core.get(Signal::L1dCacheRefillHwprf) >= 100);
}

#[test]
fn the_prefetcher_stays_as_far_ahead_as_the_description_says() {
    let mut spec = streaming();
    spec.tables.prefetch.l2_lines = 23;
    spec.tables.prefetch.l1_lines = 5;
    let mut core = Core::new(&spec);
    stream(&mut core, 0, 60, 1_000);
    // The last access was to line 59.
    assert_eq!(core.get(Signal::BusReadTotalMem), 59 + 23 + 1);
    assert_eq!(core.get(Signal::L1dCacheRefill), 59 + 5 + 1);
}

#[test]
fn a_prefetch_that_misses_the_tlb_stops_its_stream() {
    let mut core = Core::new(&streaming());
    let lines = (1 << 16) / LINE;
    stream(&mut core, 0, lines, 1_000);
    // No line of the next page was read, though the stream came to the end of its own.
    assert_eq!(core.get(Signal::BusReadTotalMem), lines);
}

#[test]
fn a_stream_whose_lines_are_in_l2_stops_asking_for_them_there() {
    let mut spec = streaming();
    spec.tables.prefetch.l2_stop_hits = 7;
    let mut core = Core::new(&spec);
    // Into L2, and out of L1D again.
    let t = stream(&mut core, 0, 200, 1_000);
    let t = stream(&mut core, 10_000, 256, t);
    let before = core.get(Signal::L2HwpfStreamPf);
    stream(&mut core, 0, 100, t);
    let asked = core.get(Signal::L2HwpfStreamPf) - before;
    // Two for each access while the distance grows, until seven in a row have hit.
    assert!((7..=8).contains(&asked), "{asked}");
}

#[test]
fn l2_prefetching_of_a_stream_resumes_when_an_l1_prefetch_misses_l2() {
    let mut spec = streaming();
    spec.tables.prefetch.l2_stop_hits = 7;
    let mut core = Core::new(&spec);
    let t = stream(&mut core, 0, 60, 1_000);
    let held = core.get(Signal::BusReadTotalMem);
    let t = stream(&mut core, 10_000, 256, t);
    let before = core.get(Signal::L2HwpfStreamPf);
    // Lines up to `held` are in L2, those behind are not.
    stream(&mut core, 0, held + 60, t);
    assert!(core.get(Signal::L2HwpfStreamPf) - before >= 60);
}

#[test]
fn software_prefetch_is_dropped_when_it_misses_the_tlb() {
    let mut core = Core::new(&machine());
    core.memory.prefetch_instruction(0.into(), 1, 1_000, &mut core.signals);
    assert_eq!(core.get(Signal::BusReadTotalMem), 0);
    core.memory.translate(0.into(), 2_000, &mut core.signals);
    core.memory.prefetch_instruction(0.into(), 1, 5_000, &mut core.signals);
    assert_eq!(core.get(Signal::L1dCacheRefillPrf), 1);
    assert_eq!(core.load(0, 9_000).1, Level::L1);
}

#[test]
fn software_prefetch_into_l2_leaves_l1_alone() {
    let mut core = Core::new(&machine());
    core.memory.translate(0.into(), 1_000, &mut core.signals);
    core.memory.prefetch_instruction(0.into(), 2, 5_000, &mut core.signals);
    assert_eq!(core.get(Signal::L2dCacheRefillPrf), 1);
    assert_eq!(core.load(0, 9_000).1, Level::L2);
}
