//! The laboratories: questions about programs and machines that take several runs, or a measurement, to answer.
//!
//! * [`advise`]: what limits a program, and what helps.
//! * [`pages`]: page sizes: the best for a program, published experiments, and accesses that no page size helps.
//! * [`latency`]: the effect of slower memory on a program.
//! * [`collect`]: counts of a real machine, through perf.
//! * [`calibrate`]: numbers of the model from measurements of a real machine.
//! * [`validate`]: the model compared with measured rows.
//! * [`guide`]: the experiments of the tuning guide and of studies, published and simulated.
//! * [`prefetched`]: the lines that hardware prefetch requests for a stream.
//! * [`compare()`]: runs side by side.
//! * [`jitter`]: operating-system noise.
//! * [`sweep`]: many runs with settings that a plan varies.
//! * [`import`]: measurements of other tools as runs.
//! * [`recorded`]: runs of record files, as options name them.
//! * [`tasks`]: the runs of a laboratory one by one, for a cluster that makes them.
//!
//! [`schema`] has the form of what they answer to programs.
//!
//! A laboratory takes a [`fxscope_session::Scenario`] and options, and returns a documented result. It runs programs through
//! a [`Runner`], caches their counts in a [`Cache`], reports to a [`Progress`], and never writes to the standard streams.

pub mod advise;
mod cache;
pub mod calibrate;
pub mod collect;
mod compare;
mod error;
pub mod guide;
pub mod import;
pub mod jitter;
pub mod latency;
pub mod pages;
pub mod prefetched;
mod programs;
mod progress;
pub mod recorded;
pub mod resources;
mod runner;
pub mod schema;
pub mod sweep;
pub mod tasks;
mod templates;
pub mod validate;

pub use cache::Cache;
pub use compare::compare;
pub use error::Error;
pub use programs::Programs;
pub use progress::{Progress, Silent};
pub use runner::{Capture, CapturedRun, Runner, simulate};
