//! Reservations of resources by accesses that are timed, and by those that only keep the caches warm.
//!
//! Functions of the memory system that change state over time have a constant parameter `TIMED`. Without it an access happens at
//! its time as a whole: it takes no resource, waits for nothing, and changes tags, translations and streams as a timed one does.

use fxscope_calendar::{BufferPool, Cycle, Grant};

/// Returns the first time from `t` on at which an entry of `pool` is free.
#[inline(always)]
pub(crate) fn first_free<const TIMED: bool>(pool: &mut BufferPool, t: Cycle) -> Grant {
    if TIMED { pool.first_free(t) } else { Grant::untimed(t) }
}

/// Holds the granted entry of `pool` in `[from, until)`.
#[inline(always)]
pub(crate) fn hold<const TIMED: bool>(pool: &mut BufferPool, grant: Grant, from: Cycle, until: Cycle) {
    if TIMED {
        pool.hold(grant, from, until);
    }
}

/// Returns a delay, which untimed accesses do not have.
#[inline(always)]
pub(crate) fn delay<const TIMED: bool>(cycles: Cycle) -> Cycle {
    if TIMED { cycles } else { 0 }
}
