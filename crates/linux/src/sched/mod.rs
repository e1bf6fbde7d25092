//! Which thread runs, on which CPU, and until when the others wait.

pub(crate) mod clock;
pub(crate) mod cpus;
pub(crate) mod timers;
pub(crate) mod turns;
pub(crate) mod wait;
