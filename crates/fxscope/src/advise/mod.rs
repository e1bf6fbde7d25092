//! Which page sizes a program is best given: TLB misses of every assignment of sizes to segments, from one run, and what
//! they cost.

mod choose;
mod observe;
mod sites;

use fxscope_aarch64::Segment;
use fxscope_machine::Spec;

pub use choose::{Candidate, Library, Prediction, Room, at_most, candidate, choose};
pub use observe::{Misses, Observation, Observer, SegmentMisses, Start};
pub use sites::Site;

/// Segments that get pages of one size together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Initialised variables.
    Data = 1,
    /// Variables that start as zeros.
    Bss,
    /// Memory of `brk`.
    Heap,
    /// Stacks of all threads.
    Stacks,
    /// Private anonymous mappings: large blocks of `malloc`.
    Mmap,
}

impl Group {
    /// All, in the order of assignments.
    pub const ALL: [Group; 5] = [Group::Data, Group::Bss, Group::Heap, Group::Stacks, Group::Mmap];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Group::Data => "data",
            Group::Bss => "bss",
            Group::Heap => "heap",
            Group::Stacks => "stacks",
            Group::Mmap => "mmap",
        }
    }

    /// Its segments.
    #[must_use]
    pub fn segments(self) -> &'static [Segment] {
        match self {
            Group::Data => &[Segment::Data],
            Group::Bss => &[Segment::Bss],
            Group::Heap => &[Segment::Heap],
            Group::Stacks => &[Segment::Stack, Segment::ThreadStack],
            Group::Mmap => &[Segment::Mmap],
        }
    }
}

/// For each group the place of its size among those of an [`Observation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment([usize; Group::ALL.len()]);

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
