//! A path-based perceptron (BWT) behind a loop prediction table (LPT).

use fxscope_machine::spec::Frontend;

use super::loop_predictor::LoopPredictor;
use super::weights::Weights;
use super::{Conditional, Policy};

/// The loop prediction table has priority over the weights, which predict whether a branch goes in its noted direction.
/// The weights are trained on their own predictions. The table counts every mispredicted branch, whatever predicted it.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Perceptron {
    loops: LoopPredictor,
    weights: Weights,
}

impl Policy for Perceptron {
    fn new(spec: &Frontend) -> Perceptron {
        Perceptron { loops: LoopPredictor::new(spec), weights: Weights::new(spec) }
    }

    #[inline(always)]
    fn branch(&mut self, branch: &Conditional) -> bool {
        let row = self.weights.row(branch.pc);
        let entry = self.loops.find(branch.pc);
        let counted = entry.and_then(|entry| self.loops.predict(entry));
        let right = match (branch.first, branch.noted, counted) {
            (None, Some(noted), None) => self.weighed(row, branch, branch.taken == noted),
            (.., counted) => branch.right(counted.unwrap_or_default()),
        };
        match entry {
            Some(entry) => self.loops.learn(entry, branch.taken),
            None if !right => self.loops.enter(branch.pc, branch.taken),
            None => {}
        }
        self.weights.pass(row, branch.taken);
        right
    }
}

impl Perceptron {
    /// The weights predict whether a branch of `row` goes in its noted direction, as it did if it `agreed`, and are
    /// trained when they were wrong.
    #[inline(always)]
    fn weighed(&mut self, row: usize, branch: &Conditional, agreed: bool) -> bool {
        let right = self.weights.predict(row) == agreed;
        if !right {
            self.weights.correct(row, agreed, branch.history);
        }
        right
    }
}
