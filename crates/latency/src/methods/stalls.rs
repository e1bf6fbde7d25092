//! Method 5: waits of the core, and what prefetches can have outstanding.
//!
//! Two bounds; the longer one is the time of a thread with memory that is `a` cycles slower:
//!
//! * `cycles + waits * a`. A wait of the oldest instruction for memory lasts as long as is left of the latency when it is known
//!   that the last level has not the line, so that `waits = exposed * memory_wait / (latency - detection)`. Each becomes longer by `a`;
//!   what overlaps with it, other misses included, does not count again.
//! * `prefetched * (latency + a) / room`, Little's law: prefetched lines come at most as fast as so many can be outstanding.
//!   `room` is the prefetcher's distance times the number of streams, at most what the buffers of the last level hold for a
//!   thread, and at least what was outstanding in the run.
//!
//! Counters do not tell streams. All streams of a loop advance together, and mostly one of them is written: as many as lines are
//! read for each that is written. Of a loop that hardly writes but waits for L1, outstanding L1 misses tell: the L1
//! prefetcher has its distance of each stream outstanding. Otherwise there are `streams` of them.
//!
//! Where a memory-side cache stands before main memory, `a` is its mean over all misses.

use std::sync::LazyLock;

use serde::Deserialize;

use super::{Gives, Method, Program, known};
use crate::Quantity;
use crate::system::Details;

pub(super) const METHOD: Method = Method {
    id: "5",
    title: "waits for memory, and what prefetches can have outstanding",
    formula: "max(1 + exposed * memory_wait / (latency - detection) * a / cycles, prefetched * (latency + a) / (room * cycles))",
    assumptions: "waits grow by the added latency; prefetched streams run as far ahead as distance and buffers allow",
    needs: &[&[Quantity::Cycles], &[Quantity::MemoryWait], &[Quantity::Misses], &[Quantity::Prefetched]],
    by_interval: false,
    machine: true,
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
    /// Waits for each that the cycles of waiting make up: more than 1 when waits overlap with work.
    pub exposed: f64,
    /// Share of the prefetcher's distance that a stream has outstanding.
    pub distance: f64,
    /// Streams where nothing tells how many there are.
    pub streams: f64,
}

/// L1 misses outstanding, as a share of the buffers, from which on the buffers are what limits.
const FULL: f64 = 0.9;
/// Of lines read, the share that must be written for writes to tell streams.
const WRITES: f64 = 1.0 / 8.0;
/// Share of cycles waiting for accesses from which on a loop takes what its prefetches bring.
const WAITS: f64 = 0.3;

/// The slowdown with coefficients of one's own, for their fit.
#[must_use]
pub fn slowdown(program: &Program<'_>, added_seconds: f64, with: Coefficients) -> f64 {
    let Some(details) = &program.system.details else { return f64::NAN };
    let counts = program.counts;
    let each = |quantity| known(counts, quantity) / counts.threads;
    let (cycles, misses) = (each(Quantity::Cycles), each(Quantity::Misses));
    let slow = counts.share(Quantity::CacheMisses, Quantity::Misses).unwrap_or(1.0).min(1.0);
    let added = added_seconds * details.clock_hz * slow;
    let latency = program.system.base_ns * details.clock_hz / 1e9;

    let waits = with.exposed * each(Quantity::MemoryWait) / (latency - details.detection).max(1.0);
    let waiting = cycles + waits * added;

    let prefetched = each(Quantity::Prefetched).min(misses);
    let room = room(program, details, with);
    // Misses that wait for the bus are outstanding longer, which is no latency.
    let on_the_way = latency - details.detection;
    let streaming = prefetched * (on_the_way + added) / room;
    waiting.max(streaming).max(cycles) / cycles
}

/// Misses that a thread's prefetches can have outstanding.
fn room(program: &Program<'_>, details: &Details, with: Coefficients) -> f64 {
    let counts = program.counts;
    let seen = counts.each_cycle(Quantity::Outstanding).unwrap_or(0.0);
    let sharing = counts.threads.clamp(1.0, details.group_cores);
    let ahead = with.distance * details.distance * streams(program, details, with);
    ahead.min(details.buffers / sharing).max(seen).max(1.0)
}

/// Streams that a thread follows.
fn streams(program: &Program<'_>, details: &Details, with: Coefficients) -> f64 {
    let counts = program.counts;
    if let Some(written) = counts.share(Quantity::Writes, Quantity::Misses).filter(|&share| share >= WRITES) {
        return (1.0 / written).clamp(1.0, details.streams);
    }
    let l1 = counts.each_cycle(Quantity::L1Outstanding).filter(|_| details.l1_distance > 0.0);
    let waits = counts.each_cycle(Quantity::AccessWait).is_some_and(|share| share >= WAITS);
    match l1 {
        Some(l1) if waits && l1 < FULL * details.l1_buffers => (l1 / details.l1_distance).max(1.0),
        Some(l1) => with.streams.max(l1 / details.l1_distance),
        None => with.streams,
    }
}
