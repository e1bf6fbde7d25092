//! Method 5: waits of the core, and the number of prefetches that can be outstanding.
//!
//! With memory that is slower by `a` cycles, two terms add to a thread's time:
//!
//! * `waits * a`. When the oldest instruction waits for memory, the wait lasts for the rest of the latency after the miss of
//!   the last level was detected. There are therefore at least `memory_wait / (latency - detection)` waits, each of which
//!   grows by `a`; anything that overlaps with it, including other misses, does not count again. Waits whose beginning is
//!   hidden by other work are shorter, so there are more of them: at most one for each `latency` of the time in which misses
//!   are outstanding that slower memory could turn into waiting. That time is at most the whole run, and at most the mean
//!   number of outstanding demand misses if no two of them overlap; `hidden` interpolates between the two bounds. Prefetches
//!   that restart beside demand misses have little time: for each demand miss, `late` prefetches come too late with slower
//!   memory. Where many prefetches are outstanding, demand misses are starts of streams, which come `together`.
//! * `prefetched * (latency + a) / room`, by Little's law, as far as it exceeds the time of the run: the rate of prefetched
//!   lines is limited by the number that can be outstanding. `room` is a thread's share of the last level's buffers; for
//!   hardware prefetches, at most their distance times the number of streams; and at least what was outstanding in the run.
//!
//! `latency` is the time of misses in the run if that exceeds the memory latency and bandwidth is the limit: such misses
//! also waited for bandwidth, and this wait shrinks as memory gets slower. If bandwidth is not the limit, prefetches came in
//! bursts, as when streams restart: these wait for each other, and no load waits for them.
//!
//! There is no counter of streams. All streams of a loop advance together, and usually one of them is written, so their
//! number is that of lines read per line written. For a loop that writes little but waits for L1, or fills its buffers,
//! outstanding L1 misses give the number: the L1 prefetcher has its distance of each stream outstanding, and the fraction of
//! L1 misses that also miss the last level is the share of streams from memory. Otherwise the number is `streams`; arrays
//! with smaller elements count less than one.
//!
//! With a memory-side cache, `latency` is the mean of all misses, and only misses of that cache get slower: for streams, as
//! many lines; for waits, more, since the slowest of overlapping misses decides (`slowest` is the share of them that does). Where intervals
//! are counted, the share of waits for that cache's misses is that of each interval. Where cycles with outstanding misses are counted by
//! what caused them, they give the waits instead ([`super::main_memory`]).

use std::sync::LazyLock;

use serde::Deserialize;

use super::{Calculation, Method, Program, known, main_memory};
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
    calculation: Calculation::Slowdown(|program, added| slowdown(program, added, *FITTED)),
};

/// The coefficients in use, from `coefficients.toml`.
pub static FITTED: LazyLock<Coefficients> = LazyLock::new(|| {
    toml::from_str::<File>(include_str!("../../coefficients.toml")).expect("the file is tested").stalls
});

#[derive(Deserialize)]
struct File {
    stalls: Coefficients,
}

/// Parameters that the machine's description does not determine.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Coefficients {
    /// Fraction of the time with outstanding misses, but without visible waits, that becomes waiting with slower memory,
    /// from 0 to 1.
    pub hidden: f64,
    /// Prefetches per demand miss that come too late with slower memory, if there are that many.
    pub late: f64,
    /// Reduction of sequential waits for demand misses per outstanding prefetch, since streams start together.
    pub together: f64,
    /// Of the misses that overlap with a wait, the fraction that can prolong it.
    pub slowest: f64,
    /// Fraction of the prefetcher's distance that a stream has outstanding.
    pub distance: f64,
    /// Number of streams if no counter shows it.
    pub streams: f64,
}

/// Fraction of the L1 miss buffers in use from which they are the limit.
const FULL: f64 = 0.8;
/// Fraction of lines read that must be written for writes to indicate the number of streams.
const WRITES: f64 = 1.0 / 8.0;
/// Fraction of cycles waiting for accesses from which a loop is limited by its prefetches.
const WAITS: f64 = 0.4;

/// Run time added by slower memory, relative to the run time: linear functions, each from a certain latency on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Growth {
    /// Added by waits, per second of latency.
    pub waits: f64,
    /// Seconds up to which misses only wait less for bandwidth.
    pub queueing: f64,
    /// Added by streams, per second of latency.
    pub streams: f64,
    /// Seconds by which prefetches are early in the run.
    pub ahead: f64,
    /// Added by stores, in each interval that has any.
    pub stores: Vec<Stores>,
}

/// Run time added by the stores of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stores {
    /// Added once their buffer is full, per second of latency.
    pub growth: f64,
    /// Seconds of latency until it is.
    pub room: f64,
}

impl Growth {
    /// Returns what `added` seconds of latency add.
    pub fn at(&self, added: f64) -> f64 {
        let stores: f64 = self.stores.iter().map(|stores| stores.growth * (added - stores.room).max(0.0)).sum();
        self.waits * (added - self.queueing).max(0.0) + self.streams * (added - self.ahead).max(0.0) + stores
    }
}

/// Returns the slowdown with other coefficients, for their fit.
#[must_use]
pub fn slowdown(program: &Program<'_>, added: f64, with: Coefficients) -> f64 {
    growth(program, with).map_or(f64::NAN, |growth| 1.0 + growth.at(added))
}

/// Returns the growth with slower memory; `None` if the machine is not described.
pub(super) fn growth(program: &Program<'_>, with: Coefficients) -> Option<Growth> {
    let details = program.system.details.as_ref()?;
    let cycles = known(program.counts, Quantity::Cycles) / program.counts.threads;
    let each_second = details.clock_hz / cycles;
    let main = main_memory::waits(program, details, with);
    let waits =
        main.map_or_else(|| waits(program, details, with) * slow_waits(program, details, with), |main| main.number);
    // While misses queue for bandwidth, a longer memory latency shortens their wait in the queue.
    let queueing = main.map_or_else(|| loaded(program, details) - unloaded(program, details), |main| main.queueing);
    let (rate, slow) = (rate(program, details, with), slow(program.counts));
    // Misses that wait for the bus are outstanding longer, which is not latency.
    let on_the_way = unloaded(program, details) - details.detection;
    Some(Growth {
        waits: waits * each_second,
        queueing: queueing / details.clock_hz,
        streams: rate * slow * each_second,
        ahead: (cycles / rate - on_the_way).max(0.0) / (slow * details.clock_hz),
        stores: main.map_or_else(Vec::new, |main| main_memory::stores(program, details, main.latency)),
    })
}

/// Returns the cycles of the run per cycle of a prefetched line's latency, with prefetches as far ahead as possible.
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

/// Returns the fraction of last-level misses that go to the slower memory.
pub(super) fn slow(counts: &Counts) -> f64 {
    counts.share(Quantity::CacheMisses, Quantity::Misses).unwrap_or(1.0).min(1.0)
}

/// Returns the fraction of waits for the slower memory: behind a memory-side cache, the mean over intervals by their waits, as phases that
/// fill that cache for the first time miss it more than those that wait.
fn slow_waits(program: &Program<'_>, details: &Details, with: Coefficients) -> f64 {
    let of_part = |part: &Program<'_>| {
        let waits = waits(part, details, with);
        (waits, slow_part(part, waits, with))
    };
    let of_interval = |counts| of_part(&Program { counts, intervals: &[], ..*program });
    let parts = if details.cache_latency.is_some() { program.intervals } else { &[] };
    let parts = parts.iter().map(of_interval).filter(|(waits, slow)| *waits > 0.0 && slow.is_finite());
    let (slow, all) = parts.fold((0.0, 0.0), |(slow, all), (waits, share)| (slow + waits * share, all + waits));
    if all > 0.0 { slow / all } else { of_part(program).1 }
}

/// Returns the fraction of the `waits` of a program or an interval for the slower memory: one of several overlapping misses is enough.
fn slow_part(program: &Program<'_>, waits: f64, with: Coefficients) -> f64 {
    let demanded = known(program.counts, Quantity::Misses) / program.counts.threads * demanded(program.counts);
    let overlapping = if waits > 0.0 { (demanded / waits).max(1.0) } else { 1.0 };
    1.0 - (1.0 - slow(program.counts)).powf(1.0 + with.slowest * (overlapping - 1.0))
}

/// Returns the fraction of last-level misses that are not prefetched.
pub(super) fn demanded(counts: &Counts) -> f64 {
    1.0 - counts.share(Quantity::Prefetched, Quantity::Misses).unwrap_or(0.0).clamp(0.0, 1.0)
}

/// Returns the time of a demand miss of the last level in the run, cycles: the latency, or more if it waited for bandwidth.
fn loaded(program: &Program<'_>, details: &Details) -> f64 {
    if kind::busy(program).is_some_and(|share| share < BUSY) {
        return unloaded(program, details);
    }
    let outstanding = program.counts.share(Quantity::InFlight, Quantity::Misses).unwrap_or(0.0);
    unloaded(program, details).max(outstanding)
}

/// Returns the mean latency of a miss of the last level, cycles.
fn unloaded(program: &Program<'_>, details: &Details) -> f64 {
    let memory = program.system.base_ns * details.clock_hz / 1e9;
    details.cache_latency.map_or(memory, |cache| cache + slow(program.counts) * (memory - cache))
}

/// Returns the number of a thread's waits for memory.
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

/// Returns the number of a thread's streams.
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
