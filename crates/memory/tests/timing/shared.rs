//! L2 and the memory channel: the index of lines, banks, rates.

use fxscope_memory::hierarchy::Cause;
use fxscope_memory::shared::Shared;

use super::*;

#[test]
fn reserved_ways_are_not_used() {
    let mut spec = machine();
    spec.tables.l2.reserved_ways = 13;
    let mut signals = Signals::default();
    let mut l2 = Shared::new(&spec, 0);
    // Bits that the index leaves out: 19, 20 and everything above 36.
    let lines: Vec<u64> = (0..4).map(|i: u64| i << 37 >> 8).collect();
    for &line in &lines {
        l2.read(line, 0, Cause::Demand, &mut signals);
    }
    let held = lines.iter().filter(|&&l| l2.holds(l)).count();
    assert_eq!(held, 3);
}

#[test]
fn a_bank_takes_one_line_a_cycle_and_the_other_bank_is_not_in_the_way() {
    let spec = machine();
    let mut signals = Signals::default();
    let mut l2 = Shared::new(&spec, 0);
    for line in 0..4 {
        l2.read(line, 0, Cause::Demand, &mut signals);
    }
    let t = 5_000;
    l2.advance(t);
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
    let mut l2 = Shared::new(&spec, 0);
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
    let mut l2 = Shared::new(&spec, 0);
    let first = l2.read(0, 0, Cause::Demand, &mut signals).0.ready;
    (0..100).for_each(|_| l2.write_memory(spec.l2_timing.miss_detect, &mut signals));
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
    let mut l2 = Shared::new(&spec, 0);
    let ready: Vec<Cycle> = (0..8).map(|line| l2.read(line, 0, Cause::Demand, &mut signals).0.ready).collect();
    assert!(ready[6] < ready[0] + 30);
    assert!(ready[7] > ready[0] + 900);
}
