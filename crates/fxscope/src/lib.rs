//! fxscope as a library: re-exports of its crates, and a run from program to record.
//!
//! ```no_run
//! use std::sync::Arc;
//! use fxscope::{Control, Request, Session};
//!
//! let spec = Arc::new(fxscope::machine::load("a64fx", &[])?);
//! let request = Request::new(spec, "kernels/prebuilt/triad-l1.elf");
//! let run = Session::contained(request, |session| session.run(&mut |_| Control::Continue))?;
//! for document in fxscope::report::summary(&run) {
//!     println!("{document:?}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use fxscope_calendar as calendar;
pub use fxscope_counts as counts;
pub use fxscope_host as host;
pub use fxscope_hostinfo as hostinfo;
pub use fxscope_import as import;
pub use fxscope_jitter as jitter;
pub use fxscope_lab as lab;
pub use fxscope_latency as latency;
pub use fxscope_linux as linux;
pub use fxscope_machine as machine;
pub use fxscope_osnoise as osnoise;
pub use fxscope_pmu as pmu;
pub use fxscope_record as record;
pub use fxscope_report as report;
pub use fxscope_sampling as sampling;
pub use fxscope_sim as sim;
pub use fxscope_tlbsweep as tlbsweep;
pub use fxscope_validate as validate;

pub use fxscope_session::{
    AccessOption, CacheLevel, CallPages, Checkpoints, Control, DEFAULT_MACHINE, Ending, EngineChoice, Error, Every,
    Follow, FunctionSelection, HostAccess, HostProtection, Identity, Kept, MAX_PROGRAM_BYTES, Mode, NoProgressLimit,
    Notice, PageOption, PartOptions, PartPlan, PlaceOption, Placement, Point, Prepared, Progress, QUANTUM, RemoteNode,
    Request, RunOptions, Scenario, SectorData, SectorOption, Selection, Session, Snapshots, SpinLoops, Start,
    ThpOption, TierOption, TieringOption, TraceFile, Warming, Window, annotate, check_page_size, check_rows,
    guest_environment, hottest, interval_ns, konata, machine_constants, machine_memory, machine_of, snapshots, spec_of,
    spool, variable, with_loops,
};
