//! What the operating system's noise costs, from one node to a whole machine.
//!
//! A [`model::Model`] says what interrupts cores; [`scale`] runs bulk-synchronous phases under it, detour by detour.

pub mod closed;
pub mod model;
pub mod network;
pub mod random;
pub mod scale;
pub mod time;

pub use model::Model;
pub use time::Time;
