//! The seam between the guest and what executes its code.
//!
//! An [`Engine`] finds the block at an address, runs it, and says what the timing model needs to know about its
//! instructions. The guest and the timing model know code only through it. [`Interpreter`](crate::Interpreter) is one.
//!
//! Every engine executes the same blocks in the same way: a block begins at the address that was asked for and ends
//! where [`StaticBlock::decode`] ends it; running it changes registers and memory as its instructions do one after the
//! other, and leaves their words in the dynamic stream.

use fxscope_guestmem::Memory;
use fxscope_isa::StaticInst;
use serde::{Deserialize, Serialize};

use crate::cpu::{Cpu, Trap};
use crate::table::{self, Ctx, Inst};

/// Longest block in instructions; longer runs are cut.
pub const MAX_BLOCK: usize = 64;

/// A dense number of a block, valid until the engine is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlockId(pub u32);

/// How the execution of a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Instructions that completed.
    pub executed: usize,
    /// Why it stopped early, or at a system call.
    pub trap: Option<Trap>,
}

impl Outcome {
    /// Instruction `at` of the block that begins at `start` has stopped it. Sets `cpu.pc` to the instruction to go on with.
    #[cold]
    pub fn stopped(start: u64, at: usize, cpu: &mut Cpu) -> Outcome {
        let completed = matches!(
            cpu.trap,
            Trap::SystemCall | Trap::CodeChanged | Trap::Window(_) | Trap::WaitForEvent | Trap::SendEvent
        );
        let executed = at + usize::from(completed);
        cpu.pc = start.wrapping_add(4 * executed as u64);
        Outcome { executed, trap: Some(cpu.trap) }
    }
}

/// What is known of a block without executing it. It is entered at its start and left at its end.
pub struct StaticBlock {
    /// Address of the first instruction.
    pub start: u64,
    /// Address behind the last instruction.
    pub end: u64,
    /// What the timing model needs to know, one for each instruction.
    pub infos: Box<[StaticInst]>,
    /// One of them synchronises ([`StaticInst::synchronises`]).
    pub synchronises: bool,
}

impl StaticBlock {
    /// The block of the instructions that `infos` describe, at `start`.
    #[must_use]
    pub fn new(start: u64, infos: Vec<StaticInst>) -> StaticBlock {
        StaticBlock {
            start,
            end: start.wrapping_add(4 * infos.len() as u64),
            synchronises: infos.iter().any(|info| info.synchronises),
            infos: infos.into(),
        }
    }

    /// Decodes the block at `start` for vectors of `vl` bytes, with its instructions as they are executed one at a time.
    ///
    /// # Errors
    /// When no code can be fetched at `start`.
    pub fn decode(start: u64, vl: usize, mem: &mut Memory) -> Result<(StaticBlock, Vec<Inst>), Trap> {
        if start & 3 != 0 {
            return Err(Trap::Misaligned(start));
        }
        let (mut insts, mut infos) = (Vec::new(), Vec::new());
        let mut pc = start;
        loop {
            let word = match mem.fetch(pc) {
                Ok(word) => word,
                Err(fault) if insts.is_empty() => return Err(Trap::Memory(fault)),
                // The fault is raised when execution gets there.
                Err(_) => break,
            };
            let c = Ctx { pc, vl };
            let d = table::decode(word, &c).unwrap_or_else(|| table::undecodable(&c));
            insts.push(d.inst);
            infos.push(d.info);
            pc = pc.wrapping_add(4);
            if d.ends_block || insts.len() == MAX_BLOCK {
                break;
            }
        }
        Ok((StaticBlock::new(start, infos), insts))
    }
}

/// Executes the code of one address space, block by block.
pub trait Engine: Sized {
    /// An engine that knows no block yet, for code that runs at vector length `vl` bytes.
    fn new(vl: usize) -> Self;

    /// The vector length in bytes that blocks are decoded for.
    fn vl(&self) -> usize;

    /// The block that starts at `pc`, if it is at hand; else [`Engine::find`] must be asked.
    fn lookup(&self, pc: u64) -> Option<BlockId>;

    /// The block that starts at `pc`, decoded now if it is new.
    ///
    /// # Errors
    /// When no code can be fetched there.
    fn find(&mut self, pc: u64, mem: &mut Memory) -> Result<BlockId, Trap>;

    /// Executes a block. Afterwards `cpu.pc` is the next instruction to execute; after a fault, the instruction that
    /// faulted. The dynamic stream holds the words of the executed instructions.
    fn run(&mut self, id: BlockId, cpu: &mut Cpu, mem: &mut Memory) -> Outcome;

    /// What is known of a block.
    fn block(&self, id: BlockId) -> &StaticBlock;

    /// The instructions of a block, to be executed one at a time ([`crate::spin`]).
    fn insts(&self, id: BlockId) -> Box<[Inst]>;

    /// Number of blocks: one more than the highest block number.
    fn len(&self) -> usize;

    /// Instructions of all blocks; those that several blocks have count for each.
    fn instructions(&self) -> usize;

    /// Whether there is no block yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets every block: code or vector length has changed.
    fn flush(&mut self, vl: usize) {
        *self = Self::new(vl);
    }

    /// The block that starts at `pc`, as [`Engine::lookup`] or [`Engine::find`] have it.
    ///
    /// # Errors
    /// When no code can be fetched there.
    #[inline(always)]
    fn at(&mut self, pc: u64, mem: &mut Memory) -> Result<BlockId, Trap> {
        match self.lookup(pc) {
            Some(id) => Ok(id),
            None => self.find(pc, mem),
        }
    }

    /// The start addresses of the blocks, in the order of their numbers.
    fn starts(&self) -> Vec<u64> {
        (0..self.len() as u32).map(|id| self.block(BlockId(id)).start).collect()
    }

    /// An engine with the blocks at these start addresses, which get the numbers that they have there.
    ///
    /// # Errors
    /// When no code can be fetched at one of them.
    fn decode(vl: usize, starts: &[u64], mem: &mut Memory) -> Result<Self, Trap> {
        let mut engine = Self::new(vl);
        for &start in starts {
            engine.find(start, mem)?;
        }
        Ok(engine)
    }
}
