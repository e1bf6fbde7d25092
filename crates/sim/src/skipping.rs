//! Blocks of a sampled run that are neither timed nor followed: they are executed many at a time, and counted.

use fxscope_aarch64::{BlockId, Engine};
use fxscope_calendar::Cycle;

use crate::following::FollowedTo;
use crate::part::Part;
use crate::quantum::Running;
use crate::sampling::Sampling;
use crate::spin_skip::Spin;
use crate::timing::Driver;

/// Cycles that a core which skips blocks may be ahead of the others. Blocks that synchronise are not skipped, and wait for their turn.
const AHEAD: Cycle = 2_000;

/// Simulated time that no run reaches, ns, but whose cycles are a number.
const LATEST: u64 = 1 << 56;

/// Fewest instructions that are worth it.
const FEWEST: u64 = 200;

/// Blocks of a process among which executions are looked for in the time in which an instruction is followed.
const BLOCKS_PER_INSTRUCTION: u64 = 128;

/// Times in a row that skipping may take longer than following would have, and the most blocks that a core then follows before it tries again.
const TRIES: u32 = 8;
const LONGEST_WAIT: u32 = 256;

/// How many blocks a core follows before it tries to skip some again: code that synchronises every few blocks, such as a library for messages
/// that waits, is followed in less time than it is skipped bit by bit.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct Backoff {
    /// Times in a row that few could be skipped.
    in_vain: u32,
    /// Blocks to follow.
    left: u32,
}

impl Backoff {
    /// Instructions were skipped of a process that has this many blocks.
    fn skipped(&mut self, instructions: u64, blocks: usize) {
        let is_in_vain = instructions < blocks as u64 / BLOCKS_PER_INSTRUCTION;
        self.in_vain = if is_in_vain { self.in_vain.saturating_add(1) } else { 0 };
        let doublings = self.in_vain.saturating_sub(TRIES).min(LONGEST_WAIT.ilog2());
        self.left = if self.in_vain > TRIES { 1 << doublings } else { 0 };
    }

    /// A block was followed.
    #[inline(always)]
    pub(crate) fn followed(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Returns whether the next block is followed.
    #[inline(always)]
    pub(crate) fn waits(&self) -> bool {
        self.left > 0
    }
}

impl<E: Engine> Driver<'_, E> {
    /// Skips blocks of the active core as far as the sample and the order of cores allow, up to one for which there is more to do. A run
    /// pauses behind them, so that it does the same with pauses and without.
    pub(crate) fn skip_blocks(
        &mut self,
        running: &mut Running,
        blocks: &mut u64,
        sampling: &mut Sampling,
    ) -> FollowedTo {
        let before = self.guest.instructions();
        let ahead = self.instructions_ahead(running, sampling);
        if ahead == 0 {
            return FollowedTo::Block;
        }
        self.execute_skipped(ahead, sampling, blocks);
        running.follows_next = true;
        let after = self.guest.instructions();
        self.timing.machine.core_mut().backoff.skipped(after - before, self.code.engine().len());
        if self.options.max_instructions.is_some_and(|max| after >= max) {
            *blocks = 0;
        }
        if after == before {
            return FollowedTo::Block;
        }
        self.first_touches();
        if running.others_spin && self.guest.memory().has_written() {
            self.watched_written(self.timing.now());
            return FollowedTo::End;
        }
        if self.guest.cpu_changes() == self.timing.changes {
            self.reach(self.timing.now().min(running.quantum.in_order));
        }
        match self.is_over(running) {
            true => FollowedTo::End,
            false if after >= self.pause_at => FollowedTo::Pause,
            false => FollowedTo::Block,
        }
    }

    /// Returns how many instructions the active core may skip; 0: none, or too few.
    fn instructions_ahead(&self, running: &Running, sampling: &Sampling) -> u64 {
        let core = self.timing.machine.core();
        let event = core.cycle_at(self.guest.next_event_ns().min(LATEST));
        let until = running.quantum.in_order.saturating_add(AHEAD).min(event);
        let most = sampling.instructions_in(until.saturating_sub(self.timing.now()));
        let end = self.part.as_deref().map_or(u64::MAX, Part::end_instructions);
        let limit =
            self.options.max_instructions.unwrap_or(u64::MAX).min(end).saturating_sub(self.guest.instructions());
        let planned = sampling.may_skip().min(limit);
        if most < FEWEST.min(planned) || self.guest.in_exclusive() { 0 } else { planned.min(most) }
    }

    /// Executes about `most` instructions of the active core, and counts them.
    fn execute_skipped(&mut self, most: u64, sampling: &mut Sampling, blocks: &mut u64) {
        let (pid, stop) = (self.guest.pid(), self.guest.instructions() + most);
        let guest = &*self.guest;
        sampling.forget_ended(guest.process_count(), |pid| guest.has_process(pid));
        // The code is that of the process which ran last, on any core, until the guest runs. One that has no engine yet has run nothing.
        let Some(engine) = self.code.of_process(pid) else { return };
        let synchronises = |id| engine.block(id).synchronises;
        sampling.prepare_to_skip(pid, engine.len(), &self.timing.machine.core().blocks, synchronises);
        let (mut cost, mut stopped, mut in_vain) = (0, None, false);
        while self.guest.instructions() < stop {
            let before = self.guest.instructions();
            let mut counting = sampling.counting(pid);
            self.guest.run_counted(self.code, stop - before, &mut counting);
            (cost, stopped) = (cost + counting.cost, counting.stopped);
            let was_in_vain = std::mem::replace(&mut in_vain, self.guest.instructions() == before);
            if self.guest.has_trap() || in_vain && was_in_vain || !self.may_continue(pid, sampling) {
                break;
            }
        }
        let (core, chip) = self.timing.machine.running();
        core.calls.charge(core.pipeline.now());
        core.pipeline.skip(cost, chip);
        self.add_skipped(sampling, stopped, blocks);
        self.find_calls();
    }

    /// Returns whether the next block may be skipped although it had no cost: it does not, or the core knows it by now.
    fn may_continue(&self, pid: u32, sampling: &mut Sampling) -> bool {
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

    /// Has the loop in which the active core spins be timed from now on, if there is one.
    #[cold]
    pub(crate) fn time_spin_loop(&mut self, sampling: &mut Sampling) {
        let core = self.timing.machine.core();
        let Spin::Spins(summary) = &core.spin else { return };
        for id in summary.iteration.path.iter().map(|part| part.id) {
            let Some(block) = core.blocks.get(id.0 as usize).and_then(Option::as_ref) else { continue };
            if sampling.time_spinning(self.guest.pid(), id, block) {
                // Translated code does not ask whether it may be skipped.
                self.code.look_up_again(self.code.block(id).start);
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_skips_little_again_and_again_follows_twice_as_many_blocks_each_time_before_it_tries_again() {
        let mut backoff = Backoff::default();
        let followed = |backoff: &mut Backoff, instructions| {
            backoff.skipped(instructions, 1_280);
            let mut blocks = 0;
            while backoff.waits() {
                backoff.followed();
                blocks += 1;
            }
            blocks
        };
        let waits: Vec<u32> = (0..20).map(|_| followed(&mut backoff, 9)).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 256, 256, 256, 256]);
        // Ten instructions are as many as it takes to look through the blocks of the process.
        assert_eq!((followed(&mut backoff, 10), followed(&mut backoff, 9)), (0, 0));
    }
}
