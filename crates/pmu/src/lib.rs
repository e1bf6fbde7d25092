//! What follows from the counts of a machine's performance monitoring unit (PMU), whose events its description has
//! ([`fxscope_machine::Pmu`]).
//!
//! * [`energy`]: events that follow from others, by the machine's energy for each.
//! * [`metrics`]: named quantities, from `data/metrics/*.toml`, each with one formula over event names.
//! * [`evaluate`]: their values for a region, its threads and its CMGs.
//! * [`mod@recorded`]: the PMU that counted a run: what it counts, and together with what.
//! * [`scope`]: events that a whole CMG counts, in the rows of threads and in their sums.
//! * [`tables`]: the tables of the CPU performance analysis report.
//! * [`formula`]: the language of those formulas.
//!
//! Reports and importers know neither an event number nor a formula: they ask here.

pub mod energy;
pub mod evaluate;
pub mod formula;
pub mod metrics;
mod passes;
pub mod recorded;
pub mod scope;
pub mod tables;

pub use evaluate::{Cell, Cells, Evaluation, Team, Values};
pub use fxscope_machine::{Event, Events, Groups, Pmu, Scope, groups};
pub use metrics::{CALLS, CLOCKS, CYCLES, Group, KERNEL, Metric, Metrics, TICKS, constants};
pub use recorded::{of_run, unknown_events};
pub use tables::{Column, Mark, Table, Tone};

/// Why a table of metrics cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct TableError {
    /// The file.
    pub file: String,
    /// Where in it, and what is wrong.
    pub what: String,
}
