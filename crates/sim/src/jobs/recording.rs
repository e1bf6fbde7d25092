//! The loop of a run that is recorded: blocks are executed, followed and recorded, one after the other.

use fxscope_aarch64::{BlockId, Cpu, Engine};
use fxscope_linux::Guest;
use fxscope_linux::guest::Follower;
use fxscope_memory::Chip;
use fxscope_pipeline::{BoundBlock, Pipeline};

use super::Records;
use crate::core::Core;
use crate::following::FollowedTo;
use crate::part::follow;
use crate::quantum::{CLOCK_BLOCKS, Running};
use crate::timing::Driver;
use crate::trace::Trace;

/// Follows and records all blocks.
pub(super) struct Recording;

impl Trace for Recording {
    /// All iterations are timed later.
    fn may_skip_iterations(&self) -> bool {
        false
    }

    #[inline(always)]
    fn records(&self) -> bool {
        true
    }

    #[inline(always)]
    fn run(
        &mut self,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
    ) {
        follow(pipeline, chip, block, executed, guest.cpu());
    }
}

impl<E: Engine> Driver<'_, E> {
    /// Records blocks of the active core, up to one for which there is more to do, or until `blocks` has fallen to `end`. Does what
    /// [`Driver::run_blocks`] would do with each of them.
    pub(crate) fn record_blocks(&mut self, running: &mut Running, blocks: &mut u64, end: u64) -> FollowedTo {
        let core = self.timing.machine.core();
        if running.samples_events || self.progress.is_open() || core.untimed || core.called_kernel {
            return FollowedTo::Block;
        }
        while *blocks > end {
            let before = *blocks;
            let (core, chip) = self.timing.machine.running();
            let Some(mut records) = core.records.take() else { return FollowedTo::Block };
            self.guest.run_for(self.code, &mut Recorder { records: &mut records, core, chip, blocks, end });
            self.timing.machine.core_mut().records = Some(records);
            if *blocks == before {
                return FollowedTo::Block;
            }
            self.keep_time(running, *blocks);
            if self.is_over(running) {
                return FollowedTo::End;
            }
        }
        FollowedTo::Block
    }
}

/// Records blocks until the guest's clock is due.
struct Recorder<'a> {
    records: &'a mut Records,
    core: &'a mut Core,
    chip: &'a mut Chip,
    blocks: &'a mut u64,
    end: u64,
}

impl Follower for Recorder<'_> {
    #[inline(always)]
    fn block<'c>(&mut self, id: BlockId, execute: impl FnOnce() -> (usize, &'c Cpu)) -> bool {
        let Core { blocks, pipeline, calls, .. } = &mut *self.core;
        let Some(Some(block)) = blocks.get_mut(id.0 as usize) else { return false };
        if block.marked || block.controls || block.enters_kernel {
            return false;
        }
        *self.blocks -= 1;
        calls.enters(block, pipeline.now());
        let (executed, cpu) = execute();
        follow(pipeline, self.chip, block, executed, cpu);
        self.records.push(id, executed, cpu);
        if !cpu.subnormals().is_empty() {
            pipeline.subnormals(block, cpu.subnormals());
        }
        block.count(executed);
        calls.leaves(block, executed, cpu.pc);
        *self.blocks > self.end && !self.blocks.is_multiple_of(CLOCK_BLOCKS)
    }
}
