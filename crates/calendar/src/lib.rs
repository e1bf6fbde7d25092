//! Simulated time: reservations of resources, accepted out of time order.
//!
//! Depends on `std` only.

pub mod calendar;
pub mod pool;

pub use calendar::{Calendar, LineBus, SPAN};
pub use pool::{Grant, Pool};

/// A point in simulated time, or a duration, in core clock cycles.
pub type Cycle = u64;
