//! What follows from several runs.
//!
//! [`compare`] puts runs beside each other, quantity by quantity. Reports show what it finds.

pub mod compare;

pub use compare::{Comparison, Kind, Quantity, Spread, Subject, compare};
