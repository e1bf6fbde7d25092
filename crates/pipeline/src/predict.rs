//! Branch prediction (manual 3.2 and 3.3): all predictors.
//!
//! Undocumented details (history length, hashing, thresholds, when entries are made) are parameters marked assumed in
//! the machine's description, or choices (docs/model/limits.md#prediction).

mod btb;
mod loop_predictor;
mod perceptron;
mod ras;
mod short_loop;
mod small_taken_chain;

use fxscope_calendar::Cycle;
use fxscope_isa::Branch;
use fxscope_machine::spec::Frontend as FrontendSpec;

use btb::Btb;
use loop_predictor::LoopPredictor;
use perceptron::Perceptron;
use ras::ReturnStack;
use short_loop::ShortLoop;
use small_taken_chain::SmallTakenChain;

/// How a branch was predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// The prediction was right.
    pub right: bool,
    /// Cycles from the fetch of the branch to that of its target, if it was predicted taken.
    pub target_after: Cycle,
    /// The instruction buffer supplies the next instructions: nothing is fetched.
    pub buffered: bool,
}

/// An executed branch.
#[derive(Clone, Copy, Debug)]
pub struct Branched {
    /// Its kind.
    pub kind: Branch,
    /// Its address.
    pub pc: u64,
    /// Whether it was taken.
    pub taken: bool,
    /// The next address.
    pub next: u64,
}

/// The predictors of a core.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Predictor {
    short_loop: ShortLoop,
    chain: SmallTakenChain,
    loops: LoopPredictor,
    perceptron: Perceptron,
    btb: Btb,
    ras: ReturnStack,
    /// Directions of the last conditional branches, the newest in bit 0 (GHR).
    history: u64,
    taken_cycles: Cycle,
    return_cycles: Cycle,
}

impl Predictor {
    /// Untrained predictors.
    #[must_use]
    pub fn new(spec: &FrontendSpec) -> Predictor {
        Predictor {
            short_loop: ShortLoop::new(spec),
            chain: SmallTakenChain::new(spec),
            loops: LoopPredictor::new(spec),
            perceptron: Perceptron::new(spec),
            btb: Btb::new(spec),
            ras: ReturnStack::new(spec),
            history: 0,
            taken_cycles: spec.taken_branch_cycles,
            return_cycles: spec.return_stack_cycles,
        }
    }

    /// Predicts a branch, trains the predictors with its outcome, and returns whether the prediction was right.
    ///
    /// A loop that the instruction buffer supplies continues as before. Of the predictors, the small taken-chain
    /// predictor comes first (manual table 3-2): it predicts a branch of its chain taken even where the loop predictor
    /// would be right. The others are trained, too.
    pub fn branch(&mut self, b: Branched) -> Prediction {
        let supplied = self.short_loop.predict(b.pc);
        let chained = self.chain.predict(b.pc);
        self.short_loop.learn(b.pc, b.taken, b.next);
        if b.taken {
            self.chain.taken(b.pc, b.next);
        } else {
            self.chain.not_taken(b.pc);
        }
        let first = match (supplied, chained) {
            (Some(taken), _) => Some(b.taken == taken),
            (None, Some(target)) => Some(b.taken && b.next == target),
            (None, None) => None,
        };
        let (right, cycles) = match b.kind {
            Branch::Conditional | Branch::Compare => (self.conditional(b, first), self.taken_cycles),
            Branch::Direct | Branch::Call => (self.direct(b), self.taken_cycles),
            Branch::Indirect | Branch::IndirectCall => (self.indirect(b), self.taken_cycles),
            Branch::Return => self.returned(b),
            Branch::None => (true, 0),
        };
        let (right, target_after) = first.map_or((right, cycles), |right| (right, 1));
        Prediction { right, target_after, buffered: self.short_loop.supplies() }
    }

    /// A conditional branch. `first`: whether a predictor of higher priority was right. The loop predictor has priority
    /// over the perceptron. A branch that is not in the BTB cannot be predicted taken. The perceptron is trained on its
    /// own predictions; the loop predictor counts every mispredicted branch.
    #[inline(always)]
    fn conditional(&mut self, b: Branched, first: Option<bool>) -> bool {
        let noted = self.btb.find(b.pc);
        let row = self.perceptron.row(b.pc);
        let entry = self.loops.find(b.pc);
        let counted = entry.and_then(|entry| self.loops.predict(entry));
        let right = match (first, noted, counted) {
            (Some(right), ..) => right,
            (None, None, _) => !b.taken,
            (None, Some(_), Some(taken)) => b.taken == taken,
            (None, Some(way), None) => self.weighed(row, b.taken == (way != 0)),
        };
        match entry {
            Some(entry) => self.loops.learn(entry, b.taken),
            None if !right => self.loops.enter(b.pc, b.taken),
            None => {}
        }
        if noted.is_none() {
            self.btb.enter(b.pc, u64::from(b.taken));
        }
        self.perceptron.pass(row, b.taken);
        self.history = self.history << 1 | u64::from(b.taken);
        right
    }

    /// The perceptron predicts whether a branch of `row` goes in its noted direction, as it did if it `agreed`, and is
    /// trained when it was wrong.
    #[inline(always)]
    fn weighed(&mut self, row: usize, agreed: bool) -> bool {
        let right = self.perceptron.predict(row) == agreed;
        if !right {
            self.perceptron.correct(row, agreed, self.history);
        }
        right
    }

    /// A direct branch or call: its target comes from the BTB, too.
    fn direct(&mut self, b: Branched) -> bool {
        if b.kind == Branch::Call {
            self.ras.push(b.pc + 4);
        }
        let known = self.btb.find(b.pc).is_some();
        if !known {
            self.btb.enter(b.pc, 1);
        }
        known
    }

    /// An indirect branch or call: the target after the same history, or else the last one.
    fn indirect(&mut self, b: Branched) -> bool {
        if b.kind == Branch::IndirectCall {
            self.ras.push(b.pc + 4);
        }
        let rehashed = self.btb.find_rehashed(b.pc, self.history);
        let last = self.btb.find(b.pc);
        if rehashed.is_some() || last.is_some_and(|target| target != b.next) {
            self.btb.enter_rehashed(b.pc, self.history, b.next);
        }
        self.btb.enter(b.pc, b.next);
        self.btb.pass(b.next);
        rehashed.or(last) == Some(b.next)
    }

    /// A return: the return stack has priority over the BTB, and is faster.
    fn returned(&mut self, b: Branched) -> (bool, Cycle) {
        let last = self.btb.find(b.pc);
        self.btb.enter(b.pc, b.next);
        match self.ras.pop() {
            Some(target) => (target == b.next, self.return_cycles),
            None => (last == Some(b.next), self.taken_cycles),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A front end with the sizes of A64FX and round thresholds.
    pub fn spec() -> FrontendSpec {
        FrontendSpec {
            fetch_bytes: 32,
            buffer_insts: 48,
            fetch_to_decode: 8,
            predecode_insts: 6,
            predecode_pairs: 3,
            predecode_packed: 4,
            taken_branch_cycles: 3,
            small_taken_targets: 4,
            small_taken_threshold: 8,
            short_loop_threshold: 4,
            loop_entries: 8,
            loop_confidence: 2,
            weight_entries: 2048,
            weight_bits: 7,
            history_bits: 24,
            btb_entries: 2048,
            btb_ways: 4,
            rehash_targets: 3,
            rehash_directions: 9,
            return_stack: 8,
            return_stack_cycles: 2,
            mispredict_extra: 0,
        }
    }

    fn predictor() -> Predictor {
        // Without chains and short loops, to test the other predictors.
        Predictor::new(&FrontendSpec { small_taken_targets: 0, short_loop_threshold: 1_000_000, ..spec() })
    }

    fn branched(kind: Branch, pc: u64, taken: bool, target: u64) -> Branched {
        Branched { kind, pc, taken, next: if taken { target } else { pc + 4 } }
    }

    /// Mispredictions of a branch that does what `pattern` says, in a loop of `rounds` rounds.
    fn misses(p: &mut Predictor, rounds: usize, pattern: &[bool]) -> usize {
        (0..rounds)
            .map(|_| {
                p.branch(branched(Branch::Direct, 256, true, 0));
                pattern.iter().filter(|&&t| !p.branch(branched(Branch::Conditional, 64, t, 0)).right).count()
            })
            .sum()
    }

    /// Mispredictions at the end of ten loops of `rounds` rounds, once ten others have been seen.
    fn misses_at_ends(spec: &FrontendSpec, rounds: usize) -> usize {
        let mut p = Predictor::new(spec);
        let pattern: Vec<bool> = (1..=rounds).map(|i| i < rounds).collect();
        misses(&mut p, 10, &pattern);
        misses(&mut p, 10, &pattern)
    }

    #[test]
    fn the_chain_predictor_comes_before_the_loop_table_so_that_each_end_of_a_loop_is_mispredicted() {
        let spec = FrontendSpec { short_loop_threshold: 1_000_000, ..spec() };
        assert_eq!(misses_at_ends(&spec, 100), 10);
        // Eight taken branches are too few for the chain.
        assert_eq!(misses_at_ends(&spec, 9), 0);
    }

    #[test]
    fn each_end_of_a_loop_that_the_buffer_supplies_is_mispredicted() {
        let spec = FrontendSpec { small_taken_targets: 0, ..spec() };
        assert_eq!(misses_at_ends(&spec, 100), 10);
        // The loop is known from the times before: it is supplied after four rounds.
        assert_eq!(misses_at_ends(&spec, 5), 10);
        assert_eq!(misses_at_ends(&spec, 4), 0);
    }

    #[test]
    fn an_alternating_branch_is_learnt_from_history() {
        let mut p = predictor();
        misses(&mut p, 50, &[true, false]);
        assert_eq!(misses(&mut p, 50, &[true, false]), 0);
    }

    #[test]
    fn returns_are_predicted_as_deep_as_the_stack_and_faster_than_other_branches() {
        let mut p = predictor();
        for depth in 0..8u64 {
            p.branch(branched(Branch::Call, depth * 16, true, 0));
        }
        for depth in (0..8u64).rev() {
            let prediction = p.branch(branched(Branch::Return, 400, true, depth * 16 + 4));
            assert_eq!((prediction.right, prediction.target_after), (true, spec().return_stack_cycles));
        }
    }

    #[test]
    fn a_return_without_a_call_leads_where_it_led_the_last_time() {
        let mut p = predictor();
        assert!(!p.branch(branched(Branch::Return, 400, true, 64)).right);
        let prediction = p.branch(branched(Branch::Return, 400, true, 64));
        assert_eq!((prediction.right, prediction.target_after), (true, spec().taken_branch_cycles));
    }

    #[test]
    fn a_direct_branch_is_mispredicted_until_the_target_buffer_knows_it() {
        let mut p = predictor();
        for kind in [Branch::Direct, Branch::Call] {
            let branch = branched(kind, 64 + 64 * kind as u64, true, 4096);
            assert!(!p.branch(branch).right);
            assert!(p.branch(branch).right);
        }
    }

    #[test]
    fn a_conditional_branch_that_the_target_buffer_does_not_know_is_predicted_not_taken() {
        let mut p = predictor();
        assert!(p.branch(branched(Branch::Conditional, 64, false, 0)).right);
        assert!(!p.branch(branched(Branch::Conditional, 128, true, 0)).right);
        // From then on it is known to go the way it went first.
        assert!(p.branch(branched(Branch::Conditional, 128, true, 0)).right);
    }

    #[test]
    fn an_indirect_branch_leads_where_it_led_the_last_time() {
        let mut p = predictor();
        assert!(!p.branch(branched(Branch::Indirect, 64, true, 4096)).right);
        assert!(p.branch(branched(Branch::Indirect, 64, true, 4096)).right);
    }

    #[test]
    fn an_indirect_branch_whose_target_follows_the_targets_before_is_learnt() {
        let mut p = predictor();
        let targets = [4096, 8192, 8192, 12288];
        let mut wrong = |rounds: usize| {
            let all = targets.iter().cycle().take(rounds * targets.len());
            all.filter(|&&target| !p.branch(branched(Branch::Indirect, 64, true, target)).right).count()
        };
        wrong(10);
        assert_eq!(wrong(10), 0);
    }
}
