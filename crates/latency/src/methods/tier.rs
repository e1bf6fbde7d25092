//! Some of a program's data in a memory tier: slower, with less bandwidth.
//!
//! For each interval of a run with all data in fast memory:
//!
//! * Waits grow as in method 5 ([`super::stalls`]), as far as they are waits for these data: their share of the demand misses.
//! * Prefetched streams of these data run as far ahead as in method 5: their share of the prefetches.
//! * The interval takes at least as long as the tier needs to read and write their lines.
//!
//! What the fast memory has less to do is not taken off.

use super::{Program, stalls};
use crate::{Counts, Quantity, System};

/// Lines between L2 and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Read because an access needed them.
    pub demanded: f64,
    /// Read by prefetches.
    pub prefetched: f64,
    /// Written.
    pub written: f64,
}

impl Traffic {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Traffic) -> Traffic {
        Traffic {
            demanded: self.demanded + other.demanded,
            prefetched: self.prefetched + other.prefetched,
            written: self.written + other.written,
        }
    }

    /// Returns all lines, read and written.
    #[must_use]
    pub fn lines(self) -> f64 {
        self.demanded + self.prefetched + self.written
    }
}

/// A memory tier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tier {
    /// Its latency beyond that of the machine's memory, seconds.
    pub added: f64,
    /// Most bytes read, written, and both together, per second.
    pub read: f64,
    /// See `read`.
    pub write: f64,
    /// See `read`.
    pub total: f64,
}

impl Tier {
    /// Returns the seconds that it takes to read and write these lines.
    fn seconds(&self, traffic: Traffic, line_bytes: f64) -> f64 {
        let read = (traffic.demanded + traffic.prefetched) * line_bytes;
        let written = traffic.written * line_bytes;
        (read / self.read).max(written / self.write).max((read + written) / self.total)
    }
}

/// An interval of a run with all data in fast memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Its counts.
    pub counts: Counts,
    /// The traffic of each object.
    pub objects: Vec<Traffic>,
}

/// Returns the time of the run with some of its objects in the tier, relative to the run without.
#[must_use]
pub fn slowdown(intervals: &[Interval], in_tier: &[bool], tier: &Tier, system: &System) -> f64 {
    let before: f64 = intervals.iter().map(|interval| interval.counts.seconds).sum();
    let after: f64 = intervals.iter().map(|interval| interval.seconds(in_tier, tier, system)).sum();
    if before > 0.0 { after / before } else { 1.0 }
}

impl Interval {
    fn seconds(&self, in_tier: &[bool], tier: &Tier, system: &System) -> f64 {
        let all = self.objects.iter().copied().fold(Traffic::default(), Traffic::plus);
        let moved = self.objects.iter().zip(in_tier).filter(|(_, moved)| **moved);
        let moved = moved.map(|(&traffic, _)| traffic).fold(Traffic::default(), Traffic::plus);
        let line_bytes = system.details.as_ref().map_or(0.0, |details| details.line_bytes);
        let waiting = self.counts.seconds * (1.0 + self.added(all, moved, tier, system));
        waiting.max(tier.seconds(moved, line_bytes))
    }

    /// Returns the time that latency adds, relative to the interval.
    fn added(&self, all: Traffic, moved: Traffic, tier: &Tier, system: &System) -> f64 {
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let of = |share: f64| {
            let misses = self.counts.get(Quantity::Misses).unwrap_or(0.0);
            let mut counts = self.counts.clone().with(Quantity::CacheMisses, share * misses);
            // They do not tell which data the waits are for.
            counts.set(Quantity::MainLoadCycles, None);
            let program = Program { counts: &counts, intervals: &[], no_intervals: "", system, second: Err("") };
            stalls::growth(&program, *stalls::FITTED)
        };
        let waits = of(share(moved.demanded, all.demanded)).map_or(0.0, |growth| growth.waits * tier.added);
        let streams = of(share(moved.prefetched, all.prefetched))
            .map_or(0.0, |growth| growth.streams * (tier.added - growth.ahead).max(0.0));
        [waits, streams].into_iter().filter(|added| added.is_finite()).sum()
    }
}

#[cfg(test)]
mod tests {
    use fxscope_machine::load;

    use super::*;

    const LINE: f64 = 256.0;

    fn system() -> System {
        System::of(&load("a64fx", &[]).expect("built in"))
    }

    fn tier(added_ns: f64) -> Tier {
        Tier { added: added_ns * 1e-9, read: 32e9, write: 32e9, total: 64e9 }
    }

    fn interval(seconds: f64, wait_share: f64, objects: Vec<Traffic>) -> Interval {
        let cycles = seconds * 2e9;
        let misses: f64 = objects.iter().map(|of| of.demanded + of.prefetched).sum();
        let prefetched: f64 = objects.iter().map(|of| of.prefetched).sum();
        let counts = Counts::new(seconds, 1.0)
            .with(Quantity::Cycles, cycles)
            .with(Quantity::Misses, misses)
            .with(Quantity::Prefetched, prefetched)
            .with(Quantity::MemoryWait, wait_share * cycles);
        Interval { counts, objects }
    }

    #[test]
    fn a_chase_slows_down_as_much_as_the_latency_of_its_object_grows() {
        let system = system();
        let latency = system.base_ns * 1e-9;
        let detection = system.details.as_ref().expect("described").detection / 2e9;
        // All time is waiting, for one line after the other.
        let chase = Traffic { demanded: 1e-3 / latency, ..Traffic::default() };
        let run = [interval(1e-3, 1.0 - detection / latency, vec![chase, Traffic::default()])];
        let added = 116.0;
        let expected = 1.0 + added * 1e-9 / latency;
        let found = slowdown(&run, &[true, false], &tier(added), &system);
        assert!((found / expected - 1.0).abs() < 0.01, "{found} for {expected}");
        assert_eq!(slowdown(&run, &[false, true], &tier(added), &system), 1.0);
    }

    #[test]
    fn a_stream_takes_at_least_the_time_that_the_tier_needs_for_its_lines() {
        let system = system();
        // 64 GB/s read and as much written, half of each by either object.
        let lines = 64e9 * 1e-3 / LINE / 2.0;
        let stream = Traffic { demanded: 0.0, prefetched: lines, written: lines };
        let run = [interval(1e-3, 0.0, vec![stream; 2])];
        let narrow = Tier { added: 0.0, read: 32e9, write: 16e9, total: 64e9 };
        assert!((slowdown(&run, &[true, false], &narrow, &system) - 2.0).abs() < 1e-9, "32 GB/s written at 16 GB/s");
        let shared = Tier { write: 32e9, total: 40e9, ..narrow };
        assert!((slowdown(&run, &[true, true], &shared, &system) - 3.2).abs() < 1e-9, "128 GB/s at 40 GB/s");
        let wide = Tier { read: 1e12, write: 1e12, total: 1e12, ..narrow };
        assert!((slowdown(&run, &[true, true], &wide, &system) - 1.0).abs() < 1e-9);
    }
}
