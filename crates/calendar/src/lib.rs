//! Simulated time: reservations of resources, accepted out of time order.
//!
//! The state of every resource can be cloned and serialised: it is part of a snapshot of the machine.

pub mod array;
pub mod buffer_pool;
pub mod calendar;

pub use buffer_pool::{BufferPool, Grant};
pub use calendar::{Calendar, LineBus, SPAN};

/// A point in simulated time, or a duration, in core clock cycles.
pub type Cycle = u64;
