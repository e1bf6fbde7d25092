//! What slower memory does to a program: predictions from counts of one run, and checks of them against simulations.

mod case;
mod check;
mod methods;
pub mod plan;
mod samples;
mod show;

use std::ops::RangeInclusive;

use fxscope_latency::LATENCIES;

pub use case::{Case, Forecast};
pub use check::{CheckOptions, Checked, check_one, check_set};
pub use methods::{methods, methods_markdown};
pub use samples::{NoSample, Subject};

/// Latencies of memory that can be asked about, nanoseconds.
pub const LATENCY_RANGE_NS: RangeInclusive<f64> = 1.0..=100_000.0;

/// What is asked about a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// Latencies of memory, nanoseconds from a load to its use; empty: those of the published study.
    pub latencies: Vec<f64>,
    /// The region of the program to look at; `None`: the whole of it.
    pub region: Option<String>,
    /// Cores that worked at a time, where the record does not know.
    pub threads: Option<f64>,
}

impl Question {
    /// The latencies, nanoseconds.
    #[must_use]
    pub fn latencies(&self) -> Vec<f64> {
        if self.latencies.is_empty() { LATENCIES.to_vec() } else { self.latencies.clone() }
    }
}
