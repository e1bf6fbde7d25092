//! What a timed run gives apart from the counts of regions.

use fxscope_counts::Signals;

use crate::hotspots::{HotSpot, hot_spots};
use crate::intervals::Interval;
use crate::jobs::Merged;
use crate::sampling::Sampling;
use crate::stacks::CallStacks;
use crate::timing::Timing;

impl Timing {
    /// Returns the instructions of all cores by file and place. `is_timed`: the part of the run that is timed has not ended.
    pub(crate) fn hot_spots(&self, sampling: Option<&Sampling>, is_timed: bool) -> Vec<HotSpot> {
        let blocks: Vec<_> = self.machine.iter().flat_map(|core| core.blocks_of_part(is_timed)).collect();
        hot_spots(blocks.into_iter(), &self.known.code_map, sampling)
    }

    /// Returns the same of a run that was timed in intervals.
    pub(crate) fn hot_spots_of(&self, merged: &Merged) -> Vec<HotSpot> {
        hot_spots(merged.blocks(), &self.known.code_map, None)
    }

    /// The calls have the cycles that were counted in intervals. Returns the time of all, ns.
    pub(crate) fn take_counts_of(&mut self, merged: &Merged) -> u64 {
        let core = self.machine.core_mut();
        core.calls.set_cycles(&merged.calls, core.pipeline.now());
        core.ns_at(merged.cycles())
    }

    /// Returns the intervals of a run that ended at `now_ns`; `counted` is the sum of their counts.
    pub(crate) fn intervals(&mut self, now_ns: u64, counted: &Signals) -> Vec<Interval> {
        self.intervals.finish(now_ns, counted)
    }

    /// Returns the call stacks of a run that is over.
    pub(crate) fn stacks(&mut self) -> CallStacks {
        self.stacks.finish()
    }

    /// Returns the files that code was mapped from.
    pub(crate) fn files(&self) -> Vec<Vec<u8>> {
        self.known.code_map.files().to_vec()
    }

    /// Returns the timing classes that the machine has no row for.
    pub(crate) fn unknown_classes(&self) -> Vec<(String, usize)> {
        self.known.unknown.clone()
    }
}
