//! The measuring loops. They run on a [`Lab`], a core with a clock: the real one, or a simulated one in tests.
//! In them nothing is allocated and no system call is made.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::trace::bin;

/// A core that works and has a clock.
pub trait Lab {
    /// The time, ticks.
    fn now(&mut self) -> u64;
    /// Does a number of units of work, each as long as any other.
    fn work(&mut self, units: u32);
}

/// Where detours go.
pub trait Keep {
    /// Keeps a detour: its start and its length, ticks.
    fn keep(&mut self, start: u64, length: u64);
}

impl Keep for Vec<(u64, u64)> {
    fn keep(&mut self, start: u64, length: u64) {
        self.push((start, length));
    }
}

impl Keep for &super::ring::Ring {
    #[inline]
    fn keep(&mut self, start: u64, length: u64) {
        self.push(start, length);
    }
}

/// When a loop ends.
#[derive(Clone, Copy)]
pub struct Until<'a> {
    /// The time from which on it does, ticks.
    pub end: u64,
    /// Whether it is to end at once.
    pub stop: &'a AtomicBool,
}

impl Until<'_> {
    /// Whether it is over.
    #[inline]
    #[must_use]
    pub fn over(&self, now: u64) -> bool {
        now >= self.end || self.stop.load(Ordering::Relaxed)
    }
}

/// Bins of a histogram of times.
const BINS: usize = 256;

/// What a loop counts. Times are in ticks but for those of the histogram.
#[derive(Clone, Debug)]
pub struct Stats {
    /// Iterations.
    pub iterations: u64,
    /// The fastest one.
    pub minimum: u64,
    /// All together.
    pub total: u64,
    /// Of this, waiting at barriers.
    pub waiting: u64,
    /// How often the clock went back.
    pub backward: u64,
    /// Iterations by time: see [`bin`].
    pub histogram: [u64; BINS],
    /// ns of a tick, in 2^-32.
    scale: u64,
}

impl Stats {
    /// No iteration yet, of a clock with so many ticks each ns.
    #[must_use]
    pub fn new(rate: f64) -> Stats {
        let scale = (f64::from(1u32 << 31) * 2.0 / rate) as u64;
        Stats { iterations: 0, minimum: u64::MAX, total: 0, waiting: 0, backward: 0, histogram: [0; BINS], scale }
    }

    #[inline]
    fn count(&mut self, ticks: u64) {
        self.iterations += 1;
        self.total += ticks;
        self.minimum = self.minimum.min(ticks);
        let ns = ((u128::from(ticks) * u128::from(self.scale)) >> 32) as u64;
        self.histogram[bin(ns)] += 1;
    }
}

/// The time from one read of the clock to the next; none when it went back.
#[inline]
fn elapsed(stats: &mut Stats, before: u64, now: u64) -> Option<u64> {
    let took = now.checked_sub(before);
    stats.backward += u64::from(took.is_none());
    took
}

/// Reads the clock over and over; a gap longer than `threshold` is a detour, without what an iteration takes anyway, which
/// `stats` must know: two reads may come closer together than the loop goes round.
pub fn spin(lab: &mut impl Lab, keep: &mut impl Keep, stats: &mut Stats, threshold: u64, until: Until<'_>) {
    let mut before = lab.now();
    loop {
        let now = lab.now();
        if let Some(gap) = elapsed(stats, before, now) {
            stats.iterations += 1;
            stats.total += gap;
            if gap > threshold {
                let length = gap.saturating_sub(stats.minimum);
                let ns = ((u128::from(length) * u128::from(stats.scale)) >> 32) as u64;
                stats.histogram[bin(ns)] += 1;
                keep.keep(before, length);
            }
        }
        if until.over(now) {
            return;
        }
        // Not the time after keeping: what that takes must not be lost.
        before = now;
    }
}

/// A piece of work has taken this time: what that is beyond the fastest one is a detour when it exceeds `threshold`.
#[inline(always)]
fn piece_done(keep: &mut impl Keep, stats: &mut Stats, time: std::ops::Range<u64>, threshold: u64) {
    if let Some(took) = elapsed(stats, time.start, time.end) {
        stats.count(took);
        let excess = took - stats.minimum;
        if excess > threshold {
            keep.keep(time.start, excess);
        }
    }
}

/// Does the same work over and over; what a piece takes beyond the fastest is a detour when it exceeds `threshold`.
pub fn fixed_work(
    lab: &mut impl Lab,
    keep: &mut impl Keep,
    stats: &mut Stats,
    units: u32,
    threshold: u64,
    until: Until<'_>,
) {
    let mut before = lab.now();
    loop {
        lab.work(units);
        let now = lab.now();
        piece_done(keep, stats, before..now, threshold);
        if until.over(now) {
            return;
        }
        before = now;
    }
}

/// A fixed time quantum: how long an interval is, and which work there is in it at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Ticks of an interval.
    pub ticks: u64,
    /// Units that are done between two reads of the clock.
    pub units: u32,
    /// What such a piece takes in the fastest interval, ticks in 2^-16.
    pub piece: u64,
}

/// Works in intervals of equal time; of one with less work than the fastest, the time of the work that is missing is a detour.
pub fn fixed_time(
    lab: &mut impl Lab,
    keep: &mut impl Keep,
    stats: &mut Stats,
    interval: &mut Interval,
    threshold: u64,
    until: Until<'_>,
) {
    let mut begin = lab.now();
    let mut edge = begin + interval.ticks;
    loop {
        let mut pieces = 0u64;
        let mut now;
        loop {
            lab.work(interval.units);
            pieces += 1;
            now = lab.now();
            if now >= edge || now < begin {
                break;
            }
        }
        if let Some(took) = elapsed(stats, begin, now) {
            // An interval ends with a whole piece: its time counts as it is.
            interval.piece = interval.piece.min((took << 16) / pieces);
            let lost = took.saturating_sub((pieces * interval.piece) >> 16);
            stats.count(took);
            if lost > threshold {
                keep.keep(begin, lost);
            }
        }
        if until.over(now) {
            return;
        }
        begin = now;
        while edge <= now {
            edge += interval.ticks;
        }
    }
}

/// What a core does between barriers, and how it waits there.
pub trait Team {
    /// Waits for the others. The number of the barrier, counted from 0.
    fn wait(&mut self) -> u64;
    /// Says that this barrier of all is the last one, if this core has to say it.
    fn finish_after(&mut self, barrier: u64);
    /// The last barrier, as far as it has been said.
    fn last(&self) -> u64;
}

/// Does `blocks` equal pieces of work between barriers, or none: then the barriers are what is timed. What a piece or a
/// barrier takes beyond the fastest is a detour when it exceeds `threshold`; of the waits the sum is kept.
pub fn together(
    lab: &mut impl Lab,
    team: &mut impl Team,
    keep: &mut impl Keep,
    stats: &mut Stats,
    (blocks, units): (u32, u32),
    threshold: u64,
    until: Until<'_>,
) {
    let mut before = lab.now();
    loop {
        for _ in 0..blocks {
            lab.work(units);
            let now = lab.now();
            piece_done(keep, stats, before..now, threshold);
            before = now;
        }
        let barrier = team.wait();
        let now = lab.now();
        if let Some(waited) = elapsed(stats, before, now) {
            stats.waiting += waited;
            if blocks > 0 {
                stats.total += waited;
            } else {
                piece_done(keep, stats, before..now, threshold);
            }
        }
        if until.over(now) {
            team.finish_after(barrier + 2);
        }
        if barrier >= team.last() {
            return;
        }
        before = now;
    }
}
