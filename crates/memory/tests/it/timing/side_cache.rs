//! The cache in front of main memory: who finds lines there, what a miss costs, who writes to main memory.

use fxscope_memory::chip::{Holder, Request};
use fxscope_memory::hierarchy::Cause;
use fxscope_memory::sectors::Joins;

use super::*;

/// Lines that the cache holds.
const LINES: u64 = 256;
const HIT: Cycle = 150;
const MEMORY: Cycle = 400;
const DETECT: Cycle = 60;

/// A machine with such a cache, and an L2 of a single set.
fn with_cache() -> Spec {
    let mut spec = machine();
    spec.tables.l2.bytes = u64::from(spec.l2.ways) * LINE;
    spec.tables.memory.latency_nearest = MEMORY;
    spec.tables.memory.latency_farthest = MEMORY;
    spec.tables.memory_side_cache.bytes = LINES * LINE;
    spec.tables.memory_side_cache.hit_nearest = HIT;
    spec.tables.memory_side_cache.hit_farthest = HIT + 22;
    spec.tables.memory_side_cache.miss_detect = DETECT;
    spec.check().expect("a machine");
    spec
}

/// The first CMG's first core asks the chip for lines.
struct Asks {
    chip: Chip,
    signals: Signals,
}

impl Asks {
    fn new(spec: &Spec) -> Asks {
        Asks { chip: Chip::new(spec), signals: Signals::default() }
    }
    fn read_as(&mut self, line: u64, at: Cycle, cause: Cause) -> Cycle {
        let request = Request { line, at, cause, holder: Holder::None, write: false, joins: Joins::default() };
        self.chip.read::<true>(CoreId { cmg: 0, core: 0 }, request, &mut self.signals).0.ready
    }
    fn read(&mut self, line: u64, at: Cycle) -> Cycle {
        self.read_as(line, at, Cause::Demand)
    }
    fn write_back(&mut self, line: u64, at: Cycle) {
        self.chip.write_memory::<true>(0, line, at, &mut self.signals);
    }
    /// Lines read from main memory and written to it, found in the cache and not, written back by it.
    fn counts(&self) -> [u64; 5] {
        use Signal::{MainMemoryRead, MainMemoryWrite, MemoryCacheHit, MemoryCacheMiss, MemoryCacheWb};
        [MainMemoryRead, MainMemoryWrite, MemoryCacheHit, MemoryCacheMiss, MemoryCacheWb].map(|s| self.signals.get(s))
    }
}

#[test]
fn hits_and_misses_take_as_long_as_the_description_says() {
    let spec = with_cache();
    for (position, hit) in [(0, HIT), (11, HIT + 22)] {
        let mut core = Core::at(&spec, position);
        assert_eq!(core.load(0, 1_000), (MEMORY, Level::Memory), "position {position}");
        // Other lines drive it out of L1D and L2, but not out of the cache behind.
        for i in 1..20 {
            core.load(i * L1_SET % (LINES * LINE) + i * LINE, 1_000 + 2_000 * i);
        }
        let t = core.now(60_000);
        assert_eq!(core.load(0, t), (hit, Level::Memory), "position {position}");
    }
}

#[test]
fn main_memory_added_latency_slows_misses_and_not_hits() {
    let mut spec = with_cache();
    let times = |spec: &Spec| {
        let mut asks = Asks::new(spec);
        let miss = asks.read(0, 1_000) - 1_000;
        (1..20).for_each(|line| _ = asks.read(line, 10_000));
        (miss, asks.read(0, 50_000) - 50_000, asks.signals.get(Signal::MainMemoryReadWait))
    };
    let (miss, hit, wait) = times(&spec);
    spec.tables.memory.added_ns = 500.0;
    // 500 ns of 2 GHz.
    assert_eq!(times(&spec), (miss + 1_000, hit, wait + 20 * 1_000));
}

#[test]
fn reads_outstanding_at_main_memory_are_counted_from_its_own_request_on() {
    let spec = with_cache();
    let mut asks = Asks::new(&spec);
    let ready = asks.read(0, 1_000);
    let asked = 1_000 + spec.l2_timing.miss_detect + DETECT;
    assert_eq!(asks.signals.get(Signal::MainMemoryReadWait), ready - asked);
    assert_eq!(asks.signals.get(Signal::L2MissWait), ready - asked + DETECT);
    assert_eq!(asks.signals.get(Signal::L2MissWaitMainDm), ready - asked + DETECT);
    asks.read_as(1, 5_000, Cause::HardwarePrefetch);
    assert_eq!(asks.signals.get(Signal::L2MissWaitMainDm), ready - asked + DETECT, "a prefetch is no demand");
    assert_eq!(asks.signals.get(Signal::MainMemoryReadWait), 2 * (ready - asked));
}

#[test]
fn loads_that_the_cache_serves_are_misses_of_l2_but_not_of_main_memory() {
    let mut core = Core::new(&with_cache());
    let counts = |core: &Core| {
        use Signal::{L2MissLoadCycles, L2MissLoadCyclesMain, L2MissMainDm};
        [L2MissMainDm, L2MissLoadCyclesMain, L2MissLoadCycles].map(|signal| core.get(signal))
    };
    // After the walk for its translation.
    core.load(0, 10_000);
    let [one, main, all] = counts(&core);
    assert_eq!((one, main), (1, all));
    for i in 1..20 {
        core.load(i * L1_SET % (LINES * LINE) + i * LINE, 10_000 + 2_000 * i);
    }
    let before = counts(&core);
    let t = core.now(60_000);
    core.load(0, t);
    // The time of a hit is shorter by the difference of the latencies.
    assert_eq!(counts(&core), [before[0], before[1], before[2] + all - (MEMORY - HIT)]);
}

#[test]
fn without_such_a_cache_every_miss_of_l2_is_one_of_main_memory() {
    let mut asks = Asks::new(&machine());
    let wait: u64 = (0..50).map(|line| asks.read(line, 1_000)).map(|ready| ready - 1_000).sum();
    asks.write_back(7, 3_000);
    assert_eq!(asks.counts(), [50, 1, 0, 0, 0]);
    assert_eq!(asks.signals.get(Signal::MainMemoryReadWait), asks.signals.get(Signal::L2MissWait));
    assert!(asks.signals.get(Signal::L2MissWait) < wait);
}

#[test]
fn lines_as_far_apart_as_the_cache_is_large_drive_each_other_out_and_others_do_not() {
    let mut asks = Asks::new(&with_cache());
    let mut t = 1_000;
    let mut in_turn = |asks: &mut Asks, lines: &[u64]| {
        for line in lines.iter().cycle().take(40 * lines.len()) {
            t += 1_000;
            asks.read(*line, t);
        }
    };
    // More than L2 holds, each with a place of its own.
    let apart: Vec<u64> = (0..32).map(|i| i * 8).collect();
    in_turn(&mut asks, &apart);
    assert_eq!(asks.counts(), [32, 0, 39 * 32, 32, 0]);
    // As many in half of the places.
    let mut asks = Asks::new(&with_cache());
    let shared: Vec<u64> = (0..32).map(|i| i * 8 % 128 + (i / 16) * LINES).collect();
    in_turn(&mut asks, &shared);
    assert_eq!(asks.counts(), [40 * 32, 0, 0, 40 * 32, 0]);
}

#[test]
fn a_line_that_was_written_goes_to_main_memory_when_another_one_takes_its_place() {
    let mut asks = Asks::new(&with_cache());
    asks.read(3, 1_000);
    asks.write_back(3, 5_000);
    asks.write_back(3, 6_000);
    assert_eq!(asks.counts(), [1, 0, 0, 1, 0], "it stays in the cache");
    asks.read(3 + LINES, 10_000);
    assert_eq!(asks.counts(), [2, 1, 0, 2, 1]);
    asks.read(3 + 2 * LINES, 20_000);
    assert_eq!(asks.counts(), [3, 1, 0, 3, 1], "the one before was clean");
}

#[test]
fn a_line_that_comes_back_to_a_cache_without_it_is_put_there_without_being_read() {
    let mut asks = Asks::new(&with_cache());
    asks.write_back(3, 1_000);
    assert_eq!(asks.counts(), [0, 0, 0, 0, 0]);
    asks.write_back(3 + LINES, 2_000);
    assert_eq!(asks.counts(), [0, 1, 0, 0, 1], "the dirty one leaves");
    asks.read(3 + LINES, 5_000);
    assert_eq!(asks.counts(), [0, 1, 1, 0, 1]);
}

#[test]
fn a_dirty_line_is_written_to_main_memory_when_its_place_has_been_looked_up() {
    let mut spec = with_cache();
    // Nothing else takes the channel as long as this write.
    spec.tables.memory.write_cost = 400.0;
    let read = |at: Cycle| {
        let mut asks = Asks::new(&spec);
        asks.write_back(3, 1_000);
        asks.write_back(3 + LINES, 5_000);
        asks.read(9, at) - at
    };
    let alone = read(20_000);
    // Both look up their lines before.
    let same = 5_000 - spec.l2_timing.miss_detect;
    assert!(read(same - 8) <= alone + 2, "before the write");
    assert!(read(same + 8) > alone + 600, "during the write");
}

/// Cycles per line when this number of lines is requested at once.
fn period(asks: &mut Asks, lines: impl Iterator<Item = u64>, at: Cycle) -> f64 {
    asks.chip.advance(at);
    let ready: Vec<Cycle> = lines.map(|line| asks.read(line, at)).collect();
    (ready[ready.len() - 1] - ready[0]) as f64 / (ready.len() - 1) as f64
}

#[test]
fn streams_come_at_the_rate_of_the_memory_that_has_them() {
    let mut spec = with_cache();
    spec.tables.l2.miss_buffers = 4_000;
    spec.tables.memory_side_cache.peak_bytes_per_second = 200_000_000_000;
    spec.tables.memory_side_cache.read_efficiency = 50.0;
    spec.tables.memory_side_cache.write_cost = 1.5;
    spec.tables.memory.peak_bytes_per_second = 40_000_000_000;
    spec.tables.memory.read_efficiency = 100.0;
    let mut asks = Asks::new(&spec);
    let clock = spec.clock.core_hz as f64;
    let misses = period(&mut asks, 0..LINES, 1_000);
    let expected = LINE as f64 * clock / 40e9;
    assert!((misses / expected - 1.0).abs() < 0.02, "{misses} cycles, {expected} expected");
    let hits = period(&mut asks, 0..LINES - 20, 100_000);
    let expected = LINE as f64 * clock / 100e9;
    assert!((hits / expected - 1.0).abs() < 0.02, "{hits} cycles, {expected} expected");
    // A miss reads the tags with a line, and the line that comes is written: one and 1.5 slots.
    spec.tables.memory.peak_bytes_per_second = 400_000_000_000;
    let mut asks = Asks::new(&spec);
    let misses = period(&mut asks, 0..2_000, 1_000);
    let written = expected * 2.5;
    assert!(misses >= expected * 0.98 && misses <= written * 1.02, "{misses} cycles, {expected} to {written}");
}

#[test]
fn each_cmg_s_memory_has_its_own() {
    let spec = with_cache();
    let mut asks = Asks::new(&spec);
    let node = asks.chip.frames().node_of(0);
    let other = (1..64).map(|i| i << 30).find(|&pa| asks.chip.frames().node_of(pa) != node).expect("several nodes");
    asks.read(0, 1_000);
    asks.read(other / LINE, 10_000);
    (1..20).for_each(|line| _ = asks.read(line, 20_000));
    asks.read(0, 50_000);
    asks.read(other / LINE, 60_000);
    assert_eq!(asks.counts(), [21, 0, 2, 21, 0], "they do not share a place");
}
