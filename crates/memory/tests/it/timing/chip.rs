//! L2 and the memory channel: the index of lines, banks, rates.

use fxscope_memory::chip::{Answer, Evicted, Holder, Request};
use fxscope_memory::hierarchy::Cause;
use fxscope_memory::sectors::Joins;

use super::*;

/// The first CMG of a chip, as its first core sees it.
struct L2(Chip);

impl L2 {
    fn new(spec: &Spec) -> L2 {
        L2(Chip::new(spec))
    }
    fn read(&mut self, line: u64, at: Cycle, cause: Cause, signals: &mut Signals) -> (Answer, Option<u64>) {
        let joins = Joins::default();
        let request = Request { line, at, cause, holder: Holder::Data, write: false, joins };
        let (answer, left) = self.0.read::<true>(SEAT, request, signals);
        (answer, left.map(|victim| victim.line))
    }
    fn holds(&self, line: u64) -> bool {
        self.0.holds(SEAT.cmg, line)
    }
}

const SEAT: CoreId = CoreId { cmg: 0, core: 0 };

/// The set of a physical address as the manual writes it (table 9-3), bit by bit.
fn index(pa: u64) -> u64 {
    let bit = |n: u64| pa >> n & 1;
    let mut set = 0;
    for i in 0..11 {
        set |= bit(8 + i) << i;
    }
    for i in 0..3 {
        let hash = bit(34 + i) ^ bit(30 + i) ^ bit(29 + i) ^ bit(25 + i) ^ bit(21 + i);
        set ^= hash << (8 + i);
    }
    set
}

#[test]
fn lines_that_the_manual_s_formula_puts_into_one_set_drive_each_other_out_and_others_do_not() {
    let spec = machine();
    let usable = (spec.l2.ways - spec.l2.reserved_ways) as usize;
    let mut signals = Signals::default();
    // Addresses that differ in all bits of the formula, with the same low bits.
    let spread = (0..1u64 << 14).map(|i| 0x300 + ((i & 0x3f) << 16) + ((i >> 6) << 25) + ((i >> 4 & 7) << 34));
    let target = index(0x300);
    let (same, other): (Vec<u64>, Vec<u64>) = spread.partition(|&pa| index(pa) == target);
    assert!(same.len() > usable && other.len() > 200);
    let mut l2 = L2::new(&spec);
    for &pa in &same[..usable] {
        l2.read(pa / LINE, 0, Cause::Demand, &mut signals);
    }
    // As many lines of other sets as fit those sets.
    for &pa in other.iter().take(usable) {
        l2.read(pa / LINE, 0, Cause::Demand, &mut signals);
    }
    assert!(same[..usable].iter().all(|pa| l2.holds(pa / LINE)), "all fit");
    l2.read(same[usable] / LINE, 0, Cause::Demand, &mut signals);
    let left = same[..usable].iter().filter(|&pa| !l2.holds(pa / LINE)).count();
    assert_eq!(left, 1, "one more does not");
}

/// Of one line more than a set has ways for, all in the set that the low bits of addresses name, how many L2 gives up.
fn given_up_of_one_set_by_low_bits(spec: &Spec) -> usize {
    let usable = u64::from(spec.l2.ways - spec.l2.reserved_ways);
    let sets = spec.l2.bytes / u64::from(spec.l2.ways) / LINE;
    let lines: Vec<u64> = (0..=usable).map(|i| i * sets).collect();
    let (mut l2, mut signals) = (L2::new(spec), Signals::default());
    for &line in &lines {
        l2.read(line, 0, Cause::Demand, &mut signals);
    }
    lines.iter().filter(|&&line| !l2.holds(line)).count()
}

#[test]
fn the_hash_of_set_numbers_is_the_machine_s() {
    let mut spec = machine();
    assert_eq!(given_up_of_one_set_by_low_bits(&spec), 0, "bits from 21 on spread them");
    spec.tables.l2_hash.bits = 0;
    assert_eq!(given_up_of_one_set_by_low_bits(&spec), 1, "without a hash they have one set");
    // Bits that are the same in all of them.
    (spec.tables.l2_hash.bits, spec.tables.l2_hash.fields) = (3, vec![40]);
    assert_eq!(given_up_of_one_set_by_low_bits(&spec), 1);
    spec.tables.l2_hash.fields = vec![19];
    assert_eq!(given_up_of_one_set_by_low_bits(&spec), 0);
    for name in ["knl", "k-computer"] {
        assert_eq!(fxscope_machine::load(name, &[]).expect("built in").l2_hash.bits, 0, "{name}: none is documented");
    }
}

#[test]
fn reserved_ways_are_not_used() {
    let mut spec = machine();
    spec.tables.l2.reserved_ways = 13;
    let mut signals = Signals::default();
    let mut l2 = L2::new(&spec);
    // Bits that the index leaves out: 19, 20 and everything above 36.
    let lines: Vec<u64> = (0..4).map(|i: u64| i << 37 >> 8).collect();
    for &line in &lines {
        l2.read(line, 0, Cause::Demand, &mut signals);
    }
    let held = lines.iter().filter(|&&l| l2.holds(l)).count();
    assert_eq!(held, 3);
}

#[test]
fn the_l2_of_a_cmg_without_an_assistant_core_has_all_its_ways() {
    let spec = machine();
    assert_eq!(spec.topology.assistant_cmgs, [0, 1]);
    for (cmg, ways) in [(0, 14), (1, 14), (2, 16), (3, 16)] {
        // Lines of one set in the memory of the CMG: more than there are ways.
        let addresses = (0..1 << 12).map(|i| cmg * (8 << 30) + (i << 19));
        let set: Vec<u64> = addresses.filter(|&address| index(address) == 0).map(|address| address / LINE).collect();
        assert!(set.len() > 16);
        let (mut chip, id) = (Chip::new(&spec), CoreId { cmg: cmg as usize, core: 0 });
        for &line in &set {
            let joins = Joins::default();
            let request = Request { line, at: 0, cause: Cause::Demand, holder: Holder::Data, write: false, joins };
            chip.read::<true>(id, request, &mut Signals::default());
        }
        assert_eq!(set.iter().filter(|&&line| chip.holds(id.cmg, line)).count(), ways, "CMG{cmg}");
        assert_eq!(u64::from(spec.l2_ways(cmg as u32)), ways as u64);
        assert_eq!(spec.l2_bytes(cmg as u32), (ways as u64) << 19, "{ways} of 16 ways of 8 MiB");
    }
}

#[test]
fn a_bank_takes_one_line_a_cycle_and_the_other_bank_is_not_in_the_way() {
    let spec = machine();
    let mut signals = Signals::default();
    let mut l2 = L2::new(&spec);
    for line in 0..4 {
        l2.read(line, 0, Cause::Demand, &mut signals);
    }
    let t = 5_000;
    l2.0.advance(t);
    let mut read = |line| l2.read(line, t, Cause::Demand, &mut signals).0.ready;
    let first = read(0);
    assert_eq!(read(1), first, "the other bank");
    assert_eq!(read(2), first + 1, "the same bank");
    assert_eq!(read(3), first + 1);
}

#[test]
fn a_long_stream_of_reads_comes_at_the_channel_s_peak_times_its_efficiency() {
    let spec = machine();
    let mut signals = Signals::default();
    let mut l2 = L2::new(&spec);
    let n = 3_000;
    let ready: Vec<Cycle> = (0..n).map(|line| l2.read(line, 0, Cause::Demand, &mut signals).0.ready).collect();
    let bytes_per_cycle = spec.memory.peak_bytes_per_second as f64 / spec.clock.core_hz as f64;
    let rate = bytes_per_cycle * spec.memory.read_efficiency / 100.0;
    let expected = (n - 1) as f64 * LINE as f64 / rate;
    let took = (ready[n as usize - 1] - ready[0]) as f64;
    assert!((took / expected - 1.0).abs() < 0.005, "{took} cycles, {expected} expected");
}

#[test]
fn a_write_to_memory_takes_the_channel_longer_than_a_read() {
    let mut spec = machine();
    spec.tables.memory.write_cost = 3.0;
    let mut signals = Signals::default();
    let mut l2 = L2::new(&spec);
    let first = l2.read(0, 0, Cause::Demand, &mut signals).0.ready;
    (0..100).for_each(|_| l2.0.write_memory::<true>(0, 0, spec.l2_timing.miss_detect, &mut signals));
    let last = l2.read(1, 0, Cause::Demand, &mut signals).0.ready;
    let bytes_per_cycle = spec.memory.peak_bytes_per_second as f64 / spec.clock.core_hz as f64;
    let read = LINE as f64 / bytes_per_cycle / (spec.memory.read_efficiency / 100.0);
    // A hundred writes of three reads each, and a read.
    let expected = 301.0 * read;
    assert!(((last - first) as f64 - expected).abs() < 0.01 * expected + 3.0);
}

#[test]
fn as_many_misses_as_l2_has_buffers_are_in_flight() {
    let mut spec = machine();
    spec.tables.l2.miss_buffers = 7;
    spec.tables.memory.latency_nearest = 1_001;
    spec.tables.memory.latency_farthest = 1_001;
    let mut signals = Signals::default();
    let mut l2 = L2::new(&spec);
    let ready: Vec<Cycle> = (0..8).map(|line| l2.read(line, 0, Cause::Demand, &mut signals).0.ready).collect();
    assert!(ready[6] < ready[0] + 30);
    assert!(ready[7] > ready[0] + 900);
}

#[test]
fn an_l2_of_twice_the_size_holds_twice_the_lines() {
    let held = |bytes: u64| {
        let mut spec = machine();
        spec.tables.l2.bytes = bytes;
        let mut signals = Signals::default();
        let mut l2 = L2::new(&spec);
        let lines = 4 * bytes / LINE;
        for line in 0..lines {
            l2.read(line, 0, Cause::Demand, &mut signals);
        }
        (0..lines).filter(|&line| l2.holds(line)).count() as u64
    };
    let spec = machine();
    let usable = |bytes: u64| bytes / u64::from(spec.l2.ways) * u64::from(spec.l2.ways - spec.l2.reserved_ways) / LINE;
    for bytes in [4 << 20, 8 << 20, 16 << 20] {
        assert_eq!(held(bytes), usable(bytes), "{bytes} bytes");
    }
}

#[test]
fn slower_memory_adds_its_nanoseconds_to_every_read() {
    let ready = |added_ns: f64| {
        let mut spec = machine();
        spec.tables.memory.added_ns = added_ns;
        L2::new(&spec).read(0, 0, Cause::Demand, &mut Signals::default()).0.ready
    };
    // At 2 GHz a nanosecond is two cycles.
    assert_eq!(ready(100.0) - ready(0.0), 200);
}

/// Lines of the first set of L2, as many as it has ways, and one more.
fn one_more_than_fit(spec: &Spec) -> Vec<u64> {
    let ways = (spec.l2.ways - spec.l2.reserved_ways) as usize;
    // Bits that the index leaves out: 19, 20 and everything above 36.
    (0..=ways as u64).map(|i| i << 37 >> 8).collect()
}

/// The core `first` gets the first of `lines`, to write it or not, and so do other `readers`. Then core 3 reads the rest,
/// which evicts the first. Returns what has left, and when L2 had detected the miss that replaced it.
fn evicted_first(spec: &Spec, lines: &[u64], first: usize, write: bool, readers: &[usize]) -> (Option<Evicted>, Cycle) {
    let mut chip = Chip::new(spec);
    let mut read = |core, line, at, write| {
        let request = Request { line, at, cause: Cause::Demand, holder: Holder::Data, write, joins: Joins::default() };
        chip.read::<true>(CoreId { cmg: 0, core }, request, &mut Signals::default()).1
    };
    assert_eq!(read(first, lines[0], 0, write), None);
    for &core in readers {
        assert_eq!(read(core, lines[0], 10_000, false), None);
    }
    let times = (1..).map(|n| 20_000 + 1_000 * n);
    let left: Vec<_> = lines[1..].iter().zip(times).map(|(&line, at)| (read(3, line, at, false), at)).collect();
    let (&(left, at), before) = left.split_last().expect("some");
    assert!(before.iter().all(|(left, _)| left.is_none()), "all others fit");
    (left, at + spec.l2_timing.miss_detect)
}

#[test]
fn a_line_that_another_core_may_have_written_leaves_l2_when_that_core_has_sent_it() {
    let spec = machine();
    let lines = one_more_than_fit(&spec);
    let (t, ls) = (&spec.l2_timing, &spec.load_store);
    let (left, missed) = evicted_first(&spec, &lines, 1, true, &[]);
    // To the core, out of its L1D, over its bus, and back.
    let transfer = u64::from(spec.l1d.line_bytes / t.writeback_bytes_per_cycle);
    let at = missed + t.request + ls.move_out_dirty + transfer + t.request;
    assert_eq!(left, Some(Evicted { line: lines[0], dirty: true, code: false, at }));
}

#[test]
fn a_line_that_other_cores_only_read_leaves_l2_when_they_have_given_it_up() {
    let spec = machine();
    let lines = one_more_than_fit(&spec);
    let (t, ls) = (&spec.l2_timing, &spec.load_store);
    let (left, missed) = evicted_first(&spec, &lines, 3, false, &[1, 2]);
    let at = missed + t.request + ls.move_out_clean + t.request;
    assert_eq!(left, Some(Evicted { line: lines[0], dirty: false, code: false, at }));
}

#[test]
fn a_line_that_no_other_core_holds_leaves_l2_when_the_miss_is_known() {
    let spec = machine();
    let lines = one_more_than_fit(&spec);
    let (left, missed) = evicted_first(&spec, &lines, 3, false, &[]);
    assert_eq!(left, Some(Evicted { line: lines[0], dirty: false, code: false, at: missed }));
}

#[test]
fn a_clean_line_that_only_other_cores_hold_leaves_nothing_to_be_done() {
    let spec = machine();
    let lines = one_more_than_fit(&spec);
    assert_eq!(evicted_first(&spec, &lines, 1, false, &[2]).0, None);
}

#[test]
fn a_line_that_the_core_s_own_instruction_cache_holds_leaves_it_too() {
    let spec = machine();
    let lines = one_more_than_fit(&spec);
    let mut chip = Chip::new(&spec);
    let id = CoreId { cmg: 0, core: 3 };
    let mut left = None;
    for (&line, at) in lines.iter().zip((0..).map(|n| 1_000 * n)) {
        let holder = if line == lines[0] { Holder::Code } else { Holder::Data };
        let request = Request { line, at, cause: Cause::Demand, holder, write: false, joins: Joins::default() };
        left = chip.read::<true>(id, request, &mut Signals::default()).1.map(|left| (left.line, left.dirty, left.code));
    }
    assert_eq!(left, Some((lines[0], false, true)));
}

#[test]
fn a_line_that_comes_in_the_cycle_in_which_a_hit_would_send_it_is_no_miss_and_one_that_comes_later_is() {
    let spec = machine();
    let mut signals = Signals::default();
    // What a hit takes.
    let mut l2 = L2::new(&spec);
    l2.read(0, 0, Cause::Demand, &mut signals);
    let hit = l2.read(0, 5_000, Cause::Demand, &mut signals).0.ready - 5_000;
    for (early, missed) in [(0, false), (1, true)] {
        let mut l2 = L2::new(&spec);
        let comes = l2.read(0, 0, Cause::Demand, &mut signals).0.ready;
        let at = comes - hit - early;
        let answer = l2.read(0, at, Cause::Demand, &mut signals).0;
        assert_eq!(answer.ready, comes);
        assert_eq!(answer.missed, missed.then_some(at + spec.l2_timing.miss_detect));
    }
}
