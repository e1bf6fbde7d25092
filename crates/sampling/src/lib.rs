//! The statistics of sampled simulation: when detailed windows begin, and what a whole run is estimated to have counted from them.
//!
//! A run executes *blocks*, which are the strata of the sample. Most executions are only followed, which is known as functional
//! warming; in *windows* of some thousand instructions they are timed. A window yields *measures* of the blocks that it executes:
//! cycles by cause, misses and other counts. How often each block ran is known exactly, so a total is estimated as the sum over blocks
//! of exact executions times the cost of one execution seen in windows (separate ratio estimator, post-stratified by block).
//! Intervals follow from a jackknife over groups of windows.
//!
//! * [`Plan`]: the parameters of a sample and their textual form; [`Schedule`]: when the next window begins.
//! * [`Sample`]: sums of measures by block and group of windows.
//! * [`Exposure`]: exact executions by block of a part of the run.
//! * [`estimate`]: totals of an exposure with their replicates; [`Estimates::interval_of`] gives intervals, also of ratios;
//!   [`jackknife`] does so from plain values.
//!
//! There is no I/O here and no clock; everything is determined by its inputs and a seed.

mod alone;
mod estimate;
mod exposure;
mod interval;
mod plan;
mod random;
mod sample;
mod schedule;

pub use estimate::{Estimates, estimate};
pub use exposure::Exposure;
pub use interval::{Interval, Precision, jackknife, windows_needed};
pub use plan::{Follow, Plan, PlanError};
pub use sample::{DEFAULT_GROUPS, MAX_GROUPS, Sample};
pub use schedule::{Schedule, Window, WindowKind};
