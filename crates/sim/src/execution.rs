//! One execution of a block, as timing needs it.

use fxscope_isa::{Partial, Subnormal};
use fxscope_memory::Chip;
use fxscope_pipeline::{BoundBlock, Pipeline};

use crate::calls::ThreadCalls;

/// An execution of a block that is over, and what it has left.
#[derive(Clone, Copy)]
pub(crate) struct Execution<'a> {
    /// The instructions that completed, and the next address.
    pub(crate) instructions: usize,
    pub(crate) next_pc: u64,
    /// Their words of the dynamic stream.
    pub(crate) words: &'a [u64],
    /// Those of them that operated on some elements only, and that encountered subnormal numbers.
    pub(crate) partials: &'a [Partial],
    pub(crate) subnormals: &'a [Subnormal],
}

impl Execution<'_> {
    /// Times it on a core whose thread has these calls, and counts it.
    #[inline(always)]
    pub(crate) fn time(
        &self,
        block: &mut BoundBlock,
        calls: &mut ThreadCalls,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
    ) {
        let Execution { instructions, next_pc, words, partials, subnormals } = *self;
        calls.enters(block, pipeline.now());
        if partials.is_empty() {
            pipeline.run(block, instructions, words, next_pc, chip);
        } else {
            pipeline.run_partly(block, instructions, (words, partials), next_pc, &mut (), chip);
        }
        if !subnormals.is_empty() {
            pipeline.subnormals(block, subnormals);
        }
        block.count(instructions);
        calls.leaves(block, instructions, next_pc);
    }
}
