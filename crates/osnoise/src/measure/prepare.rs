//! What each core finds out before the measurement: how fast it is, and what measuring costs.

use std::sync::atomic::AtomicBool;

use super::loops::{self, Interval, Lab, Stats, Until};
use super::native::{Barrier, Member, Multiplication, Native};
use super::ring::Ring;
use super::{Error, Plan};
use crate::clock::{Clock, Timebase, read_cost};
use crate::trace::Method;

/// What a core has found out. Times are in ticks but for those whose comment says ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    pub core: u32,
    /// Units of work of a quantum.
    pub units: u32,
    /// The fastest iteration.
    pub minimum: u64,
    pub interval: Interval,
    /// ns.
    pub quantum: u64,
    /// ns.
    pub threshold: u64,
    /// One read of the clock.
    pub read: f64,
    /// Keeping one detour.
    pub record: f64,
    /// What reading the clock and keeping books take of a quantum.
    pub share: Option<f64>,
}

/// Shortest and longest quantum, ns.
const QUANTA: std::ops::RangeInclusive<u64> = 1_000..=10_000_000_000;
/// Shortest detour that is kept where nothing else is asked for, ns.
const THRESHOLD: u64 = 1_000;
/// The part of a quantum that a detour has at least where nothing else is asked for.
const PART: u64 = 50;
/// Time for finding out, ns.
const PATIENCE: u64 = 100_000_000;

/// Finds out what the method needs to know, on the core that it will run on.
pub fn prepare<C: Clock + Copy>(plan: &Plan, base: &Timebase, clock: C, core: u32) -> Result<Prepared, Error> {
    if let Some(quantum) = plan.quantum.filter(|quantum| !QUANTA.contains(quantum)) {
        return Err(Error::Quantum(format!("a quantum of {quantum} ns is not possible; 1 µs to 10 s are")));
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

/// No detour is kept while finding out.
const NONE: u64 = u64::MAX;

/// What an iteration takes, ticks.
fn mean(stats: &Stats) -> f64 {
    stats.total as f64 / stats.iterations.max(1) as f64
}

struct Trial<'a, C> {
    base: &'a Timebase,
    clock: C,
}

impl<C: Clock + Copy> Trial<'_, C> {
    /// Runs a loop for a while, and gives its counts.
    fn run(&mut self, ns: u64, measure: impl FnOnce(&mut Stats, Until<'_>)) -> Stats {
        let never = AtomicBool::new(false);
        let end = self.clock.now().saturating_add(self.base.ticks_of(ns));
        let mut stats = Stats::new(self.base.rate);
        measure(&mut stats, Until { end, stop: &never });
        stats
    }

    /// The fastest time of so many units of work, of several tries.
    fn fastest(&mut self, lab: &mut impl Lab, units: u32, ns: u64) -> u64 {
        let keep = &mut Vec::new();
        self.run(ns, |stats, until| loops::fixed_work(lab, keep, stats, units, NONE, until)).minimum.max(1)
    }

    /// How long the loop takes to go round once.
    fn spin(&mut self) -> u64 {
        let (lab, keep) = (&mut Native::new(self.clock), &mut Vec::new());
        self.books(|stats, until| loops::spin(lab, keep, stats, NONE, until)).round() as u64
    }

    /// What a loop without work takes to go round: of several short runs the fastest, as others may run meanwhile.
    fn books(&mut self, mut measure: impl FnMut(&mut Stats, Until<'_>)) -> f64 {
        (0..50).map(|_| mean(&self.run(PATIENCE / 500, &mut measure))).fold(f64::INFINITY, f64::min)
    }

    /// What keeping one detour costs.
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
        let mut lab = Native::new(self.clock);
        let many = self.fastest(&mut lab, 1000, PATIENCE / 10) as f64 / 1000.0;
        prepared.units = (self.base.ticks_of(quantum) as f64 / many).round().max(1.0) as u32;
        prepared.minimum = self.fastest(&mut lab, prepared.units, PATIENCE.max(4 * quantum));
        prepared.quantum = self.base.length(prepared.minimum);
        let keep = &mut Vec::new();
        let books = self.books(|stats, until| loops::fixed_work(&mut lab, keep, stats, 0, NONE, until));
        prepared.share = Some(books / prepared.minimum as f64);
    }

    fn fixed_time(&mut self, quantum: u64, prepared: &mut Prepared) {
        let mut lab = Native::new(self.clock);
        let many = self.fastest(&mut lab, 1000, PATIENCE / 10) as f64 / 1000.0;
        // Two hundred pieces tell half a percent of a quantum; shorter ones than 2 µs would be mostly reads of the clock.
        let piece = (quantum / 200).max(2_000).min(quantum);
        let units = (self.base.ticks_of(piece) as f64 / many).round().max(1.0) as u32;
        let mut interval = Interval { ticks: self.base.ticks_of(quantum), units, piece: u64::MAX };
        let keep = &mut Vec::new();
        let until_end = PATIENCE.max(20 * quantum);
        self.run(until_end, |stats, until| loops::fixed_time(&mut lab, keep, stats, &mut interval, NONE, until));
        prepared.interval = interval;
        prepared.minimum = interval.piece >> 16;
        prepared.quantum = quantum;
        let keep = &mut Vec::new();
        let books = self.books(|stats, until| loops::fixed_work(&mut lab, keep, stats, 0, NONE, until));
        prepared.share = Some(books / (prepared.minimum as f64).max(1.0));
    }

    fn dgemm(&mut self, quantum: Option<u64>, prepared: &mut Prepared) {
        let mut lab = Multiplication::new(self.clock);
        let one = self.fastest(&mut lab, 1, PATIENCE / 2);
        let blocks = quantum.map_or(1.0, |quantum| self.base.ticks_of(quantum) as f64 / one as f64);
        prepared.units = blocks.round().max(1.0) as u32;
        prepared.minimum = self.fastest(&mut lab, prepared.units, PATIENCE.max(4 * quantum.unwrap_or(0)));
        prepared.quantum = self.base.length(prepared.minimum);
        let alone = Barrier::new(1);
        let (member, keep) = (&mut Member { barrier: &alone, leads: true }, &mut Vec::new());
        // A leader says only once which barrier is the last: one run.
        let measure = |stats: &mut Stats, until: Until<'_>| {
            loops::together(&mut lab, member, keep, stats, (64, 0), NONE, until);
        };
        let books = mean(&self.run(PATIENCE / 100, measure));
        prepared.share = Some(books / prepared.minimum as f64);
    }
}
