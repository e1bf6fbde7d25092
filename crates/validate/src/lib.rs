//! The model compared with measurements, row by row.
//!
//! A folder has the measured results: `runs.csv` names programs with their arguments and options, and every other CSV file
//! is a family of rows, each with a measured value and a formula that computes the same from a run's counts ([`Suite`]).
//! fxscope contains those of its sources and the programs that they run ([`Suite::built_in`], [`unpack_programs`]).
//! [`Simulator`] makes the runs that rows need. [`judge`] compares, and [`Accuracy`] summarises the errors of figures.
//! [`Search`] searches the value of a number for which an error is zero.
//! Programs are divided into those that fits may use and those that check the model ([`Part`]).

mod accept;
mod accuracy;
mod built_in;
mod counts;
mod figure;
mod judge;
mod libraries;
mod programs;
mod search;
mod simulator;
mod suite;

pub use accept::accept;
pub use accuracy::{Accuracy, Spread};
pub use built_in::unpack_programs;
pub use counts::Counts;
pub use figure::Kind;
pub use judge::{Judgement, NEAR, Outcome, SLACK, Verdict, accepted, judge};
pub use libraries::Libraries;
pub use programs::{Part, Program};
pub use search::{Found, Search};
pub use simulator::{Results, Simulator};
pub use suite::{Family, Row, Run, Size, Suite};
