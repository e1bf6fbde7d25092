//! Which blocks of a sampled run are neither timed nor followed, and what is known of them.
//!
//! The caches, translations and predictors of a run are warm in a window if enough is followed before it. What comes before that is
//! *skipped*: executed at the speed of a functional run, and only counted.

use std::collections::BTreeMap;

use fxscope_aarch64::{BlockId, Counting};
use fxscope_calendar::Cycle;
use fxscope_pipeline::{BoundBlock, COST_UNIT};
use fxscope_sampling::{Follow, Plan, Window};
use serde::{Deserialize, Serialize};

use super::Sampling;
use super::trial::{Bias, Pair, Trials, Verdict};

/// Most instructions of each core that are skipped between two looks at the schedule: the code may become one that windows have hardly
/// seen.
const LEG: u64 = 100_000;

/// Blocks whose executions are looked at together: most have none.
const TOGETHER: usize = 32;

/// Fewer instructions are not worth it, in windows.
const SHORTEST: u64 = 4;

/// Instructions that are followed at first, where trials decide, in windows.
const FIRST_FOLLOW: u64 = 40;

/// Windows for each of which there is a trial, once trials have found the bias small enough.
const TRIAL: u64 = 16;

/// What is followed before a window is divided by this: in the first part, caches are cold, and what depends on them is not counted.
const COLD: u64 = 2;

/// How much more is followed in a trial than before other windows.
const REACH: u64 = 16;

/// The bias of windows after skipped code that is small enough, as a share of the error that is asked for.
const BIAS: f64 = 0.25;

/// Instructions of each core by which less may have been followed before a window than is planned.
const NEARLY: u64 = 4_000;

/// What is skipped.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Skip {
    /// Instructions of each core that are followed before a window; `None`: all are.
    follow: Option<u64>,
    /// Whether trials decide on them.
    is_tried: bool,
    /// The fewest instructions of each core that are skipped.
    shortest: u64,
    trials: Trials,
    /// Trials have found the bias small enough.
    is_proven: bool,
    /// Windows before which blocks could be skipped, and the number of windows when the last of these was planned.
    gaps: u64,
    planned_at: u64,
    /// There is a trial before the next window, and it has begun.
    is_trial: bool,
    has_begun: bool,
    /// What is executed until the next look at the schedule may be skipped.
    is_on: bool,
    /// Instructions of all cores that have been followed since some were skipped, and those after which caches are warm.
    followed: u64,
    warm_after: u64,
    /// A window that begins when enough has been followed.
    waiting: Option<Window>,
    /// What executions of blocks cost that are skipped, by process.
    costs: BTreeMap<u32, Costs>,
    /// Instructions that were skipped.
    pub(super) instructions: u64,
    /// Executions of blocks since they were last added to what is known of them: none, except while blocks are skipped.
    #[serde(skip)]
    executions: Vec<u32>,
}

/// What executions of the blocks of a process cost, by their number in its engine; 0: the block is not skipped.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Costs {
    of: Vec<u32>,
    /// The windows from which they follow.
    windows: u64,
}

/// Returns whether a block may be skipped: it does nothing that the driver must know at once.
fn may_skip(block: &BoundBlock, synchronises: bool) -> bool {
    !(block.marked || block.controls || block.enters_kernel || block.reads_time || synchronises)
}

impl Skip {
    pub(super) fn new(plan: &Plan) -> Skip {
        let is_tried = plan.follow == Follow::Auto;
        let follow = match plan.follow {
            Follow::All => None,
            Follow::Auto => Some(FIRST_FOLLOW * plan.window),
            Follow::Instructions(number) => Some(number),
        };
        Skip {
            follow,
            is_tried,
            shortest: SHORTEST * plan.window,
            trials: Trials::default(),
            is_proven: false,
            gaps: 0,
            planned_at: u64::MAX,
            is_trial: false,
            has_begun: false,
            is_on: false,
            followed: u64::MAX / 2,
            warm_after: 0,
            waiting: None,
            costs: BTreeMap::new(),
            instructions: 0,
            executions: Vec::new(),
        }
    }

    /// Instructions were followed, of all cores together.
    #[inline(always)]
    pub(super) fn followed(&mut self, instructions: u64) {
        self.followed += instructions;
    }

    /// Blocks were skipped; `cores` cores run.
    fn skipped(&mut self, instructions: u64, cores: u64) {
        self.instructions += instructions;
        self.followed = 0;
        self.warm_after = self.follow.unwrap_or(0).saturating_mul(cores) / COLD;
    }

    /// Returns whether so little has been followed since blocks were skipped that caches, translations and predictors are not yet as if nothing had
    /// been.
    #[inline(always)]
    pub(super) fn is_cold(&self) -> bool {
        self.followed < self.warm_after
    }

    /// Returns whether a window waits until enough has been followed.
    pub(super) fn has_window(&self) -> bool {
        self.waiting.is_some()
    }

    /// A window is due, which begins when enough has been followed.
    pub(super) fn wait(&mut self, window: Window) {
        (self.is_on, self.waiting) = (false, Some(window));
    }

    /// Returns the window that waits, if it begins now.
    ///
    /// # Errors
    /// The number of instructions of all cores to be followed before that.
    pub(super) fn due(&mut self, cores: u64) -> Result<Window, u64> {
        let left = self.follow.map_or(0, |follow| follow.saturating_mul(cores).saturating_sub(self.followed));
        if left <= NEARLY * cores
            && let Some(window) = self.waiting.take()
        {
            return Ok(window);
        }
        Err(left.max(1))
    }

    /// Plans what is done with the `until` instructions of each core that come before the next window, after `windows` windows.
    pub(super) fn plan(&mut self, until: u64, windows: u64) -> Ahead {
        let mut left = self.follow.map_or(0, |follow| until.saturating_sub(follow));
        self.is_on = false;
        if left < self.shortest {
            return Ahead::Follow;
        }
        if self.is_tried && self.planned_at != windows {
            (self.planned_at, self.gaps, self.has_begun) = (windows, self.gaps + 1, false);
            self.is_trial = !self.is_proven || self.gaps.is_multiple_of(TRIAL);
        }
        if self.is_trial {
            let tried = self.follow.map_or(0, |follow| follow.saturating_mul(REACH - 1));
            let before = left.saturating_sub(tried);
            if before < self.shortest {
                let has_begun = std::mem::replace(&mut self.has_begun, true);
                return if has_begun { Ahead::Follow } else { Ahead::Trial(left) };
            }
            left = before;
        }
        self.is_on = true;
        Ahead::Skip(left.min(LEG))
    }

    /// Learns from a trial. The bias may be a share of `error`.
    pub(super) fn learn(&mut self, cycles: Pair, error: f64) {
        if cycles.followed == 0 {
            return;
        }
        self.trials.add(cycles);
        match self.trials.verdict(BIAS * error) {
            Verdict::Open => {}
            Verdict::Enough => self.is_proven = true,
            Verdict::TooLittle => {
                self.is_proven = false;
                self.trials.clear();
                self.follow = self.follow.map(|follow| follow.saturating_mul(2));
            }
        }
    }

    /// Returns what was skipped; `None`: nothing.
    pub(super) fn summary(&self) -> Option<SkipSummary> {
        let follow = self.follow.filter(|_| self.instructions > 0)?;
        Some(SkipSummary { instructions: self.instructions, follow, bias: self.trials.bias() })
    }
}

/// What comes before the next window, until the next look at the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ahead {
    /// Blocks are followed.
    Follow,
    /// This number of instructions of each core may be skipped.
    Skip(u64),
    /// A trial begins, in which this number of instructions of each core would be skipped.
    Trial(u64),
}

/// What was neither timed nor followed.
#[derive(Clone, Debug, PartialEq)]
pub struct SkipSummary {
    /// Its instructions.
    pub instructions: u64,
    /// Instructions of each core that were followed before each window, in the end.
    pub follow: u64,
    /// How much that changed windows, if it was tried.
    pub bias: Option<Bias>,
}

impl Sampling {
    /// Returns how many instructions may be skipped now.
    #[inline(always)]
    pub(crate) fn may_skip(&self) -> u64 {
        if self.skip.is_on && !self.spins && self.follows() { self.look_at - self.pending } else { 0 }
    }

    /// Returns the number of instructions that take this number of cycles, about.
    pub(crate) fn instructions_in(&self, cycles: Cycle) -> u64 {
        cycles.saturating_mul(COST_UNIT) / self.mean_cost.max(1)
    }

    /// Prepares to skip blocks of process `pid`, whose engine has `len` blocks, on a core that knows `blocks`. `synchronises` says of
    /// a block whether it synchronises.
    pub(crate) fn prepare_to_skip(
        &mut self,
        pid: u32,
        len: usize,
        blocks: &[Option<BoundBlock>],
        synchronises: impl Fn(BlockId) -> bool,
    ) {
        let windows = self.sample.windows();
        let costs = self.skip.costs.entry(pid).or_default();
        let is_old = costs.of.is_empty() || costs.windows != windows;
        costs.windows = windows;
        if costs.of.len() < len {
            costs.of.resize(len, 0);
        }
        if self.skip.executions.len() < len {
            self.skip.executions.resize(len, 0);
        }
        if is_old {
            for (id, block) in (0..).zip(blocks) {
                let Some(block) = block else { continue };
                self.learn_cost(pid, BlockId(id), block, &synchronises);
            }
        }
    }

    /// Learns what an execution of a block costs that is skipped. Returns whether it may be.
    pub(crate) fn learn_cost(
        &mut self,
        pid: u32,
        id: BlockId,
        block: &BoundBlock,
        synchronises: impl Fn(BlockId) -> bool,
    ) -> bool {
        let known = self.blocks.of(block);
        let may = may_skip(block, synchronises(id)) && !known.spins;
        let mean = (self.mean_cost * u64::from(known.instructions)).min(u32::MAX.into()) as u32;
        let cost = if known.mean_cost == 0 { mean } else { known.mean_cost };
        let costs = self.skip.costs.get_mut(&pid).and_then(|costs| costs.of.get_mut(id.0 as usize));
        // What may be skipped once is in translated code, which does not ask again.
        costs.into_iter().filter(|place| may || **place > 0).for_each(|place| *place = cost.max(1));
        may
    }

    /// A block of process `pid` belongs to a loop that was found to spin: it is timed from now on. Returns whether it could be skipped before.
    pub(crate) fn time_spinning(&mut self, pid: u32, id: BlockId, block: &BoundBlock) -> bool {
        self.blocks.of(block).spins = true;
        let costs = self.skip.costs.get_mut(&pid).and_then(|costs| costs.of.get_mut(id.0 as usize));
        costs.is_some_and(|cost| std::mem::take(cost) > 0)
    }

    /// A core begins to execute blocks: whether they belong to a loop that spins is not known.
    #[inline(always)]
    pub(crate) fn begin_to_follow(&mut self) {
        self.spins = false;
    }

    /// Returns whether the last block belongs to a loop that was found to spin, and no window is open.
    #[inline(always)]
    pub(crate) fn waits(&self) -> bool {
        self.spins && self.is_between_windows()
    }

    /// Returns whether a block belongs to a loop that was found to spin.
    #[inline(always)]
    pub(crate) fn spins(&mut self, block: &BoundBlock) -> bool {
        self.blocks.of(block).spins
    }

    /// Returns where skipped executions of the blocks of process `pid` are counted.
    pub(crate) fn counting(&mut self, pid: u32) -> Counting<'_> {
        let costs = self.skip.costs.get(&pid).map_or(&[][..], |costs| &costs.of);
        let executions = self.skip.executions.get_mut(..costs.len()).unwrap_or_default();
        Counting { costs, executions, cost: 0, stopped: None }
    }

    /// Takes the executions that were counted, by block.
    pub(crate) fn take_executions(&mut self) -> Vec<(BlockId, u32)> {
        let mut taken = Vec::new();
        for (number, counts) in self.skip.executions.chunks_mut(TOGETHER).enumerate() {
            if counts.iter().fold(0, |any, count| any | count) == 0 {
                continue;
            }
            for (place, count) in counts.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
                taken.push((BlockId((number * TOGETHER + place) as u32), std::mem::take(count)));
            }
        }
        taken
    }

    /// A block was executed `executions` times, or as far as `instructions` instructions of it, without being followed.
    pub(crate) fn skipped(&mut self, block: &BoundBlock, executions: u64, instructions: u64) {
        let known = self.blocks.of(block);
        known.executions += executions;
        known.unknown += executions;
        known.clocked(executions * u64::from(known.mean_cost));
        let is_rare = self.schedule.is_rare(known.seen);
        self.pending += instructions;
        self.pending_rare += if is_rare { instructions } else { 0 };
        self.skip.skipped(instructions, self.cores());
    }

    /// Forgets the blocks of processes that have ended, of which there may be some if more than `processes` are known.
    pub(crate) fn forget_ended(&mut self, processes: usize, exists: impl Fn(u32) -> bool) {
        if self.skip.costs.len() > processes {
            self.skip.costs.retain(|&pid, _| exists(pid));
        }
    }

    /// Forgets the blocks of a process, whose code has changed.
    pub(crate) fn forget_costs(&mut self, pid: u32) {
        self.skip.costs.remove(&pid);
    }
}
