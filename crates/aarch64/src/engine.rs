//! The interface between the guest and what executes its code.
//!
//! An [`Engine`] finds the block at an address, executes it, and describes its instructions to the timing model. The guest and
//! the timing model use code only through this interface. [`Interpreter`](crate::Interpreter) is the reference implementation.
//!
//! All engines execute the same blocks with the same effects: a block starts at the requested address and ends where
//! [`StaticBlock::decode`] ends it. Executing it changes registers and memory as executing its instructions one after the other
//! does, and leaves their words in the dynamic stream.

use fxscope_guestmem::Memory;
use fxscope_isa::StaticInst;
use serde::{Deserialize, Serialize};

use crate::cpu::{Cpu, Trap};
use crate::table::{self, Ctx, Inst};

/// Maximum length of a block in instructions; longer sequences are split.
pub const MAX_BLOCK: usize = 64;

/// The number of a block, dense, valid until the engine is flushed.
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
    /// Returns the outcome of a block at `start` that its instruction `at` has stopped, and sets `cpu.pc` to the next instruction
    /// to execute.
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

/// Why [`Engine::run_until`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The instructions are done.
    Done,
    /// [`Engine::lookup`] does not return the block at `cpu.pc`.
    Unknown,
    /// The last block stopped early, or at a system call.
    Trap(Trap),
}

/// What [`Engine::run_counted`] counts.
pub struct Counting<'t> {
    /// What an execution of each block costs, by its number. A block without cost, 0 or none, is not executed.
    pub costs: &'t [u32],
    /// How often each block was executed as a whole: as many numbers as `costs` has. They wrap around.
    pub executions: &'t mut [u32],
    /// What these executions cost.
    pub cost: u64,
    /// The block that a trap has stopped, and the number of its instructions that completed. It is not in `executions`.
    pub stopped: Option<(BlockId, usize)>,
}

impl Counting<'_> {
    /// Returns what an execution of a block costs, if the block may be executed.
    #[inline(always)]
    #[must_use]
    pub fn cost_of(&self, id: BlockId) -> Option<u32> {
        self.costs.get(id.0 as usize).copied().filter(|&cost| cost > 0)
    }

    /// Notes that a block was executed at this cost, or was stopped. Returns the trap that has stopped it.
    #[inline(always)]
    pub fn ran(&mut self, id: BlockId, cost: u32, outcome: Outcome) -> Option<Trap> {
        if outcome.trap.is_some() {
            self.stopped = Some((id, outcome.executed));
        } else {
            let executions = &mut self.executions[id.0 as usize];
            *executions = executions.wrapping_add(1);
            self.cost += u64::from(cost);
        }
        outcome.trap
    }
}

/// The static description of a block: a sequence of instructions that is entered at its start and left at its end.
pub struct StaticBlock {
    /// Address of the first instruction.
    pub start: u64,
    /// Address after the last instruction.
    pub end: u64,
    /// What the timing model needs to know, one entry per instruction.
    pub infos: Box<[StaticInst]>,
    /// Whether one of them synchronises ([`StaticInst::synchronises`]).
    pub synchronises: bool,
}

impl StaticBlock {
    /// Returns the block at `start` whose instructions `infos` describe.
    #[must_use]
    pub fn new(start: u64, infos: Vec<StaticInst>) -> StaticBlock {
        StaticBlock {
            start,
            end: start.wrapping_add(4 * infos.len() as u64),
            synchronises: infos.iter().any(|info| info.synchronises),
            infos: infos.into(),
        }
    }

    /// Decodes the block at `start` for vectors of `vl` bytes. Returns its instructions, too, in a form that can be executed.
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
                // The fault is raised when execution reaches this instruction.
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
    /// Returns an engine without blocks for code that runs at vector length `vl` bytes.
    fn new(vl: usize) -> Self;

    /// Returns the vector length in bytes that the blocks are decoded for.
    fn vl(&self) -> usize;

    /// Returns the block that starts at `pc`, if the engine can find it quickly; otherwise the caller asks [`Engine::find`].
    fn lookup(&self, pc: u64) -> Option<BlockId>;

    /// Returns the block that starts at `pc`; decodes it if it is new.
    ///
    /// # Errors
    /// When no code can be fetched there.
    fn find(&mut self, pc: u64, mem: &mut Memory) -> Result<BlockId, Trap>;

    /// Makes [`Engine::lookup`] not return the block that starts at `pc` until [`Engine::find`] has returned it again.
    fn hide(&mut self, pc: u64);

    /// Executes a block. Afterwards `cpu.pc` is the next instruction to execute or, after a fault, the instruction that faulted.
    /// The dynamic stream holds the words of the executed instructions.
    fn run(&mut self, id: BlockId, cpu: &mut Cpu, mem: &mut Memory) -> Outcome;

    /// Executes blocks one after the other, the first one at `cpu.pc`, until at least `instructions` instructions are done (a block
    /// is not cut short), [`Engine::lookup`] does not return the next block, or a block stops. Returns the number of instructions
    /// that completed. The dynamic stream is unspecified afterwards; all else is as after [`Engine::run`] for each block.
    #[inline(always)]
    fn run_until(&mut self, cpu: &mut Cpu, mem: &mut Memory, instructions: u64) -> (u64, Exit) {
        let mut done = 0;
        while done < instructions {
            let Some(id) = self.lookup(cpu.pc) else { return (done, Exit::Unknown) };
            let outcome = self.run(id, cpu, mem);
            done += outcome.executed as u64;
            if let Some(trap) = outcome.trap {
                return (done, Exit::Trap(trap));
            }
        }
        (done, Exit::Done)
    }

    /// Executes blocks as [`Engine::run_until`] does, but only those that have a cost: in front of another one it returns
    /// [`Exit::Unknown`]. Counts how often each was executed.
    fn run_counted(
        &mut self,
        cpu: &mut Cpu,
        mem: &mut Memory,
        instructions: u64,
        counting: &mut Counting<'_>,
    ) -> (u64, Exit) {
        let mut done = 0;
        while done < instructions {
            let Some(id) = self.lookup(cpu.pc) else { return (done, Exit::Unknown) };
            let Some(cost) = counting.cost_of(id) else { return (done, Exit::Unknown) };
            let outcome = self.run(id, cpu, mem);
            done += outcome.executed as u64;
            if let Some(trap) = counting.ran(id, cost, outcome) {
                return (done, Exit::Trap(trap));
            }
        }
        (done, Exit::Done)
    }

    /// Returns the description of a block.
    fn block(&self, id: BlockId) -> &StaticBlock;

    /// Returns the instructions of a block, to be executed one at a time ([`crate::spin`]).
    fn insts(&self, id: BlockId) -> Box<[Inst]>;

    /// Returns the number of blocks: one more than the highest block number.
    fn len(&self) -> usize;

    /// Returns the number of instructions in all blocks; an instruction in several blocks counts for each.
    fn instructions(&self) -> usize;

    /// Returns whether there is no block yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an engine without blocks that executes code in the same way as this one, at vector length `vl` bytes.
    fn another(&self, vl: usize) -> Self {
        Self::new(vl)
    }

    /// Drops every block: the code or the vector length has changed.
    fn flush(&mut self, vl: usize) {
        *self = self.another(vl);
    }

    /// Returns the block that starts at `pc`, from [`Engine::lookup`] or else [`Engine::find`].
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

    /// Returns the start addresses of the blocks, in the order of their numbers.
    fn starts(&self) -> Vec<u64> {
        (0..self.len() as u32).map(|id| self.block(BlockId(id)).start).collect()
    }
}
