//! Which thread runs, on which CPU, and how long the others wait.

pub(crate) mod clock;
pub(crate) mod cpus;
pub(crate) mod probe;
pub(crate) mod timers;
pub(crate) mod turns;
pub(crate) mod wait;
