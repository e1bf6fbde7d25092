//! The loop of a sampled run between windows: blocks are executed and followed, one after the other.

use fxscope_aarch64::{BlockId, Cpu, Engine};
use fxscope_calendar::Cycle;
use fxscope_linux::guest::Follower;
use fxscope_memory::Chip;

use crate::core::Core;
use crate::quantum::{CLOCK_BLOCKS, Running};
use crate::sampling::Sampling;
use crate::timing::Driver;

/// How far blocks of a core have been followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowedTo {
    /// The end of the quantum.
    End,
    /// The place at which the run pauses.
    Pause,
    /// A block for which there is more to do, or the end of the blocks that may run.
    Block,
}

impl<E: Engine> Driver<'_, E> {
    /// Follows blocks of the active core, up to one for which there is more to do, or until `blocks` has fallen to `end`. Does what
    /// [`Driver::run_blocks`] would do with each of them. Blocks that need not be followed are skipped.
    pub(crate) fn follow_blocks(
        &mut self,
        running: &mut Running,
        blocks: &mut u64,
        end: u64,
        sampling: &mut Sampling,
    ) -> FollowedTo {
        sampling.begin_trial(&self.timing.machine);
        sampling.begin_to_follow();
        sampling.set_running(self.timing.clocks.busy().saturating_sub(self.timing.spinning.len()));
        let core = self.timing.machine.core();
        let more = running.watched || running.samples_events || self.progress.is_open();
        if more || core.untimed || core.called_kernel {
            return FollowedTo::Block;
        }
        while *blocks > end && sampling.follows() {
            if sampling.may_skip() > 0 && !running.follows_next && !self.timing.machine.core().backoff.waits() {
                let to = self.skip_blocks(running, blocks, sampling);
                if to != FollowedTo::Block || *blocks <= end || !sampling.follows() {
                    return to;
                }
            }
            let before = *blocks;
            let held = self.guest.is_held();
            let (core, chip) = self.timing.machine.running();
            let began = core.pipeline.now();
            let mut follows = Follows { sampling, core, chip, running, held, blocks, end, began };
            self.guest.run_for(self.code, &mut follows);
            let began = follows.began;
            if *blocks == before {
                return FollowedTo::Block;
            }
            running.follows_next = false;
            self.keep_time(running, *blocks);
            if running.others_spin && self.guest.memory().has_written() {
                self.watched_written(began);
                return FollowedTo::End;
            }
            if self.is_over(running) {
                return FollowedTo::End;
            }
        }
        FollowedTo::Block
    }
}

/// Follows blocks until the guest's clock is due, or the order of cores must be looked at.
struct Follows<'a> {
    sampling: &'a mut Sampling,
    core: &'a mut Core,
    chip: &'a mut Chip,
    running: &'a Running,
    /// Whether the guest stops before blocks that synchronise.
    held: bool,
    blocks: &'a mut u64,
    end: u64,
    /// When the last block began.
    began: Cycle,
}

impl Follower for Follows<'_> {
    #[inline(always)]
    fn block<'c>(&mut self, id: BlockId, execute: impl FnOnce() -> (usize, &'c Cpu)) -> bool {
        let Some(Some(block)) = self.core.blocks.get_mut(id.0 as usize) else { return false };
        if block.marked || block.controls || block.enters_kernel || self.sampling.spins(block) {
            return false;
        }
        *self.blocks -= 1;
        self.began = self.core.pipeline.now();
        self.core.calls.enters(block, self.began);
        let (executed, cpu) = execute();
        if executed > 0 {
            self.sampling.follow(&mut self.core.pipeline, self.chip, block, executed, cpu);
        }
        if !cpu.subnormals().is_empty() {
            self.core.pipeline.subnormals(block, cpu.subnormals());
        }
        block.count(executed);
        self.core.backoff.followed();
        self.core.calls.leaves(block, executed, cpu.pc);
        self.goes_on()
    }
}

impl Follows<'_> {
    /// Returns whether the next block may follow at once: see [`Driver::keep_time`] and [`Driver::is_over`].
    #[inline(always)]
    fn goes_on(&self) -> bool {
        let now = self.core.pipeline.now();
        let is_first = now <= self.running.quantum.in_order;
        let in_order = is_first || self.held && self.running.goes_on_at(now, self.chip);
        *self.blocks > self.end
            && !self.blocks.is_multiple_of(CLOCK_BLOCKS)
            && in_order
            && self.sampling.follows()
            && (self.core.backoff.waits() || self.sampling.may_skip() == 0)
    }
}
