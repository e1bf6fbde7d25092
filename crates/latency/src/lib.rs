//! Predicts from the counts of one normal run how a program slows down when main memory gets slower.
//!
//! * [`Quantity`], [`Counts`]: the input of the methods, whatever counted it.
//! * [`inputs`]: the meaning of each processor's events (`inputs.toml`), and the counts of a record.
//! * [`System`]: the machine: its latency, its buffers.
//! * [`methods`]: the methods, one file each, and the table from which help texts and documents derive.
//! * [`methods::tier`]: some of a program's data in a memory tier.
//! * [`predict()`]: all methods at several latencies, the kind of program, and the method to trust.
//! * [`check`]: predictions compared with simulations of slower memory, and the fit of method 5's coefficients.
//!
//! This crate runs nothing: it takes records and returns numbers and sentences.

pub mod check;
mod counts;
pub mod inputs;
mod kind;
pub mod methods;
mod predict;
mod system;

pub use counts::{Counts, Quantity};
pub use kind::Kind;
pub use methods::{Method, Program, SecondRun};
pub use predict::{LATENCIES, MethodResult, Point, Prediction, Row, predict};
pub use system::System;
