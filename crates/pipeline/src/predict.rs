//! Branch prediction: small taken-chain predictor, loop table, branch weight table, branch target buffer, return stack.
//!
//! Microarchitecture manual 3.2 and 3.3. Undocumented details (history length, hashing, thresholds) are parameters
//! marked assumed in the machine's description.

mod chain;
mod short_loop;

use fxscope_base::Cycle;
use fxscope_machine::spec::Frontend as FrontendSpec;
use fxscope_uop::Branch;

use chain::SmallTakenChain;
use short_loop::ShortLoop;

/// How a branch was predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// The right instruction was fetched behind it.
    pub right: bool,
    /// Cycles from the fetch of the branch to that of its target, if it was predicted taken.
    pub target_after: Cycle,
    /// The instruction buffer has what comes next: nothing is fetched.
    pub buffered: bool,
}

#[derive(Clone, Copy, Default)]
struct Loop {
    pc: u64,
    /// Times in a row the branch went its usual way, now and in the last complete round.
    run: u32,
    last_run: u32,
    /// The usual way.
    direction: bool,
    /// Complete rounds in a row of equal length.
    confidence: u32,
}

/// The predictors of a core.
pub struct Predictor {
    short_loop: ShortLoop,
    chain: SmallTakenChain,
    target_after: Cycle,
    loops: Box<[Loop]>,
    next_loop: usize,
    loop_confidence: u32,
    /// `rows` of `history` weights and a bias each.
    weights: Box<[i8]>,
    rows: usize,
    /// Largest weight; the smallest is one more below zero.
    weight_max: i8,
    history_bits: usize,
    history: u64,
    /// Targets of indirect branches, by address and history.
    targets: Box<[(u64, u64)]>,
    stack: Box<[u64]>,
    top: usize,
}

impl Predictor {
    /// Untrained predictors.
    #[must_use]
    pub fn new(spec: &FrontendSpec) -> Predictor {
        let history_bits = spec.history_bits.clamp(1, 63) as usize;
        let rows = (spec.weight_entries as usize / (history_bits + 1)).next_power_of_two().max(1);
        Predictor {
            short_loop: ShortLoop::new(spec),
            chain: SmallTakenChain::new(spec),
            target_after: spec.taken_branch_cycles,
            loops: vec![Loop::default(); spec.loop_entries.max(1) as usize].into(),
            next_loop: 0,
            loop_confidence: spec.loop_confidence,
            weights: vec![0; rows * (history_bits + 1)].into(),
            rows,
            weight_max: ((1 << (spec.weight_bits - 1)) - 1) as i8,
            history_bits,
            history: 0,
            targets: vec![(u64::MAX, 0); spec.btb_entries.max(1) as usize].into(),
            stack: vec![0; spec.return_stack.max(1) as usize].into(),
            top: 0,
        }
    }

    /// Predicts the branch at `pc`, learns what it did, and says how the prediction went.
    ///
    /// A loop that the instruction buffer supplies goes on as before. Of the predictors, the small taken-chain
    /// predictor comes first (manual table 3-2): it predicts a branch of its chain taken even where the loop table
    /// knows better. The others learn all the same.
    pub fn branch(&mut self, kind: Branch, pc: u64, taken: bool, target: u64) -> Prediction {
        let supplied = self.short_loop.predict(pc);
        let chained = self.chain.predict(pc);
        let other = self.by_others(kind, pc, taken, target);
        self.short_loop.learn(pc, taken, target);
        if taken {
            self.chain.taken(pc, target);
        } else {
            self.chain.not_taken(pc);
        }
        let (right, target_after) = match (supplied, chained) {
            (Some(predicted), _) => (taken == predicted, 1),
            (None, Some(predicted)) => (taken && target == predicted, 1),
            (None, None) => (other, self.target_after),
        };
        Prediction { right, target_after, buffered: self.short_loop.supplies() }
    }

    /// Whether the other predictors are right.
    fn by_others(&mut self, kind: Branch, pc: u64, taken: bool, target: u64) -> bool {
        match kind {
            Branch::None | Branch::Direct => true,
            Branch::Call => {
                self.push_return(pc + 4);
                true
            }
            Branch::Conditional | Branch::Compare => self.direction(pc, taken),
            Branch::Indirect => self.target(pc, target),
            Branch::IndirectCall => {
                let right = self.target(pc, target);
                self.push_return(pc + 4);
                right
            }
            Branch::Return => {
                self.top = (self.top + self.stack.len() - 1) % self.stack.len();
                self.stack[self.top] == target
            }
        }
    }

    fn push_return(&mut self, addr: u64) {
        self.stack[self.top] = addr;
        self.top = (self.top + 1) % self.stack.len();
    }

    fn direction(&mut self, pc: u64, taken: bool) -> bool {
        let by_loop = self.loop_table(pc, taken);
        let base = (pc >> 2) as usize % self.rows * (self.history_bits + 1);
        let row = &mut self.weights[base..=base + self.history_bits];
        let history = self.history;
        let agrees = |i: usize| if history >> i & 1 == 1 { 1i8 } else { -1 };
        let sum: i32 = i32::from(row[self.history_bits])
            + row[..self.history_bits].iter().enumerate().map(|(i, &w)| i32::from(w * agrees(i))).sum::<i32>();
        let predicted = by_loop.unwrap_or(sum >= 0);
        // Weights change on a misprediction only.
        if predicted != taken {
            let towards = if taken { 1i8 } else { -1 };
            let limits = (!self.weight_max, self.weight_max);
            for (i, w) in row[..self.history_bits].iter_mut().enumerate() {
                *w = (*w + towards * agrees(i)).clamp(limits.0, limits.1);
            }
            row[self.history_bits] = (row[self.history_bits] + towards).clamp(limits.0, limits.1);
        }
        self.history = self.history << 1 | u64::from(taken);
        predicted == taken
    }

    /// The loop table's prediction, if it knows the branch; learns the outcome.
    fn loop_table(&mut self, pc: u64, taken: bool) -> Option<bool> {
        let Some(entry) = self.loops.iter_mut().find(|l| l.pc == pc) else {
            self.loops[self.next_loop] = Loop { pc, direction: taken, run: 1, ..Loop::default() };
            self.next_loop = (self.next_loop + 1) % self.loops.len();
            return None;
        };
        let known = entry.confidence >= self.loop_confidence;
        let prediction = known.then_some(if entry.run == entry.last_run { !entry.direction } else { entry.direction });
        if taken == entry.direction {
            entry.run += 1;
            if entry.run > entry.last_run {
                entry.confidence = 0;
            }
        } else if entry.run == 0 {
            // The other way twice running: that is the usual way.
            *entry = Loop { pc, direction: taken, run: 2, ..Loop::default() };
        } else {
            entry.confidence = if entry.run == entry.last_run { entry.confidence + 1 } else { 0 };
            entry.last_run = entry.run;
            entry.run = 0;
        }
        prediction
    }

    fn target(&mut self, pc: u64, target: u64) -> bool {
        let slot = ((pc >> 2) ^ self.history) as usize % self.targets.len();
        let right = self.targets[slot] == (pc, target);
        self.targets[slot] = (pc, target);
        self.history = self.history << 2 ^ target >> 2;
        right
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use fxscope_machine::Evidence;

    /// A front end with the sizes of A64FX and round thresholds.
    pub fn spec() -> FrontendSpec {
        FrontendSpec {
            fetch_bytes: 32,
            buffer_insts: 48,
            fetch_to_decode: 8,
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
            return_stack: 8,
            mispredict_extra: 0,
            source: String::new(),
            evidence: Evidence::Assumed,
        }
    }

    fn predictor() -> Predictor {
        // Without chains and short loops: the other predictors are to be seen.
        Predictor::new(&FrontendSpec { small_taken_targets: 0, short_loop_threshold: 1_000_000, ..spec() })
    }

    /// Mispredictions of a branch that does what `pattern` says, in a loop of `rounds` rounds.
    fn misses(p: &mut Predictor, rounds: usize, pattern: &[bool]) -> usize {
        (0..rounds)
            .map(|_| {
                p.branch(Branch::Direct, 256, true, 0);
                pattern.iter().filter(|&&t| !p.branch(Branch::Conditional, 64, t, 0).right).count()
            })
            .sum()
    }

    #[test]
    fn a_loop_of_fixed_length_is_learnt_completely() {
        let mut p = predictor();
        let pattern: Vec<bool> = (0..100).map(|i| i < 99).collect();
        misses(&mut p, 10, &pattern);
        assert_eq!(misses(&mut p, 10, &pattern), 0);
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
    fn returns_are_predicted_as_deep_as_the_stack() {
        let mut p = predictor();
        for depth in 0..8u64 {
            p.branch(Branch::Call, depth * 16, true, 0);
        }
        assert!((0..8u64).rev().all(|depth| p.branch(Branch::Return, 0, true, depth * 16 + 4).right));
    }

    #[test]
    fn an_indirect_branch_with_one_target_misses_only_while_learning() {
        let mut p = predictor();
        let wrong = (0..200).filter(|_| !p.branch(Branch::Indirect, 64, true, 4096).right).count();
        assert!(wrong < 64, "{wrong} of 200");
    }
}
