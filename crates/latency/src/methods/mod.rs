//! The methods: one file each, and an entry in [`METHODS`].

mod accesses;
mod cache_misses;
mod corrected;
mod intervals;
mod linear;
mod main_memory;
mod outstanding;
pub(crate) mod second;
pub mod stalls;
pub mod tier;

use crate::system::Details;
use crate::{Counts, Quantity, System};

/// Input of a prediction.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// Counts of the run or of a part of it.
    pub counts: &'a Counts,
    /// Counts of its intervals, in order; empty without intervals.
    pub intervals: &'a [Counts],
    /// Why it has no usable intervals.
    pub no_intervals: &'a str,
    /// The machine it ran on.
    pub system: &'a System,
    /// Another run of it with somewhat slower memory, or why there is none.
    pub second: Result<SecondRun, &'a str>,
}

/// A run of the same program with somewhat slower memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SecondRun {
    /// Added latency of its memory, seconds; above 0.
    pub added: f64,
    /// Its time relative to the first run.
    pub slowdown: f64,
    /// Utilisation of the remote memory's bandwidth; `None` if unknown.
    pub busy: Option<f64>,
}

impl SecondRun {
    /// Evaluates a second run of a program that took `seconds` with memory that is slower by `added` seconds; `None` if
    /// either took no time. It is assumed to move as many lines, since controllers of other nodes count them.
    #[must_use]
    pub fn of(first: &Counts, seconds: f64, added: f64, system: &System) -> Option<SecondRun> {
        let slowdown = seconds / first.seconds;
        let port = |details: &Details| Some(details.bytes_per_second(first)? / slowdown / details.port_bandwidth);
        let busy = system.details.as_ref().and_then(port);
        (slowdown > 0.0 && slowdown.is_finite()).then_some(SecondRun { added, slowdown, busy })
    }
}

/// Result of a method.
#[derive(Clone, Copy)]
pub enum Calculation {
    /// Slowdown of the program with memory that is slower by this many seconds.
    Slowdown(fn(&Program<'_>, f64) -> f64),
    /// A number that other methods use.
    Number(fn(&Program<'_>) -> f64),
}

/// A method.
pub struct Method {
    /// Its number, for people and programs.
    pub id: &'static str,
    /// Its name.
    pub title: &'static str,
    /// Its formula; `a` is the added latency, `T` the run time, `threads` the cores that worked at a time.
    pub formula: &'static str,
    /// Conditions under which it is accurate.
    pub assumptions: &'static str,
    /// Counts that it needs: one of each list.
    pub needs: &'static [&'static [Quantity]],
    /// Whether it needs the run's intervals, with these counts.
    pub by_interval: bool,
    /// Whether it needs a description of the machine in addition to the memory latency.
    pub machine: bool,
    /// Whether it needs a second run.
    pub second: bool,
    /// The calculation.
    pub calculation: Calculation,
}

/// All methods, in the order in which they are shown.
pub static METHODS: [Method; 8] = [
    linear::METHOD,
    accesses::METHOD,
    cache_misses::METHOD,
    outstanding::METHOD,
    corrected::METHOD,
    intervals::METHOD,
    stalls::METHOD,
    second::METHOD,
];

impl Method {
    /// Returns the method with this number.
    #[must_use]
    pub fn with_id(id: &str) -> Option<&'static Method> {
        METHODS.iter().find(|method| method.id == id)
    }

    /// Checks whether the method can be used.
    ///
    /// # Errors
    /// If something that it needs is missing; the message says what.
    pub fn usable(&self, program: &Program<'_>) -> Result<(), String> {
        let counts = program.counts;
        if !(counts.seconds > 0.0 && counts.seconds.is_finite()) {
            return Err("the run took no time".to_owned());
        }
        if !(counts.threads > 0.0 && counts.threads.is_finite()) {
            return Err("no thread was counted".to_owned());
        }
        self.has_counts(counts).map_err(|what| format!("not counted: {what}"))?;
        if self.needs.iter().any(|of| of.contains(&Quantity::Cycles)) && counts.get(Quantity::Cycles) == Some(0.0) {
            return Err("the count of core cycles is zero".to_owned());
        }
        if self.machine && program.system.details.is_none() {
            return Err("the machine is not described: its buffers and prefetch distances are not known".to_owned());
        }
        if self.second {
            second::usable(program)?;
        }
        if self.by_interval {
            if program.intervals.is_empty() {
                return Err(program.no_intervals.to_owned());
            }
            for (i, interval) in program.intervals.iter().enumerate() {
                self.has_counts(interval).map_err(|what| format!("not counted in interval {}: {what}", i + 1))?;
            }
        }
        Ok(())
    }

    fn has_counts(&self, counts: &Counts) -> Result<(), String> {
        let missing = self.needs.iter().filter(|of| of.iter().all(|&q| counts.get(q).is_none()));
        let missing: Vec<String> =
            missing.map(|of| of.iter().map(|q| q.title()).collect::<Vec<_>>().join(" or ")).collect();
        if missing.is_empty() { Ok(()) } else { Err(missing.join(", ")) }
    }

    /// Returns whether it predicts a slowdown.
    #[must_use]
    pub fn is_prediction(&self) -> bool {
        matches!(self.calculation, Calculation::Slowdown(_))
    }
}

/// Returns the slowdown if each of a thread's `count` accesses adds its whole latency to the thread's time.
fn one_after_the_other(counts: &Counts, count: f64, added: f64) -> f64 {
    1.0 + count / counts.threads * added / counts.seconds
}

/// Returns the accesses to the slower memory: misses of the memory-side cache if there is one, otherwise accesses at the
/// controllers.
fn slow_accesses(counts: &Counts) -> Option<f64> {
    counts.get(Quantity::CacheMisses).or_else(|| counts.get(Quantity::Accesses))
}

/// Returns a count that [`Method::usable`] has checked.
fn known(counts: &Counts, quantity: Quantity) -> f64 {
    counts.get(quantity).unwrap_or(f64::NAN)
}
