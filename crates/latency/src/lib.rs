//! What happens to a program when main memory gets slower, predicted from counts of one normal run.
//!
//! * [`Quantity`], [`Counts`]: what methods need to know, whatever counted it.
//! * [`inputs`]: which events of which processors mean what (`inputs.toml`), and counts of a record by them.
//! * [`System`]: what methods need of the machine: its latency, its buffers.
//! * [`methods`]: the methods, one file each, and the table of them that help texts and documents derive from.
//! * [`predict()`]: all methods at several latencies, what kind of program it is, and which method to trust.
//! * [`check`]: predictions against simulations of slower memory, and the fit of the one method that has coefficients.
//!
//! Nothing here runs anything: records come in, numbers and sentences go out.

pub mod check;
mod counts;
pub mod inputs;
mod kind;
pub mod methods;
mod predict;
mod system;

pub use counts::{Counts, Quantity};
pub use kind::Kind;
pub use methods::{Method, Program, Second};
pub use predict::{LATENCIES, Point, Prediction, Row, Says, predict};
pub use system::System;
