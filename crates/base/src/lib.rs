//! Units, the signal list, the calendar and text fit to be shown: what every other crate may use.
//!
//! Depends on `std` only.

pub mod calendar;
pub mod host;
pub mod pool;
pub mod signal;
pub mod stall;
pub mod text;

pub use calendar::{Calendar, LineBus, SPAN};
pub use host::{expect_stream, fetch_early};
pub use pool::{Grant, Pool};
pub use signal::{READS_FROM_L2, READS_FROM_MEMORY, Signal, Signals, WRITES_TO_CMG};
pub use stall::{Stall, Stalls};

/// A point in simulated time, or a duration, in core clock cycles.
pub type Cycle = u64;
