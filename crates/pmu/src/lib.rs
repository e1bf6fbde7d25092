//! What a machine's performance monitoring unit counts, and what follows from its counts.
//!
//! * [`events`]: a machine's events, from its `pmu.csv`, and the model's signals each one counts.
//! * [`energy`]: events that follow from others, by the machine's energy for each.
//! * [`metrics`]: named quantities, from `metrics/*.toml`, each with one formula over event names.
//! * [`evaluate`]: their values for a region, its threads and its CMGs.
//! * [`groups`]: which events a measurement counts together.
//! * [`scope`]: events that a whole CMG counts, in the rows of threads and in their sums.
//! * [`tables`]: the tables of the CPU performance analysis report.
//! * [`formula`]: the language of those formulas.
//!
//! Reports and importers know neither an event number nor a formula: they ask here.

pub mod energy;
pub mod evaluate;
pub mod events;
pub mod formula;
pub mod groups;
pub mod metrics;
pub mod scope;
pub mod tables;

pub use evaluate::{Cell, Cells, Evaluation, Team, Values};
pub use events::{Event, Events, Scope};
pub use groups::Groups;
pub use metrics::{CALLS, CLOCKS, CYCLES, Group, KERNEL, Metric, Metrics, TICKS, constants};
pub use tables::{Column, Mark, Table, Tone};

/// Why a table of events or metrics cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct TableError {
    /// The file.
    pub file: String,
    /// Where in it, and what is wrong.
    pub what: String,
}
