//! Classification of programs, which decides which method to trust.

use crate::methods::{METHODS, Program};
use crate::{Counts, Quantity};

/// What limits a program, as far as memory latency matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Data mostly in caches.
    Resident,
    /// Memory bandwidth.
    Bandwidth,
    /// Most lines are prefetched before they are used.
    Prefetched,
    /// Waits for several lines at once.
    Overlapped,
    /// Waits for one line after the other.
    Dependent,
    /// Not enough counts to classify it.
    Unknown,
}

/// Largest added time by method 0, as a fraction of the run time, that counts as negligible.
const NOTHING: f64 = 0.02;
/// Utilisation of memory, or of the path to it, from which bandwidth is the limit.
pub(crate) const BUSY: f64 = 0.75;
/// Fraction of prefetches among misses from which a program counts as prefetched.
const MOSTLY: f64 = 0.5;
/// Largest mean number of outstanding reads, while there are any, at which reads count as dependent.
const ALONE: f64 = 1.1;
/// Fraction of cycles waiting for memory from which the wait decides, whatever is prefetched.
const WAITING: f64 = 0.25;

impl Kind {
    /// Returns a word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Kind::Resident => "cache-resident",
            Kind::Bandwidth => "bandwidth-bound",
            Kind::Prefetched => "prefetched",
            Kind::Overlapped => "overlapped",
            Kind::Dependent => "dependent",
            Kind::Unknown => "unknown",
        }
    }

    /// Classifies a program; `added` is the largest added latency, seconds.
    pub(crate) fn of(program: &Program<'_>, added: f64) -> Kind {
        let counts = program.counts;
        let misses = counts.get(Quantity::CacheMisses).or_else(|| counts.get(Quantity::Misses));
        let misses = misses.or_else(|| counts.get(Quantity::Accesses));
        let Some(misses) = misses.filter(|_| counts.seconds > 0.0 && counts.threads > 0.0) else {
            return Kind::Unknown;
        };
        if misses / counts.threads * added < NOTHING * counts.seconds {
            return Kind::Resident;
        }
        if busy(program).is_some_and(|share| share >= BUSY) {
            return Kind::Bandwidth;
        }
        let prefetched = counts.share(Quantity::Prefetched, Quantity::Misses);
        let waiting = counts.each_cycle(Quantity::MemoryWait);
        if prefetched.is_some_and(|share| share >= MOSTLY) && waiting.is_none_or(|share| share < WAITING) {
            return Kind::Prefetched;
        }
        match at_once(counts, program.system.base_ns) {
            Some(reads) if reads <= ALONE => Kind::Dependent,
            Some(_) => Kind::Overlapped,
            None => Kind::Unknown,
        }
    }

    /// Returns the method to trust among the usable ones, and why.
    pub(crate) fn trust(self, usable: &dyn Fn(&str) -> bool) -> Option<(&'static str, &'static str)> {
        let (order, why): (&[&str], _) = match self {
            Kind::Resident => (
                &["6", "5", "0", "2", "1", "4"],
                "There are so few misses that even waiting for each of them adds hardly any time: all methods agree.",
            ),
            Kind::Bandwidth => (
                &["5", "4i", "4"],
                "Memory's bandwidth is the limit. Latency matters only once more reads would have to be outstanding than \
                 buffers hold, which method 5 considers; all others predict too much.",
            ),
            Kind::Prefetched => (
                &["6", "5", "4i", "4"],
                "Most lines are prefetched. Latency matters only once prefetches no longer run far enough ahead, which \
                 methods 5 and 6 consider; all others predict too much.",
            ),
            Kind::Overlapped => (
                &["6", "5", "4i", "4"],
                "Several reads are outstanding while the program waits, so methods 0 to 2 count the same time several times.",
            ),
            Kind::Dependent => (
                &["2", "0", "6", "5", "1", "4"],
                "Reads wait for each other: each that goes to the slower memory adds its whole latency, as methods 0 to 2 assume.",
            ),
            Kind::Unknown => (
                &["6", "5", "4i", "4"],
                "Outstanding reads were not counted, so it is not known whether reads overlap; methods 0 to 2 are upper \
                 bounds.",
            ),
        };
        let best = order.iter().find(|id| usable(id)).copied();
        let any = || METHODS.iter().filter(|m| m.is_prediction()).map(|m| m.id).find(|id| usable(id));
        Some((best.or_else(any)?, why))
    }
}

/// Returns the fraction of the memory bandwidth that the program uses.
pub(crate) fn busy(program: &Program<'_>) -> Option<f64> {
    let details = program.system.details.as_ref()?;
    Some(details.bytes_per_second(program.counts)? / details.bandwidth)
}

/// Returns the reads outstanding while the core waits for memory, including prefetches if counted; over the whole time if
/// waits are not counted.
fn at_once(counts: &Counts, base_ns: f64) -> Option<f64> {
    let mean = counts.each_cycle(Quantity::InFlight).or_else(|| counts.each_cycle(Quantity::Outstanding))?;
    match counts.each_cycle(Quantity::MemoryWait).filter(|&share| share > 0.0) {
        Some(share) => Some(mean / share.min(1.0)),
        // By Little's law: the time of all reads in sequence, relative to the run time.
        None => {
            let misses = counts.of_thread(Quantity::Misses)?;
            let alone = (misses * base_ns / 1e9 / counts.seconds).min(1.0);
            Some(mean / alone.max(f64::MIN_POSITIVE)).map(|reads| reads.max(mean))
        }
    }
}
