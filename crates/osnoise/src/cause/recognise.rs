//! Recognises causes from a trace alone: detours at the rate of the timer tick, and detours due to the kernel's
//! real-time limit. Runs as a separate pass before detours are named, in bounded memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use fxscope_hostinfo::cpus::RealtimeLimit;

use crate::trace::{Detour, Error, Header, Item, Method, Reader};

/// Tick rates that Linux can be built with (`CONFIG_HZ`), descending, since the detours of a slow tick do not fill the
/// periods of a fast one.
const TICKS_PER_SECOND: [u64; 4] = [1000, 300, 250, 100];
/// Longest detour that may be a tick, ns.
const LONGEST_TICK: u64 = 1_000_000;
/// Bins of a period.
const BINS: usize = 256;
/// Minimum number of periods needed to recognise a tick.
const FEWEST: u64 = 50;
/// Minimum share of periods with a detour in the tick's window, beyond chance.
const PRESENT: f64 = 0.5;
/// Minimum share of the detours in the window that are not there by chance.
const CLEAR: f64 = 0.6;
/// Widest window, relative to the period.
const WIDEST: f64 = 0.1;
/// Relative deviation allowed between a detour and the time that the real-time limit leaves to other threads, and
/// between its interval and the limit's period.
const ALIKE: f64 = 0.2;
const PUNCTUAL: f64 = 0.1;

/// What was recognised.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recognised {
    /// Core and start of detours in which the real-time limit took the core.
    limited: BTreeSet<(u32, u64)>,
    /// The timer tick of each core.
    ticks: BTreeMap<u32, Tick>,
}

/// When a core's timer ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tick {
    period: u64,
    /// The window of a period in which its detours begin.
    from: u64,
    width: u64,
}

impl Tick {
    fn is(&self, detour: Detour) -> bool {
        let into = (detour.start + self.period - self.from) % self.period;
        detour.length <= LONGEST_TICK && into < self.width
    }
}

impl Recognised {
    /// Returns whether the real-time limit took the core in this detour.
    #[must_use]
    pub fn is_limited(&self, core: u32, detour: Detour) -> bool {
        self.limited.contains(&(core, detour.start))
    }

    /// Returns whether this detour begins with the core's timer tick.
    #[must_use]
    pub fn is_tick(&self, core: u32, detour: Detour) -> bool {
        self.ticks.get(&core).is_some_and(|tick| tick.is(detour))
    }
}

/// Examines a trace. `limit` is the kernel's real-time limit.
///
/// # Errors
/// If the trace cannot be read.
pub fn recognise<R: Read>(mut trace: Reader<R>, limit: Option<RealtimeLimit>) -> Result<Recognised, Error> {
    let header = trace.header().clone();
    let limit = limit.filter(|_| header.priority.is_some());
    let mut folds: BTreeMap<u32, Folds> = BTreeMap::new();
    let mut candidates: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let mut duration = 0;
    while let Some(Item::Detours(core, detours)) = trace.next_item()? {
        for detour in detours {
            duration = duration.max(detour.end());
            if detour.length <= LONGEST_TICK {
                folds.entry(core).or_default().add(detour.start);
            } else if limit.is_some_and(|limit| is_near(detour.length, limit.remainder(), ALIKE)) {
                candidates.entry(core).or_default().push(detour.start);
            }
        }
    }
    let ticks = folds.iter().filter_map(|(&core, folds)| Some((core, folds.tick(duration, &header)?))).collect();
    let of_core = |limit: RealtimeLimit, core: u32, starts: &[u64]| {
        let returns = |&&start: &&u64| {
            let punctual = |other: &u64| is_near(start.abs_diff(*other), limit.period, PUNCTUAL);
            duration < 2 * limit.period || starts.iter().any(punctual)
        };
        starts.iter().filter(returns).map(|&start| (core, start)).collect::<Vec<_>>()
    };
    let limited =
        limit.map(|limit| candidates.iter().flat_map(|(&core, starts)| of_core(limit, core, starts)).collect());
    Ok(Recognised { limited: limited.unwrap_or_default(), ticks })
}

fn is_near(value: u64, wanted: u64, part: f64) -> bool {
    value.abs_diff(wanted) as f64 <= wanted as f64 * part
}

/// Starts of a core's detours, folded into the period of each tick rate.
struct Folds([[u64; BINS]; TICKS_PER_SECOND.len()]);

impl Default for Folds {
    fn default() -> Folds {
        Folds([[0; BINS]; TICKS_PER_SECOND.len()])
    }
}

/// The kernel's tick length (`TICK_NSEC`), ns.
fn period(ticks_per_second: u64) -> u64 {
    (1_000_000_000 + ticks_per_second / 2) / ticks_per_second
}

impl Folds {
    fn add(&mut self, start: u64) {
        for (bins, ticks) in self.0.iter_mut().zip(TICKS_PER_SECOND) {
            let period = period(ticks);
            bins[((start % period) * BINS as u64 / period) as usize] += 1;
        }
    }

    fn tick(&self, duration: u64, header: &Header) -> Option<Tick> {
        // Loops with a quantum only show in which piece or interval time was lost.
        let spread = if header.method == Method::Spin { 0 } else { header.quantum };
        let found = |(bins, ticks): (&[u64; BINS], u64)| window(bins, period(ticks), duration, spread);
        self.0.iter().zip(TICKS_PER_SECOND).find_map(found)
    }
}

/// The window of a period in which detours begin in most periods, if there is one.
fn window(bins: &[u64; BINS], period: u64, duration: u64, spread: u64) -> Option<Tick> {
    let periods = duration / period;
    let bin = period as f64 / BINS as f64;
    // One extra bin on each side, since the window need not start at a bin boundary.
    let count = (spread as f64 / bin).ceil() as usize + 2;
    if periods < FEWEST || count as f64 / BINS as f64 > WIDEST {
        return None;
    }
    let sum = |from: usize| (from..from + count).map(|i| bins[i % BINS]).sum::<u64>();
    let best = (0..BINS).max_by_key(|&from| (sum(from), std::cmp::Reverse(from)))?;
    let (inside, all) = (sum(best) as f64, bins.iter().sum::<u64>() as f64);
    let by_chance = (all - inside) / (BINS - count) as f64 * count as f64;
    let excess = inside - by_chance;
    (excess >= PRESENT * periods as f64 && excess >= CLEAR * inside).then(|| Tick {
        period,
        from: (best as f64 * bin) as u64,
        width: (count as f64 * bin).ceil() as u64,
    })
}
