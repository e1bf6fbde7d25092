//! Wires one run: a program, a machine, the clock between them, and what is counted.

mod ahead;
mod clocks;
mod core;
pub mod hot;
pub mod intervals;
mod marks;
mod origin;
pub mod pages;
pub mod region;
pub mod run;
mod sectors;
mod side_by_side;
mod spin;
pub mod tap;
mod timing;
pub mod trace;
mod waiting;

pub use hot::HotSpot;
pub use intervals::{Interval, MOST_INTERVALS};
pub use pages::page_sizes;
pub use region::{Counted, Region, ThreadStarts, Totals, Unpaired};
pub use run::{Control, Finish, Follow, Mode, Options, Outcome, Progress, QUANTUM, Simulation, SpinLoops, platform};
pub use side_by_side::HostThreads;
pub use tap::{BlockObserver, MemoryAccess, Ran};
pub use trace::{Traced, Tracer, Window};
