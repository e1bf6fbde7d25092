//! Wires one run: a program, a machine, the clock between them, and what is counted.

pub mod hot;
mod origin;
pub mod pages;
pub mod region;
pub mod run;
mod sectors;
pub mod trace;

pub use hot::HotSpot;
pub use pages::page_sizes;
pub use region::Region;
pub use run::{Control, Finish, Follow, Mode, Options, Outcome, Progress, Simulation, platform};
pub use trace::{Traced, Tracer, Window};
