//! Which page sizes a program is best given: TLB misses of every assignment of pages to the parts of its memory, from one
//! run, and what they cost.

mod choose;
mod observe;
mod parts;
mod search;

use fxscope_machine::Spec;

pub use choose::{Candidate, Library, Prediction, Room, at_most, candidate, choose};
pub use observe::{Call, Misses, Observation, Observer, PartMisses, Start};
pub use parts::{Assignment, CALLS, Group, Kinds, PARTS, call, part_of_call};

/// What misses cost when nothing else goes on meanwhile, cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A miss of the first level that the second level has.
    pub hit: u64,
    /// A miss of both: the second level is asked, the lowest descriptor is read from L2, and what a walk takes besides.
    pub walk: u64,
}

impl Costs {
    /// Those of a machine.
    #[must_use]
    pub fn of(spec: &Spec) -> Costs {
        let hit = spec.tlb.l2_hit;
        Costs { hit, walk: hit + spec.l2_timing.hit_nearest + spec.tlb.walk_extra }
    }

    /// Cycles of so many misses of the first level, of which so many need a walk.
    fn cycles(&self, first: u64, walks: u64) -> u64 {
        self.hit * first.saturating_sub(walks) + self.walk * walks
    }
}
