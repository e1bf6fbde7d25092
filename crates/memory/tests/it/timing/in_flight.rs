//! Lines in flight between the caches: what an access that finds one waits for, and as what its wait counts.

use super::cores::Cores;
use super::*;

#[test]
fn a_line_in_flight_from_another_core_is_no_l2_miss_for_those_who_find_it() {
    let mut cores = Cores::at(machine(), &[0, 1, 2]);
    cores.store(0, 0, 1_000);
    let first = 2_000 + cores.load(1, 0, 2_000).0;
    assert_eq!(cores.load(2, 0, 2_001), (first - 2_001, Level::L2), "L2 has it, and waits for core 0 only");
}

#[test]
fn a_line_in_flight_from_memory_is_an_l2_miss_for_those_who_find_it_and_known_as_soon() {
    let mut cores = Cores::neighbours();
    cores.load(0, 0, 1_000);
    let t = 1_020;
    let misses = cores.run(1, t).access(0, t, false).misses;
    let timing = &cores.spec.l2_timing;
    assert_eq!(misses.level(), Level::Memory);
    assert_eq!(misses.l2, t + timing.request + timing.miss_detect);
}

#[test]
fn a_line_that_l2_is_zeroing_is_no_l2_miss_for_those_who_find_it() {
    // The farthest core zeroes a line; the nearest one would have it sooner.
    let mut cores = Cores::at(machine(), &[11, 0]);
    let zero = cores.run(0, 1_000);
    zero.memory.run().translate(0.into(), 0, &mut Signals::default());
    let heard = zero.memory.run().zero_line(0.into(), 1_000, &mut zero.signals);
    let (request, to_core) = cores.way();
    let read = cores.spec.l2_timing.hit_farthest - to_core - cores.use_after();
    let there = heard - request + read + (to_core - request) + cores.use_after();
    assert_eq!(
        cores.load(1, 0, 1_001),
        (there - 1_001, Level::L2),
        "read behind the zeros, not when the other core knows"
    );
}

#[test]
fn a_demand_access_that_finds_a_line_on_its_way_into_l2_by_a_prefetch_takes_the_prefetch_over_once() {
    let swaps = |prefetched: bool, behind: Cycle| {
        let mut cores = Cores::at(machine(), &[0, 1, 2]);
        let t = 10_000;
        if prefetched {
            let core = cores.run(0, t);
            core.memory.run().translate(0.into(), 0, &mut Signals::default());
            core.memory.run().prefetch_instruction(0.into(), 1, 2, t, &mut core.signals);
        } else {
            cores.load(0, 0, t);
        }
        [1, 2].map(|core| {
            cores.load(core, 0, t + behind);
            cores.get(Signal::L2dSwapDm)
        })
    };
    assert_eq!(swaps(true, 20), [1, 1], "on its way, for the first only");
    assert_eq!(swaps(true, 5_000), [0, 0], "there");
    assert_eq!(swaps(false, 20), [0, 0], "on its way by a demand access");
}

/// Cycles from a flow of the nearest core to its request at memory, and from there until its line can be written.
fn ways_to_memory(spec: &Spec) -> (Cycle, Cycle) {
    let there = spec.l2_timing.request + spec.l2_timing.miss_detect;
    (there, spec.memory.latency_nearest - there - spec.load_store.move_in - spec.load_store.load_integer)
}

#[test]
fn waits_for_lines_are_counted_from_the_buffer_or_the_request_to_the_line() {
    use Signal::{L1MissWait, L2MissWait, L2MissWaitMainDm, MainMemoryReadWait};
    let spec = machine();
    let (there, back) = ways_to_memory(&spec);
    let to_l2 = back - u64::from(spec.l1d.line_bytes / spec.l2_timing.fill_bytes_per_cycle);
    let counts =
        |core: &Core| [L1MissWait, L2MissWait, MainMemoryReadWait, L2MissWaitMainDm].map(|signal| core.get(signal));
    let mut core = Core::new(&spec);
    core.load(0, 10_000);
    assert_eq!(counts(&core), [there + back, to_l2, to_l2, to_l2], "a load");
    let mut core = Core::new(&spec);
    core.memory.run().translate(0.into(), 0, &mut Signals::default());
    core.memory.run().prefetch_instruction(0.into(), 1, 1, 10_000, &mut core.signals);
    assert_eq!(counts(&core), [there + back, to_l2, to_l2, 0], "a prefetch");
}

/// Cycles with outstanding misses: of loads, of loads that main memory serves, of instruction fetches that it serves.
fn cycles_with_misses(core: &Core) -> [u64; 3] {
    use Signal::{L2MissCodeCyclesMain, L2MissLoadCycles, L2MissLoadCyclesMain};
    [L2MissLoadCycles, L2MissLoadCyclesMain, L2MissCodeCyclesMain].map(|signal| core.get(signal))
}

#[test]
fn cycles_with_misses_of_loads_are_counted_once_however_many_are_outstanding() {
    let spec = machine();
    let (_, back) = ways_to_memory(&spec);
    let mut core = Core::new(&spec);
    core.load(0, 10_000);
    assert_eq!(cycles_with_misses(&core), [back, back, 0], "from the miss of L2 on");
    core.load(4 * LINE, 10_040);
    assert_eq!(cycles_with_misses(&core), [back + 40, back + 40, 0], "40 cycles later");
    core.load(LINE, 10_010);
    assert_eq!(cycles_with_misses(&core), [back + 40, back + 40, 0], "in between");
    core.load(8 * LINE, 20_000);
    assert_eq!(cycles_with_misses(&core), [2 * back + 40, 2 * back + 40, 0], "alone");
    let others = [Signal::L2MissLoadBurstsMain, Signal::L2MissMainDm, Signal::L2MissMainStore];
    assert_eq!(others.map(|signal| core.get(signal)), [2, 4, 0]);
}

#[test]
fn misses_of_stores_and_prefetches_are_none_that_loads_wait_for() {
    let spec = machine();
    let mut core = Core::new(&spec);
    (0..50).for_each(|line| core.store(line * LINE, 10_000 + 400 * line));
    core.memory.run().translate((64 * LINE).into(), 0, &mut Signals::default());
    core.memory.run().prefetch_instruction((64 * LINE).into(), 1, 1, 50_000, &mut core.signals);
    assert_eq!(cycles_with_misses(&core), [0, 0, 0]);
    assert_eq!([Signal::L2MissMainDm, Signal::L2MissMainStore].map(|signal| core.get(signal)), [50, 50]);
}

#[test]
fn a_load_that_finds_a_prefetched_line_in_flight_waits_for_its_rest() {
    let spec = machine();
    let (there, back) = ways_to_memory(&spec);
    let mut core = Core::new(&spec);
    core.memory.run().translate(0.into(), 0, &mut Signals::default());
    core.memory.run().prefetch_instruction(0.into(), 1, 1, 10_000, &mut core.signals);
    let behind = 100;
    core.load(0, 10_000 + behind);
    let rest = there + back - behind - spec.load_store.load_integer;
    assert_eq!(cycles_with_misses(&core), [rest, rest, 0], "known to be missing when the load would have had it");
}

#[test]
fn cycles_with_misses_of_instruction_fetches_are_counted_apart() {
    let spec = machine();
    let (_, back) = ways_to_memory(&spec);
    let mut core = Core::new(&spec);
    core.memory.run().fetch(0, 1_000, &mut core.signals);
    let [loads, _, code] = cycles_with_misses(&core);
    assert!(code > 0 && code <= back, "{code} of {back}");
    assert!(loads > 0, "the walk's, for the translation of the address");
}

#[test]
fn a_core_takes_a_line_that_l2_had_from_another_one_when_it_has_come_and_not_before() {
    let mut cores = Cores::neighbours();
    for i in 0..5 {
        cores.load(0, i * L1_SET, 1_000 + 1_000 * i);
    }
    let hit = cores.spec.l2_timing.hit_nearest - cores.use_after();
    assert_eq!(cores.store(0, 0, 10_000), hit, "L2 alone has it");
    let there = 10_000 + hit + cores.spec.load_store.move_in;
    let (request, to_core) = cores.way();
    assert_eq!(10_001 + cores.store(1, 64, 10_001), there + cores.snoop(true) - request + to_core);
}
