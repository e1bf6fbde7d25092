//! Events counted for each instruction.
//!
//! They happen seldom, or where the simulator is slow anyway: the memory system notes refills when they happen, and they are counted
//! after each block.

use fxscope_counts::{Signal, Signals};
use fxscope_memory::{Cause, Refill, RefillKind, Refills};

use crate::bind::Profile;

/// Number of events.
pub const EVENTS: usize = 13;

/// Their names: those of the machine's events, as far as there are any. Refills are lines that an instruction, or a prefetch that it
/// triggered, brought into a cache. [`INACTIVE`] is 16 for each execution without active elements, and a share of it for others. The last ones are
/// those that the core counts while it executes the instruction.
pub const EVENT_NAMES: [&str; EVENTS] = [
    "L1D_CACHE_REFILL",
    "L1D_CACHE_REFILL_DM",
    "L2D_CACHE_REFILL",
    "L2D_CACHE_REFILL_DM",
    "L2D_TLB_REFILL",
    "INACTIVE_ELEMENTS",
    "BR_MIS_PRED",
    "DIVIDE_CYCLES",
    "SUBNORMAL_CYCLES",
    LOADING[0].name(),
    LOADING[1].name(),
    LOADING[2].name(),
    LOADING[3].name(),
];

/// What loads count in the load/store pipes beyond refills.
const LOADING: [Signal; 4] =
    [Signal::L1PipeAbortStldIntlk, Signal::L1PipeAbortStldAlias, Signal::Gather1Flow, Signal::Gather2Flow];

const L1_REFILL: usize = 0;
const L1_REFILL_DEMAND: usize = 1;
const L2_REFILL: usize = 2;
const L2_REFILL_DEMAND: usize = 3;
const WALK: usize = 4;
/// The place of inactive elements in [`EVENT_NAMES`].
pub const INACTIVE: usize = 5;

/// The places of a mispredicted branch, of cycles of divisions and of those for subnormal numbers in [`EVENT_NAMES`].
pub(crate) const MISPREDICTED: usize = 6;
/// See [`MISPREDICTED`].
pub(crate) const DIVIDE: usize = 7;
/// See [`MISPREDICTED`].
pub(crate) const SUBNORMAL: usize = 8;
/// The place of the first of [`LOADING`] in [`EVENT_NAMES`].
const FIRST_LOADING: usize = 9;

/// What loads have counted so far.
#[inline(always)]
pub(crate) fn loading(signals: &Signals) -> [u64; LOADING.len()] {
    LOADING.map(|signal| signals.get(signal))
}

/// Counts what loads have counted since `before` for an instruction.
#[inline(always)]
pub(crate) fn count_loading(signals: &Signals, before: &[u64; LOADING.len()], profile: &mut Profile) {
    let own = &mut profile.events[FIRST_LOADING..];
    for ((own, now), before) in own.iter_mut().zip(loading(signals)).zip(before) {
        *own += now - before;
    }
}

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
            RefillKind::Written | RefillKind::Zeroed => return,
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
