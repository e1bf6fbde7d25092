//! Blocks of a sampled run that are neither timed nor followed: they are executed many at a time, and counted.

use fxscope_aarch64::{BlockId, Engine};

use crate::following::FollowedTo;
use crate::quantum::Running;
use crate::sampling::Sampling;
use crate::timing::Driver;

/// Fewest instructions that are worth it.
const FEWEST: u64 = 200;

impl<E: Engine> Driver<'_, E> {
    /// Skips blocks of the active core as far as the sample and the quantum allow, up to one for which there is more to do.
    pub(crate) fn skip_blocks(
        &mut self,
        running: &mut Running,
        blocks: &mut u64,
        sampling: &mut Sampling,
    ) -> FollowedTo {
        let in_order = running.quantum.in_order.saturating_sub(self.timing.now());
        let (planned, in_order) = (sampling.may_skip(), sampling.instructions_in(in_order));
        if in_order < FEWEST.min(planned) {
            return FollowedTo::Block;
        }
        let before = self.guest.instructions();
        let most = planned.min(in_order).min(self.pause_at.saturating_sub(before));
        self.execute_skipped(most, sampling, blocks);
        if self.guest.instructions() >= self.pause_at {
            return FollowedTo::Pause;
        }
        if self.guest.instructions() == before {
            return FollowedTo::Block;
        }
        self.first_touches();
        if self.guest.cpu_changes() == self.timing.changes {
            self.reach(self.timing.now().min(running.quantum.in_order));
        }
        if self.is_over(running) { FollowedTo::End } else { FollowedTo::Block }
    }

    /// Executes about `most` instructions of the active core, and counts them.
    fn execute_skipped(&mut self, most: u64, sampling: &mut Sampling, blocks: &mut u64) {
        let (pid, stop) = (self.guest.pid(), self.guest.instructions() + most);
        let (guest, code) = (&*self.guest, &*self.code);
        sampling.forget_ended(guest.process_count(), |pid| guest.has_process(pid));
        let synchronises = |id| code.block(id).synchronises;
        sampling.prepare_to_skip(pid, code.engine().len(), &self.timing.machine.core().blocks, synchronises);
        let (mut cost, mut stopped, mut in_vain) = (0, None, false);
        while self.guest.instructions() < stop {
            let before = self.guest.instructions();
            let mut counting = sampling.counting(pid);
            self.guest.run_counted(self.code, stop - before, &mut counting);
            (cost, stopped) = (cost + counting.cost, counting.stopped);
            let was_in_vain = std::mem::replace(&mut in_vain, self.guest.instructions() == before);
            if self.guest.has_trap() || in_vain && was_in_vain || !self.may_go_on(pid, sampling) {
                break;
            }
        }
        let (core, chip) = self.timing.machine.running();
        core.pipeline.skip(cost, chip);
        self.add_skipped(sampling, stopped, blocks);
    }

    /// Returns whether the next block may be skipped although it had no cost: it does not, or the core knows it by now.
    fn may_go_on(&self, pid: u32, sampling: &mut Sampling) -> bool {
        let Some(id) = self.code.engine().lookup(self.guest.cpu().pc) else { return false };
        let block = self.timing.machine.core().blocks.get(id.0 as usize).and_then(Option::as_ref);
        block.is_some_and(|block| sampling.learn_cost(pid, id, block, |id| self.code.block(id).synchronises))
    }

    /// Adds the executions that were counted to what is known of blocks; `stopped` is a block that was executed in part.
    fn add_skipped(&mut self, sampling: &mut Sampling, stopped: Option<(BlockId, usize)>, blocks: &mut u64) {
        let whole = sampling.take_executions().into_iter().map(|(id, executions)| (id, u64::from(executions), None));
        let part = stopped.filter(|&(_, executed)| executed > 0).map(|(id, executed)| (id, 1, Some(executed)));
        for (id, executions, executed) in whole.chain(part) {
            let index = id.0 as usize;
            let core = self.timing.machine.core_mut();
            if core.blocks.get(index).is_none_or(Option::is_none) {
                core.bind(self.guest, id, self.code.block(id), &self.options.spec, &mut self.timing.known);
            }
            let block = core.blocks[index].as_mut().expect("just bound");
            block.count_skipped(executions, executed);
            let instructions = executed.unwrap_or(block.profile.len()) as u64;
            sampling.skipped(block, executions, executions * instructions);
            *blocks = blocks.saturating_sub(executions);
        }
    }

    /// Gives pages that were touched first their frames, and updates the guest's clock.
    fn first_touches(&mut self) {
        let pages = self.guest.memory().fresh().to_vec();
        self.set_clock();
        let (core, chip) = self.timing.machine.running();
        pages.into_iter().for_each(|page| core.pipeline.first_touch(page, chip));
    }
}
