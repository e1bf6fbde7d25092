//! Observer: called after each timed block.

use fxscope_isa::MemOp;
use fxscope_linux::Guest;
use fxscope_memory::Chip;
use fxscope_pipeline::{BoundBlock, Pipeline};

use crate::trace::Trace;

/// A block that was executed and timed.
pub struct BlockEvent<'a> {
    /// The guest. Its current thread executed the block, and its dynamic stream is that of the block. A system call at
    /// the end of the block has not been served yet.
    pub guest: &'a mut Guest,
    /// The core that timed it.
    pub pipeline: &'a mut Pipeline,
    /// The block.
    pub block: &'a BoundBlock,
    /// Number of its instructions that completed.
    pub executed: usize,
}

/// A memory access of an instruction.
pub struct MemoryAccess<'a> {
    /// Address of the instruction.
    pub pc: u64,
    /// The operation.
    pub op: &'a MemOp,
    /// Its addresses: its words of the dynamic stream (`fxscope_isa::mem`).
    pub words: &'a [u64],
}

impl BlockEvent<'_> {
    /// The memory accesses of the instructions that completed, in program order.
    pub fn accesses(&self) -> impl Iterator<Item = MemoryAccess<'_>> {
        let mut stream = self.guest.cpu().stream();
        let start = self.block.start;
        self.block.tables.mem[..self.executed].iter().enumerate().filter_map(move |(i, mem)| {
            let mem = mem.as_ref()?;
            let (words, rest) = stream.split_at(usize::from(mem.words));
            stream = rest;
            Some(MemoryAccess { pc: start + 4 * i as u64, op: &mem.op, words })
        })
    }
}

/// Observes blocks.
pub trait BlockObserver {
    /// Returns whether iterations of spin loops may be skipped without a call.
    fn may_skip_iterations(&self) -> bool;

    /// A block ran.
    fn ran(&mut self, event: &mut BlockEvent<'_>);

    /// A block was followed that is not in the part of the run that is timed.
    fn followed(&mut self, _event: &mut BlockEvent<'_>) {}
}

/// Calls an observer after each timed block.
pub(crate) struct Observed<'o>(pub(crate) &'o mut dyn BlockObserver);

impl Trace for Observed<'_> {
    fn may_skip_iterations(&self) -> bool {
        self.0.may_skip_iterations()
    }

    fn run(
        &mut self,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
    ) {
        ().run(pipeline, chip, block, executed, guest);
        self.0.ran(&mut BlockEvent { guest, pipeline, block, executed });
    }

    fn followed(&mut self, pipeline: &mut Pipeline, block: &BoundBlock, executed: usize, guest: &mut Guest) {
        self.0.followed(&mut BlockEvent { guest, pipeline, block, executed });
    }
}
