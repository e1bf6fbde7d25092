//! Lines that three CMGs deal with: the one whose memory has it, one that holds it, and one that wants it.

use super::cores::{Cores, node};
use super::*;

/// The nearest core of each CMG, in their order, and a second one of CMG 1.
fn of_all_cmgs() -> Cores {
    let spec = machine();
    let each = spec.topology.cores_per_cmg;
    Cores::at(spec, &[0, each, 2 * each, 3 * each, each + 1])
}

/// Cycles from a CMG to one of its row, and to one of the other row: CMGs 0 and 1 are a row, and 2 and 3.
fn ways(cores: &Cores) -> (Cycle, Cycle) {
    (cores.spec.ring.hop, cores.spec.ring.row_hop)
}

/// A line of the memory of CMG 2.
fn line_of_cmg_2(cores: &Cores) -> u64 {
    2 * node(&cores.spec)
}

#[test]
fn a_line_that_another_cmg_has_changed_is_asked_for_at_its_home_and_comes_straight_from_there() {
    let mut cores = of_all_cmgs();
    let addr = line_of_cmg_2(&cores);
    cores.store(1, addr, 1_000);
    let (request, to_core) = cores.way();
    let (near, far) = ways(&cores);
    let asked = request + cores.spec.l2_timing.miss_detect + far + far;
    assert_eq!(cores.load(0, addr, 5_000).0, asked + cores.snoop(true) + near + to_core + cores.use_after());
    // CMG 1 writes it to the memory of CMG 2.
    assert_eq!((cores.get(Signal::BusWriteTotalCmg2), cores.get(Signal::BusWriteTotalMem)), (1, 0));
}

#[test]
fn a_core_beside_one_that_another_cmg_asks_waits_until_l2_has_its_line() {
    let mut cores = of_all_cmgs();
    let addr = line_of_cmg_2(&cores);
    cores.store(1, addr, 1_000);
    cores.load(0, addr, 5_000);
    let (request, to_core) = cores.way();
    let asked = 5_000 + request + cores.spec.l2_timing.miss_detect + 2 * cores.spec.ring.row_hop;
    let t = asked + 1;
    assert_eq!(t + cores.load(4, addr, t).0, asked + cores.snoop(true) + to_core + cores.use_after());
}

#[test]
fn a_clean_line_of_another_cmg_s_l2_takes_a_hit_there_and_the_way() {
    let mut cores = Cores::on_two_cmgs();
    // The only core that had the line has dropped it.
    (0..5).for_each(|i| _ = cores.load(0, i * L1_SET, 1_000 + 1_000 * i));
    let (request, to_core) = cores.way();
    let (hop, miss_detect) = (cores.spec.ring.hop, cores.spec.l2_timing.miss_detect);
    let hit = cores.spec.l2_timing.hit_nearest - to_core - cores.use_after();
    let expected = request + miss_detect + hop + hit + hop + (to_core - request) + cores.use_after();
    assert_eq!(cores.load(1, 0, 10_000).0, expected);
}

#[test]
fn a_changed_line_that_another_cmg_reads_goes_to_memory_when_its_core_has_sent_it() {
    let mut spec = machine();
    // Nothing else takes the channel as long as this write.
    spec.tables.memory.write_cost = 400.0;
    let latency = |behind: i64| {
        let mut cores = Cores::on_two_cmgs_of(spec.clone());
        cores.store(1, 0, 1_000);
        cores.load(0, LINE, 2_000);
        cores.load(0, 0, 5_000);
        let asked = 5_000 + cores.way().0 + spec.l2_timing.miss_detect + spec.ring.hop;
        let written = asked + cores.snoop(true) + spec.ring.hop;
        // The load asks memory at that time.
        let t = written - cores.way().0 - spec.l2_timing.miss_detect;
        cores.load(0, 2 * LINE, t.saturating_add_signed(behind)).0
    };
    // What the ring carries may wait for its slots.
    assert_eq!(latency(-8), spec.memory.latency_nearest);
    let bytes_per_cycle = spec.memory.peak_bytes_per_second as f64 / spec.clock.core_hz as f64;
    let write = 400.0 * LINE as f64 / bytes_per_cycle / (spec.memory.read_efficiency / 100.0);
    let waited = (latency(16) - spec.memory.latency_nearest) as f64;
    assert!((write - 20.0..write).contains(&waited), "{waited} of {write}");
}

#[test]
fn a_write_to_a_line_that_two_cmgs_share_waits_for_the_other_by_way_of_the_home() {
    let mut cores = of_all_cmgs();
    let addr = line_of_cmg_2(&cores);
    cores.load(0, addr, 1_000);
    cores.load(1, addr, 5_000);
    let (request, _) = cores.way();
    let (near, far) = ways(&cores);
    // To the home, on to CMG 1, and from there to CMG 0.
    let expected = request + far + far + cores.snoop(false) + near + request;
    assert_eq!(cores.store(0, addr, 10_000), expected);
    assert_eq!(cores.load(1, addr, 20_000).1, Level::Memory, "it has lost its copy");
}

#[test]
fn a_write_to_a_line_that_others_share_waits_for_the_last_of_them() {
    let mut cores = of_all_cmgs();
    let addr = line_of_cmg_2(&cores);
    cores.load(1, addr, 1_000);
    cores.load(3, addr, 5_000);
    let (request, to_core) = cores.way();
    let (near, far) = ways(&cores);
    // CMG 3 is near the home and far from CMG 0; CMG 1, the other way round, has as far.
    let expected = request + cores.spec.l2_timing.miss_detect + far + (near + far) + cores.snoop(false) + to_core;
    assert_eq!(cores.store(0, addr, 10_000), expected);
    let levels = [1, 3].map(|core| cores.load(core, addr, 20_000 + 10_000 * core as u64).1);
    assert_eq!(levels, [Level::Memory; 2]);
}

#[test]
fn of_several_cmgs_that_share_a_line_its_home_sends_it() {
    let mut cores = of_all_cmgs();
    let addr = line_of_cmg_2(&cores);
    for (n, core) in [1, 2, 3].into_iter().enumerate() {
        cores.load(core, addr, 1_000 + 5_000 * n as Cycle);
    }
    let sent = [Signal::ReadL2Cmg1, Signal::ReadL2Cmg2, Signal::ReadL2Cmg3].map(|signal| cores.get(signal));
    cores.load(0, addr, 20_000);
    let now = [Signal::ReadL2Cmg1, Signal::ReadL2Cmg2, Signal::ReadL2Cmg3].map(|signal| cores.get(signal));
    assert_eq!([now[0] - sent[0], now[1] - sent[1], now[2] - sent[2]], [0, 1, 0]);
}

/// Cycles from a core's `DC ZVA` at `t` to its knowing that L2 has zeroed the line.
fn zero(cores: &mut Cores, core: usize, addr: u64, t: Cycle) -> Cycle {
    let core = cores.run(core, t);
    core.memory.run().translate(addr.into(), 0, &mut Signals::default());
    core.memory.run().zero_line(addr.into(), t, &mut core.signals) - t
}

#[test]
fn a_line_that_only_another_cmg_holds_is_zeroed_when_that_one_has_given_it_up() {
    let mut cores = of_all_cmgs();
    cores.load(1, 0, 1_000);
    let (request, _) = cores.way();
    let hop = cores.spec.ring.hop;
    // It may have changed the line.
    let zero_in_l2 = cores.spec.l2_timing.zero;
    assert_eq!(zero(&mut cores, 0, 0, 5_000), request + hop + cores.snoop(true) + hop + zero_in_l2 + 2 * request);
    assert_eq!(cores.load(1, 0, 10_000).1, Level::Memory, "it has lost its copy");
}

#[test]
fn a_line_of_another_cmg_s_memory_is_zeroed_when_that_one_has_been_asked() {
    let mut cores = of_all_cmgs();
    let (request, _) = cores.way();
    let zero_in_l2 = cores.spec.l2_timing.zero;
    let asked = request + 2 * cores.spec.ring.row_hop + zero_in_l2 + 2 * request;
    let addr = line_of_cmg_2(&cores);
    assert_eq!(zero(&mut cores, 0, addr, 5_000), asked);
    let hit = cores.spec.l2_timing.hit_nearest - cores.way().1 - cores.use_after();
    assert_eq!(
        zero(&mut cores, 0, LINE, 6_000),
        request + hit + zero_in_l2 + request,
        "of its own memory nobody is asked"
    );
    assert!(request + hit + zero_in_l2 + request < asked);
}
