//! The engine that executes decoded instructions one after the other.

use std::collections::HashMap;

use fxscope_guestmem::Memory;
use fxscope_isa::StaticInst;

use crate::cpu::{Cpu, Trap};
use crate::engine::{BlockId, Engine, Outcome, StaticBlock};
use crate::governed::{Governed, governed};
use crate::table::Inst;

/// Entries of the direct-mapped lookup table.
const FRONT: usize = 1 << 13;

/// A decoded block, ready to be interpreted.
pub struct Block {
    /// Its static description.
    pub facts: StaticBlock,
    /// What to execute.
    insts: Box<[Inst]>,
    /// Where governing predicates get their values.
    governed: Box<[Governed]>,
}

impl Block {
    /// Returns the block of `insts`, described by `infos`, at `start`, for vectors of `vl` bytes.
    #[must_use]
    pub fn new(start: u64, insts: Vec<Inst>, infos: Vec<StaticInst>, vl: usize) -> Block {
        Block::of(StaticBlock::new(start, infos), insts, vl)
    }

    fn of(facts: StaticBlock, insts: Vec<Inst>, vl: usize) -> Block {
        Block { governed: governed(&facts.infos, vl), facts, insts: insts.into() }
    }

    /// Executes the block: see [`Engine::run`].
    #[inline(always)]
    pub fn run(&self, cpu: &mut Cpu, mem: &mut Memory) -> Outcome {
        cpu.pc = self.facts.end;
        cpu.clear_stream();
        let mut next = 0;
        for governed in &self.governed {
            if let Err(at) = self.execute(next, governed.at, cpu, mem) {
                return Outcome::stopped(self.facts.start, at, cpu);
            }
            governed.look(cpu);
            next = governed.at;
        }
        match self.execute(next, self.insts.len(), cpu, mem) {
            Ok(()) => Outcome { executed: self.insts.len(), trap: None },
            Err(at) => Outcome::stopped(self.facts.start, at, cpu),
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
}

/// Interprets the code of one address space.
pub struct Interpreter {
    blocks: Vec<Block>,
    by_start: HashMap<u64, u32>,
    /// Direct-mapped: start address and block number of recently used blocks.
    front: Box<[(u64, u32)]>,
    vl: usize,
    instructions: usize,
}

fn front_slot(pc: u64) -> usize {
    (pc >> 2) as usize & (FRONT - 1)
}

impl Engine for Interpreter {
    fn new(vl: usize) -> Interpreter {
        Interpreter {
            blocks: Vec::new(),
            by_start: HashMap::new(),
            front: vec![(u64::MAX, 0); FRONT].into(),
            vl,
            instructions: 0,
        }
    }

    fn vl(&self) -> usize {
        self.vl
    }

    #[inline(always)]
    fn lookup(&self, pc: u64) -> Option<BlockId> {
        let (start, id) = self.front[front_slot(pc)];
        (start == pc).then_some(BlockId(id))
    }

    #[cold]
    fn find(&mut self, pc: u64, mem: &mut Memory) -> Result<BlockId, Trap> {
        let id = match self.by_start.get(&pc) {
            Some(&id) => id,
            None => {
                let (facts, insts) = StaticBlock::decode(pc, self.vl, mem)?;
                self.instructions += insts.len();
                let id = u32::try_from(self.blocks.len()).expect("fewer than 2^32 blocks");
                self.blocks.push(Block::of(facts, insts, self.vl));
                self.by_start.insert(pc, id);
                id
            }
        };
        self.front[front_slot(pc)] = (pc, id);
        Ok(BlockId(id))
    }

    #[inline(always)]
    fn run(&mut self, id: BlockId, cpu: &mut Cpu, mem: &mut Memory) -> Outcome {
        self.blocks[id.0 as usize].run(cpu, mem)
    }

    #[inline(always)]
    fn block(&self, id: BlockId) -> &StaticBlock {
        &self.blocks[id.0 as usize].facts
    }

    fn insts(&self, id: BlockId) -> Box<[Inst]> {
        self.blocks[id.0 as usize].insts.clone()
    }

    fn len(&self) -> usize {
        self.blocks.len()
    }

    fn instructions(&self) -> usize {
        self.instructions
    }
}
