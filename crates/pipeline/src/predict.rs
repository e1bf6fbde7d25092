//! Branch prediction (manual 3.2 and 3.3): all predictors.
//!
//! The machine selects the policy that predicts the directions of conditional branches. It is shown each conditional branch
//! when it executes, predicts it and learns from it. Targets (BTB, return stack) and what supplies loops without bubbles
//! (short loops, small taken chain) are the same for all policies.
//!
//! Undocumented details (history length, hashing, thresholds, when entries are made) are parameters marked assumed in
//! the machine's description, or choices (docs/model/limits.md#prediction).

mod btb;
mod gshare;
mod loop_predictor;
mod perceptron;
mod ras;
mod short_loop;
mod small_taken_chain;
mod weights;

use fxscope_calendar::Cycle;
use fxscope_isa::Branch;
use fxscope_machine::spec::{DirectionPredictor, Frontend as FrontendSpec};

use btb::Btb;
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

/// A conditional branch, as a policy sees it.
#[derive(Clone, Copy, Debug)]
struct Conditional {
    /// Its address.
    pc: u64,
    /// Whether it was taken.
    taken: bool,
    /// The direction noted for it in the BTB: the one in which it went first. A branch that is not there has no target, and
    /// is not predicted taken, whatever the policy says.
    noted: Option<bool>,
    /// Directions of the conditional branches before it, the newest in bit 0 (GHR).
    history: u64,
    /// Whether a predictor of higher priority was right, if one has predicted it.
    first: Option<bool>,
}

impl Conditional {
    /// Whether its prediction was right when the policy predicts the direction `taken`.
    #[inline(always)]
    fn right(&self, taken: bool) -> bool {
        self.first.unwrap_or(self.taken == (taken && self.noted.is_some()))
    }
}

/// What a policy for the directions of conditional branches does.
trait Policy: Sized {
    /// The policy, untrained.
    fn new(spec: &FrontendSpec) -> Self;

    /// Predicts a branch and learns its direction. Returns whether the prediction was right.
    fn branch(&mut self, branch: &Conditional) -> bool;
}

/// Makes an enumeration of policies, which matches in place: the model calls no policy through a pointer.
macro_rules! policies {
    ($($policy:ident = $module:ident::$name:ident,)+) => {
        /// The policy of a core.
        #[derive(Clone, serde::Deserialize, serde::Serialize)]
        #[expect(clippy::large_enum_variant, reason = "each core has one, which the hot path uses without indirection")]
        enum Selected {
            $($policy($module::$name),)+
        }

        impl Selected {
            fn new(spec: &FrontendSpec) -> Selected {
                match spec.predictor {
                    $(DirectionPredictor::$policy => Selected::$policy($module::$name::new(spec)),)+
                }
            }

            #[inline(always)]
            fn branch(&mut self, branch: &Conditional) -> bool {
                match self {
                    $(Selected::$policy(policy) => policy.branch(branch),)+
                }
            }
        }
    };
}

policies! {
    Perceptron = perceptron::Perceptron,
    Gshare = gshare::Gshare,
}

/// The predictors of a core.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Predictor {
    short_loop: ShortLoop,
    chain: SmallTakenChain,
    directions: Selected,
    btb: Btb,
    ras: ReturnStack,
    /// Directions of the last conditional branches, the newest in bit 0 (GHR).
    history: u64,
    taken_cycles: Cycle,
    return_cycles: Cycle,
    settled_after: u64,
}

impl Predictor {
    /// Untrained predictors.
    #[must_use]
    pub fn new(spec: &FrontendSpec) -> Predictor {
        Predictor {
            short_loop: ShortLoop::new(spec),
            chain: SmallTakenChain::new(spec),
            directions: Selected::new(spec),
            btb: Btb::new(spec),
            ras: ReturnStack::new(spec),
            history: 0,
            taken_cycles: spec.taken_branch_cycles,
            return_cycles: spec.return_stack_cycles,
            settled_after: spec.short_loop_threshold.max(spec.small_taken_threshold).max(spec.history_bits).into(),
        }
    }

    /// Returns the equal iterations of a loop after which all detectors have noticed it, and the history knows nothing else.
    #[must_use]
    pub fn settled_after(&self) -> u64 {
        self.settled_after
    }

    /// Predicts a branch, trains the predictors with its outcome, and returns whether the prediction was right.
    ///
    /// A loop that the instruction buffer supplies continues as before. Of the predictors, the small taken-chain
    /// predictor comes first (manual table 3-2): it predicts a branch of its chain taken even where the others would
    /// be right. The others are trained, too.
    pub fn branch(&mut self, b: Branched) -> Prediction {
        self.branch_inline(b)
    }

    /// The same, for the loop of warming.
    #[inline(always)]
    pub(crate) fn branch_inline(&mut self, b: Branched) -> Prediction {
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

    /// A conditional branch. `first`: whether a predictor of higher priority was right.
    #[inline(always)]
    fn conditional(&mut self, b: Branched, first: Option<bool>) -> bool {
        let noted = self.btb.find(b.pc).map(|way| way != 0);
        let branch = Conditional { pc: b.pc, taken: b.taken, noted, history: self.history, first };
        let right = self.directions.branch(&branch);
        if noted.is_none() {
            self.btb.enter(b.pc, u64::from(b.taken));
        }
        self.history = self.history << 1 | u64::from(b.taken);
        right
    }

    /// A direct branch or call: its target comes from the BTB, too.
    #[inline(always)]
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
            predictor: DirectionPredictor::Perceptron,
            small_taken_targets: 4,
            small_taken_threshold: 8,
            short_loop_threshold: 4,
            loop_entries: 8,
            loop_confidence: 2,
            weight_entries: 2048,
            weight_bits: 7,
            pattern_entries: 1024,
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
    fn the_machine_selects_the_policy_that_predicts_directions() {
        let spec = FrontendSpec { small_taken_targets: 0, short_loop_threshold: 1_000_000, history_bits: 10, ..spec() };
        // The loop prediction table counts 100 rounds; a history of ten branches does not reach back to the last end.
        assert_eq!(misses_at_ends(&FrontendSpec { predictor: DirectionPredictor::Perceptron, ..spec.clone() }, 100), 0);
        assert_eq!(misses_at_ends(&FrontendSpec { predictor: DirectionPredictor::Gshare, ..spec.clone() }, 100), 10);
        // It reaches back over nine.
        assert_eq!(misses_at_ends(&FrontendSpec { predictor: DirectionPredictor::Gshare, ..spec }, 9), 0);
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
