//! Following what is outside of the part.

use fxscope_aarch64::Cpu;
use fxscope_linux::Guest;
use fxscope_memory::Chip;
use fxscope_pipeline::{BoundBlock, COST_UNIT, Pipeline, Reach};

use crate::trace::Trace;

/// Follows all blocks without timing them, and passes them on to the trace of the part. The clock advances by a cycle for each instruction.
pub(crate) struct Following<'t, T: ?Sized>(pub(crate) &'t mut T);

/// Follows the first `executed` instructions of a block, which left `cpu` behind.
#[inline(always)]
pub(crate) fn follow(pipeline: &mut Pipeline, chip: &mut Chip, block: &BoundBlock, executed: usize, cpu: &Cpu) {
    let cost = (COST_UNIT * executed as u64) as u32;
    pipeline.warm(block, executed, cpu.stream(), cpu.pc, &[cost; Reach::COUNT], chip);
}

impl<T: Trace + ?Sized> Trace for Following<'_, T> {
    fn may_skip_iterations(&self) -> bool {
        true
    }

    /// Iterations that may be skipped are timed: the clock advances by what the loop takes.
    fn run_watched(
        &mut self,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
    ) {
        if executed > 0 {
            pipeline.begin_timing();
            ().run(pipeline, chip, block, executed, guest);
            self.0.followed(pipeline, block, executed, guest);
        }
    }

    fn run(
        &mut self,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
    ) {
        follow(pipeline, chip, block, executed, guest.cpu());
        self.0.followed(pipeline, block, executed, guest);
    }
}
