//! Which blocks of a sampled run are neither timed nor followed, and what is known of them.
//!
//! The caches, translations and predictors of a run are warm in a window if enough is followed before it. What comes before that is
//! *skipped*: executed at the speed of a functional run, and only counted.

use std::collections::BTreeMap;

use fxscope_aarch64::{BlockId, Counting};
use fxscope_calendar::Cycle;
use fxscope_pipeline::{BoundBlock, COST_UNIT};
use fxscope_sampling::{Follow, Window};
use serde::{Deserialize, Serialize};

use super::Sampling;

/// Most instructions of each core that are skipped between two looks at the schedule: the code may become one that windows have hardly
/// seen.
const LEG: u64 = 100_000;

/// Fewer instructions are not worth it.
const SHORTEST: u64 = 20_000;

/// Instructions of each core by which less may have been followed before a window than is planned.
const NEARLY: u64 = 4_000;

/// What is skipped.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Skip {
    /// Instructions of each core that are followed before a window; `None`: all are.
    follow: Option<u64>,
    /// What is executed until the next look at the schedule may be skipped.
    is_on: bool,
    /// Instructions of all cores that have been followed since some were skipped.
    followed: u64,
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
    pub(super) fn new(follow: Follow) -> Skip {
        let follow = match follow {
            Follow::All => None,
            Follow::Instructions(number) => Some(number),
        };
        Skip {
            follow,
            is_on: false,
            followed: u64::MAX / 2,
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

    /// Plans what is done with the `until` instructions of each core that come before the next window. Returns the number of
    /// instructions that may be skipped before the next look; 0: none.
    pub(super) fn plan(&mut self, until: u64) -> u64 {
        let left = self.follow.map_or(0, |follow| until.saturating_sub(follow));
        self.is_on = left >= SHORTEST;
        if self.is_on { left.min(LEG) } else { 0 }
    }
}

impl Sampling {
    /// Returns how many instructions may be skipped now.
    #[inline(always)]
    pub(crate) fn may_skip(&self) -> u64 {
        if self.skip.is_on && self.follows() { self.look_at - self.pending } else { 0 }
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
        let may = may_skip(block, synchronises(id));
        let known = self.blocks.of(block);
        let mean = (self.mean_cost * u64::from(known.instructions)).min(u32::MAX.into()) as u32;
        let cost = if known.mean_cost == 0 { mean } else { known.mean_cost };
        let costs = self.skip.costs.get_mut(&pid).and_then(|costs| costs.of.get_mut(id.0 as usize));
        costs.into_iter().for_each(|place| *place = if may { cost.max(1) } else { 0 });
        may
    }

    /// Returns where skipped executions of the blocks of process `pid` are counted.
    pub(crate) fn counting(&mut self, pid: u32) -> Counting<'_> {
        let costs = self.skip.costs.get(&pid).map_or(&[][..], |costs| &costs.of);
        let executions = self.skip.executions.get_mut(..costs.len()).unwrap_or_default();
        Counting { costs, executions, cost: 0, stopped: None }
    }

    /// Takes the executions that were counted, by block.
    pub(crate) fn take_executions(&mut self) -> Vec<(BlockId, u32)> {
        let executions = (0..).map(BlockId).zip(&mut self.skip.executions);
        executions.filter(|(_, count)| **count > 0).map(|(id, count)| (id, std::mem::take(count))).collect()
    }

    /// A block was executed `executions` times, or as far as `instructions` instructions of it, without being followed.
    pub(crate) fn skipped(&mut self, block: &BoundBlock, executions: u64, instructions: u64) {
        let known = self.blocks.of(block);
        known.executions += executions;
        let is_rare = self.schedule.is_rare(known.seen);
        self.pending += instructions;
        self.pending_rare += if is_rare { instructions } else { 0 };
        self.skip.instructions += instructions;
        self.skip.followed = 0;
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
