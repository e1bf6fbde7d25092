//! The loop of a sampled run between windows: blocks are executed and followed, one after the other.

use fxscope_aarch64::Engine;

use crate::sampling::Sampling;
use crate::timing::{Driver, Running};

impl<E: Engine> Driver<'_, E> {
    /// Follows blocks of the active core, up to one for which there is more to do, or until `blocks` has fallen to `end`. Does what
    /// [`Driver::run_blocks`] would do with each of them. Returns whether the quantum is over.
    pub(crate) fn follow_blocks(
        &mut self,
        running: &mut Running,
        blocks: &mut u64,
        end: u64,
        sampling: &mut Sampling,
    ) -> bool {
        let core = self.timing.machine.core();
        let more = running.watched || running.others_spin || running.samples_events || self.progress.is_open();
        if more || core.untimed || core.called_kernel {
            return false;
        }
        while *blocks > end && sampling.follows() && self.follow_one(blocks, sampling) {
            self.keep_time(running, *blocks);
            if self.is_over(running) {
                return true;
            }
        }
        false
    }

    /// Executes and follows the next block. Returns `false`, and does nothing, if there is more to do than that.
    #[inline(always)]
    fn follow_one(&mut self, blocks: &mut u64, sampling: &mut Sampling) -> bool {
        let (core, chip) = self.timing.machine.running();
        let Some(id) = self.guest.known_block(self.code) else { return false };
        let Some(Some(block)) = core.blocks.get_mut(id.0 as usize) else { return false };
        if block.marked || block.controls || block.enters_kernel {
            return false;
        }
        *blocks -= 1;
        let (executed, cpu) = self.guest.execute(id, self.code);
        if executed > 0 {
            sampling.follow(&mut core.pipeline, chip, block, executed, cpu);
        }
        if !cpu.subnormals().is_empty() {
            core.pipeline.subnormals(block, cpu.subnormals());
        }
        block.count(executed);
        true
    }
}
