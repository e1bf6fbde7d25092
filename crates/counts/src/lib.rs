//! What a run counts: the signals of the modelled hardware, and the causes of cycles without a commit.
//!
//! Depends on `std` only.

pub mod signal;
pub mod stall;

pub use signal::{FewSignals, READS_FROM_L2, READS_FROM_MEMORY, Signal, Signals, WRITES_TO_CMG};
pub use stall::{Stall, Stalls};
