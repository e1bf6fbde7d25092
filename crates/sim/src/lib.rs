//! Wires one run: a program, a machine, the clock between them, and what is counted.

mod accounts;
mod clocks;
mod code_map;
mod core;
mod event_samples;
mod following;
pub mod hotspots;
pub mod intervals;
mod machine;
mod markers;
pub mod mpi;
pub mod observer;
pub mod pages;
mod parallel;
mod progress;
mod quantum;
pub mod region;
pub mod run;
mod run_ahead;
mod sampling;
mod sectors;
pub mod snapshot;
mod spin_skip;
mod timing;
pub mod trace;

pub use hotspots::HotSpot;
pub use intervals::{Interval, MOST_INTERVALS};
pub use observer::{BlockEvent, BlockObserver, MemoryAccess};
pub use pages::page_sizes;
pub use parallel::HostThreads;
pub use progress::{NoProgress, default_limit_ns};
pub use region::{Counted, Region, ThreadStarts, Totals, Unpaired};
pub use run::{Control, Finish, Follow, Mode, Options, Outcome, Progress, QUANTUM, Simulation, SpinLoops, platform};
pub use sampling::{SampleSummary, SampledRegion};
pub use trace::{Traced, Tracer, Window};
