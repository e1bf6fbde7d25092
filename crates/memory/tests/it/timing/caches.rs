//! Caches of one core: latencies, misses in flight, write-back, inclusion.

use fxscope_memory::{Bounds, PageRange, Placement};

use super::*;

/// Puts the line of `addr` into L2 but not into L1D, by loading four others of its L1D set.
fn only_in_l2(core: &mut Core, addr: u64, t: Cycle) {
    for i in 0..5 {
        core.load(addr + i * L1_SET, t + i * 1_000);
    }
}

#[test]
fn a_line_that_is_there_is_used_after_the_l1_latency() {
    let mut core = Core::new(&machine());
    core.load(0, 100);
    assert_eq!(core.load(8, 2_000), (5, Level::L1));
}

#[test]
fn an_l2_hit_takes_as_long_as_the_description_says_for_the_core_s_position() {
    let spec = machine();
    for (position, expected) in [(0, spec.l2_timing.hit_nearest), (11, spec.l2_timing.hit_farthest)] {
        for phase in 0..9 {
            let mut core = Core::at(&spec, position);
            only_in_l2(&mut core, 0, 100);
            let t = core.now(7_000 + phase);
            assert_eq!(core.load(0, t), (expected, Level::L2), "position {position}, phase {phase}");
        }
    }
}

#[test]
fn a_line_from_memory_takes_as_long_as_the_description_says_for_the_core_s_position() {
    let spec = machine();
    for (position, expected) in [(0, spec.memory.latency_nearest), (11, spec.memory.latency_farthest)] {
        for phase in 0..9 {
            let mut core = Core::at(&spec, position);
            assert_eq!(core.load(0, 1_000 + phase), (expected, Level::Memory), "position {position}, phase {phase}");
        }
    }
}

#[test]
fn a_core_between_the_nearest_and_the_farthest_has_a_latency_between_theirs() {
    let mut spec = machine();
    spec.tables.memory.latency_nearest = 1_000;
    spec.tables.memory.latency_farthest = 1_000 + 11 * 50;
    let latency = |position| Core::at(&spec, position).load(0, 1_000).0;
    let first = latency(0);
    for position in 1..12 {
        let extra = latency(position) - first;
        assert!(extra.abs_diff(50 * u64::from(position)) <= 2, "position {position}: {extra}");
    }
}

#[test]
fn a_load_of_a_line_that_another_access_asked_for_is_sent_again_until_it_is_there() {
    let reads = Wants { write: false, replay_period: 15 };
    for behind in 1..=30 {
        let mut core = Core::new(&machine());
        let there = core.wanting(0, 1_000, reads).at;
        let t = 1_000 + behind;
        let flows = (there - t).div_ceil(15);
        assert_eq!(core.wanting(8, t, reads).at, t + 15 * flows, "{behind} cycles behind");
        let counted: u64 = core.memory.core.pipes.busy().iter().sum();
        let moved_in = 2 * machine().load_store.move_in;
        assert_eq!(counted, moved_in + flows - 1, "all but the first and the last, which the caller sends");
        assert_eq!(core.wanting(16, there, reads).at, there);
    }
}

#[test]
fn a_request_that_l2_has_no_miss_buffer_for_passes_its_pipeline_again_until_it_has_one() {
    for lines in [2, 3] {
        let mut spec = machine();
        let requests = |spec: &Spec| {
            let mut core = Core::new(spec);
            let there: Vec<Cycle> = (0..lines).map(|i| core.access(i * LINE, 1_000, false).at).collect();
            (there, core.get(Signal::L2PipeVal))
        };
        let (_, passes) = requests(&spec);
        spec.tables.l2.miss_buffers = 1;
        let (there, more) = requests(&spec);
        // From the second request, a cycle behind the first, until the last one has its buffer. However many wait, one
        // of them is sent again at a time.
        let wait = there[lines as usize - 1] - there[0] - 1;
        assert_eq!(more - passes, wait.div_ceil(spec.l2_timing.miss_detect), "{lines} lines");
    }
}

#[test]
fn a_line_from_memory_passes_the_pipeline_of_l2_behind_its_request() {
    let mut core = Core::new(&machine());
    // The tables are walked before.
    core.access(0, 1_000, false);
    let passes = core.get(Signal::L2PipeVal);
    core.access(LINE, 2_000, false);
    assert_eq!(core.get(Signal::L2PipeVal) - passes, 2);
}

#[test]
fn the_load_that_asks_for_a_line_has_it_when_it_comes() {
    for again in [0, 11, 15] {
        let arrival = Core::new(&machine()).wanting(0, 1_000, Wants { write: false, replay_period: again }).at;
        assert_eq!(arrival, Core::new(&machine()).access(0, 1_000, false).at, "every {again} cycles");
    }
}

#[test]
fn accesses_to_a_line_on_its_way_wait_for_it_and_ask_for_it_once() {
    let mut core = Core::new(&machine());
    let first = core.access(0, 1_000, false);
    let second = core.access(64, 1_010, false);
    assert_eq!((second.at, second.misses.level()), (first.at, Level::Memory));
    let third = core.access(128, first.at - 1, false);
    assert_eq!(third.at, first.at);
    let fourth = core.access(128, first.at, false);
    assert_eq!((fourth.at, fourth.misses.level()), (first.at, Level::L1), "there now");
    assert_eq!(core.get(Signal::L1dCacheRefill), 1);
    assert_eq!(core.get(Signal::BusReadTotalMem), 1);
}

#[test]
fn the_thirteenth_miss_waits_for_a_miss_buffer() {
    let mut spec = machine();
    spec.tables.memory.latency_nearest = 1_001;
    spec.tables.memory.latency_farthest = 1_001;
    let mut core = Core::new(&spec);
    let at: Vec<Cycle> = (0..13).map(|i| core.access(i * LINE, 1_000, false).at).collect();
    let alone = at[0] - 1_000;
    assert!(at[..12].iter().all(|&t| t < 1_000 + alone + 12 * 5), "twelve overlap: {at:?}");
    assert!(at[12] >= at[0] + alone - 5, "the next starts when the first has ended: {at:?}");
    assert!(at[12] <= at[0] + alone + 5, "and not later: {at:?}");
}

#[test]
fn a_miss_buffer_is_held_until_the_line_s_victim_has_left() {
    let mut spec = machine();
    spec.tables.l1d.miss_buffers = 1;
    spec.tables.load_store.move_out_dirty = 500;
    let mut core = Core::new(&spec);
    only_in_l2(&mut core, LINE, 100);
    only_in_l2(&mut core, 0, 6_000);
    // What has replaced line 0 in L1D is dirty from now on.
    (1..5).for_each(|i| core.store(i * L1_SET, 12_000));
    let t = core.now(20_000);
    // The line comes long before both pipes have moved out its victim, one part of it a cycle.
    let left = t + spec.load_store.move_out_dirty - 1;
    assert_eq!(core.access(0, t, false).at, left);
    let comes = spec.l2_timing.hit_nearest - spec.load_store.move_in - spec.load_store.load_integer;
    assert_eq!(core.access(LINE, t, false).at, left + comes, "the only buffer is free when the victim has left");
}

#[test]
fn lines_from_l2_come_over_the_bus_one_each_four_cycles() {
    let spec = machine();
    let period = u64::from(spec.l1d.line_bytes / spec.l2_timing.fill_bytes_per_cycle);
    assert_eq!(period, 4);
    let mut core = Core::new(&spec);
    for i in 0..8 {
        only_in_l2(&mut core, i * LINE, 100 + i);
    }
    let t = core.now(20_000);
    let at: Vec<Cycle> = (0..8).map(|i| core.access(i * LINE, t, false).at).collect();
    let gaps: Vec<Cycle> = at.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.iter().all(|&gap| gap <= period), "the bus never rests: {at:?}");
    // The first line may come anywhere in its period.
    assert!((7 * period - (period - 1)..=7 * period).contains(&(at[7] - at[0])), "{at:?}");
}

#[test]
fn a_core_asks_l2_no_oftener_than_the_description_says() {
    let mut spec = machine();
    spec.tables.l2_timing.request_period = 11.0;
    let mut core = Core::new(&spec);
    for i in 0..8 {
        only_in_l2(&mut core, i * LINE, 100 + 11 * i);
    }
    let t = core.now(20_000);
    let at: Vec<Cycle> = (0..8).map(|i| core.access(i * LINE, t, false).at).collect();
    let span = at[7] - at[0];
    assert!(span.abs_diff(7 * 11) <= 4, "{at:?}");
}

#[test]
fn a_dirty_line_goes_back_to_l2_and_a_clean_one_is_dropped() {
    for (write, written) in [(false, 0), (true, 1)] {
        let mut core = Core::new(&machine());
        core.access(0, 100, write);
        for i in 1..5 {
            core.load(i * L1_SET, 1_000 * i);
        }
        assert_eq!(core.get(Signal::L1dCacheWb), written);
        assert_eq!(core.get(Signal::BusWriteTotalMem), 0, "L2 has room for it");
        let t = core.now(9_000);
        assert_eq!(core.load(0, t).1, Level::L2);
    }
}

/// A machine whose L2 has few enough sets that lines of one L1D set fall into one L2 set, and whose L1D
/// holds more lines of a set than that. Its programs have one page, whose tables are read first and leave L2 first.
fn small_l2() -> Spec {
    let mut spec = machine();
    spec.tables.l2.bytes = 16 * L1_SET;
    spec.tables.l1d.ways = 16;
    spec.tables.l1d.bytes = 16 * L1_SET;
    spec
}

fn with_one_page(spec: &Spec) -> Core {
    let mut core = Core::new(spec);
    core.set_pages(
        0,
        vec![PageRange {
            start: 0,
            end: 1 << 21,
            shift: 21,
            placement: Placement::Node(0),
            moved: 0,
            shared: None,
            bounds: Bounds::ALL,
        }],
    );
    core
}

#[test]
fn the_line_that_leaves_l2_leaves_l1_too() {
    let spec = small_l2();
    let usable = u64::from(spec.l2.ways - spec.l2.reserved_ways);
    let mut core = with_one_page(&spec);
    for i in 0..usable {
        core.load(i * L1_SET, 100 + 1_000 * i);
    }
    assert_eq!(core.load(0, 30_000).1, Level::L1);
    core.load(usable * L1_SET, 31_000);
    let t = core.now(40_000);
    assert_eq!(core.load(0, t).1, Level::Memory, "the least recently asked for of L2 has left both");
}

#[test]
fn a_dirty_line_that_leaves_l2_while_l1_holds_it_is_written_to_memory_once() {
    let spec = small_l2();
    let usable = u64::from(spec.l2.ways - spec.l2.reserved_ways);
    let mut core = with_one_page(&spec);
    core.store(0, 100);
    for i in 1..=usable {
        core.load(i * L1_SET, 100 + 1_000 * i);
    }
    assert_eq!(core.get(Signal::L1dCacheWb), 1);
    assert_eq!(core.get(Signal::L2dCacheWb), 1);
    assert_eq!(core.get(Signal::BusWriteTotalMem), 1);
}

#[test]
fn a_line_dirty_in_l1_and_in_l2_is_written_to_memory_once() {
    let mut spec = small_l2();
    // Few ways in L1D, so that the dirty line goes to L2 first.
    spec.tables.l1d.ways = 4;
    spec.tables.l1d.bytes = 4 * L1_SET;
    let usable = u64::from(spec.l2.ways - spec.l2.reserved_ways);
    let mut core = with_one_page(&spec);
    core.store(0, 100);
    for i in 1..5 {
        core.load(i * L1_SET, 100 + 1_000 * i);
    }
    assert_eq!(core.get(Signal::L1dCacheWb), 1, "dirty in L2 now");
    // Back to L1D, dirty again, and kept there by use while others drive it out of L2.
    core.store(0, 6_000);
    for i in 5..20 {
        core.load(i * L1_SET, 6_000 + 1_000 * i);
        if core.access(0, 6_500 + 1_000 * i, false).misses.level() != Level::L1 {
            break;
        }
        assert!(i < 5 + usable, "it has to leave L2 at last");
    }
    assert_eq!(core.get(Signal::BusWriteTotalMem), 1);
}

#[test]
fn a_dirty_line_of_l2_is_written_to_memory_when_it_leaves() {
    let mut spec = small_l2();
    spec.tables.l1d.ways = 4;
    spec.tables.l1d.bytes = 4 * L1_SET;
    let usable = u64::from(spec.l2.ways - spec.l2.reserved_ways);
    let mut core = with_one_page(&spec);
    core.store(0, 100);
    for i in 1..usable {
        core.load(i * L1_SET, 100 + 1_000 * i);
    }
    assert_eq!(core.get(Signal::BusWriteTotalMem), 0);
    for i in usable..usable + 2 {
        core.load(i * L1_SET, 100 + 1_000 * i);
    }
    assert_eq!(core.get(Signal::L2dCacheWb), 1);
    assert_eq!(core.get(Signal::BusWriteTotalMem), 1);
}

#[test]
fn code_is_fetched_through_l2_and_stays_in_the_instruction_cache() {
    let mut core = Core::new(&machine());
    let cold = core.memory.run().fetch(0, 1_000, &mut core.signals);
    assert!(cold > 1_000 + 200, "from memory, behind a table walk");
    core.memory.run().fetch(LINE, 2_000, &mut core.signals);
    assert_eq!(core.memory.run().fetch(0, 3_000, &mut core.signals), 3_000);
    assert_eq!(core.get(Signal::L1iCacheRefill), 2);
}

/// When the code of line `n` of the first page can be read, if it is wanted at `t`.
fn fetch(core: &mut Core, n: u64, t: Cycle) -> Cycle {
    core.memory.run().fetch(n * LINE, t, &mut core.signals)
}

#[test]
fn code_comes_from_l2_in_the_time_of_a_load_but_for_its_way_into_l1d() {
    let spec = machine();
    let mut core = Core::new(&spec);
    // The page is known; L2 has another line of it, which no L1 cache holds.
    fetch(&mut core, 0, 1_000);
    core.memory.run().translate(LINE.into(), 0, &mut Signals::default());
    core.memory.run().prefetch_instruction(LINE.into(), 1, 2, 5_000, &mut core.signals);
    let way = spec.l2_timing.hit_nearest - spec.load_store.move_in - spec.load_store.load_integer;
    assert_eq!(fetch(&mut core, 1, 10_000), 10_000 + way);
}

#[test]
fn each_block_of_code_read_is_an_access_of_the_instruction_cache() {
    let mut core = Core::new(&machine());
    (0..8).for_each(|block| {
        core.memory.run().fetch(32 * block, 1_000 + block, &mut core.signals);
    });
    assert_eq!((core.get(Signal::L1iCache), core.get(Signal::L1iCacheRefill)), (8, 1));
}

#[test]
fn three_lines_of_code_are_on_their_way_at_a_time() {
    let spec = machine();
    assert_eq!(spec.l1i.miss_buffers, 3);
    let mut core = Core::new(&spec);
    fetch(&mut core, 0, 1_000);
    let there: Vec<Cycle> = (1..=4).map(|n| fetch(&mut core, n, 10_000)).collect();
    // The first three share a latency; the fourth is asked for when the first is there.
    assert!(there[2] - there[0] < there[0] - 10_000);
    assert!(there[3] >= there[0] + (there[0] - 10_000));
}

#[test]
fn ways_that_are_reserved_hold_nothing() {
    let mut spec = machine();
    spec.tables.l1i.reserved_ways = spec.l1i.ways - 2;
    spec.tables.l1d.reserved_ways = spec.l1d.ways - 2;
    let same_set = spec.l1i.bytes / u64::from(spec.l1i.ways) / LINE;
    let mut core = Core::new(&spec);
    for n in [0, 1, 2, 0] {
        fetch(&mut core, n * same_set, 10_000 * (n + 1));
        core.load(n * same_set * LINE, 10_000 * (n + 1));
    }
    assert_eq!(core.get(Signal::L1iCacheRefill), 4);
    assert_eq!(core.get(Signal::L1dCacheRefill), 4);
}

#[test]
fn code_of_a_page_that_is_not_translated_waits_for_the_table_walk() {
    let spec = machine();
    let mut core = Core::new(&spec);
    // The line is in L2 by a load, the page in the data TLBs only.
    core.load(0, 1_000);
    let cold = fetch(&mut core, 0, 10_000);
    core.load(LINE, 20_000);
    let warm = fetch(&mut core, 1, 30_000);
    // The walk for the load has left the tables in L2, and the address of the last one in the table cache.
    let walk = walks::read_from_l2(&spec) + spec.tlb.walk_extra;
    assert_eq!((cold - 10_000) - (warm - 30_000), spec.tlb.l2_hit + walk);
    assert_eq!((core.get(Signal::L1iTlbRefill), core.get(Signal::L2iTlbRefill)), (1, 1));
}
