//! The measuring loops. They run on a [`Core`]: a real one, or a simulated one in tests. They neither allocate nor make
//! system calls.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::trace::bin;

/// A core that can do work and read a clock.
pub trait Core {
    /// Current time, ticks.
    fn now(&mut self) -> u64;
    /// Does `units` equal units of work.
    fn work(&mut self, units: u32);
}

/// Receives detours.
pub trait DetourSink {
    /// Records a detour: start and length, ticks.
    fn record(&mut self, start: u64, length: u64);
}

impl DetourSink for Vec<(u64, u64)> {
    fn record(&mut self, start: u64, length: u64) {
        self.push((start, length));
    }
}

impl DetourSink for &super::ring::Ring {
    #[inline]
    fn record(&mut self, start: u64, length: u64) {
        self.push(start, length);
    }
}

/// When a loop ends.
#[derive(Clone, Copy)]
pub struct Until<'a> {
    /// End time, ticks.
    pub end: u64,
    /// Ends the loop at once when set.
    pub stop: &'a AtomicBool,
}

impl Until<'_> {
    /// Returns whether the loop ends now.
    #[inline]
    #[must_use]
    pub fn over(&self, now: u64) -> bool {
        now >= self.end || self.stop.load(Ordering::Relaxed)
    }
}

/// Bins of a histogram of times.
const BINS: usize = 256;

/// Statistics of a loop. Times are in ticks except in the histogram.
#[derive(Clone, Debug)]
pub struct Stats {
    /// Iterations.
    pub iterations: u64,
    /// Fastest iteration.
    pub minimum: u64,
    /// Total time of all iterations.
    pub total: u64,
    /// Part of it spent waiting at barriers.
    pub waiting: u64,
    /// How often the clock went back.
    pub backward: u64,
    /// Iterations by time: see [`bin`].
    pub histogram: [u64; BINS],
    /// ns per tick, in units of 2^-32.
    scale: u64,
}

impl Stats {
    /// Creates empty statistics for a clock with `rate` ticks per ns.
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

/// Time between two reads of the clock; `None` if it went back.
#[inline]
fn elapsed(stats: &mut Stats, before: u64, now: u64) -> Option<u64> {
    let took = now.checked_sub(before);
    stats.backward += u64::from(took.is_none());
    took
}

/// Reads the clock repeatedly. A gap longer than `threshold` is a detour; its length excludes the normal time of an
/// iteration, which must be in `stats`, since two reads may be closer together than an iteration takes.
pub fn spin(core: &mut impl Core, sink: &mut impl DetourSink, stats: &mut Stats, threshold: u64, until: Until<'_>) {
    let mut before = core.now();
    loop {
        let now = core.now();
        if let Some(gap) = elapsed(stats, before, now) {
            stats.iterations += 1;
            stats.total += gap;
            if gap > threshold {
                let length = gap.saturating_sub(stats.minimum);
                let ns = ((u128::from(length) * u128::from(stats.scale)) >> 32) as u64;
                stats.histogram[bin(ns)] += 1;
                sink.record(before, length);
            }
        }
        if until.over(now) {
            return;
        }
        // Not the time after recording, which would be lost.
        before = now;
    }
}

/// Accounts for a piece of work: the time beyond the fastest piece is a detour if it exceeds `threshold`.
#[inline(always)]
fn piece_done(sink: &mut impl DetourSink, stats: &mut Stats, time: std::ops::Range<u64>, threshold: u64) {
    if let Some(took) = elapsed(stats, time.start, time.end) {
        stats.count(took);
        let excess = took - stats.minimum;
        if excess > threshold {
            sink.record(time.start, excess);
        }
    }
}

/// Repeats the same work. The time of a piece beyond the fastest is a detour if it exceeds `threshold`.
pub fn fixed_work(
    core: &mut impl Core,
    sink: &mut impl DetourSink,
    stats: &mut Stats,
    units: u32,
    threshold: u64,
    until: Until<'_>,
) {
    let mut before = core.now();
    loop {
        core.work(units);
        let now = core.now();
        piece_done(sink, stats, before..now, threshold);
        if until.over(now) {
            return;
        }
        before = now;
    }
}

/// Fixed time quantum: length of an interval, and the maximum work in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Ticks per interval.
    pub ticks: u64,
    /// Units of work between two reads of the clock.
    pub units: u32,
    /// Time of such a piece in the fastest interval, in units of 2^-16 ticks.
    pub piece: u64,
}

/// Works in intervals of equal length. If an interval has less work than the fastest, the time of the missing work is a
/// detour.
pub fn fixed_time(
    core: &mut impl Core,
    sink: &mut impl DetourSink,
    stats: &mut Stats,
    interval: &mut Interval,
    threshold: u64,
    until: Until<'_>,
) {
    let mut begin = core.now();
    let mut edge = begin + interval.ticks;
    loop {
        let mut pieces = 0u64;
        let mut now;
        loop {
            core.work(interval.units);
            pieces += 1;
            now = core.now();
            if now >= edge || now < begin {
                break;
            }
        }
        if let Some(took) = elapsed(stats, begin, now) {
            // An interval ends with a complete piece and is counted with its actual length.
            interval.piece = interval.piece.min((took << 16) / pieces);
            let lost = took.saturating_sub((pieces * interval.piece) >> 16);
            stats.count(took);
            if lost > threshold {
                sink.record(begin, lost);
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
    /// Waits for the others; returns the number of the barrier, counted from 0.
    fn wait(&mut self) -> u64;
    /// Announces that this barrier is the last, if this core is the one to announce it.
    fn finish_after(&mut self, barrier: u64);
    /// The last barrier, as far as announced.
    fn last(&self) -> u64;
}

/// Does `blocks` equal pieces of work between barriers; with none, only the barriers are timed. The time of a piece or
/// barrier beyond the fastest is a detour if it exceeds `threshold`; waiting time is summed.
pub fn with_barriers(
    core: &mut impl Core,
    team: &mut impl Team,
    sink: &mut impl DetourSink,
    stats: &mut Stats,
    (blocks, units): (u32, u32),
    threshold: u64,
    until: Until<'_>,
) {
    let mut before = core.now();
    loop {
        for _ in 0..blocks {
            core.work(units);
            let now = core.now();
            piece_done(sink, stats, before..now, threshold);
            before = now;
        }
        let barrier = team.wait();
        let now = core.now();
        if let Some(waited) = elapsed(stats, before, now) {
            stats.waiting += waited;
            if blocks > 0 {
                stats.total += waited;
            } else {
                piece_done(sink, stats, before..now, threshold);
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
