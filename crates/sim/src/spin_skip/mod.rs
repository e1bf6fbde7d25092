//! Skipping spin loops: loops that only read memory, compute and branch, waiting for another thread to write something.
//!
//! * [`detect`]: recognises a core that spins, and that its iterations repeat exactly.
//! * [`known`]: loops that a core has found to spin before, which it recognises sooner.
//! * [`summary`]: what an iteration counts, so that any number of them can be added at once.
//! * [`fast_forward`]: takes spinning cores out of the schedule until a watched address changes, and catches them up.
//!
//! The functional side (registers after N iterations) is `fxscope_aarch64::spin`, the timing side
//! `fxscope_pipeline::fast_forward`.

mod detect;
mod fast_forward;
mod known;
mod summary;

pub(crate) use detect::Spin;
pub(crate) use fast_forward::Spinning;
pub(crate) use known::KnownLoops;
