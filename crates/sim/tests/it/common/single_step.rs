//! The reference engine: it executes one instruction at a time and decodes each from its word every time.

use std::collections::{HashMap, HashSet};

use fxscope_aarch64::table::{Ctx, decode, undecodable};
use fxscope_aarch64::{BlockId, Cpu, Engine, Inst, Outcome, StaticBlock, Trap};
use fxscope_guestmem::Memory;
use fxscope_isa::{Governing, Partial};

/// Executes blocks of `LONGEST` instructions at most.
pub struct SingleStep<const LONGEST: usize> {
    vl: usize,
    /// The blocks and the words of their instructions.
    blocks: Vec<(StaticBlock, Vec<u32>)>,
    by_start: HashMap<u64, u32>,
    hidden: HashSet<u64>,
}

impl<const LONGEST: usize> Engine for SingleStep<LONGEST> {
    fn new(vl: usize) -> Self {
        SingleStep { vl, blocks: Vec::new(), by_start: HashMap::new(), hidden: HashSet::new() }
    }

    fn vl(&self) -> usize {
        self.vl
    }

    fn lookup(&self, pc: u64) -> Option<BlockId> {
        if self.hidden.contains(&pc) {
            return None;
        }
        self.by_start.get(&pc).copied().map(BlockId)
    }

    fn hide(&mut self, pc: u64) {
        self.hidden.insert(pc);
    }

    fn find(&mut self, pc: u64, mem: &mut Memory) -> Result<BlockId, Trap> {
        self.hidden.remove(&pc);
        if let Some(id) = self.lookup(pc) {
            return Ok(id);
        }
        let (block, _) = StaticBlock::decode(pc, self.vl, mem)?;
        let infos = block.infos[..block.infos.len().min(LONGEST)].to_vec();
        let words = infos.iter().map(|info| mem.fetch(info.addr).map_err(Trap::Memory));
        let words = words.collect::<Result<_, _>>()?;
        let id = self.blocks.len() as u32;
        self.blocks.push((StaticBlock::new(pc, infos), words));
        self.by_start.insert(pc, id);
        Ok(BlockId(id))
    }

    fn run(&mut self, id: BlockId, cpu: &mut Cpu, mem: &mut Memory) -> Outcome {
        let (block, words) = &self.blocks[id.0 as usize];
        cpu.clear_stream();
        for (i, (&word, info)) in words.iter().zip(&block.infos).enumerate() {
            if let Some(by) = info.governing {
                note_inactive(i, by, self.vl, cpu);
            }
            let inst = instruction(word, info.addr, self.vl);
            let before = cpu.fp.denormals;
            cpu.pc = info.addr + 4;
            if (inst.exec)(cpu, mem, &inst).is_err() {
                return Outcome::stopped(block.start, i, cpu);
            }
            if cpu.fp.denormals != before {
                cpu.note_subnormals(i, cpu.fp.denormals.wrapping_sub(before));
            }
        }
        Outcome { executed: words.len(), trap: None }
    }

    fn block(&self, id: BlockId) -> &StaticBlock {
        &self.blocks[id.0 as usize].0
    }

    fn insts(&self, id: BlockId) -> Box<[Inst]> {
        let (block, words) = &self.blocks[id.0 as usize];
        words.iter().zip(&block.infos).map(|(&word, info)| instruction(word, info.addr, self.vl)).collect()
    }

    fn len(&self) -> usize {
        self.blocks.len()
    }

    fn instructions(&self) -> usize {
        self.blocks.iter().map(|(_, words)| words.len()).sum()
    }
}

fn instruction(word: u32, pc: u64, vl: usize) -> Inst {
    let c = Ctx { pc, vl };
    decode(word, &c).unwrap_or_else(|| undecodable(&c)).inst
}

/// Notes instruction `inst` if its governing predicate leaves out elements.
fn note_inactive(inst: usize, by: Governing, vl: usize, cpu: &mut Cpu) {
    let mut elements = (0..vl).step_by(usize::from(by.esize.max(1)));
    let (count, predicate) = (elements.len(), cpu.p(by.predicate));
    let active = elements.by_ref().filter(|bit| predicate >> bit & 1 == 1).count();
    if active < count {
        cpu.note_partial(Partial { inst: inst as u8, active: active as u8, elements: count as u8 });
    }
}
