//! Part of method 5: waits for main memory, where cycles with outstanding misses are counted by what caused them.
//!
//! * Loads wait for main memory at least as long as the oldest instruction does, as far as it does for main memory: the share that it has
//!   of the cycles in which misses of loads are outstanding. Each burst of misses is a wait, too: what hides it does not hide more of
//!   a longer one. And there is at most one wait for each `latency` of the cycles in which main memory serves loads, however many
//!   overlap. Of those beyond the others, a part (`hidden`) is waited for. Where more than one prefetch from main memory is outstanding,
//!   loads are starts of streams, which come `together`.
//! * Nothing hides instruction fetches.
//! * Stores wait in the write buffer, and the program does not, until the buffer is full: with more misses in an interval than can
//!   pass it one `latency` after the other, [`PASSING`] of its entries at a time.
//!
//! `latency` is the mean of demand misses that main memory served in the run.

use super::stalls::{Coefficients, Stores, demanded, slow};
use super::{Program, known};
use crate::kind::{self, BUSY};
use crate::system::Details;
use crate::{Counts, Quantity};

/// Fraction of the write buffer's entries that wait for lines when it limits a program: the others are in use for a few cycles each.
/// Both radix sorts of `programs/latency-side-cache.toml` agree with it.
const PASSING: f64 = 7.0 / 8.0;

/// The waits of a thread for main memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Waits {
    /// Their number.
    pub number: f64,
    /// The time of each from the miss of the last level on, cycles.
    pub latency: f64,
    /// Cycles by which slower memory only shortens the wait for bandwidth.
    pub queueing: f64,
}

/// Returns the waits; `None` where their causes were not counted.
pub(super) fn waits(program: &Program<'_>, details: &Details, with: Coefficients) -> Option<Waits> {
    let unloaded = program.system.base_ns * details.clock_hz / 1e9 - details.detection;
    let latency = program.counts.share(Quantity::Outstanding, Quantity::MainDemanded).unwrap_or(unloaded);
    let cycles: Option<f64> = intervals(program).iter().map(|counts| waiting(counts, latency, with)).sum();
    let waits_for_bandwidth = kind::busy(program).is_some_and(|share| share >= BUSY);
    Some(Waits {
        number: cycles? / latency,
        latency,
        queueing: if waits_for_bandwidth { (latency - unloaded).max(0.0) } else { 0.0 },
    })
}

/// Returns the cycles of a thread in which it waits for main memory, or would if work did not hide it.
fn waiting(counts: &Counts, latency: f64, with: Coefficients) -> Option<f64> {
    let loads = counts.of_thread(Quantity::LoadCycles)?;
    let from_main = counts.of_thread(Quantity::MainLoadCycles)?;
    let bursts = counts.of_thread(Quantity::MainLoadBursts)? * latency;
    let code = counts.of_thread(Quantity::MainCodeCycles)?;
    let share = if loads > 0.0 { (from_main / loads).min(1.0) } else { 0.0 };
    let seen = known(counts, Quantity::MemoryWait) / counts.threads * share;
    let in_flight = counts.each_cycle(Quantity::InFlight).unwrap_or(0.0);
    let prefetches = in_flight * (1.0 - demanded(counts)) * slow(counts);
    let together = 1.0 + with.together * (prefetches - 1.0).max(0.0);
    let least = seen.max(bursts.min(from_main) / together);
    let most = from_main / together;
    Some(least + with.hidden * (most - least).max(0.0) + code)
}

/// Returns what stores add in each interval that has any, relative to the time of the run; empty where they were not counted.
pub(super) fn stores(program: &Program<'_>, details: &Details, latency: f64) -> Vec<Stores> {
    let run = known(program.counts, Quantity::Cycles) / program.counts.threads;
    let of_interval = |counts: &Counts| {
        let cycles = counts.of_thread(Quantity::Cycles)?;
        let misses = counts.of_thread(Quantity::MainStores).filter(|&misses| misses > 0.0 && cycles > 0.0)?;
        // As many as were outstanding in the run can be again.
        let at_once = (PASSING * details.store_buffers).max(misses * latency / cycles);
        Some(Stores {
            growth: misses / at_once * details.clock_hz / run,
            room: (cycles * at_once / misses - latency) / details.clock_hz,
        })
    };
    intervals(program).iter().filter_map(of_interval).collect()
}

/// Returns the intervals of a run, or the whole run where they were not counted.
fn intervals<'a>(program: &Program<'a>) -> &'a [Counts] {
    if program.intervals.is_empty() { std::slice::from_ref(program.counts) } else { program.intervals }
}
