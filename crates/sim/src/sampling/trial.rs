//! How much skipping changes what windows measure.
//!
//! In a *trial* all of what could be skipped is followed. A copy of the core and of the chip is made where skipping would begin, and stays as
//! it is until as little is left as is followed after skipped code. From there on it gets every block, too, and it is timed in the
//! window. What the window takes on the copy, compared with what it takes on the core, is the bias of windows after skipped code:
//! both execute the same instructions, so that few trials show it well.

use fxscope_aarch64::Cpu;
use fxscope_linux::Guest;
use fxscope_memory::Chip;
use fxscope_pipeline::{BoundBlock, Pipeline, Reach};
use serde::{Deserialize, Serialize};

use crate::trace::Trace;

/// A trial that has begun.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Trial {
    pipeline: Pipeline,
    chip: Chip,
    /// Instructions until the copy follows, too.
    left: u64,
    /// Cycles of the window on the core, and on the copy.
    cycles: Pair,
}

/// Cycles of one window: with all followed before it, and after skipped code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pair {
    pub(super) followed: u64,
    pub(super) skipped: u64,
}

impl Trial {
    /// Begins a trial in which `left` instructions would be skipped.
    pub(super) fn new(pipeline: &Pipeline, chip: &Chip, left: u64) -> Trial {
        Trial { pipeline: pipeline.clone(), chip: chip.clone(), left, cycles: Pair::default() }
    }

    /// Returns whether it is a trial on the core of `pipeline`.
    pub(super) fn is_on(&self, pipeline: &Pipeline) -> bool {
        self.pipeline.memory.is_same_core(&pipeline.memory)
    }

    /// A block was followed on the core, at one of `costs`.
    pub(super) fn follow(
        &mut self,
        (pipeline, chip): (&Pipeline, &Chip),
        block: &BoundBlock,
        executed: usize,
        cpu: &Cpu,
        costs: &[u32; Reach::COUNT],
    ) {
        if self.left > 0 {
            self.left = self.left.saturating_sub(executed as u64);
            if self.left == 0 {
                self.pipeline.catch_up(pipeline, &mut self.chip);
                self.chip.take_frames_of(chip);
            }
            return;
        }
        self.pipeline.memory.take_pages_of(&pipeline.memory);
        self.pipeline.warm(block, executed, cpu.stream(), cpu.pc, costs, &mut self.chip);
    }

    /// A block was timed on the core; it has taken `cycles` if it counts. Returns whether the trial continues: it does not if the
    /// window has begun too early.
    pub(super) fn time(
        &mut self,
        pipeline: &Pipeline,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
        cycles: Option<u64>,
    ) -> bool {
        if self.left > 0 {
            return false;
        }
        self.pipeline.memory.take_pages_of(&pipeline.memory);
        self.pipeline.begin_timing();
        let (profile, before) = (block.profile.clone(), self.pipeline.measures());
        ().run(&mut self.pipeline, &mut self.chip, block, executed, guest);
        block.profile = profile;
        if let Some(cycles) = cycles {
            self.cycles.followed += cycles;
            self.cycles.skipped += self.pipeline.measures().since(&before).cycles();
        }
        true
    }

    /// Returns what the window took.
    pub(super) fn cycles(&self) -> Pair {
        self.cycles
    }
}

/// Trials that are remembered: the last ones.
const REMEMBERED: usize = 64;
/// Fewest trials from which something follows, and those of which no more is expected.
const FEWEST: usize = 8;
const MANY: usize = 32;

/// What trials have shown with the present number of followed instructions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Trials(Vec<Pair>);

/// What follows from trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Further trials are needed.
    Open,
    /// Enough is followed.
    Enough,
    /// Too little is followed.
    TooLittle,
}

/// The relative difference of windows after skipped code, and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bias {
    /// The difference: 0.01 if windows take 1 % too long.
    pub relative: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The windows that were compared.
    pub trials: usize,
}

impl Trials {
    pub(super) fn add(&mut self, pair: Pair) {
        if self.0.len() == REMEMBERED {
            self.0.remove(0);
        }
        self.0.push(pair);
    }

    /// Forgets all: another number of instructions is followed.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the ratio of all windows' cycles, with its standard error from how windows deviate from it; `None`: there are too few.
    pub(super) fn bias(&self) -> Option<Bias> {
        let number = self.0.len();
        let sum = |cycles: fn(&Pair) -> u64| self.0.iter().map(cycles).sum::<u64>() as f64;
        let (followed, skipped) = (sum(|pair| pair.followed), sum(|pair| pair.skipped));
        if number < 2 || followed == 0.0 {
            return None;
        }
        let ratio = skipped / followed;
        let squares: f64 = self.0.iter().map(|pair| (pair.skipped as f64 - ratio * pair.followed as f64).powi(2)).sum();
        let variance = squares * number as f64 / (number - 1) as f64;
        Some(Bias { relative: ratio - 1.0, standard_error: variance.sqrt() / followed, trials: number })
    }

    /// Returns whether the bias is less than `limit`, as far as trials show.
    pub(super) fn verdict(&self, limit: f64) -> Verdict {
        let Some(Bias { relative, standard_error, trials }) = self.bias().filter(|bias| bias.trials >= FEWEST) else {
            return Verdict::Open;
        };
        let (bias, doubt) = (relative.abs(), 2.0 * standard_error);
        if bias > limit + doubt || trials >= MANY && bias > limit {
            Verdict::TooLittle
        } else if bias + doubt <= limit || trials >= MANY {
            Verdict::Enough
        } else {
            Verdict::Open
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(pairs: impl IntoIterator<Item = (u64, u64)>) -> Trials {
        let mut trials = Trials::default();
        pairs.into_iter().for_each(|(followed, skipped)| trials.add(Pair { followed, skipped }));
        trials
    }

    #[test]
    fn trials_that_agree_show_the_bias_without_error() {
        let bias = trials([(1000, 1010); 10]).bias().expect("a bias");
        assert!((bias.relative - 0.01).abs() < 1e-12 && bias.standard_error < 1e-12 && bias.trials == 10);
        assert!(trials([(1000, 1010)]).bias().is_none());
    }

    #[test]
    fn the_error_is_that_of_the_mean_of_independent_windows() {
        // Half of the windows take 4 % longer, half 4 % less: the standard deviation is 4 %, that of the mean a sixth of it.
        let bias = trials((0..36).map(|n| (1000, if n % 2 == 0 { 1040 } else { 960 }))).bias().expect("a bias");
        assert!(bias.relative.abs() < 1e-12);
        assert!((bias.standard_error / (0.04 / 6.0) - 1.0).abs() < 0.02, "{bias:?}");
    }

    #[test]
    fn few_clear_trials_are_enough_and_unclear_ones_are_judged_in_the_end() {
        assert_eq!(trials([(1000, 1001); 7]).verdict(0.005), Verdict::Open);
        assert_eq!(trials([(1000, 1001); 8]).verdict(0.005), Verdict::Enough);
        assert_eq!(trials([(1000, 1020); 8]).verdict(0.005), Verdict::TooLittle);
        let unclear = |number: u64, more: u64| {
            trials((0..number).map(|n| (1000, if n % 2 == 0 { 1040 + more } else { 960 + more })))
        };
        assert_eq!(unclear(30, 3).verdict(0.005), Verdict::Open);
        assert_eq!(unclear(32, 3).verdict(0.005), Verdict::Enough);
        assert_eq!(unclear(32, 8).verdict(0.005), Verdict::TooLittle);
    }
}
