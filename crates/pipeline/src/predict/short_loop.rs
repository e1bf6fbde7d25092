//! The short loop detector (manual 3.4): loops that fit into the instruction buffer are supplied from there.

use fxscope_machine::spec::Frontend;

/// Most branches of a loop, without the one that closes it: their directions are bits of a word.
const MOST: u32 = 64;

/// A loop between two addresses that ends with a backward branch, and the directions of the branches in it.
///
/// While the buffer supplies the loop, nothing is fetched and so nothing is predicted: each branch is assumed to go as
/// in the previous iterations. The end of such a loop is therefore a misprediction. (Measured counts agree: inner loops
/// with more instructions than the buffer holds end without mispredictions after 37 and 54 iterations; shorter loops do
/// not.)
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct ShortLoop {
    /// Target of the closing branch, and the distance from there to the closing branch.
    head: u64,
    length: u64,
    /// The directions of the branches of an iteration, first branch in bit 0; their number; and those of the current
    /// iteration.
    directions: u64,
    branches: u32,
    seen: u64,
    at: u32,
    /// Consecutive iterations with these directions.
    rounds: u32,
    threshold: u32,
    /// Log2 of the bytes of a fetch block, and blocks of the buffer.
    block_shift: u32,
    blocks: u64,
}

impl ShortLoop {
    /// A detector that has seen nothing.
    pub fn new(spec: &Frontend) -> ShortLoop {
        ShortLoop {
            head: 0,
            length: 0,
            directions: 0,
            branches: 0,
            seen: 0,
            at: 0,
            rounds: 0,
            threshold: spec.short_loop_threshold,
            block_shift: spec.fetch_bytes.trailing_zeros(),
            blocks: u64::from(spec.buffer_insts * 4 / spec.fetch_bytes),
        }
    }

    /// Whether the buffer supplies the loop.
    #[inline(always)]
    pub fn supplies(&self) -> bool {
        self.rounds >= self.threshold
    }

    /// The direction of the branch at `pc` when the buffer supplies the loop.
    #[inline(always)]
    pub fn predict(&self, pc: u64) -> Option<bool> {
        self.supplies().then(|| pc == self.head + self.length || self.directions >> self.at & 1 == 1)
    }

    /// The branch at `pc` was taken to `target`, or not taken.
    #[inline(always)]
    pub fn learn(&mut self, pc: u64, taken: bool, target: u64) {
        let offset = pc.wrapping_sub(self.head);
        if offset == self.length && taken && target == self.head {
            self.end_round();
        } else if offset < self.length && (!taken || (target > pc && target - self.head <= self.length)) {
            self.pass(taken);
        } else {
            self.leave(pc, taken, target);
        }
    }

    /// An iteration has ended.
    #[inline(always)]
    fn end_round(&mut self) {
        if self.at != self.branches || self.seen != self.directions {
            (self.branches, self.directions, self.rounds) = (self.at, self.seen, 0);
        }
        self.rounds = self.rounds.saturating_add(1);
        (self.at, self.seen) = (0, 0);
    }

    /// A branch within the loop that stays in it.
    #[inline(always)]
    fn pass(&mut self, taken: bool) {
        let differs = (self.directions >> self.at & 1 == 1) != taken;
        self.seen |= u64::from(taken) << self.at;
        self.at += 1;
        if differs || self.at == MOST {
            self.rounds = 0;
            self.at %= MOST;
        }
    }

    /// The loop has ended. A backward branch may close another one.
    #[cold]
    #[inline(never)]
    fn leave(&mut self, pc: u64, taken: bool, target: u64) {
        self.rounds = 0;
        (self.at, self.seen) = (0, 0);
        if taken && target <= pc && (pc >> self.block_shift) - (target >> self.block_shift) < self.blocks {
            (self.head, self.length) = (target, pc - target);
            (self.branches, self.directions) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::tests::spec;

    /// A detector that has seen `rounds` rounds of a loop from `head` with a branch at 72 and its end at `end`.
    fn seen(head: u64, end: u64, rounds: u32, directions: impl Fn(u32) -> bool) -> ShortLoop {
        let mut short = ShortLoop::new(&spec());
        // The first time around the loop is not known yet.
        short.learn(end, true, head);
        for round in 0..rounds {
            let taken = directions(round);
            short.learn(72, taken, if taken { 84 } else { 76 });
            short.learn(end, true, head);
        }
        short
    }

    #[test]
    fn a_loop_is_supplied_after_the_threshold_of_equal_rounds_and_not_before() {
        let threshold = spec().short_loop_threshold;
        assert!(!seen(64, 100, threshold - 1, |_| true).supplies());
        assert!(seen(64, 100, threshold, |_| true).supplies());
    }

    #[test]
    fn a_loop_whose_branches_change_is_not_supplied() {
        assert!(!seen(64, 100, 100, |round| round % 4 == 0).supplies());
    }

    #[test]
    fn a_loop_must_fit_into_the_blocks_of_the_buffer() {
        let blocks = u64::from(spec().buffer_insts * 4);
        assert!(seen(64, 64 + blocks - 4, 100, |_| true).supplies());
        assert!(!seen(64, 64 + blocks, 100, |_| true).supplies());
        // As many instructions, but one more block.
        assert!(!seen(68, 64 + blocks, 100, |_| true).supplies());
    }

    #[test]
    fn each_branch_of_a_supplied_loop_is_taken_to_go_its_way_again() {
        let mut short = seen(64, 100, 100, |_| false);
        assert_eq!(short.predict(72), Some(false));
        short.learn(72, false, 76);
        assert_eq!(short.predict(100), Some(true));
    }

    #[test]
    fn supply_ends_with_the_first_branch_that_goes_another_way() {
        let mut short = seen(64, 100, 100, |_| false);
        short.learn(72, true, 84);
        assert_eq!(short.predict(100), None);
        let mut short = seen(64, 100, 100, |_| false);
        short.learn(72, false, 76);
        short.learn(100, false, 104);
        assert_eq!(short.predict(200), None);
    }
}
