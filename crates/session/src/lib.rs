//! A program on a modelled machine: from a scenario to the record of its run.
//!
//! * [`Scenario`]: what to run, on which machine, with which settings. Plain data that can be changed, stored and
//!   compared.
//! * [`Prepared`]: a scenario with its machine loaded and its options checked, ready to run.
//! * [`Session`]: the loaded program, contained so that it can only access what it may on the host.
//! * [`Checkpoints`]: snapshots of a run on disk, from which it continues ([`Start`], [`Prepared::resumed`]).
//! * [`spool`]: intervals of a run that other processes time.
//! * [`annotate()`], [`konata`]: a run instruction by instruction.

mod access;
mod annotate;
mod call_sites;
mod calls;
mod checkpoint;
mod checks;
mod contain;
mod counted;
mod described;
mod diagnosis;
mod engine;
mod environment;
mod error;
mod host_view;
mod hottest;
mod identity;
pub mod konata;
mod launch;
mod loops;
mod mapping;
mod named_data;
mod notes;
mod numbering;
mod objects;
mod observers;
mod options;
mod part;
mod pipes;
mod placed;
mod placement;
mod prepared;
mod request;
mod rows;
mod sampled;
mod scenario;
mod sector_blocks;
mod sectors;
mod serial;
mod session;
pub mod spool;
mod thp;
mod tiering;
mod tiers;
mod trace_file;

pub use fxscope_checkpoint as snapshots;

pub use access::{AccessOption, HostAccess};
pub use annotate::{FunctionSelection, annotate, source_line};
pub use checkpoint::{Checkpoints, Ending, Every, Notice, Snapshots, Start};
pub use checks::Kept;
pub use contain::HostProtection;
pub use described::machine_constants;
pub use environment::{guest_environment, variable};
pub use error::Error;
pub use fxscope_sim::part::{Count, PartError, PartPlan, Point, Selection, Warming};
pub use fxscope_sim::{Control, Follow, Mode, Progress, QUANTUM, SpinLoops, Window};
pub use hottest::hottest;
pub use identity::Identity;
pub use loops::with_loops;
pub use mapping::CallPages;
pub use named_data::SectorData;
pub use objects::{DataSeries, ObjectTraffic};
pub use options::{EngineChoice, NoProgressLimit, RunOptions, interval_ns};
pub use part::PartOptions;
pub use placed::PlaceOption;
pub use placement::{PageOption, Placement, RemoteNode, check_page_size};
pub use prepared::Prepared;
pub use request::{Request, machine_memory};
pub use rows::check_rows;
pub use scenario::{DEFAULT_MACHINE, Scenario, machine_of, spec_of};
pub use sector_blocks::SectorBlocks;
pub use sectors::{CacheLevel, SectorOption};
pub use session::Session;
pub use thp::ThpOption;
pub use tiering::TieringOption;
pub use tiers::TierOption;
pub use trace_file::TraceFile;

/// Largest program file that is read into memory, bytes.
pub const MAX_PROGRAM_BYTES: u64 = 4 << 30;
