//! Lines that three CMGs deal with: the one whose memory has it, one that holds it, and one that wants it.

use super::cores::{Cores, node};
use super::*;

/// The nearest core of each CMG, in their order, and a second one of CMG 1.
fn of_all_cmgs() -> Cores {
    let spec = machine();
    let each = spec.topology.cores_per_cmg;
    Cores::at(spec, &[0, each, 2 * each, 3 * each, each + 1])
}

/// A line of the memory of CMG 2. From CMG 0 to CMG 2 it is one hop, from CMG 2 to CMG 1 two, and from CMG 1 to CMG 0
/// one; CMG 3 is beside CMGs 1 and 2.
fn line_of_cmg_2(cores: &Cores) -> u64 {
    2 * node(&cores.spec)
}

#[test]
fn a_line_that_another_cmg_has_changed_is_asked_for_at_its_home_and_comes_straight_from_there() {
    let mut cores = of_all_cmgs();
    let addr = line_of_cmg_2(&cores);
    cores.store(1, addr, 1_000);
    let (request, to_core) = cores.way();
    let hop = cores.spec.ring.hop;
    let asked = request + cores.spec.l2_timing.miss_detect + hop + 2 * hop;
    assert_eq!(cores.load(0, addr, 5_000).0, asked + cores.snoop(true) + hop + to_core + cores.use_after());
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
    let hop = cores.spec.ring.hop;
    let asked = 5_000 + request + cores.spec.l2_timing.miss_detect + hop + 2 * hop;
    let t = asked + 1;
    assert_eq!(t + cores.load(4, addr, t).0, asked + cores.snoop(true) + to_core + cores.use_after());
}

#[test]
fn a_write_to_a_line_that_two_cmgs_share_waits_for_the_other_by_way_of_the_home() {
    let mut cores = of_all_cmgs();
    let addr = line_of_cmg_2(&cores);
    cores.load(0, addr, 1_000);
    cores.load(1, addr, 5_000);
    let (request, _) = cores.way();
    let hop = cores.spec.ring.hop;
    // To the home, on to CMG 1, and from there to CMG 0.
    let expected = request + hop + 2 * hop + cores.snoop(false) + hop + request;
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
    let hop = cores.spec.ring.hop;
    // CMG 3 is a hop from the home and two from CMG 0; CMG 1, the other way round, has as far.
    let expected = request + cores.spec.l2_timing.miss_detect + hop + 3 * hop + cores.snoop(false) + to_core;
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
