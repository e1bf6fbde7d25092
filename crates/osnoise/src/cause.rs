//! What detours were: events of the kernel, as its tracers write them, and detours named by them.

mod join;
mod recognise;
mod text;
mod tracer;

pub use join::{Naming, name};
pub use recognise::{Recognised, recognise};
pub use text::{Parser, Start, Who};
pub use tracer::{Tracer, events, osnoise_settings, plain_settings, start};

use crate::trace::Cause;

/// The name of what the kernel has no event of.
pub const NO_EVENT: &str = "without an event";

/// The name of interrupts that come back with the timer tick where no tracer names them.
pub const TICK: &str = "timer tick";
/// The name of throttling by the kernel's limit of real-time threads.
pub const REALTIME_LIMIT: &str = "of real-time threads";

/// Something that the kernel did on a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The core.
    pub core: u32,
    /// When it began, ns of the tracer's clock.
    pub start: u64,
    /// How long it took, ns.
    pub length: u64,
    /// Whether the length leaves out what interrupted the event, as in events of the osnoise tracer.
    pub net: bool,
    /// What it was.
    pub cause: Cause,
}

impl Event {
    /// When it was over, ns.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }
}
