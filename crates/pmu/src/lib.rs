//! Evaluates the counts of a machine's performance monitoring unit (PMU), whose events are part of the machine's
//! description ([`fxscope_machine::Pmu`]).
//!
//! * [`energy`]: energy events, derived from others by the machine's coefficients.
//! * [`metrics`]: named quantities from `data/metrics/*.toml`, each a formula over event names.
//! * [`evaluate`]: their values for a region, its threads and its CMGs.
//! * [`mod@recorded`]: the PMU that counted a run: its events and event groups.
//! * [`sampled`]: intervals of the metrics of sampled runs.
//! * [`scope`]: CMG-wide events in the rows of threads and in sums.
//! * [`rules`]: what may limit a program, from `data/rules/*.toml`; [`judge`]: which rules apply to a region; [`remedies`]: what may
//!   help without a change of the program, from `data/remedies.toml`.
//! * [`tables`]: the tables of the CPU performance analysis report.
//! * [`formula`]: the formula language.
//!
//! Reports and importers contain neither event numbers nor formulas; they use this crate.

pub mod energy;
pub mod evaluate;
pub mod formula;
mod functions;
pub mod judge;
pub mod metrics;
mod own;
mod passes;
pub mod recorded;
pub mod remedies;
pub mod rules;
pub mod sampled;
pub mod scope;
pub mod tables;

pub use evaluate::{Cell, Cells, Evaluation, Team, Values};
pub use fxscope_machine::{Event, Events, Groups, Pmu, Scope, groups};
pub use judge::{Attempt, Fact, Finding, Judgement, Said, Unjudged};
pub use metrics::{ACCESSED, CALLS, CLOCKS, CYCLES, Group, KERNEL, Metric, Metrics, TICKS, Total, constants};
pub use own::OwnFile;
pub use recorded::{events_of, of_run, unknown_events};
pub use remedies::{Remedy, Values as RemedyValues};
pub use rules::{Rule, Try};
pub use sampled::Sampled;
pub use tables::{Column, Mark, Table, Tone};

/// Why a table of metrics cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct TableError {
    /// The file.
    pub file: String,
    /// The location and the error.
    pub what: String,
}
