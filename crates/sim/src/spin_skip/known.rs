//! Spin loops that a core has met before. They are recognised sooner, and not measured again: threads often wait for a short
//! time, again and again in the same loops.

use fxscope_aarch64::BlockId;
use fxscope_aarch64::spin::Iteration;
use fxscope_calendar::Cycle;

use super::summary::{LoopCounts, SpinSummary};

/// Loops that a core remembers.
const LOOPS: usize = 16;
/// Periods that are compared with those of a known loop, at least.
const PERIODS: usize = 2;

/// The loops that a core has found to spin, in code that has not changed.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct KnownLoops {
    loops: Vec<KnownLoop>,
    /// The place of the next one.
    next: usize,
}

/// A loop that was found to spin.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
struct KnownLoop {
    /// Where its iterations begin, and the blocks that they execute.
    head: u64,
    path: Vec<BlockId>,
    /// The cycles of the iterations of a period.
    times: Vec<Cycle>,
    counts: LoopCounts,
}

impl KnownLoops {
    /// Remembers a loop whose iterations begin at `head` and took `times` in the last period.
    pub(super) fn add(&mut self, head: u64, times: &[Cycle], summary: &SpinSummary) {
        let path: Vec<BlockId> = path_of(&summary.iteration).collect();
        let same = |known: &KnownLoop| known.head == head && known.path == path && repeats(&known.times, times);
        if self.loops.iter().any(same) {
            return;
        }
        let known = KnownLoop { head, path, times: times.to_vec(), counts: summary.counts().clone() };
        if self.loops.len() < LOOPS {
            self.loops.push(known);
        } else {
            self.loops[self.next % LOOPS] = known;
            self.next += 1;
        }
    }

    /// Returns whether iterations of a known loop begin at `head`.
    #[inline(always)]
    pub(crate) fn begin_at(&self, head: u64) -> bool {
        self.loops.iter().any(|known| known.head == head)
    }

    /// Returns what iterations like `iteration`, which begin at `head`, count, if the last `least` ones and more that ended at `ends` took as long
    /// as those of a known loop.
    pub(super) fn find(&self, head: u64, iteration: &Iteration, ends: &[Cycle], least: usize) -> Option<SpinSummary> {
        let known = self.alike(head, iteration).find(|known| {
            let compared = least.max(PERIODS * known.times.len());
            let first = ends.len().checked_sub(compared + 1);
            first.is_some_and(|first| repeats(&known.times, &times_of(&ends[first..])))
        })?;
        Some(SpinSummary::new(iteration, known.counts.clone()))
    }

    /// Returns what iterations like `iteration`, which begin at `head`, count in a known loop, however long the first of them took.
    pub(super) fn find_path(&self, head: u64, iteration: &Iteration) -> Option<SpinSummary> {
        let known = self.alike(head, iteration).next()?;
        Some(SpinSummary::new(iteration, known.counts.clone()).brief())
    }

    /// Returns the known loops whose iterations begin at `head` and execute the same blocks as `iteration`.
    fn alike(&self, head: u64, iteration: &Iteration) -> impl Iterator<Item = &KnownLoop> {
        let at_head = self.loops.iter().filter(move |known| known.head == head);
        at_head.filter(|known| path_of(iteration).eq(known.path.iter().copied()))
    }

    /// Forgets all loops: their blocks are no longer known by the same numbers.
    pub(crate) fn clear(&mut self) {
        self.loops.clear();
    }

    /// Returns whether a core with `blocks` bound blocks can know these loops.
    pub(crate) fn are_sound(&self, blocks: usize) -> bool {
        let sound = |known: &KnownLoop| !known.times.is_empty() && known.counts.is_sound(blocks);
        self.loops.len() <= LOOPS && self.loops.iter().all(sound)
    }
}

/// Returns whether iterations that took `times` repeat `period`, from any iteration of it on.
fn repeats(period: &[Cycle], times: &[Cycle]) -> bool {
    let from = |first: usize| times.iter().zip(period.iter().cycle().skip(first)).all(|(one, other)| one == other);
    (0..period.len()).any(from)
}

/// Returns the blocks of an iteration.
fn path_of(iteration: &Iteration) -> impl Iterator<Item = BlockId> {
    iteration.path.iter().map(|part| part.id)
}

/// Returns the cycles between these.
pub(super) fn times_of(ends: &[Cycle]) -> Vec<Cycle> {
    ends.windows(2).map(|two| two[1] - two[0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_repeat_a_period_from_any_iteration_of_it_on() {
        let period = [5, 5, 7];
        assert!(repeats(&period, &[5, 5, 7, 5, 5, 7, 5]));
        assert!(repeats(&period, &[7, 5, 5, 7]));
        assert!(!repeats(&period, &[7, 7, 5, 5]));
        assert!(!repeats(&period, &[5, 5, 6]));
    }

    #[test]
    fn times_are_those_between_the_ends_of_iterations() {
        assert_eq!(times_of(&[10, 15, 22]), [5, 7]);
        assert_eq!(times_of(&[10]), [0; 0]);
    }
}
