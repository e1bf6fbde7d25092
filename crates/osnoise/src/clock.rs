//! Clocks for measuring loops, with their rate and cost.

mod counter;

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

pub use counter::Counter;

/// A clock that counts ticks upwards.
pub trait Clock {
    /// Current time, ticks.
    fn now(&mut self) -> u64;
}

/// The system's monotonic clock in ns, for processors without a usable counter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    #[inline]
    fn now(&mut self) -> u64 {
        monotonic()
    }
}

/// Returns `CLOCK_MONOTONIC`, ns.
#[must_use]
pub fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// A clock's rate, and a reference point at which both its time and `CLOCK_MONOTONIC` are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timebase {
    /// Ticks per ns.
    pub rate: f64,
    /// Ticks at the reference point.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC` at the reference point, ns.
    pub monotonic: u64,
}

/// Deviation of a clock from its prediction that counts as a jump, ns.
const JUMP: f64 = 1e6;
/// Relative drift between clocks that does not count as a jump.
const DRIFT: f64 = 1e-3;

impl Timebase {
    /// Converts a time of the clock to `CLOCK_MONOTONIC`, ns.
    #[must_use]
    pub fn at(&self, ticks: u64) -> u64 {
        let apart = ticks.wrapping_sub(self.ticks) as i64 as f64 / self.rate;
        self.monotonic.saturating_add_signed(apart.round() as i64)
    }

    /// Converts ticks to ns.
    #[must_use]
    pub fn length(&self, ticks: u64) -> u64 {
        (ticks as f64 / self.rate).round() as u64
    }

    /// Converts ns to ticks.
    #[must_use]
    pub fn ticks_of(&self, ns: u64) -> u64 {
        (ns as f64 * self.rate).round() as u64
    }

    /// Moves the reference point to a later time, shown by both clocks.
    ///
    /// # Errors
    /// How far `CLOCK_MONOTONIC` is ahead of the other clock, ns, if they disagree so much that one must have jumped.
    pub fn follow(&mut self, ticks: u64, monotonic: u64) -> Result<(), i64> {
        let elapsed = monotonic.saturating_sub(self.monotonic) as f64;
        let ahead = monotonic as f64 - self.at(ticks) as f64;
        (self.ticks, self.monotonic) = (ticks, monotonic);
        if ahead.abs() > JUMP + elapsed * DRIFT { Err(ahead as i64) } else { Ok(()) }
    }
}

/// Reads a clock between two reads of `CLOCK_MONOTONIC`; of several tries takes the one with the shortest interval.
pub fn pair(clock: &mut impl Clock) -> (u64, u64) {
    let attempt = || {
        let before = monotonic();
        let ticks = clock.now();
        let after = monotonic();
        (after.saturating_sub(before), ticks, before + after.saturating_sub(before) / 2)
    };
    let best = std::iter::repeat_with(attempt).take(16).min_by_key(|&(apart, ..)| apart);
    best.map_or((0, 0), |(_, ticks, monotonic)| (ticks, monotonic))
}

/// Why a clock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It stands still or goes back.
    #[error(
        "the processor's counter went from {0} to {1} in a tenth of a second: it cannot be used here; \
         --clock system reads the system's clock instead"
    )]
    Stuck(u64, u64),
}

/// Measures a clock's rate.
///
/// # Errors
/// If it does not advance.
pub fn calibrate(clock: &mut impl Clock) -> Result<Timebase, Error> {
    let (ticks, begin) = pair(clock);
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(100) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let (later, end) = pair(clock);
    if later <= ticks || end <= begin {
        return Err(Error::Stuck(ticks, later));
    }
    Ok(Timebase { rate: (later - ticks) as f64 / (end - begin) as f64, ticks: later, monotonic: end })
}

/// Returns the cost of reading a clock: the lowest mean over batches of reads, ticks.
pub fn read_cost(clock: &mut impl Clock) -> f64 {
    const BATCH: u32 = 1000;
    let batch = || {
        let begin = clock.now();
        for _ in 1..BATCH {
            std::hint::black_box(clock.now());
        }
        clock.now().saturating_sub(begin) as f64 / f64::from(BATCH)
    };
    std::iter::repeat_with(batch).take(100).fold(f64::INFINITY, f64::min)
}
