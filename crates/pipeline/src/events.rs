//! Events counted for each instruction.
//!
//! They happen seldom, or where the simulator is slow anyway: the memory system notes refills when they happen, and they are counted
//! after each block.

use fxscope_memory::{Cause, Refill, RefillKind, Refills};

use crate::bind::Profile;

/// Number of events.
pub const EVENTS: usize = 6;

/// Their names: those of the machine's events, as far as there are any. Refills are lines that an instruction, or a prefetch that it
/// triggered, brought into a cache. [`INACTIVE`] is 16 for each execution without active elements, and a share of it for others.
pub const EVENT_NAMES: [&str; EVENTS] = [
    "L1D_CACHE_REFILL",
    "L1D_CACHE_REFILL_DM",
    "L2D_CACHE_REFILL",
    "L2D_CACHE_REFILL_DM",
    "L2D_TLB_REFILL",
    "INACTIVE_ELEMENTS",
];

const L1_REFILL: usize = 0;
const L1_REFILL_DEMAND: usize = 1;
const L2_REFILL: usize = 2;
const L2_REFILL_DEMAND: usize = 3;
const WALK: usize = 4;
/// The place of inactive elements in [`EVENT_NAMES`].
pub const INACTIVE: usize = 5;

/// Counts refills for the instructions of the block that has just run.
#[cold]
#[inline(never)]
pub(crate) fn count_refills(refills: &mut Refills, profiles: &mut [Profile]) {
    refills.take(|refill: &Refill| {
        let Some(profile) = profiles.get_mut(usize::from(refill.inst)) else { return };
        let demand = u64::from(refill.cause == Cause::Demand);
        let (into_l1, into_l2) = match refill.kind {
            RefillKind::FromL2 => (1, 0),
            RefillKind::FromMemory => (1, 1),
            RefillKind::IntoL2 => (0, 1),
            RefillKind::Permission => (0, 0),
            RefillKind::Walk => {
                profile.events[WALK] += 1;
                return;
            }
        };
        profile.events[L1_REFILL] += into_l1;
        profile.events[L1_REFILL_DEMAND] += into_l1 * demand;
        profile.events[L2_REFILL] += into_l2;
        profile.events[L2_REFILL_DEMAND] += into_l2 * demand;
    });
}
