//! The effect of slower memory on a program: predictions from the counts of one run, and checks of them against simulations; data that
//! may live in a memory tier.

mod advise;
mod case;
mod check;
mod methods;
pub mod plan;
mod samples;
mod show;

use std::ops::RangeInclusive;

use fxscope_latency::LATENCIES;

pub use advise::{AdviseOptions, TierAdvice, TierObject, TierSet, advise};
pub use case::{Case, Forecast, simulated};
pub use check::{CheckOptions, Checked, check_one, check_set, check_tasks, make_check_task};
pub use methods::{methods, methods_markdown};
pub use samples::{NoSample, Subject};

/// Range of memory latencies, nanoseconds.
pub const LATENCY_RANGE_NS: RangeInclusive<f64> = 1.0..=100_000.0;

/// Parses a memory latency, nanoseconds.
///
/// # Errors
/// If the text is none, or out of range.
pub fn nanoseconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| LATENCY_RANGE_NS.contains(number));
    number.ok_or_else(|| "give a number of nanoseconds from 1 to 100000".to_owned())
}

/// Parses a number of cores that worked at a time, which may be a mean.
///
/// # Errors
/// If the text is none, or out of range.
pub fn cores(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (1.0..=1_000_000.0).contains(number));
    number.ok_or_else(|| "give a number of cores, at least 1".to_owned())
}

/// Parses an accepted loss of time, such as `5%` or `0.5`. Returns the share.
///
/// # Errors
/// If the text is none, or out of range.
pub fn loss(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let number: Option<f64> = number.filter(|number| (0.0..=10_000.0).contains(number));
    number.map(|percent| percent / 100.0).ok_or_else(|| "give a number of percent, such as 5%".to_owned())
}

/// What to predict, and for which part of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PredictOptions {
    /// Memory latencies, nanoseconds from a load to its use; empty: those of the published study.
    pub latencies: Vec<f64>,
    /// Region of the program; `None`: the whole program.
    pub region: Option<String>,
    /// Number of cores that worked at a time, if the record does not say.
    pub threads: Option<f64>,
}

impl PredictOptions {
    /// Returns the latencies, nanoseconds.
    #[must_use]
    pub fn latencies(&self) -> Vec<f64> {
        if self.latencies.is_empty() { LATENCIES.to_vec() } else { self.latencies.clone() }
    }
}
