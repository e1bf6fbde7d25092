//! Units, dense ids, the signal list and the calendar: what every other crate may use.
//!
//! Depends on `std` only.

/// A point in simulated time, or a duration, in core clock cycles.
pub type Cycle = u64;
