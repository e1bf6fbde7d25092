//! How much skipping changes what windows measure.
//!
//! In a *trial* all of what could be skipped is followed. A copy of all cores and of the chip is made where skipping would begin, and stays as
//! it is until as little is left as is followed after skipped code. From there on the copy of a core gets every block of the core, too,
//! and it is timed in the window. Blocks run in the order in which they do on the cores, and threads wait as they do there. What the window takes
//! on the copies, compared with what it takes on the cores, is the bias of windows after skipped code: both execute the same
//! instructions, so that few trials show it well.

use fxscope_aarch64::Cpu;
use fxscope_calendar::Cycle;
use fxscope_linux::Guest;
use fxscope_memory::Chip;
use fxscope_pipeline::{BoundBlock, Pipeline, Reach};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::trace::Trace;

/// A trial that has begun.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Trial {
    cores: Vec<CoreCopy>,
    chip: Chip,
    /// The copy that has the chip: that of the core of the last block.
    active: usize,
    /// Instructions of all cores until the copies follow, too.
    left: u64,
    /// Cycles of the window on the cores, and on their copies.
    cycles: Pair,
}

/// The copy of a core.
#[derive(Clone, Serialize, Deserialize)]
struct CoreCopy {
    pipeline: Pipeline,
    /// The clock of the core after its last block in the window; `None`: it has had none.
    last: Option<Cycle>,
}

/// Cycles of one window: with all followed before it, and after skipped code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pair {
    pub(super) followed: u64,
    pub(super) skipped: u64,
}

impl Pair {
    /// Returns the cycles of each of `cores` cores, on average. Where one thread runs, all others wait for it: a window of one core
    /// matters as much for the time of the run as one of many.
    pub(super) fn of_each(self, cores: u64) -> Pair {
        Pair { followed: self.followed / cores.max(1), skipped: self.skipped / cores.max(1) }
    }
}

impl Trial {
    /// Begins a trial in which `left` instructions of all cores would be skipped.
    pub(super) fn new(machine: &Machine, left: u64) -> Trial {
        let copy = |pipeline: &Pipeline| CoreCopy { pipeline: pipeline.clone(), last: None };
        let cores: Vec<CoreCopy> = machine.iter().map(|core| copy(&core.pipeline)).collect();
        let active = machine.core();
        let active = machine.iter().position(|core| std::ptr::eq(core, active)).expect("the active core exists");
        Trial { cores, chip: machine.chip.clone(), active, left, cycles: Pair::default() }
    }

    /// Makes the copy of the core of `pipeline` the active one. Returns whether there is one.
    fn enter(&mut self, pipeline: &Pipeline) -> bool {
        let is_copy = |copy: &CoreCopy| copy.pipeline.memory.is_same_core(&pipeline.memory);
        if self.cores.get(self.active).is_some_and(is_copy) {
            return true;
        }
        let Some(next) = self.cores.iter().position(is_copy) else { return false };
        if let Some(before) = self.cores.get_mut(self.active) {
            before.pipeline.suspend(&mut self.chip, true);
        }
        self.active = next;
        self.cores[next].pipeline.resume(&mut self.chip);
        true
    }

    /// A block is followed on the core of `pipeline`. Returns whether the trial continues: it does not if the core has run for the first
    /// time.
    pub(super) fn follow(
        &mut self,
        (pipeline, chip): (&Pipeline, &Chip),
        block: &BoundBlock,
        executed: usize,
        cpu: &Cpu,
    ) -> bool {
        if self.left > 0 {
            self.left = self.left.saturating_sub(executed as u64);
            if self.left == 0 {
                self.chip.take_frames_of(chip);
            }
            return true;
        }
        if !self.enter(pipeline) {
            return false;
        }
        let copy = &mut self.cores[self.active].pipeline;
        // Cores meet at the same times, whatever their copies find in the caches.
        copy.catch_up(pipeline.now(), &mut self.chip);
        copy.memory.take_pages_of(&pipeline.memory);
        copy.warm(block, executed, cpu.stream(), cpu.pc, &[0; Reach::COUNT], &mut self.chip);
        true
    }

    /// A block was timed on the core of `pipeline`, which began at `began`; it has taken `cycles` if it counts. Returns whether the trial
    /// continues: it does not if the window has begun too early, or the core has run for the first time.
    pub(super) fn time(
        &mut self,
        (pipeline, began): (&Pipeline, Cycle),
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
        cycles: Option<u64>,
    ) -> bool {
        if self.left > 0 || !self.enter(pipeline) {
            return false;
        }
        let CoreCopy { pipeline: copy, last } = &mut self.cores[self.active];
        match last.replace(pipeline.now()) {
            None => copy.catch_up(began, &mut self.chip),
            // Its thread has waited.
            Some(last) if began > last => copy.sleep(began - last),
            Some(_) => {}
        }
        copy.memory.take_pages_of(&pipeline.memory);
        copy.begin_timing();
        let (profile, before) = (block.profile.clone(), copy.measures());
        ().run(copy, &mut self.chip, block, executed, guest);
        block.profile = profile;
        if let Some(cycles) = cycles {
            self.cycles.followed += cycles;
            self.cycles.skipped += copy.measures().since(&before).cycles();
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
