//! Method 5: waits of the core, and what prefetches can have outstanding.
//!
//! Two bounds; the longer one is the time of a thread with memory that is `a` cycles slower:
//!
//! * `cycles + waits * a`. A wait of the oldest instruction for memory lasts as long as is left of the latency when it is known
//!   that the last level has not the line: there are at least `memory_wait / (latency - detection)` of them, each of which becomes
//!   longer by `a`; what overlaps with it, other misses included, does not count again. Waits whose beginning other work hides are
//!   shorter, so that there are more. Were misses on demand outstanding at random, one would be in a share `1 - exp(-reads)` of the
//!   cycles, `reads` being their mean number; `hidden` is how far waits go from the first number to that one.
//! * `prefetched * (latency + a) / room`, Little's law: prefetched lines come at most as fast as so many can be outstanding.
//!   `room` is what the buffers of the last level hold for a thread, for the hardware's prefetches at most their distance
//!   times the number of streams, and at least what was outstanding in the run.
//!
//! Counters do not tell streams. All streams of a loop advance together, and mostly one of them is written: as many as lines are
//! read for each that is written. Of a loop that hardly writes but waits for L1, outstanding L1 misses tell: the L1
//! prefetcher has its distance of each stream outstanding. Otherwise there are `streams` of them.
//!
//! Where a memory-side cache stands before main memory, `latency` and `a` are means over all misses.

use std::sync::LazyLock;

use serde::Deserialize;

use super::{Gives, Method, Program, known};
use crate::Quantity;
use crate::system::Details;

pub(super) const METHOD: Method = Method {
    id: "5",
    title: "waits, and room for prefetches",
    formula: "max(1 + waits * a / cycles, prefetched * (latency + a) / (room * cycles))",
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
    /// How much of the time with misses outstanding that shows in no waits is waited for with slower memory, from 0 to 1.
    pub hidden: f64,
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
    let added = added_seconds * details.clock_hz * slow(program);

    let prefetched = each(Quantity::Prefetched).min(misses);
    let waiting = cycles + waits(program, details, with) * added;

    // Misses that wait for the bus are outstanding longer, which is no latency.
    let on_the_way = latency(program, details) - details.detection + added;
    let sharing = counts.threads.clamp(1.0, details.group_cores);
    let seen = counts.each_cycle(Quantity::InFlight).unwrap_or(0.0).max(1.0);
    let buffers = (details.buffers / sharing).max(seen);
    let ahead = (with.distance * details.distance * streams(program, details, with)).min(buffers).max(seen);
    let hardware = counts.of_thread(Quantity::HardwarePrefetched).unwrap_or(prefetched).min(prefetched);
    let streaming = (prefetched / buffers).max(hardware / ahead) * on_the_way;
    waiting.max(streaming).max(cycles) / cycles
}

/// Of the misses of the last level, the share that goes to what gets slower.
fn slow(program: &Program<'_>) -> f64 {
    program.counts.share(Quantity::CacheMisses, Quantity::Misses).unwrap_or(1.0).min(1.0)
}

/// The mean latency of a miss of the last level, cycles.
fn latency(program: &Program<'_>, details: &Details) -> f64 {
    let memory = program.system.base_ns * details.clock_hz / 1e9;
    details.cache_latency.map_or(memory, |cache| cache + slow(program) * (memory - cache))
}

/// How often a thread waits for memory.
fn waits(program: &Program<'_>, details: &Details, with: Coefficients) -> f64 {
    let counts = program.counts;
    let each = |quantity| known(counts, quantity) / counts.threads;
    let latency = latency(program, details);
    let least = each(Quantity::MemoryWait) / (latency - details.detection).max(1.0);
    let demanded = 1.0 - counts.share(Quantity::Prefetched, Quantity::Misses).unwrap_or(0.0).clamp(0.0, 1.0);
    let reads = counts.each_cycle(Quantity::InFlight).unwrap_or(0.0) * demanded;
    let most = (1.0 - (-reads).exp()) * each(Quantity::Cycles) / latency.max(1.0);
    least + with.hidden * (most - least).max(0.0)
}

/// Streams that a thread follows.
fn streams(program: &Program<'_>, details: &Details, with: Coefficients) -> f64 {
    let counts = program.counts;
    if let Some(written) = counts.share(Quantity::WrittenBack, Quantity::Misses).filter(|&share| share >= WRITES) {
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
