//! The stream prefetcher at work.

use super::*;
use fxscope_memory::{Bounds, Misses, PageRange, Placement, PrefetchRegisters};

fn streaming() -> Spec {
    let mut spec = fxscope_machine::load("a64fx", &[]).expect("built in");
    spec.tables.prefetch.l2_stop_hits = 0;
    spec.tables.prefetch.replacement = fxscope_machine::spec::StreamReplacement::Fifo;
    spec
}

/// Loads `n` lines from `first` on, one each 300 cycles. Walks are waited for; what they read is not counted.
fn stream(core: &mut Core, first: u64, n: u64, mut t: Cycle) -> Cycle {
    for line in first..first + n {
        t = core.memory.run().translate((line * LINE).into(), t, &mut Signals::default()).ready;
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

/// A stream that asks for one line ahead, all lines in L2, accesses a line and a cycle later the next one, which is on
/// its way then. Returns when that access found its line, and when the one behind it came.
fn followed(wants: Wants) -> (Cycle, Cycle) {
    let mut spec = streaming();
    spec.tables.prefetch.l1_lines = 1;
    spec.tables.prefetch.l2 = false;
    let mut core = Core::new(&spec);
    let t = stream(&mut core, 0, 200, 1_000);
    let t = stream(&mut core, 10_000, 256, t);
    let t = stream(&mut core, 0, 60, t);
    core.access(60 * LINE, t, false);
    let found = core.wanting(61 * LINE, t + 1, wants).at;
    assert!(found > t + 1, "it is on its way");
    (found - t, core.access(62 * LINE, t + 2, false).at - t)
}

#[test]
fn an_access_to_a_prefetched_line_is_followed_when_it_finds_the_line() {
    let (found, next) = followed(Wants { write: false, replay_period: 0 });
    assert!(next - found >= found - 1, "{next} {found}: each of the two took its way after the other");
    let (later, next_later) = followed(Wants { write: false, replay_period: 15 });
    assert_eq!((later - 1) % 15, 0);
    assert_eq!(next_later - next, later - found);
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

/// With free misses it does not: the next page's first lines are read before any access to it.
#[test]
fn a_stream_continues_into_the_next_page_where_misses_are_free() {
    let mut spec = streaming();
    spec.tables.tlb.free_misses = true;
    let mut core = Core::new(&spec);
    core.set_pages(
        0,
        vec![PageRange {
            start: 0,
            end: 1 << 20,
            shift: 16,
            placement: Placement::Node(0),
            moved: 0,
            shared: None,
            bounds: Bounds::ALL,
        }],
    );
    let lines = (1 << 16) / LINE;
    stream(&mut core, 0, lines, 1_000);
    assert!(core.get(Signal::BusReadTotalMem) > lines);
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

// ---- reliableness and prefetch ports ----

/// The machine with prefetches into L2 only, two ports, and a request to L2 every 100 cycles, so that ports are short.
fn short_of_ports() -> Spec {
    let mut spec = streaming();
    spec.tables.prefetch.l1 = false;
    spec.tables.prefetch.ports = 2;
    spec.tables.prefetch.ramp_lines = 4;
    spec.tables.l2_timing.request_period = 100.0;
    spec
}

/// Stream detect mode with these bits and `V`.
fn set_stream(core: &mut Core, bits: u64) {
    let stream_detect = 1 << 63 | bits;
    core.memory.core.set_prefetch_registers(&PrefetchRegisters { stream_detect, ..Default::default() });
}

/// L2 prefetches of lines 2 to 5, asked for by an access to line 1, the stream's second one, at 10,000.
fn four_prefetches(core: &mut Core) {
    core.access(0, 1_000, false);
    core.access(LINE, 10_000, false);
    assert_eq!(core.get(Signal::L2HwpfStreamPf), 4);
}

#[test]
fn strong_prefetches_wait_for_a_port_and_the_last_grant_is_told() {
    let mut core = Core::new(&short_of_ports());
    four_prefetches(&mut core);
    assert_eq!(core.get(Signal::L2dCacheRefillHwprf), 4);
    // The demand access takes the request slot of cycle 10,000; the prefetches those behind it. The third and the
    // fourth have the ports of the first and the second when L2 has taken these: the miss is found by then.
    let spec = short_of_ports();
    let taken = |slot: u64| slot + spec.l2_timing.request + spec.l2_timing.miss_detect;
    assert_eq!(core.memory.core.port_granted(), taken(10_200));
}

#[test]
fn an_access_whose_prefetch_waits_for_a_port_is_replayed_until_it_has_one() {
    let spec = short_of_ports();
    let replays = |ports| {
        let mut spec = spec.clone();
        spec.tables.prefetch.ports = ports;
        let mut core = Core::new(&spec);
        four_prefetches(&mut core);
        let busy: u64 = core.memory.core.pipes.busy().iter().sum();
        (busy, core.memory.core.port_granted())
    };
    let (without, never) = replays(4);
    assert_eq!(never, 0);
    let (with, granted) = replays(2);
    // A short access ends after its last stage; a load/store pipe has its next flow some cycles later.
    let period = spec.stages.commit_short + spec.load_store.resubmit;
    assert_eq!(with - without, (granted - 10_000).div_ceil(period) - 1, "replays that find no port");
}

#[test]
fn weak_prefetches_are_dropped_when_no_port_is_free() {
    let mut core = Core::new(&short_of_ports());
    set_stream(&mut core, 1 << 54);
    four_prefetches(&mut core);
    assert_eq!((core.get(Signal::L2dCacheRefillHwprf), core.memory.core.port_granted()), (2, 0));
}

#[test]
fn weak_prefetches_into_l1_are_dropped_when_all_miss_buffers_are_taken_and_strong_ones_are_not() {
    let refills = |bits: u64| {
        let mut spec = streaming();
        spec.tables.prefetch.l2 = false;
        let mut core = Core::new(&spec);
        set_stream(&mut core, bits);
        for line in 0..2 {
            core.access(line * LINE, 1_000 + 500 * line, false);
        }
        // As many misses elsewhere as there are buffers, each of a page of its own, far from each other.
        for i in 1..=u64::from(spec.l1d.miss_buffers) {
            core.access(i * 0x10_0000 + i * LINE, 10_000, false);
        }
        let before = core.get(Signal::L1dCacheRefillHwprf);
        core.access(2 * LINE, 10_001, false);
        core.get(Signal::L1dCacheRefillHwprf) - before
    };
    // Of the two lines of the second hit, the first is the accessed one.
    assert_eq!((refills(0), refills(1 << 55)), (1, 0));
}

#[test]
fn the_register_switches_levels_off() {
    for (bits, l1, l2) in [(0, true, true), (1 << 59, false, true), (1 << 58, true, false)] {
        let mut core = Core::new(&streaming());
        set_stream(&mut core, bits);
        stream(&mut core, 0, 20, 1_000);
        let asked = |signal| core.get(signal) > 0;
        assert_eq!((asked(Signal::L1HwpfStreamPf), asked(Signal::L2HwpfStreamPf)), (l1, l2), "{bits:#x}");
    }
}

// ---- injection ----

/// A core whose first pair of injection registers has an offset of 512 and distances of 1,024 and 10,240 bytes.
fn injecting(allocate: bool) -> Core {
    let mut core = Core::new(&streaming());
    let mut registers = PrefetchRegisters::default();
    registers.injection_ctrl[0] = 1 << 63 | u64::from(allocate) << 60 | 512;
    registers.injection_distance[0] = 1_024 << 32 | 10_240;
    core.memory.core.set_prefetch_registers(&registers);
    core
}

const FIRST_PAIR: u64 = 8 << 60;

#[test]
fn injection_through_the_queue_brings_a_stride_of_two_lines_into_l1() {
    let mut core = injecting(true);
    let access = |core: &mut Core, i: u64| core.access(i * 512 + FIRST_PAIR, 1_000 + 1_000 * i, false).misses.level();
    let levels: Vec<_> = (0..20).map(|i| access(&mut core, i)).collect();
    // The miss registers 512; from there on lines 1,024 bytes ahead come into L1.
    assert_eq!(levels[..3], [Level::Memory; 3]);
    assert!(levels[3..].iter().all(|&level| level == Level::L1), "{levels:?}");
    assert_eq!((core.get(Signal::L1HwpfInjAllocPf), core.get(Signal::L2HwpfInjAllocPf)), (19, 19));
    assert_eq!((core.get(Signal::L1HwpfStreamPf), core.get(Signal::L1HwpfInjNoallocPf)), (0, 0));
}

#[test]
fn injection_without_the_queue_prefetches_with_every_access_even_when_it_hits() {
    let mut core = injecting(false);
    for i in 0..10 {
        core.access(0x4000 + FIRST_PAIR, 10_000 + 1_000 * i, false);
    }
    assert_eq!((core.get(Signal::L1HwpfInjNoallocPf), core.get(Signal::L2HwpfInjNoallocPf)), (10, 10));
    // Lines at the access and at both distances.
    assert_eq!(core.get(Signal::BusReadTotalMem), 3);
}

#[test]
fn injection_registers_that_are_not_valid_keep_all_hardware_prefetches_away() {
    let mut core = Core::new(&streaming());
    for i in 0..10 {
        core.access(i * LINE + FIRST_PAIR, 1_000 + 1_000 * i, false);
    }
    assert_eq!(core.get(Signal::L1dCacheRefillHwprf) + core.get(Signal::L2dCacheRefillHwprf), 0);
}

// ---- prefetch instructions ----

const TO_L1: u8 = 1;
const TO_L2: u8 = 2;
/// `pf_func` of weak prefetch instructions.
const WEAK: u64 = 1 << 60;

/// A core with pages of 64 KiB from 0 to 1 MiB, none of which it has met.
fn unknown(spec: &Spec) -> Core {
    let mut core = Core::new(spec);
    core.set_pages(
        1,
        vec![PageRange {
            start: 0,
            end: 1 << 20,
            shift: 16,
            placement: Placement::FirstTouch,
            moved: 0,
            shared: None,
            bounds: Bounds::ALL,
        }],
    );
    core
}

/// The same with the first page in its TLB, long before 10,000.
fn mapped(spec: &Spec) -> Core {
    let mut core = unknown(spec);
    core.memory.run().translate(0.into(), 0, &mut Signals::default());
    core
}

fn prefetch(core: &mut Core, pointer: u64, bytes: u64, level: u8, t: Cycle) -> Response {
    core.memory.run().prefetch_instruction(pointer.into(), bytes, level, t, &mut core.signals)
}

#[test]
fn a_prefetch_instruction_brings_its_line_into_the_cache_that_it_names() {
    for (into, level) in [(TO_L1, Level::L1), (TO_L2, Level::L2)] {
        let mut core = mapped(&machine());
        let done = prefetch(&mut core, 0, 1, into, 12_000);
        assert_eq!(done, Response::hit(12_000), "it waits for no data");
        assert_eq!(core.get(Signal::L2dCacheRefillPrf), 1);
        assert_eq!(core.load(0, 15_000).1, level);
    }
}

#[test]
fn a_prefetch_instruction_brings_both_lines_of_its_range() {
    let mut core = mapped(&machine());
    prefetch(&mut core, 2 * LINE - 32, 64, TO_L1, 12_000);
    assert_eq!(core.get(Signal::L1dCacheRefillPrf), 2);
    assert_eq!([LINE, 2 * LINE].map(|addr| core.load(addr, 15_000).1), [Level::L1; 2]);
    prefetch(&mut core, 11 * LINE - 64, 64, TO_L1, 16_000);
    assert_eq!(core.get(Signal::L1dCacheRefillPrf), 3, "up to the end of a line");
}

#[test]
fn a_strong_prefetch_instruction_starts_a_table_walk_and_a_weak_one_is_dropped() {
    let mut core = unknown(&machine());
    assert_eq!(prefetch(&mut core, 0x100 + WEAK, 1, TO_L1, 1_000), Response::hit(1_000));
    assert_eq!((core.get(Signal::L2dTlbRefill), core.get(Signal::L1dCacheRefillPrf)), (0, 0));
    let done = prefetch(&mut core, 0x100, 1, TO_L1, 1_000);
    assert_eq!((core.get(Signal::L2dTlbRefill), core.get(Signal::L1dCacheRefillPrf)), (1, 1));
    // As long as for any other access.
    let mut other = unknown(&machine());
    let walked = other.memory.run().translate(0x100.into(), 1_000, &mut other.signals).ready;
    assert_eq!(done, Response::hit(walked));
    prefetch(&mut core, 0x200 + WEAK, 1, TO_L1, 50_000);
    assert_eq!(core.get(Signal::L1dCacheRefillPrf), 2, "the page is known now");
}

#[test]
fn a_prefetch_instruction_for_an_address_without_a_page_does_nothing() {
    let mut core = mapped(&machine());
    assert_eq!(prefetch(&mut core, 1 << 30, 1, TO_L1, 1_000), Response::hit(1_000));
    assert_eq!((core.get(Signal::L2dTlbRefill), core.get(Signal::L2dCacheRefillPrf)), (0, 0));
}

#[test]
fn a_strong_prefetch_instruction_into_l2_waits_for_a_port_and_a_weak_one_is_dropped() {
    let mut spec = machine();
    spec.tables.prefetch.ports = 1;
    let mut core = mapped(&spec);
    assert_eq!(prefetch(&mut core, 0, 1, TO_L2, 12_000), Response::hit(12_000));
    // The port is held until L2 has taken the request: the miss is found by then.
    let free = 12_000 + spec.l2_timing.request + spec.l2_timing.miss_detect;
    assert_eq!(prefetch(&mut core, LINE + WEAK, 1, TO_L2, 12_001), Response::hit(12_001));
    assert_eq!(core.get(Signal::L2dCacheRefillPrf), 1, "dropped");
    let waits = prefetch(&mut core, LINE, 1, TO_L2, 12_002);
    let known = 12_002 + spec.load_store.load_integer;
    assert_eq!(waits, Response { at: free, misses: Misses { port: known, ..Misses::NONE } });
    assert_eq!(core.get(Signal::L2dCacheRefillPrf), 2);
}

#[test]
fn a_strong_prefetch_instruction_into_l1_waits_for_a_miss_buffer_and_a_weak_one_is_dropped() {
    let mut core = mapped(&machine());
    let buffers = u64::from(machine().l1d.miss_buffers);
    let first = core.access(0, 12_000, false).at;
    (1..buffers).for_each(|i| {
        core.access(i * LINE, 12_000, false);
    });
    assert_eq!(prefetch(&mut core, 100 * LINE + WEAK, 1, TO_L1, 12_001), Response::hit(12_001));
    assert_eq!(core.get(Signal::L1dCacheRefillPrf), 0, "dropped");
    let waits = prefetch(&mut core, 100 * LINE, 1, TO_L1, 12_002);
    assert_eq!((waits.at, waits.misses.level()), (first, Level::L2), "the first of the misses gives its buffer");
}
