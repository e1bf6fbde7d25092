//! The integration tests of `fxscope-sampling`, as one program: it links once.

mod estimates;
mod exposures;
mod plans;
mod populations;
mod samples;
mod schedules;

use fxscope_sampling::{Window, WindowKind};

/// The instructions that a [`window`] measures.
const MEASURED: u64 = 100;

/// Returns a regular window that counts as often as `weight` says.
fn window(weight: u64) -> Window {
    Window { kind: WindowKind::Regular, stands_for: weight * MEASURED, warm: 0, instructions: MEASURED }
}
