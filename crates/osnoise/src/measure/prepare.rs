//! Calibrates each core before the measurement: its speed, and the cost of measuring.

use std::sync::atomic::AtomicBool;

use super::loops::{self, Core, Interval, Stats, Until};
use super::native::{Barrier, Member, Multiplication, Native};
use super::ring::Ring;
use super::{Error, Plan};
use crate::clock::{Clock, Timebase, read_cost};
use crate::trace::Method;

/// Result of the calibration. Times are in ticks unless noted.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    pub core: u32,
    /// Units of work per quantum.
    pub units: u32,
    /// Fastest iteration.
    pub minimum: u64,
    pub interval: Interval,
    /// In ns.
    pub quantum: u64,
    /// In ns.
    pub threshold: u64,
    /// Reading the clock.
    pub read: f64,
    /// Recording a detour.
    pub record: f64,
    /// Share of a quantum spent on reading the clock and bookkeeping.
    pub share: Option<f64>,
}

/// Shortest and longest quantum, ns.
const QUANTA: std::ops::RangeInclusive<u64> = 1_000..=10_000_000_000;
/// Default for the shortest detour recorded, ns.
const THRESHOLD: u64 = 1_000;
/// Default for the shortest detour, as one part in this many of a quantum.
const PART: u64 = 50;
/// Time for calibration, ns.
const PATIENCE: u64 = 100_000_000;

/// Determines what the method needs to know, on the core that it will run on.
pub fn prepare<C: Clock + Copy>(plan: &Plan, base: &Timebase, clock: C, core: u32) -> Result<Prepared, Error> {
    if let Some(quantum) = plan.quantum.filter(|quantum| !QUANTA.contains(quantum)) {
        return Err(Error::Quantum(format!("a quantum of {quantum} ns is not possible; use 1 µs to 10 s")));
    }
    let mut trial = Trial { base, clock };
    let mut prepared = Prepared {
        core,
        units: 0,
        minimum: 0,
        interval: Interval { ticks: 0, units: 0, piece: u64::MAX },
        quantum: 0,
        threshold: 0,
        read: read_cost(&mut trial.clock),
        record: trial.record(),
        share: None,
    };
    match plan.method {
        Method::Fwq => trial.fixed_work(plan.quantum.unwrap_or(100_000), &mut prepared),
        Method::Ftq => trial.fixed_time(plan.quantum.unwrap_or(1_000_000), &mut prepared),
        Method::Dgemm => trial.dgemm(plan.quantum, &mut prepared),
        Method::Barrier => {}
        Method::Spin | Method::Imported => prepared.minimum = trial.spin(),
    }
    prepared.threshold = plan.threshold.unwrap_or(THRESHOLD.max(prepared.quantum / PART));
    Ok(prepared)
}

/// Threshold during calibration: records no detours.
const NONE: u64 = u64::MAX;

/// Mean time of an iteration, ticks.
fn mean(stats: &Stats) -> f64 {
    stats.total as f64 / stats.iterations.max(1) as f64
}

struct Trial<'a, C> {
    base: &'a Timebase,
    clock: C,
}

impl<C: Clock + Copy> Trial<'_, C> {
    /// Runs a loop for `ns`; returns its statistics.
    fn run(&mut self, ns: u64, measure: impl FnOnce(&mut Stats, Until<'_>)) -> Stats {
        let never = AtomicBool::new(false);
        let end = self.clock.now().saturating_add(self.base.ticks_of(ns));
        let mut stats = Stats::new(self.base.rate);
        measure(&mut stats, Until { end, stop: &never });
        stats
    }

    /// The fastest of several runs of `units` units of work.
    fn fastest(&mut self, core: &mut impl Core, units: u32, ns: u64) -> u64 {
        let sink = &mut Vec::new();
        self.run(ns, |stats, until| loops::fixed_work(core, sink, stats, units, NONE, until)).minimum.max(1)
    }

    /// Fastest iteration of the spin loop.
    fn spin(&mut self) -> u64 {
        let (core, sink) = (&mut Native::new(self.clock), &mut Vec::new());
        self.loop_overhead(|stats, until| loops::spin(core, sink, stats, NONE, until)).round() as u64
    }

    /// Time of an iteration without work: the fastest of several short runs, since other programs may interfere.
    fn loop_overhead(&mut self, mut measure: impl FnMut(&mut Stats, Until<'_>)) -> f64 {
        (0..50).map(|_| mean(&self.run(PATIENCE / 500, &mut measure))).fold(f64::INFINITY, f64::min)
    }

    /// Cost of recording a detour.
    fn record(&mut self) -> f64 {
        const BATCH: u64 = 1000;
        let batch = || {
            let ring = Ring::new(BATCH as usize);
            let begin = self.clock.now();
            (0..BATCH).for_each(|i| std::hint::black_box(&ring).push(i, i));
            self.clock.now().saturating_sub(begin) as f64 / BATCH as f64
        };
        std::iter::repeat_with(batch).take(20).fold(f64::INFINITY, f64::min)
    }

    fn fixed_work(&mut self, quantum: u64, prepared: &mut Prepared) {
        let mut core = Native::new(self.clock);
        let many = self.fastest(&mut core, 1000, PATIENCE / 10) as f64 / 1000.0;
        prepared.units = (self.base.ticks_of(quantum) as f64 / many).round().max(1.0) as u32;
        prepared.minimum = self.fastest(&mut core, prepared.units, PATIENCE.max(4 * quantum));
        prepared.quantum = self.base.length(prepared.minimum);
        let sink = &mut Vec::new();
        let books = self.loop_overhead(|stats, until| loops::fixed_work(&mut core, sink, stats, 0, NONE, until));
        prepared.share = Some(books / prepared.minimum as f64);
    }

    fn fixed_time(&mut self, quantum: u64, prepared: &mut Prepared) {
        let mut core = Native::new(self.clock);
        let many = self.fastest(&mut core, 1000, PATIENCE / 10) as f64 / 1000.0;
        // Two hundred pieces resolve half a percent of a quantum; pieces below 2 µs would consist mostly of reading the
        // clock.
        let piece = (quantum / 200).max(2_000).min(quantum);
        let units = (self.base.ticks_of(piece) as f64 / many).round().max(1.0) as u32;
        let mut interval = Interval { ticks: self.base.ticks_of(quantum), units, piece: u64::MAX };
        let sink = &mut Vec::new();
        let until_end = PATIENCE.max(20 * quantum);
        self.run(until_end, |stats, until| loops::fixed_time(&mut core, sink, stats, &mut interval, NONE, until));
        prepared.interval = interval;
        prepared.minimum = interval.piece >> 16;
        prepared.quantum = quantum;
        let sink = &mut Vec::new();
        let books = self.loop_overhead(|stats, until| loops::fixed_work(&mut core, sink, stats, 0, NONE, until));
        prepared.share = Some(books / (prepared.minimum as f64).max(1.0));
    }

    fn dgemm(&mut self, quantum: Option<u64>, prepared: &mut Prepared) {
        let mut core = Multiplication::new(self.clock);
        let one = self.fastest(&mut core, 1, PATIENCE / 2);
        let blocks = quantum.map_or(1.0, |quantum| self.base.ticks_of(quantum) as f64 / one as f64);
        prepared.units = blocks.round().max(1.0) as u32;
        prepared.minimum = self.fastest(&mut core, prepared.units, PATIENCE.max(4 * quantum.unwrap_or(0)));
        prepared.quantum = self.base.length(prepared.minimum);
        let alone = Barrier::new(1);
        let (member, sink) = (&mut Member { barrier: &alone, leads: true }, &mut Vec::new());
        // The leader announces the last barrier only once, so there is only one run.
        let measure = |stats: &mut Stats, until: Until<'_>| {
            loops::with_barriers(&mut core, member, sink, stats, (64, 0), NONE, until);
        };
        let books = mean(&self.run(PATIENCE / 100, measure));
        prepared.share = Some(books / prepared.minimum as f64);
    }
}
