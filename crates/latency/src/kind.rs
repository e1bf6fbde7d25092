//! What kind of program it is, which decides whom to trust.

use crate::methods::{METHODS, Program};
use crate::{Counts, Quantity};

/// What memory's latency is to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It hardly goes to memory.
    Resident,
    /// Memory's bandwidth is the limit.
    Bandwidth,
    /// Most lines come before they are asked for.
    Prefetched,
    /// It waits for several lines at once.
    Overlapped,
    /// It waits for one line after the other.
    Dependent,
    /// Too little was counted to tell.
    Unknown,
}

/// Added time, as a share of the run time, that is as good as none when even method 0 predicts no more.
const NOTHING: f64 = 0.02;
/// Share of what memory, or the way to it, can deliver from which on it is the limit.
pub(crate) const BUSY: f64 = 0.75;
/// Share of misses that are prefetches from which on these decide.
const MOSTLY: f64 = 0.5;
/// Mean outstanding reads, while there are any, up to which one waits for the other.
const ALONE: f64 = 1.1;
/// Share of cycles that wait for memory from which on waiting decides, whatever is prefetched besides.
const WAITING: f64 = 0.25;

impl Kind {
    /// One word for it.
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

    /// What a program is; `added` is the largest added latency that is asked about, seconds.
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

    /// The method to trust among those that can be used, and why.
    pub(crate) fn trust(self, usable: &dyn Fn(&str) -> bool) -> Option<(&'static str, &'static str)> {
        let (order, why): (&[&str], _) = match self {
            Kind::Resident => (
                &["6", "5", "0", "2", "1", "4"],
                "There are so few misses that even waiting for each of them adds hardly any time: all methods agree.",
            ),
            Kind::Bandwidth => (
                &["5", "4i", "4"],
                "Memory's bandwidth is the limit. Latency matters only once more reads would have to be outstanding than \
                 buffers hold, which method 5 looks at; all others predict too much.",
            ),
            Kind::Prefetched => (
                &["6", "5", "4i", "4"],
                "Most lines are prefetched. Latency matters only once prefetches no longer run far enough ahead, which \
                 method 5 looks at, and 6 with it; all others predict too much.",
            ),
            Kind::Overlapped => (
                &["6", "5", "4i", "4"],
                "Several reads are outstanding while the program waits, so that methods 0 to 2 count the same time several \
                 times.",
            ),
            Kind::Dependent => (
                &["2", "0", "6", "5", "1", "4"],
                "Reads wait for each other: each that goes to what gets slower adds its whole latency, as methods 0 to 2 assume.",
            ),
            Kind::Unknown => (
                &["6", "5", "4i", "4"],
                "Outstanding reads were not counted, so that it is not known whether reads overlap; methods 0 to 2 are upper \
                 bounds.",
            ),
        };
        let best = order.iter().find(|id| usable(id)).copied();
        let any = || METHODS.iter().filter(|m| m.is_prediction()).map(|m| m.id).find(|id| usable(id));
        Some((best.or_else(any)?, why))
    }
}

/// Of what memory can deliver, the share that the program takes.
pub(crate) fn busy(program: &Program<'_>) -> Option<f64> {
    let details = program.system.details.as_ref()?;
    Some(details.bytes_per_second(program.counts)? / details.bandwidth)
}

/// Reads that are outstanding while the core waits for memory, prefetches among them where they are counted; of the whole time
/// where waits are not counted.
fn at_once(counts: &Counts, base_ns: f64) -> Option<f64> {
    let mean = counts.each_cycle(Quantity::InFlight).or_else(|| counts.each_cycle(Quantity::Outstanding))?;
    match counts.each_cycle(Quantity::MemoryWait).filter(|&share| share > 0.0) {
        Some(share) => Some(mean / share.min(1.0)),
        // By Little's law, the time of all reads one after the other, as a share of the run time.
        None => {
            let misses = counts.of_thread(Quantity::Misses)?;
            let alone = (misses * base_ns / 1e9 / counts.seconds).min(1.0);
            Some(mean / alone.max(f64::MIN_POSITIVE)).map(|reads| reads.max(mean))
        }
    }
}
