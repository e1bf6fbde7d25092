//! Numbers of the model from measurements of a real machine.
//!
//! A program without dependencies, [`PROGRAM`], measures the benchmarks of one table on an A64FX under Linux and writes
//! [`Measurements`]. [`fit`] runs the same program in the simulator and searches each number of a second table with which
//! the simulated time of its benchmarks is the measured one.

mod collect;
mod fit;
mod measurements;
mod model;
mod show;
mod tables;

pub use collect::{collect, write_program};
pub use fit::{Agreement, Comparison, Confidence, FitOptions, Fitted, Fitting, KeyResult, Outcome, fit};
pub use measurements::{Host, Measurements, Run, Times};
pub use show::{benchmarks_sheet, machine_file, settings, sheet};
pub use tables::{Benchmark, Bound, Key, Quantity, benchmarks, keys};

/// The measuring program: a static AArch64 executable (`kernels/collect.c`).
pub const PROGRAM: &[u8] = include_bytes!("../../../../kernels/prebuilt/collect.elf");
