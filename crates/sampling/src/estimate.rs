//! Totals of a part of a run, with jackknife replicates.

use serde::{Deserialize, Serialize};

use crate::alone::Alone;
use crate::exposure::Exposure;
use crate::interval::{Interval, Precision, jackknife, windows_needed};
use crate::sample::{BlockSums, Sample, mate};

/// Totals of all measures of an exposure, and how they vary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimates {
    totals: Vec<f64>,
    replicates: Vec<Vec<f64>>,
    unseen_share: f64,
    windows: u64,
}

/// Blocks that unseen ones resemble are those that this number of windows or fewer have seen.
const FEW_WINDOWS: u64 = 2;

/// A cost of which less than this part of the executions is left without a group changes as if this part were left.
pub(crate) const LEAST_LEFT: f64 = 0.5;

/// Estimates the totals of `exposure` from `sample`. `instructions` has the instructions of one execution of each block.
///
/// A block that windows have seen contributes its executions times its cost per execution in windows (separate ratio estimator). Unseen
/// blocks together contribute their instructions times a rate per instruction. It is the rate of the exposure's blocks
/// that at most two windows have seen: what has not been seen resembles what has hardly been seen, code that runs once, rather than
/// the loops that fill most of a run. If there is no such block, it is the mean rate of all seen blocks in the exposure's own mix.
///
/// A replicate repeats this without the windows of one group, and with those of the group's mate counted twice. A block that only that
/// group has seen costs there as much more or less as the costs of blocks differ from window to window; if fewer than 16 blocks show that, it is
/// unseen there. A block of which that group has seen most executions varies in the same way, and what the few others cost does not replace the
/// estimate. Unseen blocks differ from their rate as blocks do that few windows have seen. An interval thus shows what depends on few windows.
///
/// An exposure of which windows have seen no block gets the mean rates of all that they have seen, without interval.
///
/// # Panics
/// If a block that ran, or that windows have seen, has no entry in `instructions`.
#[must_use]
pub fn estimate(sample: &Sample, instructions: &[u32], exposure: &Exposure) -> Estimates {
    let groups = sample.windows_by_group().len();
    let mut seen = Replicated::new(sample.measures(), groups);
    let mut few = Replicated::new(sample.measures(), groups);
    let mut alone = Alone::new(sample.measures(), groups);
    let (mut ran, mut few_ran) = (0.0, 0.0);
    for (block, executions) in exposure.iter() {
        let (size, executions) = (f64::from(instructions[block as usize]), executions as f64);
        ran += executions * size;
        if let Some(sums) = sample.block(block) {
            seen.add_executions(sums, executions, executions * size);
            alone.add(sums, executions, executions * size);
            if sums.windows() <= FEW_WINDOWS {
                few_ran += executions * size;
                few.add_sampled(sums, size);
            }
        }
    }
    if seen.full.instructions == 0.0 {
        return Estimates::of_unseen(sample, instructions, ran);
    }
    let windows = sample.windows_by_group();
    let rates = rates(&seen.full, &few.full);
    let unseen = Unseen { ran, few: few_ran, least: few.full.instructions * LEAST_LEFT, rates };
    let replicates = (0..groups).filter(|group| windows[*group] > 0);
    Estimates {
        totals: extended(&seen.full, &unseen.rates, ran),
        replicates: replicates
            .map(|group| unseen.replicate(&seen.without(group), &few.without(group), alone.replicate(group)))
            .collect(),
        unseen_share: (1.0 - seen.full.instructions / ran).max(0.0),
        windows: sample.windows(),
    }
}

/// Returns the costs of an instruction in blocks that no window has seen, by measure: those of `few`, or if there are none, those of `seen`.
fn rates(seen: &Sums, few: &Sums) -> Vec<f64> {
    let like = if few.instructions > 0.0 { few } else { seen };
    let per_instruction = |total| if like.instructions > 0.0 { total / like.instructions } else { 0.0 };
    like.totals.iter().map(per_instruction).collect()
}

/// Returns the totals of seen blocks, and of those that make up the rest of the instructions that `ran`, with the `rates` of unseen ones.
fn extended(seen: &Sums, rates: &[f64], ran: f64) -> Vec<f64> {
    let unseen = (ran - seen.instructions).max(0.0);
    seen.totals.iter().zip(rates).map(|(total, rate)| total + unseen * rate).collect()
}

/// What is known of blocks that no window has seen.
struct Unseen {
    /// Instructions of all blocks, and of those that few windows have seen.
    ran: f64,
    few: f64,
    /// Instructions of windows in blocks that few windows have seen: the least that a rate without a group is made from.
    least: f64,
    /// Estimated costs of an instruction, by measure.
    rates: Vec<f64>,
}

impl Unseen {
    /// Returns the totals without a group. `alone` has what only that group has seen, as it might have been in another window.
    ///
    /// Unseen blocks differ from each other as those do that few windows have seen: the fewer they are, the more their mean differs from the
    /// rate, in addition to what the rate itself is uncertain by. A variance of the rate over `few` instructions is one of few / unseen
    /// times as much over the unseen ones.
    fn replicate(&self, seen: &Sums, few: &Sums, alone: Option<(f64, impl Iterator<Item = f64>)>) -> Vec<f64> {
        let changed = self.changed(seen, few);
        let Some((instructions, totals)) = alone else {
            return extended(seen, &changed, self.ran);
        };
        let unseen = (self.ran - seen.instructions - instructions).max(0.0);
        let spread = (unseen * (unseen + self.few)).sqrt();
        let known = seen.totals.iter().zip(totals).map(|(total, alone)| total + alone);
        let rates = self.rates.iter().zip(&changed);
        known.zip(rates).map(|(known, (rate, changed))| known + unseen * rate + spread * (changed - rate)).collect()
    }

    /// Returns the rates without a group. If it has nearly all instructions of such blocks, the rest does not replace the rates, since it may
    /// be a few instructions of code that has just begun.
    fn changed(&self, seen: &Sums, few: &Sums) -> Vec<f64> {
        let mut changed = rates(seen, few);
        let part = few.instructions / self.least;
        if few.instructions > 0.0 && part < 1.0 {
            changed.iter_mut().zip(&self.rates).for_each(|(changed, rate)| *changed = rate + part * (*changed - rate));
        }
        changed
    }
}

/// What the sums of a block add to those of several blocks.
#[derive(Clone, Copy, Default)]
struct Share {
    /// The factor of its measures.
    scale: f64,
    /// Its instructions. They are whole numbers, so that those of all blocks less those of all blocks are exactly 0.
    instructions: f64,
}

/// Totals by measure of some blocks, and their instructions.
#[derive(Clone)]
struct Sums {
    totals: Vec<f64>,
    instructions: f64,
}

/// Sums of some blocks with all windows, and without those of each group.
struct Replicated {
    full: Sums,
    /// What is added to `full` without each group.
    changes: Vec<Sums>,
    /// Sums of a block without a group, and the measures that they belong to; kept for their memory only.
    row: Vec<u64>,
    measures: Vec<usize>,
}

impl Sums {
    fn new(measures: usize) -> Self {
        Self { totals: vec![0.0; measures], instructions: 0.0 }
    }

    /// Adds a share of the sums of a block (`row`, as [`BlockSums::total`]).
    fn add(&mut self, measures: &[usize], row: &[u64], share: Share) {
        self.instructions += share.instructions;
        for (measure, sum) in measures.iter().zip(&row[1..]) {
            self.totals[*measure] += share.scale * *sum as f64;
        }
    }

    /// Subtracts what [`Self::add`] adds.
    fn subtract(&mut self, measures: &[usize], row: &[u64], Share { scale, instructions }: Share) {
        self.add(measures, row, Share { scale: -scale, instructions: -instructions });
    }
}

impl Replicated {
    fn new(measures: usize, groups: usize) -> Self {
        let sums = Sums::new(measures);
        Self { changes: vec![sums.clone(); groups], full: sums, row: Vec::new(), measures: Vec::new() }
    }

    /// Adds a block that ran `executions` times and has `instructions` in all of them.
    ///
    /// Without a group the cost of an execution changes by its difference in the windows that are left, as far as these have
    /// [`LEAST_LEFT`] of the executions, and by a part of it otherwise: one execution that is left of thousands says little about them.
    fn add_executions(&mut self, sums: &BlockSums, executions: f64, instructions: f64) {
        let total = sums.total();
        let all = total[0] as f64;
        let whole = Share { scale: executions / all, instructions };
        self.add(sums, whole, |changes, measures, row| {
            let left = row[0] as f64;
            if left >= all * LEAST_LEFT {
                changes.add(measures, row, Share { scale: executions / left, instructions });
                changes.subtract(measures, total, whole);
            } else if left > 0.0 {
                let scale = executions / (all * LEAST_LEFT);
                changes.add(measures, row, Share { scale, instructions });
                changes.subtract(measures, total, Share { scale: scale * left / all, instructions });
            } else {
                changes.subtract(measures, total, whole);
            }
        });
    }

    /// Adds what windows have seen of a block with `size` instructions.
    fn add_sampled(&mut self, sums: &BlockSums, size: f64) {
        let share = |row: &[u64]| Share { scale: 1.0, instructions: row[0] as f64 * size };
        let total = sums.total();
        self.add(sums, share(total), |changes, measures, row| {
            changes.add(measures, row, share(row));
            changes.subtract(measures, total, share(total));
        });
    }

    /// Adds a share of the sums of a block, and to the changes of each group what `change` makes of the block's sums without that group.
    fn add(&mut self, sums: &BlockSums, whole: Share, change: impl Fn(&mut Sums, &[usize], &[u64])) {
        let total = sums.total();
        self.measures.clear();
        self.measures.extend(sums.measures());
        self.full.add(&self.measures, total, whole);
        for (group, changes) in self.changes.iter_mut().enumerate() {
            let (without, twice) = (sums.group(group), sums.group(mate(group)));
            if without.is_none() && twice.is_none() {
                continue;
            }
            self.row.clear();
            self.row.extend_from_slice(total);
            self.row.iter_mut().zip(without.unwrap_or_default()).for_each(|(sum, part)| *sum -= part);
            self.row.iter_mut().zip(twice.unwrap_or_default()).for_each(|(sum, part)| *sum += part);
            change(changes, &self.measures, &self.row);
        }
    }

    /// Returns the sums without a group.
    fn without(&self, group: usize) -> Sums {
        let changes = &self.changes[group];
        let totals = self.full.totals.iter().zip(&changes.totals).map(|(total, change)| total + change);
        Sums { totals: totals.collect(), instructions: self.full.instructions + changes.instructions }
    }
}

impl Estimates {
    /// Returns the estimates of an exposure of which windows have seen no block; it `ran` this number of instructions.
    fn of_unseen(sample: &Sample, instructions: &[u32], ran: f64) -> Self {
        let mut sampled = Sums::new(sample.measures());
        for sums in sample.blocks() {
            let measures: Vec<usize> = sums.measures().collect();
            let size = f64::from(instructions[sums.block() as usize]);
            sampled.add(&measures, sums.total(), Share { scale: 1.0, instructions: sums.total()[0] as f64 * size });
        }
        Self {
            totals: extended(&Sums::new(sample.measures()), &rates(&sampled, &sampled), ran),
            replicates: Vec::new(),
            unseen_share: if ran > 0.0 { 1.0 } else { 0.0 },
            windows: sample.windows(),
        }
    }

    /// Returns the estimated totals by measure.
    #[must_use]
    pub fn totals(&self) -> &[f64] {
        &self.totals
    }

    /// Returns the totals of each replicate. None exist if windows have seen nothing of the exposure.
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
    /// It is that of [`jackknife`].
    ///
    /// # Panics
    /// If `confidence` does not lie between 0 and 1.
    #[must_use]
    pub fn interval_of(&self, confidence: f64, quantity: impl Fn(&[f64]) -> f64) -> Interval {
        let replicates = self.replicates.iter().map(|totals| quantity(totals));
        jackknife(quantity(&self.totals), replicates, confidence)
    }

    /// Returns about how many windows a sample needs in all so that a quantity is known to `precision`, as [`windows_needed`].
    #[must_use]
    pub fn windows_needed(&self, precision: &Precision, quantity: impl Fn(&[f64]) -> f64) -> Option<u64> {
        windows_needed(self.interval_of(precision.confidence, quantity).relative(), self.windows, precision)
    }
}
