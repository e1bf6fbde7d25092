//! Which page sizes a program runs best with: TLB misses of every assignment of page sizes to the parts of its memory, from
//! one run, what they cost, and simulations of the best.

mod advice;
mod choose;
mod evaluate;
mod observe;
mod parts;
mod runs;
mod search;
mod show;

use fxscope_machine::Spec;

pub use advice::{Advice, Choice, NamedCall, PagePlacement, Simulated, UsedPart};
pub use choose::{Candidate, Library, Prediction, Room, at_most, candidate, choose};
pub use evaluate::advise;
pub use observe::{Call, Misses, Observation, Observer, PartMisses, Start};
pub use parts::{Assignment, CALLS, Group, Kinds, PARTS, call, part_of_call};

/// What is asked about a program's pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Page sizes to ask about, in addition to those that the program starts with, bytes; empty: the normal and the large
    /// pages of the machine's system.
    pub sizes: Vec<u64>,
    /// How many of the best assignments are simulated.
    pub simulate: usize,
    /// The least gain that is worth a change, as a share of the time.
    pub least_gain: f64,
}

impl Default for Options {
    /// The system's page sizes, three simulations, a gain of 1 %.
    fn default() -> Options {
        Options { sizes: Vec::new(), simulate: 3, least_gain: 0.01 }
    }
}

/// What misses cost when nothing overlaps with them, cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A miss of the first level that the second level has.
    pub hit: u64,
    /// A miss of both: the second level is asked, the lowest descriptor is read from L2, and the walk itself takes time.
    pub walk: u64,
}

impl Costs {
    /// Those of a machine.
    #[must_use]
    pub fn of(spec: &Spec) -> Costs {
        let hit = spec.tlb.l2_hit;
        Costs { hit, walk: hit + spec.l2_timing.hit_nearest + spec.tlb.walk_extra }
    }

    /// Cycles of `first` misses of the first level, `walks` of which need a walk.
    fn cycles(&self, first: u64, walks: u64) -> u64 {
        self.hit * first.saturating_sub(walks) + self.walk * walks
    }
}
