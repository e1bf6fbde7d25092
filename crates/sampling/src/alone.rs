//! Blocks that one group of windows has seen alone, or nearly so.

use crate::estimate::LEAST_LEFT;
use crate::sample::{BlockSums, mate};

/// Least blocks that must show how costs vary from window to window.
const LEAST_BLOCKS: u64 = 16;

/// Blocks that only one group of windows has seen, and how much the cost of other blocks varies.
///
/// A replicate without that group knows nothing of such a block. If it took the block for one that no window has seen, the interval would show how
/// blocks differ from each other: a loop with a third of the cycles would make it wider than a third of the run, although a window has measured
/// thousands of executions of the loop. What must be shown is how much that window may differ from others. It is taken to vary as the costs
/// of the blocks that several groups have seen do, measure by measure: relative to the cost, and for one window.
///
/// The same holds if other groups have seen a few of its executions: thousands in the middle of a loop, and one that missed everything at its
/// beginning. How much these differ neither shows how windows vary nor may decide what the loop costs without that group.
pub(crate) struct Alone {
    /// By group: totals of the blocks that only it has seen; the same with the sign of the window's deviation, and those of which it has seen
    /// most.
    totals: Vec<Vec<f64>>,
    deviations: Vec<Vec<f64>>,
    /// By group: instructions of its blocks.
    instructions: Vec<f64>,
    /// By measure: relative variances of one window, weighted by totals, and the sum of these weights.
    variances: Vec<f64>,
    weights: Vec<f64>,
    /// Blocks that variances are made from.
    blocks: u64,
}

impl Alone {
    pub(crate) fn new(measures: usize, groups: usize) -> Self {
        let zeros = vec![vec![0.0; measures]; groups];
        Self {
            totals: zeros.clone(),
            deviations: zeros,
            instructions: vec![0.0; groups],
            variances: vec![0.0; measures],
            weights: vec![0.0; measures],
            blocks: 0,
        }
    }

    /// Adds a block that ran `executions` times and has `instructions` in all of them.
    pub(crate) fn add(&mut self, sums: &BlockSums, executions: f64, instructions: f64) {
        if let Some(group) = sums.only_group() {
            self.instructions[group] += instructions;
            add_to(&mut self.totals[group], sums, executions);
            add_to(&mut self.deviations[group], sums, sign_of(sums.last_window()) * executions);
        } else if let Some(group) = self.main_group(sums) {
            add_to(&mut self.deviations[group], sums, executions);
        } else {
            self.add_variance(sums, executions);
        }
    }

    /// Returns the group without which less than [`LEAST_LEFT`] of what windows have seen of a block is left.
    fn main_group(&self, sums: &BlockSums) -> Option<usize> {
        let executions = |group| sums.group(group).map_or(0, |row| row[0]) as f64;
        let all = sums.total()[0] as f64;
        (0..self.instructions.len())
            .find(|group| all - executions(*group) + executions(mate(*group)) < all * LEAST_LEFT)
    }

    /// Adds how much the cost of a block varies: the variance that the paired jackknife gives its total, times as many windows as the
    /// groups that have seen it are worth.
    fn add_variance(&mut self, sums: &BlockSums, executions: f64) {
        let total = sums.total();
        let all = total[0] as f64;
        let mut squares = vec![0.0; total.len() - 1];
        let mut weights = 0.0;
        for group in 0..self.instructions.len() {
            let (without, twice) = (sums.group(group), sums.group(mate(group)));
            if without.is_none() && twice.is_none() {
                continue;
            }
            let of = |row: Option<&[u64]>, at: usize| row.map_or(0.0, |row| row[at] as f64);
            weights += of(without, 0).powi(2);
            let left = all - of(without, 0) + of(twice, 0);
            for (place, square) in squares.iter_mut().enumerate() {
                let sum = total[place + 1] as f64;
                let changed = sum - of(without, place + 1) + of(twice, place + 1);
                *square += (changed / left - sum / all).powi(2);
            }
        }
        let windows = all.powi(2) / weights;
        self.blocks += 1;
        for (place, measure) in sums.measures().enumerate() {
            let cost = total[place + 1] as f64 / all;
            let weight = executions * cost;
            self.variances[measure] += weight * squares[place] / 2.0 * windows / cost.powi(2);
            self.weights[measure] += weight;
        }
    }

    /// Returns instructions and totals by measure of what only `group` has seen, each total moved by as much as a replicate must be for the
    /// interval to show how a window varies; `None` if that is not known.
    pub(crate) fn replicate(&self, group: usize) -> Option<(f64, impl Iterator<Item = f64> + '_)> {
        let known = self.blocks >= LEAST_BLOCKS;
        let totals = self.totals[group].iter().zip(&self.deviations[group]).enumerate();
        // The other replicates leave these blocks as they are, and half of the sum of squares counts.
        let moved = totals.map(|(measure, (total, deviation))| {
            let variance =
                if self.weights[measure] > 0.0 { self.variances[measure] / self.weights[measure] } else { 0.0 };
            total + (2.0 * variance).sqrt() * deviation
        });
        known.then(|| (self.instructions[group], moved))
    }
}

/// Adds what `executions` of a block cost, which may be negative, to totals by measure.
fn add_to(totals: &mut [f64], sums: &BlockSums, executions: f64) {
    let row = sums.total();
    let scale = executions / row[0] as f64;
    sums.measures().zip(&row[1..]).for_each(|(measure, sum)| totals[measure] += scale * *sum as f64);
}

/// Returns 1 or -1, by the number of a window: what it has seen alone deviates in the same direction, and windows are independent of each
/// other.
fn sign_of(window: u64) -> f64 {
    if crate::random::Random::new(window).bits() & 1 == 0 { 1.0 } else { -1.0 }
}
