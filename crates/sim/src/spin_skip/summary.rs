//! What the iterations of a spin loop count, so that many of them can be added at once.

use std::ops::Range;

use fxscope_aarch64::BlockId;
use fxscope_aarch64::spin::Iteration;
use fxscope_calendar::Cycle;
use fxscope_counts::Signals;
use fxscope_pipeline::{BlockTally, BoundBlock, Pipeline, Tally};

/// Maximum number of address ranges that a loop may read.
const RANGES: usize = 16;
/// Periods for which a loop is followed when its thread begins to spin.
const FIRST_LOOK: u64 = 32;

/// The counts of a core at a time.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct Counts {
    now: Cycle,
    counters: Signals,
    tally: Tally,
    /// In order of block number; each block of the loop once.
    blocks: Vec<(BlockId, BlockTally)>,
}

/// What one period counts, or several.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct PeriodCounts {
    pub(super) cycles: Cycle,
    counters: Signals,
    pub(super) tally: Tally,
    blocks: Vec<(BlockId, BlockTally)>,
}

impl Counts {
    pub(super) fn of(iteration: &Iteration, pipeline: &Pipeline, blocks: &[Option<BoundBlock>]) -> Counts {
        let mut ids: Vec<BlockId> = iteration.path.iter().map(|part| part.id).collect();
        ids.sort_unstable_by_key(|id| id.0);
        ids.dedup();
        let bound = ids.iter().filter_map(|&id| Some((id, blocks.get(id.0 as usize)?.as_ref()?.tally())));
        Counts { now: pipeline.now(), counters: pipeline.counters(), tally: pipeline.tally(), blocks: bound.collect() }
    }

    /// Returns whether all blocks have numbers below `blocks`.
    pub(super) fn is_sound(&self, blocks: usize) -> bool {
        self.blocks.iter().all(|(id, _)| (id.0 as usize) < blocks)
    }

    pub(super) fn since(&self, before: &Counts, blocks: &[Option<BoundBlock>]) -> PeriodCounts {
        let mut counters = self.counters.since(&before.counters);
        let pairs = self.blocks.iter().zip(&before.blocks);
        let tallies: Vec<_> = pairs.map(|((id, now), (_, before))| (*id, now.since(before))).collect();
        for (id, tally) in &tallies {
            if let Some(block) = &blocks[id.0 as usize] {
                block.add_mix_of(tally, &mut counters);
            }
        }
        PeriodCounts {
            cycles: self.now - before.now,
            counters,
            tally: self.tally.since(&before.tally),
            blocks: tallies,
        }
    }
}

/// What the periods of a loop count.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct LoopCounts {
    /// Iterations of a period.
    iterations: u64,
    /// What one period counts, and what several do: which pipe an operation takes repeats later than the timing does.
    one: PeriodCounts,
    several: PeriodCounts,
}

impl LoopCounts {
    pub(super) fn new(iterations: u64, one: PeriodCounts, several: PeriodCounts) -> LoopCounts {
        LoopCounts { iterations, one, several }
    }

    /// Divides `periods` periods into a multiple of several, and the remaining single ones.
    fn divided(&self, periods: u64) -> [(&PeriodCounts, u64); 2] {
        let several = self.several.cycles / self.one.cycles;
        [(&self.several, periods / several), (&self.one, periods % several)]
    }

    /// Returns whether a measurement of blocks below number `blocks` can give these counts.
    pub(super) fn is_sound(&self, blocks: usize) -> bool {
        let known = |each: &PeriodCounts| each.blocks.iter().all(|(id, _)| (id.0 as usize) < blocks);
        let [one, several] = [&self.one, &self.several];
        self.iterations > 0 && one.cycles > 0 && several.cycles >= one.cycles && known(one) && known(several)
    }
}

/// A thread that spins, at the beginning of an iteration.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct SpinSummary {
    pub(crate) iteration: Iteration,
    counts: LoopCounts,
    /// Periods for which it is known to spin if nobody writes what it reads.
    pub(crate) left: u64,
    /// Periods to follow the loop for the next time.
    ahead: u64,
    /// It was recognised from few iterations: the branch predictors must be shown more when others are skipped.
    is_brief: bool,
}

impl SpinSummary {
    pub(super) fn new(iteration: &Iteration, counts: LoopCounts) -> SpinSummary {
        SpinSummary { iteration: iteration.clone(), counts, left: 0, ahead: FIRST_LOOK, is_brief: false }
    }

    /// Returns the same for a loop that was recognised from few iterations.
    pub(super) fn brief(self) -> SpinSummary {
        SpinSummary { is_brief: true, ..self }
    }

    /// Returns what its iterations count.
    pub(super) fn counts(&self) -> &LoopCounts {
        &self.counts
    }

    /// Returns how many iterations to follow now, at most `most` periods: more after each call, since a thread that has spun for
    /// long will probably continue to spin.
    pub(crate) fn iterations_to_follow(&mut self, most: u64) -> u64 {
        let periods = self.ahead.min(most);
        self.ahead = 2 * periods;
        periods * self.iterations()
    }

    /// Returns whether a measurement of blocks below number `blocks` can give these counts.
    pub(super) fn is_sound(&self, blocks: usize) -> bool {
        self.counts.is_sound(blocks)
    }

    /// Returns the iterations of a period.
    pub(crate) fn iterations(&self) -> u64 {
        self.counts.iterations
    }

    /// Returns the cycles of a period.
    pub(crate) fn cycles(&self) -> Cycle {
        self.counts.one.cycles
    }

    /// Returns the address ranges that its iterations read; `None` when there are too many.
    pub(crate) fn reads(&self) -> Option<Vec<Range<u64>>> {
        const ADDRESS: u64 = (1 << 56) - 1;
        let bytes = self.iteration.infos().filter_map(|info| Some(u64::from(info.mem?.bytes)));
        let range = |(word, bytes): (&u64, u64)| {
            let start = word & ADDRESS;
            start..start + bytes
        };
        let mut ranges: Vec<Range<u64>> = self.iteration.words.iter().zip(bytes).map(range).collect();
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ranges.dedup();
        (ranges.len() <= RANGES).then_some(ranges)
    }

    /// Adds the counts of `periods` periods.
    pub(crate) fn add_counters(&self, periods: u64, signals: &mut Signals) {
        for (each, times) in self.counts.divided(periods) {
            signals.add_times(&each.counters, times);
        }
    }

    /// Lets `periods` periods pass.
    pub(crate) fn fast_forward(&mut self, periods: u64, pipeline: &mut Pipeline, blocks: &mut [Option<BoundBlock>]) {
        for (each, times) in self.counts.divided(periods) {
            pipeline.fast_forward(each.cycles, &each.tally, times);
            for (id, tally) in &each.blocks {
                if let Some(Some(block)) = blocks.get_mut(id.0 as usize) {
                    block.fast_forward(tally, times);
                }
            }
        }
        self.left -= periods;
        if self.is_brief {
            let path: Vec<&BoundBlock> =
                self.iteration.path.iter().filter_map(|part| blocks.get(part.id.0 as usize)?.as_ref()).collect();
            pipeline.repeat_branches(&path, periods * self.iterations());
        }
    }
}
