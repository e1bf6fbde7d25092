//! Operating-system noise: measured on this host, modelled, and simulated at scale.

mod cells;
mod compare;
mod fit;
mod import;
mod linpack;
mod measure;
mod models;
mod plan;
mod recorded;
mod replay;
mod simulate;
mod trace;

pub use compare::compare;
pub use fit::{Fitted, fit};
pub use import::import;
pub use linpack::{LinpackOptions, linpack};
pub use measure::{MeasureOptions, measure};
pub use models::{profiles, show};
pub use plan::{Options, detours};
pub use recorded::{Recorded, program_of};
pub use replay::{ReplayOptions, replay};
pub use simulate::simulate;
pub use trace::{look, sheet as trace_sheet};
