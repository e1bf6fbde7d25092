//! Decoded basic blocks and their execution.

use std::collections::HashMap;

use fxscope_isa::StaticInst;

use crate::cpu::{Cpu, Trap};
use crate::governed::{Governed, governed};
use crate::table::{self, Ctx, Inst};
use fxscope_guestmem::Memory;

/// Maximum length of a block in instructions; longer sequences are split.
pub const MAX_BLOCK: usize = 64;

/// The number of a decoded block, dense, valid until the cache is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockId(pub u32);

/// A sequence of instructions that is entered at its start and left at its end.
pub struct Block {
    /// Address of the first instruction.
    pub start: u64,
    /// Address after the last instruction.
    pub end: u64,
    /// What to execute.
    pub insts: Box<[Inst]>,
    /// What the timing model needs to know, one entry per instruction.
    pub infos: Box<[StaticInst]>,
    /// Whether one of them synchronises ([`StaticInst::synchronises`]).
    pub synchronises: bool,
    /// Where governing predicates get their values.
    governed: Box<[Governed]>,
}

/// How the execution of a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Instructions that completed.
    pub executed: usize,
    /// Why it stopped early, or at a system call.
    pub trap: Option<Trap>,
}

/// Entries of the direct-mapped lookup table.
const FRONT: usize = 1 << 13;

/// All decoded blocks of one address space.
pub struct Blocks {
    list: Vec<Block>,
    by_start: HashMap<u64, u32>,
    /// Direct-mapped: start address and block number of recently used blocks.
    front: Box<[(u64, u32)]>,
    vl: usize,
    /// Instructions of all blocks.
    instructions: usize,
}

impl Blocks {
    /// Returns an empty cache for code that runs at vector length `vl` bytes.
    #[must_use]
    pub fn new(vl: usize) -> Blocks {
        Blocks {
            list: Vec::new(),
            by_start: HashMap::new(),
            front: vec![(u64::MAX, 0); FRONT].into(),
            vl,
            instructions: 0,
        }
    }

    /// Drops every block: the code or the vector length has changed.
    pub fn flush(&mut self, vl: usize) {
        *self = Blocks::new(vl);
    }

    /// Returns the vector length in bytes that the blocks are decoded for.
    #[must_use]
    pub fn vl(&self) -> usize {
        self.vl
    }

    /// Returns the block that starts at `pc`; decodes it if it is new. Fails when no code can be fetched there.
    #[inline(always)]
    pub fn at(&mut self, pc: u64, mem: &mut Memory) -> Result<BlockId, Trap> {
        let (start, id) = self.front[front_slot(pc)];
        if start == pc { Ok(BlockId(id)) } else { self.find(pc, mem) }
    }

    #[cold]
    fn find(&mut self, pc: u64, mem: &mut Memory) -> Result<BlockId, Trap> {
        let id = match self.by_start.get(&pc) {
            Some(&id) => id,
            None => {
                let block = decode_block(pc, self.vl, mem)?;
                self.instructions += block.insts.len();
                let id = u32::try_from(self.list.len()).expect("fewer than 2^32 blocks");
                self.list.push(block);
                self.by_start.insert(pc, id);
                id
            }
        };
        self.front[front_slot(pc)] = (pc, id);
        Ok(BlockId(id))
    }

    /// Returns a block by number.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, id: BlockId) -> &Block {
        &self.list[id.0 as usize]
    }
    /// Iterates over the start addresses of the blocks, in the order of their numbers.
    pub fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        self.list.iter().map(|block| block.start)
    }

    /// Decodes the blocks with these start addresses and numbers them in this order.
    ///
    /// # Errors
    /// When no code can be fetched at one of them.
    pub fn decode(vl: usize, starts: &[u64], mem: &mut Memory) -> Result<Blocks, Trap> {
        let mut blocks = Blocks::new(vl);
        for &start in starts {
            blocks.at(start, mem)?;
        }
        Ok(blocks)
    }

    /// Returns the number of blocks decoded since the last flush.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// Returns the number of instructions in these blocks; an instruction in several blocks counts for each.
    #[must_use]
    pub fn instructions(&self) -> usize {
        self.instructions
    }
    /// Returns whether nothing is decoded yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

fn front_slot(pc: u64) -> usize {
    (pc >> 2) as usize & (FRONT - 1)
}

fn decode_block(start: u64, vl: usize, mem: &mut Memory) -> Result<Block, Trap> {
    if start & 3 != 0 {
        return Err(Trap::Misaligned(start));
    }
    let mut insts = Vec::new();
    let mut infos = Vec::new();
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
    Ok(Block::new(start, insts, infos, vl))
}

impl Block {
    /// Returns the block of `insts`, described by `infos`, at `start`, for vectors of `vl` bytes.
    #[must_use]
    pub fn new(start: u64, insts: Vec<Inst>, infos: Vec<StaticInst>, vl: usize) -> Block {
        Block {
            start,
            end: start.wrapping_add(4 * insts.len() as u64),
            synchronises: infos.iter().any(|info| info.synchronises),
            governed: governed(&infos, vl),
            insts: insts.into(),
            infos: infos.into(),
        }
    }

    /// Executes the block. Afterwards `cpu.pc` is the next instruction to execute or, after a fault, the instruction that
    /// faulted. The dynamic stream holds the words of the executed instructions.
    #[inline(always)]
    pub fn run(&self, cpu: &mut Cpu, mem: &mut Memory) -> Outcome {
        cpu.pc = self.end;
        cpu.clear_stream();
        let mut next = 0;
        for governed in &self.governed {
            if let Err(at) = self.execute(next, governed.at, cpu, mem) {
                return self.stopped(at, cpu);
            }
            governed.look(cpu);
            next = governed.at;
        }
        match self.execute(next, self.insts.len(), cpu, mem) {
            Ok(()) => Outcome { executed: self.insts.len(), trap: None },
            Err(at) => self.stopped(at, cpu),
        }
    }

    /// Executes the instructions from `from` to before `to`; `Err` holds the one that stopped.
    #[inline(always)]
    fn execute(&self, from: usize, to: usize, cpu: &mut Cpu, mem: &mut Memory) -> Result<(), usize> {
        let mut met = cpu.fp.denormals;
        for (i, inst) in self.insts[from..to].iter().enumerate() {
            if (inst.exec)(cpu, mem, inst).is_err() {
                return Err(from + i);
            }
            if cpu.fp.denormals != met {
                cpu.note_subnormals(from + i, cpu.fp.denormals.wrapping_sub(met));
                met = cpu.fp.denormals;
            }
        }
        Ok(())
    }

    #[cold]
    fn stopped(&self, at: usize, cpu: &mut Cpu) -> Outcome {
        let completed = matches!(
            cpu.trap,
            Trap::SystemCall | Trap::CodeChanged | Trap::Window(_) | Trap::WaitForEvent | Trap::SendEvent
        );
        cpu.pc = self.start + 4 * (at + usize::from(completed)) as u64;
        Outcome { executed: at + usize::from(completed), trap: Some(cpu.trap) }
    }
}
