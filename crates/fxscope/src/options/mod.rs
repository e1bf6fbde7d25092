//! Groups of options that several commands share, or that are a subject of their own, one file each.

mod batch;
pub(crate) mod choice;
mod own;
mod phases;
mod plan;
mod prediction;
pub(crate) mod recorded;
mod scenario;
mod snapshots;
pub(crate) mod spool;
mod trace;

pub(crate) use batch::{BatchArgs, TaskArgs};
pub(crate) use own::OwnTables;
pub(crate) use phases::PhaseArgs;
pub(crate) use plan::PlanSyntax;
pub(crate) use prediction::PredictArgs;
pub(crate) use scenario::ScenarioArgs;
pub(crate) use snapshots::CheckpointArgs;
pub(crate) use spool::SpoolArgs;
pub(crate) use trace::TraceArgs;
