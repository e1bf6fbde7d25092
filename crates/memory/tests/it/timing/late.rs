//! Late in a run every resource is as limited as at its beginning: what has passed is forgotten, and room is made for
//! what comes.

use super::cores::{Cores, node};
use super::*;

/// Far beyond what a calendar remembers at a time, whatever the length of its slots.
const LATE: Cycle = 100 * fxscope_calendar::SPAN;

/// Returns when each of `lines` lines arrives, accessed at the same late time by a core that has accessed them before. `again`:
/// after other lines of their sets have evicted them from L1D.
fn late(spec: &Spec, lines: u64, again: bool) -> Vec<Cycle> {
    let mut core = Core::new(spec);
    core.memory.run().translate(0.into(), 0, &mut Signals::default());
    for i in 0..if again { lines } else { 0 } {
        (0..5).for_each(|n| _ = core.load(i * LINE + n * L1_SET, 1_000 + 5_000 * i + 1_000 * n));
    }
    let t = core.now(LATE);
    (0..lines).map(|i| core.access(i * LINE, t, false).at).collect()
}

/// Asserts that each comes `period` cycles behind the one before. The first may come anywhere in its period.
fn assert_period(at: &[Cycle], period: Cycle) {
    let (n, span) = (at.len() as Cycle - 1, at[at.len() - 1] - at[0]);
    assert!(((n - 1) * period + 1..=n * period + 4).contains(&span), "{at:?}");
}

#[test]
fn the_bus_from_l2_carries_a_line_each_four_cycles() {
    assert_period(&late(&machine(), 8, true), 4);
}

#[test]
fn requests_to_l2_keep_their_distance() {
    let mut spec = machine();
    spec.tables.l2_timing.request_period = 11.0;
    assert_period(&late(&spec, 8, true), 11);
}

#[test]
fn memory_sends_a_line_each_period_of_its_channel() {
    let mut spec = machine();
    // So slow that nothing else limits the rate: two bytes a cycle.
    spec.tables.memory.peak_bytes_per_second = 2 * spec.clock.core_hz;
    spec.tables.memory.read_efficiency = 100.0;
    assert_period(&late(&spec, 8, false), LINE / 2);
}

#[test]
fn a_bank_of_l2_takes_a_request_a_cycle() {
    let mut cores = Cores::at(machine(), &[0, 1, 2, 3]);
    // Each core has a line of its own in the same bank, in L2 only.
    let line = |core: usize| u64::from(cores.spec.l2_timing.banks) * core as u64 * LINE;
    let lines = [0, 1, 2, 3].map(line);
    for (core, line) in lines.into_iter().enumerate() {
        (0..5).for_each(|n| _ = cores.load(core, line + n * L1_SET, 10_000 * (1 + core as u64) + 1_000 * n));
    }
    cores.all_at(LATE);
    let took = [0, 1, 2, 3].map(|core| cores.run(core, LATE).access(lines[core], LATE, false).at - LATE);
    let expected = [0, 1, 2, 3].map(|core| hit(&cores.spec, core) + core as Cycle);
    assert_eq!(took, expected, "one after the other");
}

/// Cycles from a flow of core number `core` to its line, which L2 has, moving in.
fn hit(spec: &Spec, core: usize) -> Cycle {
    let t = &spec.l2_timing;
    let last = u64::from(spec.topology.cores_per_cmg) - 1;
    let hit = t.hit_nearest + (t.hit_farthest - t.hit_nearest) * core as u64 / last;
    hit - spec.load_store.move_in - spec.load_store.load_integer
}

#[test]
fn the_ring_carries_lines_at_the_rate_of_its_ports() {
    let mut spec = machine();
    // A line each 256 cycles.
    (spec.tables.ring.bytes_per_cycle, spec.tables.ring.port_efficiency) = (1, 100.0);
    let mut cores = Cores::on_two_cmgs_of(spec);
    let base = node(&cores.spec);
    cores.run(0, 0).memory.run().translate(base.into(), 0, &mut Signals::default());
    let t = 100 * LATE;
    let core = cores.all_at(t);
    let at: Vec<Cycle> = (0..4).map(|i| core.access(base + i * LINE, t, false).at).collect();
    assert_period(&at, 256);
}
