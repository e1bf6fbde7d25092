//! Timing of one out-of-order core: an instruction-driven model on calendars.
//!
//! Each micro-operation is visited once, in program order, and passes all stages in that visit:
//!
//! ```text
//! frontend ─► dispatch (rename, stations) ─► execute / lsu ─► commit
//! ```
//!
//! Every call takes and returns cycles. Stages that are in order (dispatch, commit) are clocks. Resources that are not
//! (pipes, stations, buffers) are calendars, so that a young operation may use a slot before an older one that waits.
//!
//! Nothing here sees values, names or instruction encodings: [`bind`] joins a decoded instruction with
//! the machine's recipe once, and the hot path works on flat records.

mod access;
pub mod bind;
mod blocking;
pub mod bound;
mod bypass;
pub mod commit;
pub mod core;
pub mod dispatch;
pub mod events;
mod execute;
mod fast_forward;
pub mod frontend;
pub mod lsu;
mod mix;
mod partial;
mod predecode;
pub mod predict;
pub mod sampled;
pub mod uop_probe;
mod warming;
mod writeback;

pub use crate::core::Pipeline;
pub use bind::{BoundBlock, SharedTables, bind_block, lacks_access};
pub use fast_forward::{BlockTally, Tally};
pub use sampled::{COST_UNIT, Measures, Reach, Reached};
