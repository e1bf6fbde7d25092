//! Totals of a part of a run, with jackknife replicates.

use serde::{Deserialize, Serialize};

use crate::exposure::Exposure;
use crate::interval::{Interval, Precision, t_factor};
use crate::random::Random;
use crate::sample::{BlockSums, Sample};

/// Totals of all measures of an exposure, and how they vary.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Estimates {
    totals: Vec<f64>,
    replicates: Vec<Vec<f64>>,
    unseen_share: f64,
    windows: u64,
}

/// How estimates are made. [`Estimator::default`] is what synthetic populations have shown to be best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimator {
    /// Blocks of which windows have seen fewer executions than this are collapsed into a common stratum, which has one rate per
    /// instruction. 0 for none.
    pub collapse_below: u64,
    /// Whether replicates draw the rates of unseen blocks from seen ones.
    pub donors: bool,
}

impl Default for Estimator {
    fn default() -> Self {
        Self { collapse_below: 0, donors: true }
    }
}

/// Estimates the totals of `exposure` from `sample`. `instructions` has the instructions of one execution of each block.
///
/// # Panics
/// If a block that ran has no entry in `instructions`.
#[must_use]
pub fn estimate(sample: &Sample, instructions: &[u32], exposure: &Exposure) -> Estimates {
    Estimator::default().estimate(sample, instructions, exposure)
}

impl Estimator {
    /// Estimates as [`estimate`] does.
    ///
    /// # Panics
    /// If a block that ran has no entry in `instructions`.
    #[must_use]
    pub fn estimate(&self, sample: &Sample, instructions: &[u32], exposure: &Exposure) -> Estimates {
        let mut sums = Sums::new(sample);
        let mut unseen = Vec::new();
        let mut seen = Vec::new();
        let mut collapsed = Vec::new();
        for (block, executions) in exposure.iter() {
            let size = f64::from(instructions[block as usize]);
            match sample.block(block) {
                Some(counts) if counts.seen() < self.collapse_below => {
                    collapsed.push((counts, executions as f64, size))
                }
                Some(counts) => {
                    sums.add(counts, executions as f64, size);
                    seen.push((counts, size));
                }
                None => unseen.push((block, executions as f64 * size)),
            }
        }
        sums.add_collapsed(&collapsed);
        let unseen_instructions: f64 = unseen.iter().map(|(_, n)| n).sum();
        let all = sums.instructions + unseen_instructions;
        if sums.instructions == 0.0 {
            return Estimates::of_unseen(sample, instructions, all);
        }
        let rates: Vec<f64> = sums.totals.iter().map(|total| total / sums.instructions).collect();
        let totals = rates.iter().map(|rate| rate * all).collect();
        let mut replicates = sums.replicates(all);
        if self.donors {
            vary(&mut replicates, &unseen, &seen, &rates);
        }
        let unseen_share = if all > 0.0 { unseen_instructions / all } else { 0.0 };
        Estimates { totals, replicates, unseen_share, windows: sample.windows() }
    }
}

/// Sums over the blocks of an exposure that windows have seen.
struct Sums {
    /// Estimated totals by measure.
    totals: Vec<f64>,
    instructions: f64,
    /// What the totals change by in each replicate.
    changes: Vec<Vec<f64>>,
    /// Instructions of blocks that a replicate has not seen.
    lost: Vec<f64>,
    /// Replicate of each group; `None` for groups without windows.
    replicate_of: Vec<Option<usize>>,
}

impl Sums {
    fn new(sample: &Sample) -> Self {
        let mut count = 0;
        let replicate_of = sample.windows_by_group().iter().map(|windows| {
            (*windows > 0).then(|| {
                count += 1;
                count - 1
            })
        });
        let replicate_of = replicate_of.collect();
        Self {
            totals: vec![0.0; sample.measures()],
            instructions: 0.0,
            changes: vec![vec![0.0; sample.measures()]; count],
            lost: vec![0.0; count],
            replicate_of,
        }
    }

    /// Adds a block that ran `executions` times.
    fn add(&mut self, counts: &BlockSums, executions: f64, size: f64) {
        let total = counts.total();
        let scale = executions / total[0] as f64;
        let measures: Vec<usize> = counts.measures().collect();
        for (&measure, &sum) in measures.iter().zip(&total[1..]) {
            self.totals[measure] += scale * sum as f64;
        }
        self.instructions += executions * size;
        for (group, row) in counts.by_group() {
            let Some(replicate) = self.replicate_of[group] else {
                continue;
            };
            let rest = total[0] - row[0];
            if rest == 0 {
                self.lost[replicate] += executions * size;
            }
            let scale_of_rest = if rest == 0 { 0.0 } else { executions / rest as f64 };
            for ((&measure, &sum), &of_group) in measures.iter().zip(&total[1..]).zip(&row[1..]) {
                self.changes[replicate][measure] += scale_of_rest * (sum - of_group) as f64 - scale * sum as f64;
            }
        }
    }

    /// Adds blocks that have one rate per instruction.
    fn add_collapsed(&mut self, blocks: &[(&BlockSums, f64, f64)]) {
        let mut of_sample = vec![0.0; self.totals.len()];
        let mut by_group = vec![vec![0.0; self.totals.len()]; self.changes.len()];
        let (mut sampled, mut sampled_by_group) = (0.0, vec![0.0; self.changes.len()]);
        let mut ran = 0.0;
        for (counts, executions, size) in blocks {
            ran += executions * size;
            sampled += counts.total()[0] as f64 * size;
            for (measure, sum) in counts.measures().zip(&counts.total()[1..]) {
                of_sample[measure] += *sum as f64;
            }
            for (group, row) in counts.by_group() {
                let Some(replicate) = self.replicate_of[group] else { continue };
                sampled_by_group[replicate] += row[0] as f64 * size;
                for (measure, sum) in counts.measures().zip(&row[1..]) {
                    by_group[replicate][measure] += *sum as f64;
                }
            }
        }
        if sampled == 0.0 {
            return;
        }
        self.instructions += ran;
        for measure in 0..self.totals.len() {
            self.totals[measure] += ran * of_sample[measure] / sampled;
        }
        for replicate in 0..self.changes.len() {
            let rest = sampled - sampled_by_group[replicate];
            if rest <= 0.0 {
                self.lost[replicate] += ran;
            }
            for measure in 0..self.totals.len() {
                let full = ran * of_sample[measure] / sampled;
                let without =
                    if rest <= 0.0 { 0.0 } else { ran * (of_sample[measure] - by_group[replicate][measure]) / rest };
                self.changes[replicate][measure] += without - full;
            }
        }
    }

    /// Returns the totals of each replicate, extended to all `instructions` of the exposure.
    fn replicates(&self, instructions: f64) -> Vec<Vec<f64>> {
        self.changes
            .iter()
            .zip(&self.lost)
            .map(|(changes, lost)| {
                let known = self.instructions - lost;
                let scale = if known > 0.0 { instructions / known } else { 0.0 };
                self.totals.iter().zip(changes).map(|(total, change)| (total + change) * scale).collect()
            })
            .collect()
    }
}

/// Gives each unseen block the rates of a seen one in one replicate.
fn vary(replicates: &mut [Vec<f64>], unseen: &[(u32, f64)], seen: &[(&BlockSums, f64)], rates: &[f64]) {
    if replicates.is_empty() {
        return;
    }
    for &(block, instructions) in unseen {
        let mut random = Random::new(block.into());
        let replicate = &mut replicates[random.below(replicates.len() as u64) as usize];
        let (counts, size) = seen[random.below(seen.len() as u64) as usize];
        let total = counts.total();
        for (value, rate) in replicate.iter_mut().zip(rates) {
            *value -= rate * instructions;
        }
        for (measure, sum) in counts.measures().zip(&total[1..]) {
            replicate[measure] += *sum as f64 / total[0] as f64 / size * instructions;
        }
    }
}

impl Estimates {
    /// Returns the estimates of an exposure of which windows have seen no block: the mean rates of all that they have seen, without
    /// replicates.
    fn of_unseen(sample: &Sample, instructions: &[u32], ran: f64) -> Self {
        let mut totals = vec![0.0; sample.measures()];
        let mut sampled = 0.0;
        for counts in sample.blocks() {
            sampled += counts.total()[0] as f64 * f64::from(instructions[counts.block as usize]);
            for (measure, sum) in counts.measures().zip(&counts.total()[1..]) {
                totals[measure] += *sum as f64;
            }
        }
        if sampled > 0.0 {
            totals.iter_mut().for_each(|total| *total *= ran / sampled);
        }
        let unseen_share = if ran > 0.0 { 1.0 } else { 0.0 };
        Self { totals, replicates: Vec::new(), unseen_share, windows: sample.windows() }
    }

    /// Returns the estimated totals by measure.
    #[must_use]
    pub fn totals(&self) -> &[f64] {
        &self.totals
    }

    /// Returns the totals of each replicate: without the windows of one group.
    #[must_use]
    pub fn replicates(&self) -> &[Vec<f64>] {
        &self.replicates
    }

    /// Returns the share of instructions in blocks that no window has seen, 0 to 1.
    #[must_use]
    pub fn unseen_share(&self) -> f64 {
        self.unseen_share
    }

    /// Returns the windows that the estimates are made from.
    #[must_use]
    pub fn windows(&self) -> u64 {
        self.windows
    }

    /// Returns a measure's total with its interval.
    ///
    /// # Panics
    /// If there is no such measure, or `confidence` does not lie between 0 and 1.
    #[must_use]
    pub fn interval(&self, measure: usize, confidence: f64) -> Interval {
        self.interval_of(confidence, |totals| totals[measure])
    }

    /// Returns the interval of a quantity that follows from the totals of all measures, such as a ratio.
    ///
    /// The standard error is that of the delete-a-group jackknife: with *G* replicates, the square root of (*G* − 1) / *G* times
    /// the sum of their squared differences from the estimate. The interval is that of Student's t with *G* − 1 degrees of freedom.
    ///
    /// # Panics
    /// If `confidence` does not lie between 0 and 1.
    #[must_use]
    pub fn interval_of(&self, confidence: f64, quantity: impl Fn(&[f64]) -> f64) -> Interval {
        let estimate = quantity(&self.totals);
        let groups = self.replicates.len();
        if groups < 2 {
            return Interval { estimate, standard_error: f64::INFINITY, half_width: f64::INFINITY };
        }
        let squares: f64 = self.replicates.iter().map(|totals| (quantity(totals) - estimate).powi(2)).sum();
        let variance = squares * (groups - 1) as f64 / groups as f64;
        let standard_error = if variance.is_finite() { variance.sqrt() } else { f64::INFINITY };
        Interval { estimate, standard_error, half_width: t_factor(confidence, groups - 1) * standard_error }
    }

    /// Returns about how many windows a sample needs in all so that a quantity is known to `precision`, if more of them are like those
    /// taken: the error falls with the square root of their number. `None` if there are too few to say.
    #[must_use]
    pub fn windows_needed(&self, precision: &Precision, quantity: impl Fn(&[f64]) -> f64) -> Option<u64> {
        let relative = self.interval_of(precision.confidence, quantity).relative();
        let needed = (relative / precision.error).powi(2) * self.windows as f64;
        needed.is_finite().then(|| needed.ceil() as u64)
    }
}
