//! Method 5: waits of the core, and what prefetches can have outstanding.
//!
//! With memory that is `a` cycles slower a thread takes longer by two terms:
//!
//! * `waits * a`. A wait of the oldest instruction for memory lasts as long as is left of the latency when it is known that the last
//!   level has not the line: there are at least `memory_wait / (latency - detection)` of them, each of which becomes longer by
//!   `a`; what overlaps with it, other misses included, does not count again. Waits whose beginning other work hides are shorter,
//!   so that there are more, at most one for each `latency` of the time in which misses are outstanding that slower memory lets
//!   wait. That time is at most all, and as much as misses on demand are outstanding on average when no two of them overlap;
//!   `hidden` is how far waits go from the first number to that one. Prefetches that begin anew beside misses on demand have
//!   little time: for each of these, `late` prefetches come too late with slower memory. Where many prefetches are outstanding,
//!   misses on demand are beginnings of streams, which come `together`.
//! * `prefetched * (latency + a) / room`, Little's law, as far as that is longer than the run was: prefetched lines come at most as
//!   fast as so many can be outstanding. `room` is what the buffers of the last level hold for a thread, for the hardware's prefetches
//!   at most their distance times the number of streams, and at least what was outstanding in the run.
//!
//! `latency` is what misses took in the run where that was longer than memory takes and bandwidth is the limit: they waited for it,
//! too, and wait as much less for it as memory takes longer. Where it is not, prefetches came in bursts, as streams send them that
//! begin anew: these wait for each other, and no load for them.
//!
//! Counters do not tell streams. All streams of a loop advance together, and mostly one of them is written: as many as lines are
//! read for each that is written. Of a loop that hardly writes but waits for L1, or fills its buffers, outstanding L1 misses tell: the
//! L1 prefetcher has its distance of each stream outstanding, and of the lines that L1 misses, those that the last level misses
//! are the share of streams that come from memory. Otherwise there are `streams` of them: arrays of which one is read with
//! smaller elements count less than one.
//!
//! Where a memory-side cache stands before main memory, `latency` is the mean of all misses, and only what that cache has not gets
//! slower: of streams as many lines, of waits more, since of the misses that overlap with one the slowest decides (`slowest` is
//! the share of them that does).

use std::sync::LazyLock;

use serde::Deserialize;

use super::{Gives, Method, Program, known};
use crate::kind::{self, BUSY};
use crate::system::Details;
use crate::{Counts, Quantity};

pub(super) const METHOD: Method = Method {
    id: "5",
    title: "waits, and room for prefetches",
    formula: "1 + waits * a / cycles + max(0, prefetched * (latency + a) / (room * cycles) - 1)",
    assumptions: "waits grow by the added latency; prefetched streams run as far ahead as distance and buffers allow",
    needs: &[&[Quantity::Cycles], &[Quantity::MemoryWait], &[Quantity::Misses], &[Quantity::Prefetched]],
    by_interval: false,
    machine: true,
    second: false,
    gives: Gives::Slowdown(|program, added| slowdown(program, added, *FITTED)),
};

/// The coefficients in use, from `coefficients.toml`.
pub static FITTED: LazyLock<Coefficients> = LazyLock::new(|| {
    toml::from_str::<File>(include_str!("../../coefficients.toml")).expect("the file is tested").stalls
});

#[derive(Deserialize)]
struct File {
    stalls: Coefficients,
}

/// What does not follow from the machine's description.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Coefficients {
    /// How much of the time with misses outstanding that shows in no waits is waited for with slower memory, from 0 to 1.
    pub hidden: f64,
    /// Prefetches for each miss on demand that come too late with slower memory, as far as there are so many.
    pub late: f64,
    /// How much less misses on demand are waited for one after the other for each prefetch that is outstanding: streams begin
    /// together.
    pub together: f64,
    /// Of the misses that overlap with one that is waited for, the share that can make the wait longer.
    pub slowest: f64,
    /// Share of the prefetcher's distance that a stream has outstanding.
    pub distance: f64,
    /// Streams where nothing tells how many there are.
    pub streams: f64,
}

/// L1 misses outstanding, as a share of the buffers, from which on these are what limits.
const FULL: f64 = 0.8;
/// Of lines read, the share that must be written for writes to tell streams.
const WRITES: f64 = 1.0 / 8.0;
/// Share of cycles waiting for accesses from which on a loop takes what its prefetches bring.
const WAITS: f64 = 0.4;

/// What memory that is slower by some seconds adds to the run time, as a share of it: two lines, each from a latency on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Growth {
    /// Added in waits, a second.
    pub waits: f64,
    /// Seconds up to which they only wait less for bandwidth.
    pub queueing: f64,
    /// Added in streams, a second.
    pub streams: f64,
    /// Seconds by which their prefetches may come later without being late.
    pub ahead: f64,
}

impl Growth {
    /// What `added` seconds add.
    pub fn at(self, added: f64) -> f64 {
        self.waits * (added - self.queueing).max(0.0) + self.streams * (added - self.ahead).max(0.0)
    }
}

/// The slowdown with coefficients of one's own, for their fit.
#[must_use]
pub fn slowdown(program: &Program<'_>, added: f64, with: Coefficients) -> f64 {
    growth(program, with).map_or(f64::NAN, |growth| 1.0 + growth.at(added))
}

/// What slower memory adds; none when the machine is not described.
pub(super) fn growth(program: &Program<'_>, with: Coefficients) -> Option<Growth> {
    let details = program.system.details.as_ref()?;
    let cycles = known(program.counts, Quantity::Cycles) / program.counts.threads;
    let each_second = details.clock_hz / cycles;
    let waits = waits(program, details, with);
    let (rate, slow) = (rate(program, details, with), slow(program));
    // Misses that wait for the bus are outstanding longer, which is no latency.
    let on_the_way = unloaded(program, details) - details.detection;
    Some(Growth {
        waits: waits * slow_waits(program, waits, with) * each_second,
        // As long as misses queue for bandwidth, they wait less there for what they wait longer for memory.
        queueing: (loaded(program, details) - unloaded(program, details)) / details.clock_hz,
        streams: rate * slow * each_second,
        ahead: (cycles / rate - on_the_way).max(0.0) / (slow * details.clock_hz),
    })
}

/// Cycles of the run for each cycle that a prefetched line is on its way, when prefetches are as far ahead as they can.
fn rate(program: &Program<'_>, details: &Details, with: Coefficients) -> f64 {
    let counts = program.counts;
    let each = |quantity| known(counts, quantity) / counts.threads;
    let prefetched = each(Quantity::Prefetched).min(each(Quantity::Misses));
    let sharing = counts.threads.clamp(1.0, details.group_cores);
    let seen = counts.each_cycle(Quantity::InFlight).unwrap_or(0.0).max(1.0);
    let buffers = (details.buffers / sharing).max(seen);
    let ahead = (with.distance * details.distance * streams(program, details, with)).min(buffers).max(seen);
    let hardware = counts.of_thread(Quantity::HardwarePrefetched).unwrap_or(prefetched).min(prefetched);
    (prefetched / buffers).max(hardware / ahead)
}

/// Of the misses of the last level, the share that goes to what gets slower.
fn slow(program: &Program<'_>) -> f64 {
    program.counts.share(Quantity::CacheMisses, Quantity::Misses).unwrap_or(1.0).min(1.0)
}

/// Of `waits`, the share in which what gets slower is waited for: of misses that overlap, one that goes there is enough.
fn slow_waits(program: &Program<'_>, waits: f64, with: Coefficients) -> f64 {
    let demanded = known(program.counts, Quantity::Misses) / program.counts.threads * demanded(program.counts);
    let overlapping = if waits > 0.0 { (demanded / waits).max(1.0) } else { 1.0 };
    1.0 - (1.0 - slow(program)).powf(1.0 + with.slowest * (overlapping - 1.0))
}

/// Of the misses of the last level, the share that is not prefetched.
fn demanded(counts: &Counts) -> f64 {
    1.0 - counts.share(Quantity::Prefetched, Quantity::Misses).unwrap_or(0.0).clamp(0.0, 1.0)
}

/// What a miss of the last level that a thread waits for took in the run, cycles: the latency, or longer when it waited for
/// bandwidth.
fn loaded(program: &Program<'_>, details: &Details) -> f64 {
    if kind::busy(program).is_some_and(|share| share < BUSY) {
        return unloaded(program, details);
    }
    let outstanding = program.counts.share(Quantity::InFlight, Quantity::Misses).unwrap_or(0.0);
    unloaded(program, details).max(outstanding)
}

/// The mean latency of a miss of the last level, cycles.
fn unloaded(program: &Program<'_>, details: &Details) -> f64 {
    let memory = program.system.base_ns * details.clock_hz / 1e9;
    details.cache_latency.map_or(memory, |cache| cache + slow(program) * (memory - cache))
}

/// How often a thread waits for memory.
fn waits(program: &Program<'_>, details: &Details, with: Coefficients) -> f64 {
    let counts = program.counts;
    let each = |quantity| known(counts, quantity) / counts.threads;
    let latency = loaded(program, details);
    let least = each(Quantity::MemoryWait) / (latency - details.detection).max(1.0);
    let demanded = demanded(counts);
    let late = with.late * demanded.min(1.0 - demanded);
    let in_flight = counts.each_cycle(Quantity::InFlight).unwrap_or(0.0);
    let reads = in_flight * (demanded + late) / (1.0 + with.together * in_flight * (1.0 - demanded));
    let most = reads.min(1.0) * each(Quantity::Cycles) / latency.max(1.0);
    least + with.hidden * (most - least).max(0.0)
}

/// Streams that a thread follows.
fn streams(program: &Program<'_>, details: &Details, with: Coefficients) -> f64 {
    let counts = program.counts;
    if let Some(written) = counts.share(Quantity::WrittenBack, Quantity::Misses).filter(|&share| share >= WRITES) {
        return (1.0 / written).clamp(1.0, details.streams);
    }
    let from_memory = counts.share(Quantity::Misses, Quantity::L1Misses).unwrap_or(1.0).min(1.0);
    let waits = counts.each_cycle(Quantity::AccessWait).is_some_and(|share| share >= WAITS);
    match counts.each_cycle(Quantity::L1Outstanding).filter(|_| details.l1_distance > 0.0) {
        Some(l1) if waits || l1 >= FULL * details.l1_buffers => (from_memory * l1 / details.l1_distance).max(1.0),
        _ => with.streams,
    }
}
