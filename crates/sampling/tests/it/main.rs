//! The integration tests of `fxscope-sampling`, as one program: it links once.

mod estimates;
mod exposures;
mod plans;
mod populations;
mod samples;
mod schedules;

use fxscope_sampling::{Window, WindowKind};

/// Returns a regular window that counts as often as `weight` says.
fn window(weight: u64) -> Window {
    Window { kind: WindowKind::Regular, weight, warm: 0, instructions: 100 }
}
