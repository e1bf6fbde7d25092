//! The methods: one file each, and an entry in [`METHODS`].

mod accesses;
mod cache_misses;
mod corrected;
mod intervals;
mod linear;
mod outstanding;
pub(crate) mod second;
pub mod stalls;

use crate::system::Details;
use crate::{Counts, Quantity, System};

/// What a prediction is made from.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// What the run, or the part of it that is looked at, counted.
    pub counts: &'a Counts,
    /// What it counted in its intervals, in order; none when there are none.
    pub intervals: &'a [Counts],
    /// Why it has no intervals, or none that can be used.
    pub no_intervals: &'a str,
    /// The machine it ran on.
    pub system: &'a System,
    /// Another run of it, with memory that is somewhat slower; or why there is none.
    pub second: Result<Second, &'a str>,
}

/// A run of the same program with memory that is somewhat slower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Second {
    /// What its memory's latency is longer, seconds; above 0.
    pub added: f64,
    /// How many times as long it took.
    pub slowdown: f64,
    /// Of what memory of another node can deliver, the share that it took; none when that is not known.
    pub busy: Option<f64>,
}

impl Second {
    /// What a second run of a program says that took `seconds` with memory that is slower by `added` seconds; none when one of
    /// both took no time. That it moved as many lines is assumed, since controllers of other nodes count them.
    #[must_use]
    pub fn of(first: &Counts, seconds: f64, added: f64, system: &System) -> Option<Second> {
        let slowdown = seconds / first.seconds;
        let port = |details: &Details| Some(details.bytes_per_second(first)? / slowdown / details.port_bandwidth);
        let busy = system.details.as_ref().and_then(port);
        (slowdown > 0.0 && slowdown.is_finite()).then_some(Second { added, slowdown, busy })
    }
}

/// What a method gives.
#[derive(Clone, Copy)]
pub enum Gives {
    /// How many times as long the program takes with memory that is so many seconds slower.
    Slowdown(fn(&Program<'_>, f64) -> f64),
    /// A number that others use.
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
    /// What must hold for it to be right.
    pub assumptions: &'static str,
    /// Counts that it needs: of each list, one.
    pub needs: &'static [&'static [Quantity]],
    /// Whether it needs the run's intervals, which then need these counts as well.
    pub by_interval: bool,
    /// Whether it needs a description of the machine besides the latency of its memory.
    pub machine: bool,
    /// Whether it needs a second run.
    pub second: bool,
    /// What it calculates.
    pub gives: Gives,
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
    /// The method with this number.
    #[must_use]
    pub fn with_id(id: &str) -> Option<&'static Method> {
        METHODS.iter().find(|method| method.id == id)
    }

    /// Why the method cannot be used; `Ok` when it can.
    ///
    /// # Errors
    /// What is missing, in words.
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

    /// Whether it predicts a slowdown.
    #[must_use]
    pub fn is_prediction(&self) -> bool {
        matches!(self.gives, Gives::Slowdown(_))
    }
}

/// The slowdown when each of a thread's `count` accesses adds its whole latency to the thread's time.
fn one_after_the_other(counts: &Counts, count: f64, added: f64) -> f64 {
    1.0 + count / counts.threads * added / counts.seconds
}

/// Accesses to what gets slower: misses of the memory-side cache where there is one, accesses at the controllers otherwise.
fn slow_accesses(counts: &Counts) -> Option<f64> {
    counts.get(Quantity::CacheMisses).or_else(|| counts.get(Quantity::Accesses))
}

/// A count that [`Method::usable`] has seen.
fn known(counts: &Counts, quantity: Quantity) -> f64 {
    counts.get(quantity).unwrap_or(f64::NAN)
}
