//! The small taken-chain predictor (S-TCP, manual 3.2.1): a loop of a few taken branches, followed without bubbles.

use fxscope_machine::spec::Frontend;

/// Most taken branches that the predictor can hold, whatever the machine.
pub const MOST: usize = 8;

/// A taken branch: its address and its target.
#[derive(Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct Step {
    from: u64,
    to: u64,
}

/// No branch.
const NOWHERE: Step = Step { from: u64::MAX, to: u64::MAX };

/// One chain of taken branches that leads back to its beginning.
///
/// It has no entries for branches that are not taken, and does not predict them. A chain stays after a misprediction,
/// and is followed again from the branch at which the program returns to it. Another one replaces it when it has
/// repeated often enough.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct SmallTakenChain {
    /// The chain, `length` steps long.
    steps: [Step; MOST],
    length: usize,
    /// The next step; `None` when the program has left the chain.
    next: Option<usize>,
    /// The last taken branches outside the chain, newest first, as many as a chain may have, and for each period how often they have
    /// repeated.
    recent: [Step; MOST],
    repeats: [u32; MOST],
    targets: usize,
    threshold: u32,
}

impl SmallTakenChain {
    /// A predictor that knows no chain.
    pub fn new(spec: &Frontend) -> SmallTakenChain {
        SmallTakenChain {
            steps: [NOWHERE; MOST],
            length: 0,
            next: None,
            recent: [NOWHERE; MOST],
            repeats: [0; MOST],
            targets: (spec.small_taken_targets as usize).min(MOST),
            threshold: spec.small_taken_threshold,
        }
    }

    /// The target of the branch at `pc`, if it is the next of the chain or the program returns to the chain there.
    #[inline(always)]
    pub fn predict(&self, pc: u64) -> Option<u64> {
        match self.next {
            Some(next) => (self.steps[next].from == pc).then_some(self.steps[next].to),
            None => self.steps[..self.length].iter().find(|step| step.from == pc).map(|step| step.to),
        }
    }

    /// The branch at `pc` was not taken.
    #[inline(always)]
    pub fn not_taken(&mut self, pc: u64) {
        if self.next.is_some_and(|next| self.steps[next].from == pc) {
            self.next = None;
        }
    }

    /// The branch at `pc` was taken to `target`.
    #[inline(always)]
    pub fn taken(&mut self, pc: u64, target: u64) {
        let step = Step { from: pc, to: target };
        match self.next {
            Some(next) if self.steps[next] == step => self.next = Some(self.behind(next)),
            _ => self.elsewhere(step),
        }
    }

    /// The step after `step`.
    #[inline(always)]
    fn behind(&self, step: usize) -> usize {
        if step + 1 == self.length { 0 } else { step + 1 }
    }

    /// A taken branch that was not the next of the chain.
    #[cold]
    #[inline(never)]
    fn elsewhere(&mut self, step: Step) {
        self.next = self.steps[..self.length].iter().position(|s| *s == step).map(|at| self.behind(at));
        let period = self.repeating(step);
        for place in (1..self.targets).rev() {
            self.recent[place] = self.recent[place - 1];
        }
        self.recent[0] = step;
        if let Some(period) = period {
            self.length = period;
            self.next = Some(0);
            for (step, recent) in self.steps[..period].iter_mut().rev().zip(&self.recent) {
                *step = *recent;
            }
        }
    }

    /// Counts the repetitions of taken branches with each period. Returns the shortest period that has repeated often
    /// enough.
    fn repeating(&mut self, step: Step) -> Option<usize> {
        let mut found = None;
        for period in (0..self.targets).rev() {
            if self.recent[period] == step {
                self.repeats[period] += 1;
                if self.repeats[period] >= self.threshold * (period as u32 + 1) {
                    found = Some(period + 1);
                }
            } else {
                self.repeats[period] = 0;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::tests::spec;

    const ROUNDS: usize = 8;

    /// A predictor that has seen `rounds` rounds of a chain of `branches`.
    fn trained(branches: &[(u64, u64)], rounds: usize) -> SmallTakenChain {
        let mut chain = SmallTakenChain::new(&spec());
        for _ in 0..rounds {
            branches.iter().for_each(|&(pc, target)| chain.taken(pc, target));
        }
        chain
    }

    #[test]
    fn a_loop_is_followed_after_the_threshold_of_rounds_and_not_before() {
        assert_eq!(spec().small_taken_threshold, ROUNDS as u32);
        assert_eq!(trained(&[(64, 32)], ROUNDS).predict(64), None);
        assert_eq!(trained(&[(64, 32)], ROUNDS + 1).predict(64), Some(32));
    }

    #[test]
    fn within_a_chain_only_the_next_branch_is_predicted() {
        let chain = trained(&[(64, 128), (192, 32)], ROUNDS + 1);
        assert_eq!(chain.predict(64), Some(128));
        assert_eq!(chain.predict(192), None);
    }

    #[test]
    fn a_branch_may_stand_in_a_chain_more_than_once() {
        let mut chain = trained(&[(64, 32), (64, 32), (96, 0)], ROUNDS + 1);
        chain.taken(64, 32);
        assert_eq!(chain.predict(64), Some(32));
        chain.taken(64, 32);
        assert_eq!(chain.predict(64), None);
        chain.not_taken(64);
        assert_eq!(chain.predict(96), Some(0));
    }

    #[test]
    fn a_chain_that_was_left_is_followed_again_where_the_program_comes_back() {
        let mut chain = trained(&[(64, 128), (192, 32)], ROUNDS + 1);
        chain.not_taken(64);
        chain.taken(400, 100);
        assert_eq!(chain.predict(192), Some(32));
        chain.taken(192, 32);
        assert_eq!(chain.predict(192), None);
        assert_eq!(chain.predict(64), Some(128));
    }

    #[test]
    fn another_loop_takes_the_place_of_the_chain() {
        let mut chain = trained(&[(64, 32)], ROUNDS + 1);
        (0..=ROUNDS).for_each(|_| chain.taken(96, 80));
        assert_eq!(chain.predict(96), Some(80));
        chain.not_taken(96);
        assert_eq!(chain.predict(64), None);
    }

    #[test]
    fn a_chain_of_more_branches_than_there_are_targets_is_not_followed() {
        let branches: Vec<(u64, u64)> = (0..=u64::from(spec().small_taken_targets)).map(|i| (64 * i, 64)).collect();
        let chain = trained(&branches, 10 * ROUNDS);
        assert!(branches.iter().all(|b| chain.predict(b.0).is_none()));
    }
}
