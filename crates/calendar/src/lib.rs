//! Simulated time: reservations of resources, accepted out of time order.
//!
//! Depends on `std` only.

pub mod buffer_pool;
pub mod calendar;

pub use buffer_pool::{BufferPool, Grant};
pub use calendar::{Calendar, LineBus, SPAN};

/// A point in simulated time, or a duration, in core clock cycles.
pub type Cycle = u64;
