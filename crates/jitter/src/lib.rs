//! What the operating system's noise costs, from one node to a whole machine.
//!
//! A [`model::Model`] says what interrupts cores, a [`network::Network`] what synchronisation takes; [`scale`] runs
//! bulk-synchronous phases under both, detour by detour. [`closed`] has what is known without a simulation, [`measures`] what can
//! be done against noise, and [`linpack`] a model of one program.

pub mod closed;
pub mod linpack;
pub mod measures;
pub mod model;
pub mod network;
pub mod random;
pub mod scale;
pub mod time;

pub use model::Model;
pub use time::Time;
