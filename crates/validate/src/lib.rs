//! The model held against measurements, row by row.
//!
//! A folder has the measured results: `runs.csv` names programs with their arguments and options, and every other CSV file
//! is a family of rows, each with what was measured and a formula that takes the same from a run's counts ([`Suite`]).
//! [`execute`] makes the runs that rows need, as many at a time as the host has cores; what a run counted is kept
//! ([`Cache`]) until program, options or simulator change. [`judge`] compares, and [`Accuracy`] says how far off the model is
//! where no measured value has decided what it does.

mod accept;
mod accuracy;
mod cache;
mod counts;
mod execute;
mod figure;
mod judge;
mod suite;

pub use accept::accept;
pub use accuracy::{Accuracy, Spread};
pub use cache::Cache;
pub use counts::Counts;
pub use execute::{Execution, Results, execute};
pub use figure::Kind;
pub use judge::{Judgement, NEAR, Outcome, SLACK, Verdict, accepted, judge};
pub use suite::{Family, Row, Run, Size, Suite};
