//! The laboratories: questions about programs and machines that take several runs, or a measurement, to answer.
//!
//! * [`pages`]: page sizes. Which are best for a program, what they do in known experiments, accesses that no page size helps.
//! * [`latency`]: what slower memory does to a program.
//! * [`collect`]: counts of a real machine, through perf.
//! * [`validate`]: the model against measured rows.
//! * [`compare()`]: runs beside each other.
//! * [`jitter`]: what the operating system takes from programs.
//!
//! A laboratory takes a [`fxscope_session::Scenario`] and options, and gives a documented result. It makes runs through a
//! [`Runner`], keeps what they counted in a [`Cache`], reports to a [`Progress`], and never writes to the standard streams.

mod cache;
pub mod collect;
mod compare;
mod error;
pub mod jitter;
pub mod latency;
pub mod pages;
mod progress;
mod runner;
pub mod validate;

pub use cache::Cache;
pub use compare::compare;
pub use error::Error;
pub use progress::{Progress, Silent};
pub use runner::{Capture, CapturedRun, Runner, simulate};
