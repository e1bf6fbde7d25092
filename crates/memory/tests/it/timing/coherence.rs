//! Several cores: who holds a line, what it costs to take it from them, and what is written back.

use super::cores::{Cores, node};
use super::*;

#[test]
fn a_core_writes_a_line_that_it_alone_has_read_without_asking() {
    let mut cores = Cores::neighbours();
    cores.load(0, 0, 1_000);
    let asked = cores.get(Signal::L2dCache);
    assert_eq!(cores.store(0, 8, 2_000), 0);
    assert_eq!(cores.get(Signal::L2dCache), asked);
}

#[test]
fn a_second_reader_makes_both_copies_shared_so_that_either_must_ask_before_it_writes() {
    for writer in [0, 1] {
        let mut cores = Cores::neighbours();
        cores.load(0, 0, 1_000);
        cores.load(1, 0, 2_000);
        assert_eq!(cores.load(0, 0, 3_000).1, Level::L1, "it keeps its copy");
        let asked = cores.get(Signal::L2dCache);
        cores.store(writer, 0, 4_000);
        assert_eq!(cores.get(Signal::L2dCache), asked + 1, "core {writer}");
    }
}

#[test]
fn a_write_to_a_shared_line_waits_until_the_other_copy_is_given_up() {
    let mut cores = Cores::neighbours();
    cores.load(0, 0, 1_000);
    cores.load(1, 0, 2_000);
    let (request, _) = cores.way();
    assert_eq!(cores.store(0, 0, 3_000), request + cores.snoop(false) + request);
    assert_eq!(cores.load(1, 0, 4_000).1, Level::L2, "the copy has gone");
    assert_eq!(cores.get(Signal::BusReadTotalMem), 1);
}

#[test]
fn a_write_that_was_asked_for_is_the_last_that_has_to_ask() {
    let mut cores = Cores::neighbours();
    cores.load(0, 0, 1_000);
    cores.load(1, 0, 2_000);
    cores.store(0, 0, 3_000);
    assert_eq!(cores.store(0, 0, 4_000), 0);
}

#[test]
fn a_line_that_another_core_has_changed_comes_from_that_core_which_keeps_a_copy() {
    let mut cores = Cores::neighbours();
    cores.store(0, 0, 1_000);
    let (request, to_core) = cores.way();
    let expected = request + cores.snoop(true) + to_core + cores.use_after();
    assert_eq!(cores.load(1, 0, 2_000), (expected, Level::L2));
    assert_eq!(cores.load(0, 0, 3_000).1, Level::L1);
    assert_eq!(cores.load(1, 0, 3_000).1, Level::L1);
    assert_eq!(cores.get(Signal::L1dCacheWb), 1);
    assert_eq!((cores.get(Signal::BusReadTotalMem), cores.get(Signal::BusWriteTotalMem)), (1, 0));
}

#[test]
fn a_core_that_has_given_its_changes_to_l2_asks_before_it_writes_again() {
    let mut cores = Cores::neighbours();
    cores.store(0, 0, 1_000);
    cores.load(1, 0, 2_000);
    let (request, _) = cores.way();
    assert_eq!(cores.store(0, 0, 3_000), request + cores.snoop(false) + request);
    assert_eq!(cores.get(Signal::L1dCacheWb), 1, "the copy that was given up had no changes");
}

#[test]
fn a_line_written_by_two_cores_in_turn_costs_each_write_the_way_through_the_other_core() {
    let mut cores = Cores::neighbours();
    cores.store(0, 0, 1_000);
    let (request, to_core) = cores.way();
    for turn in 1..=6 {
        let writer = turn % 2;
        let cost = cores.store(writer, 64 * writer as u64, 1_000 * (1 + turn as u64));
        assert_eq!(cost, request + cores.snoop(true) + to_core, "turn {turn}");
    }
    assert_eq!(cores.get(Signal::L1dCacheWb), 6);
    assert_eq!(cores.get(Signal::BusReadTotalMem), 1);
}

#[test]
fn loads_use_a_shared_line_while_the_right_to_write_it_is_on_its_way() {
    let mut cores = Cores::neighbours();
    cores.load(0, 0, 1_000);
    cores.load(1, 0, 2_000);
    assert!(cores.store(0, 0, 3_000) > 10);
    assert_eq!(cores.load(0, 8, 3_001), (cores.spec.load_store.load_integer, Level::L1));
}

#[test]
fn a_line_on_its_way_to_a_core_is_taken_away_when_it_has_come() {
    let mut cores = Cores::neighbours();
    let there = 1_000 + cores.store(0, 0, 1_000) + cores.spec.load_store.move_in;
    let (request, to_core) = cores.way();
    let cost = cores.store(1, 64, 1_010);
    assert_eq!(1_010 + cost, there + cores.snoop(true) - request + to_core);
}

#[test]
fn a_core_uses_its_copy_until_it_hears_that_it_is_claimed() {
    let mut cores = Cores::neighbours();
    cores.store(0, 0, 1_000);
    cores.store(1, 64, 2_000);
    let (request, _) = cores.way();
    let heard = 2_000 + 2 * request;
    assert_eq!(cores.store(0, 0, heard - 1), 0);
    assert!(cores.store(0, 0, heard) > 0);
}

#[test]
fn a_line_that_its_only_reader_has_dropped_is_exclusive_for_the_next() {
    let mut cores = Cores::neighbours();
    for i in 0..5 {
        cores.load(0, i * L1_SET, 1_000 + 1_000 * i);
    }
    let hit = cores.spec.l2_timing.hit_nearest;
    let step = (cores.spec.l2_timing.hit_farthest - hit) / u64::from(cores.spec.topology.cores_per_cmg - 1);
    assert_eq!(cores.load(1, 0, 9_000), (hit + step, Level::L2), "nobody is asked");
    assert_eq!(cores.store(1, 0, 10_000), 0);
}

/// A machine whose L2 has so few sets that lines of one L1D set fall into one L2 set.
fn small_l2() -> Spec {
    let mut spec = machine();
    spec.tables.l2.bytes = u64::from(spec.l2.ways) * L1_SET;
    spec
}

/// Core 1 reads as many lines of one set as drive all others out of L2.
fn fill_l2(cores: &mut Cores, t: Cycle) {
    for i in 1..=u64::from(cores.spec.l2.ways - cores.spec.l2.reserved_ways) {
        cores.load(1, i * L1_SET, t + 1_000 * i);
    }
}

#[test]
fn a_line_that_leaves_l2_leaves_the_data_caches_of_all_cores() {
    let mut cores = Cores::at(small_l2(), &[0, 1, 5]);
    cores.load(0, 0, 1_000);
    cores.load(2, 0, 2_000);
    fill_l2(&mut cores, 3_000);
    assert_eq!(cores.load(0, 0, 40_000).1, Level::Memory);
    fill_l2(&mut cores, 50_000);
    assert_eq!(cores.load(2, 0, 90_000).1, Level::Memory);
}

#[test]
fn a_line_that_leaves_l2_leaves_the_instruction_caches_of_all_cores() {
    let mut cores = Cores::at(small_l2(), &[2, 5]);
    let fetch = |cores: &mut Cores, t| {
        let core = cores.run(0, t);
        core.memory.run().fetch(0, t, &mut core.signals)
    };
    fetch(&mut cores, 1_000);
    assert_eq!(fetch(&mut cores, 3_000), 3_000);
    fill_l2(&mut cores, 4_000);
    assert!(fetch(&mut cores, 40_000) > 40_000);
    assert_eq!(cores.cores[0].get(Signal::L1iCacheRefill), 2);
}

#[test]
fn changes_in_another_core_s_l1_are_written_to_memory_once_when_the_line_leaves_l2() {
    let mut cores = Cores::at(small_l2(), &[0, 1]);
    cores.store(0, 0, 1_000);
    fill_l2(&mut cores, 2_000);
    assert_eq!(cores.get(Signal::L1dCacheWb), 1);
    assert_eq!((cores.get(Signal::L2dCacheWb), cores.get(Signal::BusWriteTotalMem)), (1, 1));
}

#[test]
fn changes_made_to_a_line_that_was_only_read_are_written_to_memory_too() {
    let mut cores = Cores::at(small_l2(), &[0, 1]);
    cores.load(0, 0, 1_000);
    cores.store(0, 0, 2_000);
    fill_l2(&mut cores, 3_000);
    assert_eq!(cores.get(Signal::BusWriteTotalMem), 1);
}

/// Core 1 reads lines of the set of line 0, which core 0 has written, until L2 gives line 0 up. Returns when it was
/// asked for the line that took its place.
fn drive_out(cores: &mut Cores) -> Cycle {
    let mut t = 2_000;
    while cores.cores[1].get(Signal::BusWriteTotalMem) == 0 {
        t += 1_000;
        assert!(t < 60_000, "it has to leave L2 at last");
        cores.load(1, t / 1_000 * L1_SET, t);
    }
    t + cores.way().0
}

#[test]
fn a_core_uses_its_copy_until_it_hears_that_the_line_has_left_l2() {
    for (later, level) in [(0, Level::L1), (1, Level::Memory)] {
        let mut cores = Cores::at(small_l2(), &[0, 1]);
        cores.store(0, 0, 1_000);
        let asked = drive_out(&mut cores);
        let heard = asked + cores.spec.l2_timing.miss_detect + cores.way().0;
        assert_eq!(cores.load(0, 0, heard - 1 + later).1, level);
    }
}

#[test]
fn memory_takes_a_line_that_another_core_has_changed_when_that_core_has_sent_it() {
    let mut spec = small_l2();
    // Nothing else takes the channel as long as this write.
    spec.tables.memory.write_cost = 400.0;
    let latency = |behind: i64| {
        let mut cores = Cores::at(spec.clone(), &[0, 1]);
        cores.store(0, 0, 1_000);
        // The write begins when L2 has detected the miss and core 0 has answered. The load asks memory at that time.
        let written = drive_out(&mut cores) - cores.way().0 + cores.snoop(true);
        cores.load(0, LINE, written.saturating_add_signed(behind)).0
    };
    assert_eq!(latency(-4), spec.memory.latency_nearest, "before the write");
    let bytes_per_cycle = spec.memory.peak_bytes_per_second as f64 / spec.clock.core_hz as f64;
    let write = 400.0 * LINE as f64 / bytes_per_cycle / (spec.memory.read_efficiency / 100.0);
    let waited = (latency(4) - spec.memory.latency_nearest) as f64;
    assert!((write - 8.0..write).contains(&waited), "{waited} of {write}");
}

#[test]
fn a_line_of_another_cmg_s_memory_takes_two_hops_longer() {
    let mut cores = Cores::on_two_cmgs();
    let local = cores.load(0, 0, 1_000).0;
    let remote = cores.load(1, LINE, 3_000).0;
    assert_eq!(local, cores.spec.memory.latency_nearest);
    assert_eq!(remote, local + 2 * cores.spec.ring.hop);
}

#[test]
fn memory_of_a_cmg_of_the_other_row_takes_the_way_there_and_back_longer() {
    let spec = machine();
    let last = 3 * spec.topology.cores_per_cmg;
    let mut cores = Cores::at(spec, &[last]);
    let remote = cores.load(0, 0, 1_000).0;
    assert_eq!(remote, cores.spec.memory.latency_nearest + 2 * cores.spec.ring.row_hop);
}

#[test]
fn a_line_of_another_cmg_s_memory_is_kept_in_the_reader_s_own_l2() {
    let mut cores = Cores::on_two_cmgs();
    for i in 0..5 {
        cores.load(1, i * L1_SET, 1_000 + 1_000 * i);
    }
    assert_eq!(cores.load(1, 0, 9_000), (cores.spec.l2_timing.hit_nearest, Level::L2));
}

#[test]
fn a_write_by_the_home_cmg_takes_the_copies_of_others_back_over_the_ring() {
    let mut cores = Cores::on_two_cmgs();
    cores.load(0, 0, 1_000);
    cores.load(1, 0, 2_000);
    let (request, _) = cores.way();
    let expected = request + 2 * cores.spec.ring.hop + cores.snoop(false) + request;
    assert_eq!(cores.store(0, 0, 3_000), expected);
    assert_eq!(cores.load(1, 0, 4_000).1, Level::Memory, "neither its L1 nor its L2 has it");
}

#[test]
fn a_line_that_two_cmgs_read_is_shared_in_both() {
    for writer in [0, 1] {
        let mut cores = Cores::on_two_cmgs();
        cores.load(0, 0, 1_000);
        cores.load(1, 0, 2_000);
        assert!(cores.store(writer, 0, 3_000) >= 2 * cores.spec.ring.hop, "core {writer}");
        assert_eq!(cores.store(writer, 0, 4_000), 0);
    }
}

#[test]
fn a_line_changed_in_another_cmg_comes_from_there_and_memory_is_brought_up_to_date() {
    let mut cores = Cores::on_two_cmgs();
    cores.store(0, 0, 1_000);
    let (request, to_core) = cores.way();
    let t = &cores.spec.l2_timing;
    // Its own L2, the ring, the other L2, the core there, the ring back, and from its own L2 to the core.
    let ways = request + t.miss_detect + 2 * cores.spec.ring.hop + cores.snoop(true);
    let expected = ways + to_core + cores.use_after();
    assert_eq!(cores.load(1, 0, 2_000).0, expected);
    assert_eq!(cores.load(0, 0, 3_000).1, Level::L1);
    assert_eq!(cores.get(Signal::L1dCacheWb), 1);
    assert_eq!((cores.get(Signal::BusReadTotalMem), cores.get(Signal::BusWriteTotalMem)), (1, 1));
}

#[test]
fn a_changed_line_that_another_cmg_writes_moves_there_without_going_to_memory() {
    let mut cores = Cores::on_two_cmgs();
    cores.store(0, 0, 1_000);
    cores.store(1, 0, 2_000);
    assert_eq!(cores.load(0, 8, 3_000).1, Level::Memory, "over the ring again");
    assert_eq!(cores.get(Signal::BusReadTotalMem), 1);
    // CMG 1 writes it to CMG 0's memory.
    assert_eq!(cores.get(Signal::BusWriteTotalCmg0), 1, "when it was read");
    assert_eq!(cores.get(Signal::BusWriteTotalMem), 0);
}

#[test]
fn lines_are_counted_by_the_memory_or_the_cache_that_they_come_from() {
    use Signal::{ReadL2Cmg0, ReadL2Cmg1, ReadMemCmg0, ReadMemCmg1};
    let counts = |cores: &mut Cores| [ReadMemCmg0, ReadMemCmg1, ReadL2Cmg0, ReadL2Cmg1].map(|signal| cores.get(signal));
    let mut cores = Cores::on_two_cmgs();
    cores.load(0, 0, 1_000);
    assert_eq!(counts(&mut cores), [1, 0, 0, 0], "its own memory");
    cores.load(1, LINE, 2_000);
    assert_eq!(counts(&mut cores), [2, 0, 0, 0], "another CMG's memory");
    cores.load(1, 0, 3_000);
    assert_eq!(counts(&mut cores), [2, 0, 1, 0], "another CMG's cache");
    cores.store(1, LINE, 4_000);
    cores.load(0, LINE, 5_000);
    assert_eq!(counts(&mut cores), [2, 0, 1, 1], "a changed line of its own memory");
}

#[test]
fn reads_of_the_memory_of_another_cmg_are_no_reads_of_local_memory_for_either() {
    let mut cores = Cores::on_two_cmgs();
    let first = node(&cores.spec);
    for i in 0..5 {
        cores.load(0, first + i * LINE, 1_000 * (1 + i));
    }
    cores.load(1, first + 5 * LINE, 7_000);
    let counts = [0, 1].map(|i| cores.run(i, 10_000).get(Signal::L2dCacheRefill));
    assert_eq!(counts, [5, 1]);
    let local = [0, 1].map(|i| cores.run(i, 10_000).get(Signal::BusReadTotalMem));
    assert_eq!(local, [0, 1]);
}

#[test]
fn a_line_that_another_cmg_asks_for_is_written_back_and_counted_by_the_cmg_that_had_changed_it() {
    let mut cores = Cores::on_two_cmgs();
    let second_node = node(&cores.spec);
    cores.store(0, second_node, 1_000);
    // Core 1 walks the tables, which CMG 0 has too, before anything is compared.
    cores.load(1, second_node + LINE, 1_500);
    let pipe = [0, 1].map(|i| cores.run(i, 2_000).get(Signal::L2PipeVal));
    cores.load(1, second_node, 2_000);
    let count = |cores: &mut Cores, signal| [0, 1].map(|i| cores.run(i, 10_000).get(signal));
    assert_eq!(count(&mut cores, Signal::BusWriteTotalCmg1), [1, 0]);
    assert_eq!(count(&mut cores, Signal::BusWriteTotalMem), [0, 0]);
    // CMG 1 takes its core's request and the line, and CMG 0 the question that follows and the line that it writes back.
    let since = count(&mut cores, Signal::L2PipeVal);
    assert_eq!([since[0] - pipe[0], since[1] - pipe[1]], [2, 2]);
}

#[test]
fn zeroing_a_line_takes_it_from_all_who_hold_it_and_reads_no_memory() {
    let spec = machine();
    let far = spec.topology.cores_per_cmg;
    let mut cores = Cores::at(spec, &[0, 1, far]);
    cores.load(2, 0, 1_000);
    cores.load(1, 0, 2_000);
    cores.load(0, LINE, 3_000);
    let read = cores.get(Signal::BusReadTotalMem);
    let core = cores.run(0, 5_000);
    core.memory.run().zero_line(0.into(), 5_000, &mut core.signals);
    assert_eq!(cores.get(Signal::BusReadTotalMem), read);
    assert_eq!(cores.load(1, 0, 7_000).1, Level::L2);
    assert_eq!(cores.load(2, 0, 8_000).1, Level::Memory);
}

#[test]
fn changes_to_a_line_that_another_core_zeroes_come_back_from_l1_and_are_not_written_to_memory() {
    let mut cores = Cores::neighbours();
    cores.store(1, 0, 1_000);
    cores.load(0, LINE, 2_000);
    let core = cores.run(0, 3_000);
    core.memory.run().zero_line(0.into(), 3_000, &mut core.signals);
    assert_eq!((cores.get(Signal::L1dCacheWb), cores.get(Signal::BusWriteTotalMem)), (1, 0));
}

#[test]
fn the_port_of_a_cmg_carries_its_share_of_the_ring_s_width_whoever_asks() {
    let spec = machine();
    let width = f64::from(spec.ring.bytes_per_cycle) * spec.ring.port_efficiency / 100.0;
    let each = f64::from(spec.l2.line_bytes) / width;
    let positions = [0, 1, 2, 3];
    let mut cores = Cores::at(spec, &positions);
    let base = node(&cores.spec);
    // Four cores of CMG 0 read six lines each of CMG 1, all at once.
    let mut at: Vec<Cycle> = Vec::new();
    for line in 0..6 {
        for core in 0..4 {
            at.push(cores.run(core, 1_000).access(base + (4 * line + core as u64) * LINE, 1_000, false).at);
        }
    }
    let (first, last) = (at.iter().min().expect("some"), at.iter().max().expect("some"));
    let (expected, took) = (23.0 * each, (last - first) as f64);
    // Cores are up to three cycles apart in distance, and their buses begin a line each four cycles.
    assert!((expected - each..=expected + each + 3.0).contains(&took), "{took} of {expected}");
}

#[test]
fn a_store_to_code_takes_it_from_the_instruction_caches_of_all_cores() {
    let mut cores = Cores::at(machine(), &[2, 5]);
    let fetch = |cores: &mut Cores, i, t| {
        let core = cores.run(i, t);
        core.memory.run().fetch(0, t, &mut core.signals)
    };
    fetch(&mut cores, 0, 1_000);
    fetch(&mut cores, 1, 3_000);
    assert_eq!((fetch(&mut cores, 0, 5_000), fetch(&mut cores, 1, 5_000)), (5_000, 5_000));
    cores.store(0, 0, 6_000);
    assert!(fetch(&mut cores, 0, 8_000) > 8_000);
    assert!(fetch(&mut cores, 1, 8_000) > 8_000);
}

#[test]
fn a_prefetched_line_is_exclusive_if_nobody_else_has_it_and_shared_otherwise() {
    for (others, asks) in [(false, 0), (true, 1)] {
        let mut cores = Cores::neighbours();
        if others {
            cores.load(1, 0, 1_000);
        }
        let core = cores.run(0, 2_000);
        core.memory.run().translate(0.into(), 0, &mut core.signals);
        core.memory.run().prefetch_instruction(0.into(), 1, 1, 2_000, &mut core.signals);
        let asked = cores.get(Signal::L2dCache);
        cores.store(0, 0, 4_000);
        assert_eq!(cores.get(Signal::L2dCache), asked + asks);
    }
}

#[test]
fn a_core_that_ran_alone_and_asked_again_for_a_line_it_had_dropped_loses_it_to_the_next_writer() {
    let spec = machine();
    let mut first = Core::at(&spec, 0);
    for (n, line) in [0, 1, 2, 3, 4, 0].into_iter().enumerate() {
        first.load(line * L1_SET, 1_000 * (1 + n as u64));
    }
    let mut second = Core::with(&spec, Memory::waiting(&spec, 1));
    second.memory.take_over(&mut first.memory, 0, 20_000, &mut second.signals);
    second.store(0, 20_000);
    first.memory.take_over(&mut second.memory, 0, 30_000, &mut first.signals);
    assert_eq!(first.load(0, 30_000).1, Level::L2);
}

#[test]
fn lines_taken_from_other_cores_are_counted_one_for_each_core_that_gives_one_up() {
    let mut cores = Cores::at(machine(), &[0, 1, 2]);
    let mut snoops = |core: usize, write: bool, t| {
        cores.run(core, t).access(0, t, write);
        cores.cores[core].memory.chip().snoops()
    };
    assert_eq!(snoops(0, true, 1_000), 0, "nobody has it");
    assert_eq!(snoops(1, false, 2_000), 1, "core 0 has changed it");
    assert_eq!(snoops(2, false, 3_000), 1, "it is shared");
    assert_eq!(snoops(2, true, 4_000), 3, "both others have it");
}

#[test]
fn a_core_that_evicts_a_line_which_another_one_is_taking_does_not_end_that_one_s_ownership() {
    let mut cores = Cores::at(machine(), &[0, 1, 2]);
    for (n, line) in [1, 2, 3].into_iter().enumerate() {
        cores.load(0, line * L1_SET, 1_000 * (1 + n as Cycle));
    }
    cores.store(0, 0, 5_000);
    (1..4).for_each(|line| _ = cores.load(0, line * L1_SET, 7_000 + line));
    // Line 0 leaves L1D next. Core 1 takes it, and core 0 evicts it before it hears of that.
    cores.store(1, 0, 10_000);
    cores.load(0, 4 * L1_SET, 10_001);
    let (request, to_core) = cores.way();
    let expected = request + cores.snoop(true) + to_core + cores.use_after();
    assert_eq!(cores.load(2, 0, 15_000), (expected, Level::L2), "core 1 has it");
}

#[test]
fn a_core_that_is_behind_finds_shared_resources_as_they_are_at_its_own_time() {
    let mut cores = Cores::neighbours();
    let behind = 1_000;
    let [first, second] = cores.cores.get_disjoint_mut([0, 1]).expect("two cores");
    second.memory.take_over(&mut first.memory, behind, 1_000, &mut second.signals);
    second.now(9_000);
    second.load(0, 9_000);
    first.memory.take_over(&mut second.memory, 9_000, behind, &mut first.signals);
    assert_eq!(first.load(LINE, behind).0, cores.spec.memory.latency_nearest);
}

#[test]
fn a_core_that_has_nothing_to_do_does_not_hold_up_the_past() {
    let mut cores = Cores::neighbours();
    let [first, second] = cores.cores.get_disjoint_mut([0, 1]).expect("two cores");
    second.memory.take_over(&mut first.memory, Cycle::MAX, 1_000, &mut second.signals);
    let t = second.now(10 * fxscope_calendar::SPAN);
    // As many lines at once as the channel needs a while for: what it has given away it remembers.
    let last = (0..12).map(|i| second.access(i * LINE, t, false).at).max().expect("some");
    assert!(last > t + cores.spec.memory.latency_nearest + 11 * 2 - cores.use_after());
}

#[test]
fn a_copy_that_is_claimed_while_its_holder_asks_to_write_comes_anew() {
    let mut cores = Cores::neighbours();
    cores.load(0, 0, 1_000);
    cores.load(1, 0, 2_000);
    let there = 3_000 + cores.store(1, 0, 3_000);
    // Core 0 asks before it hears of the claim; core 1, which may write in the cycle in which it is answered, gives the
    // line up in the next.
    let (request, to_core) = cores.way();
    let cost = cores.store(0, 64, 3_001);
    assert_eq!(3_001 + cost, there + 1 + cores.snoop(true) - request + to_core);
    assert_eq!(cores.store(0, 0, 5_000), 0, "the claim does not take the new copy");
    assert_eq!(cores.load(1, 0, 6_000).1, Level::L2);
}

/// When each of three lines that drive dirty ones out of L1D comes from L2, with this number of move-out buffers and a long
/// way between L1D and L2.
fn refills_behind_write_backs(buffers: u32, way: Cycle) -> [Cycle; 3] {
    let mut spec = machine();
    spec.tables.load_store.move_out_buffers = buffers;
    spec.tables.l2_timing.request = way;
    let mut core = Core::new(&spec);
    (0..8).for_each(|i| {
        core.load(i * L1_SET, 1_000 + 1_000 * i);
    });
    (4..8).for_each(|i| core.store(i * L1_SET, 10_000));
    let t = core.now(20_000);
    [0, 1, 2].map(|i| core.access(i * L1_SET, t, false).at - t)
}

#[test]
fn a_line_comes_when_the_dirty_one_before_it_has_got_a_move_out_buffer() {
    let way = 500;
    let spec = machine();
    assert_eq!(spec.load_store.move_out_buffers, 4);
    let all = refills_behind_write_backs(4, way);
    assert!(all.iter().all(|&at| at < way + 60), "{all:?}");
    // A buffer is taken while a line leaves L1D, waits for the bus, and until the core knows that L2 has it.
    let transfer = u64::from(spec.l1d.line_bytes / spec.l2_timing.writeback_bytes_per_cycle);
    let least = way + transfer + spec.l2_timing.acknowledge;
    let most = least + spec.load_store.move_out_dirty + 8;
    for (n, at) in refills_behind_write_backs(1, way).into_iter().enumerate().skip(1) {
        assert!((n as Cycle * least..=n as Cycle * most + 2).contains(&at), "number {n}: {at}");
    }
}
