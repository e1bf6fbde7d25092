//! The engine that executes decoded instructions one after the other.

use std::collections::HashMap;

use fxscope_guestmem::Memory;
use fxscope_isa::{RegClass, StaticInst};

use crate::cpu::{Cpu, Trap};
use crate::engine::{BlockId, Engine, Outcome, StaticBlock};
use crate::governed::{Governed, governed};
use crate::table::Inst;

/// Entries of the direct-mapped lookup table.
const FRONT: usize = 1 << 13;

/// A decoded block as the interpreter executes it. It fills a cache line of the host, since most blocks are short.
#[repr(align(64))]
pub struct Block {
    start: u64,
    end: u64,
    insts: Box<[Inst]>,
    /// Where governing predicates get their values.
    governed: Box<[Governed]>,
    /// Whether an instruction of it may encounter subnormal numbers.
    meets_subnormals: bool,
}

impl Block {
    /// Returns the block of `insts`, described by `infos`, at `start`, for vectors of `vl` bytes.
    #[must_use]
    pub fn new(start: u64, insts: Vec<Inst>, infos: Vec<StaticInst>, vl: usize) -> Block {
        Block::of(&StaticBlock::new(start, infos), insts, vl)
    }

    fn of(block: &StaticBlock, insts: Vec<Inst>, vl: usize) -> Block {
        let vector =
            |info: &StaticInst| info.srcs.iter().chain(info.dsts.iter()).any(|reg| reg.class() == RegClass::Vector);
        Block {
            start: block.start,
            end: block.end,
            insts: insts.into(),
            governed: governed(&block.infos, vl),
            meets_subnormals: block.infos.iter().any(|info| info.mem.is_none() && vector(info)),
        }
    }

    /// Executes the block: see [`Engine::run`].
    #[inline(always)]
    pub fn run(&self, cpu: &mut Cpu, mem: &mut Memory) -> Outcome {
        cpu.pc = self.end;
        cpu.clear_stream();
        let ran = if self.meets_subnormals { self.execute::<true>(cpu, mem) } else { self.execute::<false>(cpu, mem) };
        match ran {
            Ok(()) => Outcome { executed: self.insts.len(), trap: None },
            Err(at) => Outcome::stopped(self.start, at, cpu),
        }
    }

    /// Executes the instructions from number `from` on. The dynamic stream is unspecified afterwards.
    fn run_from(&self, from: usize, cpu: &mut Cpu, mem: &mut Memory) -> Outcome {
        cpu.pc = self.end;
        cpu.clear_stream();
        match self.execute_range::<true>(from, self.insts.len(), cpu, mem) {
            Ok(()) => Outcome { executed: self.insts.len(), trap: None },
            Err(at) => Outcome::stopped(self.start, at, cpu),
        }
    }

    /// Executes the instructions from number `from` on, and checks the governing predicates that `looks` selects of those of the block.
    fn resume(&self, from: usize, looks: impl Fn(&Governed) -> bool, cpu: &mut Cpu, mem: &mut Memory) -> Outcome {
        cpu.pc = self.end;
        let mut next = from;
        let mut execute = |cpu: &mut Cpu| {
            for governed in self.governed.iter().filter(|governed| looks(governed)) {
                self.execute_range::<true>(next, governed.at, cpu, mem)?;
                governed.look(cpu);
                next = governed.at;
            }
            self.execute_range::<true>(next, self.insts.len(), cpu, mem)
        };
        match execute(cpu) {
            Ok(()) => Outcome { executed: self.insts.len(), trap: None },
            Err(at) => Outcome::stopped(self.start, at, cpu),
        }
    }

    /// Executes all instructions; `Err` holds the one that stopped. `SUBNORMALS`: they may encounter subnormal numbers.
    #[inline(always)]
    fn execute<const SUBNORMALS: bool>(&self, cpu: &mut Cpu, mem: &mut Memory) -> Result<(), usize> {
        let mut next = 0;
        for governed in &self.governed {
            self.execute_range::<SUBNORMALS>(next, governed.at, cpu, mem)?;
            governed.look(cpu);
            next = governed.at;
        }
        self.execute_range::<SUBNORMALS>(next, self.insts.len(), cpu, mem)
    }

    /// Executes the instructions from `from` to before `to`; `Err` holds the one that stopped.
    #[inline(always)]
    fn execute_range<const SUBNORMALS: bool>(
        &self,
        from: usize,
        to: usize,
        cpu: &mut Cpu,
        mem: &mut Memory,
    ) -> Result<(), usize> {
        let mut met = cpu.fp.denormals;
        for (i, inst) in self.insts[from..to].iter().enumerate() {
            if (inst.exec)(cpu, mem, inst).is_err() {
                return Err(from + i);
            }
            debug_assert!(
                SUBNORMALS || cpu.fp.denormals == met,
                "an instruction without vector operands met a subnormal"
            );
            if SUBNORMALS && cpu.fp.denormals != met {
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
    /// Their descriptions.
    facts: Vec<StaticBlock>,
    by_start: HashMap<u64, u32>,
    /// Direct-mapped: start address and block number of recently used blocks.
    front: Box<[(u64, u32); FRONT]>,
    vl: usize,
    instructions: usize,
}

impl Interpreter {
    /// Executes the rest of a block, of which the instructions before number `from` have been executed. The outcome is that of the
    /// whole block. The dynamic stream is unspecified afterwards.
    pub fn run_from(&mut self, id: BlockId, from: usize, cpu: &mut Cpu, mem: &mut Memory) -> Outcome {
        self.blocks[id.0 as usize].run_from(from, cpu, mem)
    }

    /// Executes the rest of a block, of which the instructions before number `from` have been executed, and left their words in the
    /// dynamic stream. Governing predicates have been checked up to that place, including those to be checked there if `looked`. The
    /// outcome and the stream are those of the whole block.
    pub fn resume(&mut self, id: BlockId, from: usize, looked: bool, cpu: &mut Cpu, mem: &mut Memory) -> Outcome {
        let open = |governed: &Governed| governed.at > from || governed.at == from && !looked;
        self.blocks[id.0 as usize].resume(from, open, cpu, mem)
    }

    /// Returns the address of a block.
    #[must_use]
    pub fn start(&self, id: BlockId) -> u64 {
        self.blocks[id.0 as usize].start
    }

    /// Returns where governing predicates of a block get their values: they are checked there ([`Governed::look`]).
    #[must_use]
    pub fn governed(&self, id: BlockId) -> &[Governed] {
        &self.blocks[id.0 as usize].governed
    }
}

/// An entry of the front table without a block: no block starts at an odd address.
const NOTHING: (u64, u32) = (u64::MAX, 0);

fn front_slot(pc: u64) -> usize {
    (pc >> 2) as usize & (FRONT - 1)
}

impl Engine for Interpreter {
    fn new(vl: usize) -> Interpreter {
        Interpreter {
            blocks: Vec::new(),
            facts: Vec::new(),
            by_start: HashMap::new(),
            front: vec![NOTHING; FRONT].try_into().expect("the length is fixed"),
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
                self.blocks.push(Block::of(&facts, insts, self.vl));
                self.facts.push(facts);
                self.by_start.insert(pc, id);
                id
            }
        };
        self.front[front_slot(pc)] = (pc, id);
        Ok(BlockId(id))
    }

    fn hide(&mut self, pc: u64) {
        let entry = &mut self.front[front_slot(pc)];
        if entry.0 == pc {
            *entry = NOTHING;
        }
    }

    #[inline(always)]
    fn run(&mut self, id: BlockId, cpu: &mut Cpu, mem: &mut Memory) -> Outcome {
        self.blocks[id.0 as usize].run(cpu, mem)
    }

    #[inline(always)]
    fn block(&self, id: BlockId) -> &StaticBlock {
        &self.facts[id.0 as usize]
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
