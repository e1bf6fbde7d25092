//! The cost of operating-system noise, from one node to a whole machine.
//!
//! A [`model::Model`] says what interrupts cores, and a [`network::Network`] how long synchronisation takes. [`scale`]
//! runs bulk-synchronous phases under both, detour by detour. [`closed`] has closed forms, [`remedies`] what can be
//! done against noise, [`linpack`] a model of one program, and [`program`] the recorded calls of any.

pub mod closed;
pub mod linpack;
pub mod model;
pub mod network;
pub mod program;
pub mod random;
pub mod remedies;
pub mod scale;
pub mod time;

pub use model::Model;
pub use program::Program;
pub use time::Time;
