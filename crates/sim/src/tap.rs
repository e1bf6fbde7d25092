//! A tap: somebody who is told of each block that is executed and timed.

use fxscope_isa::MemOp;
use fxscope_linux::Guest;
use fxscope_pipeline::{Pipeline, ResolvedBlock};

use crate::trace::Trace;

/// A block that was executed and timed.
pub struct Ran<'a> {
    /// The thread that executed it is in place; its dynamic stream is that of the block. A system call at the end of the
    /// block has not been answered yet.
    pub process: &'a mut Guest,
    /// The core that timed it.
    pub pipeline: &'a mut Pipeline,
    /// The block.
    pub block: &'a ResolvedBlock,
    /// Number of its instructions that completed.
    pub executed: usize,
}

/// A memory access of an instruction.
pub struct MemoryAccess<'a> {
    /// Address of the instruction.
    pub pc: u64,
    /// What it does.
    pub op: &'a MemOp,
    /// Where: its words of the dynamic stream (`fxscope_isa::mem`).
    pub words: &'a [u64],
}

impl Ran<'_> {
    /// The memory accesses of the instructions that completed, in program order.
    pub fn accesses(&self) -> impl Iterator<Item = MemoryAccess<'_>> {
        let mut stream = self.process.cpu().stream();
        let start = self.block.start;
        self.block.mem[..self.executed].iter().enumerate().filter_map(move |(i, mem)| {
            let mem = mem.as_ref()?;
            let (words, rest) = stream.split_at(usize::from(mem.words));
            stream = rest;
            Some(MemoryAccess { pc: start + 4 * i as u64, op: &mem.op, words })
        })
    }
}

/// Somebody who is told of blocks.
pub trait BlockObserver {
    /// Whether rounds of waiting loops that repeat themselves exactly need not be told of.
    const SKIPS_ROUNDS: bool;

    /// A block ran.
    fn ran(&mut self, ran: &mut Ran<'_>);
}

/// Tells an observer of all that is timed.
pub(crate) struct Tap<'o, O>(pub(crate) &'o mut O);

impl<O: BlockObserver> Trace for Tap<'_, O> {
    const FAST: bool = O::SKIPS_ROUNDS;

    fn run(&mut self, pipeline: &mut Pipeline, block: &mut ResolvedBlock, executed: usize, process: &mut Guest) {
        ().run(pipeline, block, executed, process);
        self.0.ran(&mut Ran { process, pipeline, block, executed });
    }
}
