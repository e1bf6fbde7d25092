//! The best page sizes for a program: TLB misses of every assignment of page sizes to the parts of its memory from one run,
//! their cost, and simulations of the best.

mod advice;
mod choose;
mod compare;
mod evaluate;
mod observation;
mod observe;
mod parts;
mod runs;
mod search;
mod show;
mod steady;
mod touched;
mod work;

use fxscope_machine::Spec;

pub use advice::{Advice, Choice, NamedCall, NoHugePage, PagePlacement, Simulated, UsedPart};
pub use choose::{Candidate, Library, PageLimits, PredictedChange, Prediction, at_most, candidate, choose};
pub use compare::{Compared, compare};
pub use evaluate::advise;
pub(crate) use evaluate::{PageRemedy, page_remedies};
pub use observation::{Misses, Observation, PartMisses};
pub use observe::{Call, Observer, Start};
pub use parts::{Assignment, CALLS, Group, Kinds, PARTS, call, part_of_call};

/// Parses the smallest gain that justifies a change, in percent. Returns the share of the time.
///
/// # Errors
/// If the text is no number from 0 to 100.
pub fn least_gain(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.map(|percent| percent / 100.0).ok_or_else(|| "give a number from 0 to 100".to_owned())
}

/// Options of the advice.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Page sizes to try, in addition to those that the program starts with, bytes; empty: the normal and the large pages of
    /// the machine's system.
    pub sizes: Vec<u64>,
    /// Number of best assignments to simulate.
    pub simulate: usize,
    /// Smallest gain that justifies a change, as a share of the time.
    pub least_gain: f64,
    /// Look at the second half of the run only, in which programs do what they repeat.
    pub steady: bool,
}

impl Default for Options {
    /// The system's page sizes, three simulations, a gain of 1 %, the whole run.
    fn default() -> Options {
        Options { sizes: Vec::new(), simulate: 3, least_gain: 0.01, steady: false }
    }
}

/// Cycles of misses that do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A miss of the first level that hits the second level.
    pub hit: u64,
    /// A miss of both: lookup of the second level, read of the lowest descriptor from L2, and the walk itself.
    pub walk: u64,
}

impl Costs {
    /// Returns those of a machine.
    #[must_use]
    pub fn of(spec: &Spec) -> Costs {
        let hit = spec.tlb.l2_hit;
        Costs { hit, walk: hit + spec.l2_timing.hit_nearest + spec.tlb.walk_extra }
    }

    /// Returns the cycles of `first` misses of the first level, `walks` of which need a walk.
    fn cycles(&self, first: u64, walks: u64) -> u64 {
        self.hit * first.saturating_sub(walks) + self.walk * walks
    }
}
