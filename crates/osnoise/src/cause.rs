//! Causes of detours: kernel events from its tracers' output, and their attribution to detours.

mod join;
mod recognise;
mod text;
mod tracer;

pub use join::{EventContext, name};
pub use recognise::{Recognised, recognise};
pub use text::{Parser, Start, Sums, ThreadKind, sums};
pub use tracer::{Tracer, events, osnoise_settings, plain_settings, start};

use crate::trace::Cause;

/// Name for detours in which the kernel reports no event.
pub const NO_EVENT: &str = "without an event";

/// Name for interrupts at the rate of the timer tick, when no tracer names them.
pub const TICK: &str = "timer tick";
/// Name for throttling by the kernel's real-time limit.
pub const REALTIME_LIMIT: &str = "of real-time threads";

/// An activity of the kernel on a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Core.
    pub core: u32,
    /// Start time, ns of the tracer's clock.
    pub start: u64,
    /// Duration, ns.
    pub length: u64,
    /// Whether the duration excludes nested events, as in events of the osnoise tracer.
    pub net: bool,
    /// Cause.
    pub cause: Cause,
}

impl Event {
    /// Returns the end time, ns.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }
}
