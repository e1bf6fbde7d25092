//! Memory tiers: latency, the limits of both directions, and lines of theirs that several CMGs hold.

use fxscope_machine::spec::MemoryTier;
use fxscope_memory::chip::{Holder, Request};
use fxscope_memory::hierarchy::Cause;
use fxscope_memory::sectors::Joins;

use super::cores::{Cores, node};
use super::*;

/// A tier that reads a line in 16 cycles and writes one in 32, or both in 24.
const READ: Cycle = 16;
const WRITE: Cycle = 32;
const BOTH: Cycle = 24;
const LATENCY_NS: u64 = 250;
/// When a line is read while others wait for being written.
const ASKED: Cycle = 3_000;

/// A machine with such a tier as its fifth node, as large as the others.
fn with_tier() -> Spec {
    let mut spec = machine();
    let rate = |cycles: Cycle| LINE * spec.clock.core_hz / cycles;
    let tier = MemoryTier {
        name: "cxl".to_owned(),
        latency_ns: LATENCY_NS,
        read_bytes_per_second: rate(READ),
        write_bytes_per_second: rate(WRITE),
        total_bytes_per_second: rate(8),
        bytes: spec.topology.node_bytes,
        distance: 40,
    };
    spec.tables.memory_tiers.add(&tier);
    spec.check().expect("a machine");
    spec
}

/// The first address of the tier.
fn tier(spec: &Spec) -> u64 {
    u64::from(spec.topology.cmgs) * node(spec)
}

/// Asks the chip for `n` lines of the tier at once. Returns when they are ready to be sent.
fn read(chip: &mut Chip, spec: &Spec, n: u64, t: Cycle, signals: &mut Signals) -> Vec<Cycle> {
    let request = |i: u64| Request {
        line: tier(spec) / LINE + i,
        at: t,
        cause: Cause::Demand,
        holder: Holder::None,
        write: false,
        joins: Joins::default(),
    };
    (0..n).map(|i| chip.read::<true>(CoreId { cmg: 0, core: 0 }, request(i), signals).0.ready).collect()
}

/// The mean distance of times.
fn period(times: &[Cycle]) -> f64 {
    (times[times.len() - 1] - times[0]) as f64 / (times.len() - 1) as f64
}

#[test]
fn a_load_takes_the_latency_of_the_tier_from_any_core_and_counts_as_a_read_of_the_tier() {
    let spec = with_tier();
    let cycles = LATENCY_NS * spec.clock.core_hz / 1_000_000_000;
    for position in [0, 11, 13, 47] {
        let mut core = Core::at(&spec, position);
        assert_eq!(core.load(tier(&spec), 1_000), (cycles, Level::Memory), "position {position}");
        let counts = [Signal::TierRead, Signal::MainMemoryRead, Signal::BusReadTotalMem].map(|of| core.get(of));
        assert_eq!(counts, [1, 0, 0]);
        assert_eq!(core.load(0, 5_000).1, Level::Memory);
        assert_eq!(core.get(Signal::TierRead), 1, "local memory is no tier");
    }
}

#[test]
fn lines_are_read_at_the_rate_of_reads() {
    let spec = with_tier();
    let (mut chip, mut signals) = (Chip::new(&spec), Signals::default());
    let times = read(&mut chip, &spec, 200, 1_000, &mut signals);
    assert!((period(&times) - READ as f64).abs() < 0.1, "{}", period(&times));
    assert_eq!(signals.get(Signal::TierRead), 200);
}

#[test]
fn writes_take_nothing_from_reads_unless_both_together_are_limited() {
    let reads_beside_writes = |spec: &Spec| {
        let (mut chip, mut signals) = (Chip::new(spec), Signals::default());
        for i in 0..100 {
            chip.write_memory::<true>(0, tier(spec) / LINE + 10_000 + i, 1_000, &mut signals);
        }
        assert_eq!(signals.get(Signal::TierWrite), 100);
        period(&read(&mut chip, spec, 100, 1_000, &mut signals))
    };
    let mut spec = with_tier();
    assert!((reads_beside_writes(&spec) - READ as f64).abs() < 0.2);
    // 100 lines are written first, then as many are read.
    spec.tables.memory_tiers.total_bytes_per_second = vec![LINE * spec.clock.core_hz / BOTH];
    let together = reads_beside_writes(&spec);
    assert!(together > READ as f64 + 4.0, "{together}");
}

#[test]
fn misses_wait_while_more_lines_are_to_be_written_than_l2_keeps() {
    let spec = with_tier();
    let first_read = |writes: u64| {
        let (mut chip, mut signals) = (Chip::new(&spec), Signals::default());
        for i in 0..writes {
            // As fast as the CMG's port to the ring takes them.
            chip.write_memory::<true>(0, tier(&spec) / LINE + 10_000 + i, 1_000 + 5 * i, &mut signals);
        }
        read(&mut chip, &spec, 1, ASKED, &mut signals)[0]
    };
    let kept = u64::from(spec.l2.miss_buffers);
    let free = first_read(0);
    assert!(first_read(kept / 2).abs_diff(free) < WRITE, "there is room");
    // There is room again when all but as many as L2 keeps are written.
    let room = 1_000 + 100 * WRITE;
    let waited = first_read(kept + 100) - free;
    assert!(waited.abs_diff(room - ASKED - spec.l2_timing.miss_detect) < 2 * WRITE, "{waited}");
}

#[test]
fn a_line_of_a_tier_that_another_cmg_has_changed_comes_from_there_and_is_written_to_the_tier() {
    let mut cores = Cores::on_two_cmgs_of(with_tier());
    let addr = tier(&cores.spec);
    cores.store(1, addr, 1_000);
    let latency = LATENCY_NS * cores.spec.clock.core_hz / 1_000_000_000;
    assert!(cores.load(0, addr, 5_000).0 < latency);
    assert_eq!([Signal::TierRead, Signal::TierWrite].map(|signal| cores.get(signal)), [1, 1]);
    // Now both have it; a write takes it away from the other.
    cores.store(0, addr, 10_000);
    cores.load(1, addr, 20_000);
    assert_eq!([Signal::TierRead, Signal::TierWrite].map(|signal| cores.get(signal)), [1, 2]);
}
