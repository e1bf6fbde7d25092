//! Spin loops that only read memory, compute with general-purpose registers and branch: how many iterations take the same path,
//! and the register values after any number of them.

use fxscope_guestmem::Memory;
use fxscope_isa::{Reg, StaticInst};
use serde::{Deserialize, Serialize};

use crate::cpu::{Cpu, Nzcv};
use crate::engine::{BlockId, Engine, StaticBlock};
use crate::table::Inst;

/// General-purpose registers, including the stack pointer.
pub const REGISTERS: usize = 32;

/// One iteration of a loop that only loads, computes with general-purpose registers and branches. Its serialised form lacks the
/// instructions ([`Iteration::reload`]).
#[derive(Clone, Serialize, Deserialize)]
pub struct Iteration {
    /// The blocks that it executes completely, in order.
    pub path: Vec<Part>,
    /// Its dynamic stream.
    pub words: Vec<u64>,
    /// The increment of each general-purpose register; 0 for a register that it overwrites ([`Iteration::sets`]).
    pub steps: [u64; REGISTERS],
    /// The condition flags at its start and end, if it reads them before writing them.
    pub flags: Nzcv,
    /// Registers that it reads before writing them, and registers that it writes first, one bit each.
    needed: u128,
    set: u128,
    /// The results and the updated base addresses of its loads, in order.
    loaded: Vec<u64>,
}

/// A block of an iteration. It outlives the engine's blocks, and is executed instruction by instruction.
#[derive(Clone, Serialize, Deserialize)]
pub struct Part {
    /// Its number while the thread is in the loop.
    pub id: BlockId,
    start: u64,
    end: u64,
    #[serde(skip)]
    insts: Box<[Inst]>,
    #[serde(skip)]
    infos: Box<[StaticInst]>,
}

impl Iteration {
    /// Returns an empty iteration that starts with these condition flags.
    #[must_use]
    pub fn new(flags: Nzcv) -> Iteration {
        let (path, words, loaded) = (Vec::new(), Vec::new(), Vec::new());
        Iteration { path, words, steps: [0; REGISTERS], flags, needed: 0, set: 0, loaded }
    }

    /// Appends `block`, which consists of `insts` and leaves `words` in the stream.
    pub fn push(&mut self, id: BlockId, block: &StaticBlock, insts: Box<[Inst]>, words: &[u64]) {
        let infos = block.infos.clone();
        for info in &infos {
            self.needed |= numbers(sources(info)) & !self.set;
            self.set |= numbers(results(info)) & !self.needed;
        }
        self.path.push(Part { id, start: block.start, end: block.end, insts, infos });
        self.words.extend(words);
    }

    /// Takes the instructions from the engine that has executed it. Returns whether the engine has them.
    pub fn reload(&mut self, engine: &impl Engine) -> bool {
        self.path.iter_mut().all(|part| {
            let known = (part.id.0 as usize) < engine.len() && engine.block(part.id).start == part.start;
            if known {
                (part.insts, part.infos) = (engine.insts(part.id), engine.block(part.id).infos.clone());
            }
            known && engine.block(part.id).end == part.end
        })
    }

    /// Returns whether it writes a register before reading it, so that the value at its start does not matter.
    #[must_use]
    pub fn sets(&self, reg: Reg) -> bool {
        self.set >> reg.0 & 1 == 1
    }

    /// Iterates over its instructions, in order.
    pub fn infos(&self) -> impl Iterator<Item = &StaticInst> {
        self.path.iter().flat_map(|part| &part.infos)
    }

    /// Executes the iteration with `execute`, which returns whether to continue. Returns whether the path was followed to its
    /// end.
    #[inline(always)]
    fn run(&self, cpu: &mut Cpu, mut execute: impl FnMut(&mut Cpu, &Inst, &StaticInst) -> bool) -> bool {
        let head = cpu.pc;
        for part in &self.path {
            if cpu.pc != part.start {
                return false;
            }
            for (inst, info) in part.insts.iter().zip(&part.infos) {
                cpu.pc = part.end;
                cpu.clear_stream();
                if !execute(cpu, inst, info) {
                    return false;
                }
            }
        }
        cpu.pc == head
    }

    /// Returns how many of the next iterations of `cpu` certainly repeat this one while nobody writes what it reads; 0 if
    /// unknown. If the registers alone do not show it, executes up to `limit` iterations. `cpu` is unchanged afterwards.
    pub fn repetitions(&mut self, cpu: &mut Cpu, mem: &mut Memory, limit: u64) -> u64 {
        let now = (cpu.x, cpu.pc, cpu.nzcv);
        let mut repetitions = self.predict(cpu, mem);
        if repetitions == 0 {
            (cpu.x, cpu.pc, cpu.nzcv) = now;
            repetitions = self.follow(cpu, mem, limit);
        }
        (cpu.x, cpu.pc, cpu.nzcv) = now;
        repetitions
    }

    /// Returns a lower bound of the repetitions, derived from one iteration: registers that change are only incremented and
    /// compared with constant ones, so the path stays the same until a difference changes its sign. 0: no bound. Records what the
    /// loads return.
    fn predict(&mut self, cpu: &mut Cpu, mem: &mut Memory) -> u64 {
        let (mut bound, mut loaded) = (u64::MAX, Vec::new());
        let whole = self.run(cpu, |cpu, inst, info| {
            bound = bound.min(iterations_on_path(cpu, inst, info, &self.steps));
            let continues = (inst.exec)(cpu, mem, inst).is_ok();
            if info.mem.is_some() {
                loaded.extend(results(info).map(|reg| cpu.x[usize::from(reg.0)]));
            }
            continues
        });
        self.loaded = loaded;
        if whole { bound } else { 0 }
    }

    /// Executes up to `limit` iterations and returns how many repeat this one.
    fn follow(&self, cpu: &mut Cpu, mem: &mut Memory, limit: u64) -> u64 {
        (0..limit).take_while(|_| self.is_repeated(cpu, mem)).count() as u64
    }

    /// Executes an iteration. Returns whether it takes the same path, reads the same values and changes its inputs by the same
    /// amounts.
    fn is_repeated(&self, cpu: &mut Cpu, mem: &mut Memory) -> bool {
        let before = cpu.x;
        let (mut words, mut loaded) = (&self.words[..], &self.loaded[..]);
        let whole = self.run(cpu, |cpu, inst, info| {
            if (inst.exec)(cpu, mem, inst).is_err() {
                return false;
            }
            if info.mem.is_none() {
                return true;
            }
            let rest = (
                words.strip_prefix(cpu.stream()),
                results(info).try_fold(loaded, |values, reg| values.strip_prefix(&[cpu.x[usize::from(reg.0)]])),
            );
            let (Some(more_words), Some(more_loaded)) = rest else { return false };
            (words, loaded) = (more_words, more_loaded);
            true
        });
        let mut steps = self.steps.iter().enumerate();
        let stepped = |(i, step): (usize, &u64)| self.set >> i & 1 == 1 || cpu.x[i] == before[i].wrapping_add(*step);
        whole && (self.sets(Reg::NZCV) || cpu.nzcv == self.flags) && steps.all(stepped)
    }

    /// Advances `cpu` by `count` iterations that repeat this one, even if memory has changed since.
    pub fn skip(&self, cpu: &mut Cpu, mem: &mut Memory, count: u64) {
        let Some(before_last) = count.checked_sub(1) else { return };
        for (x, step) in cpu.x.iter_mut().zip(&self.steps) {
            *x = x.wrapping_add(step.wrapping_mul(before_last));
        }
        // The last iteration sets the registers that it overwrites. Its loads return the recorded values; nothing else reads
        // memory.
        let mut loaded = self.loaded.iter();
        self.run(cpu, |cpu, inst, info| {
            if info.mem.is_some() {
                results(info).zip(&mut loaded).for_each(|(reg, value)| cpu.x[usize::from(reg.0)] = *value);
                return true;
            }
            (inst.exec)(cpu, mem, inst).is_ok()
        });
    }
}

/// Iterates over the registers that an instruction reads.
fn sources(info: &StaticInst) -> impl Iterator<Item = Reg> {
    info.srcs.iter().chain(info.addr_srcs.iter())
}

/// Iterates over the registers that an instruction writes.
fn results(info: &StaticInst) -> impl Iterator<Item = Reg> {
    info.dsts.iter().chain(info.writeback)
}

/// Returns a set of register numbers, one bit each.
fn numbers(regs: impl Iterator<Item = Reg>) -> u128 {
    regs.fold(0, |all, reg| all | 1 << reg.0)
}

/// Returns for how many iterations an instruction cannot change the path, if registers change by `steps` in each.
fn iterations_on_path(cpu: &Cpu, inst: &Inst, info: &StaticInst, steps: &[u64; REGISTERS]) -> u64 {
    let step = |reg: Reg| steps.get(usize::from(reg.0)).copied().unwrap_or(0);
    let results = || results(info).filter(|reg| usize::from(reg.0) < REGISTERS);
    let mut moving = sources(info).filter(|&reg| step(reg) != 0);
    let Some(source) = moving.next() else {
        return if results().all(|reg| step(reg) == 0) { u64::MAX } else { 0 };
    };
    if moving.next().is_some() || results().any(|reg| reg != source) {
        return 0;
    }
    let value = cpu.x[usize::from(source.0)];
    let compares = results().next().is_none();
    let other = match info.class.name() {
        "base:ADD (immediate)" | "base:SUB (immediate)" | "base:CBZ" | "base:CBNZ" => 0,
        "base:ADDS (immediate)" => (inst.imm as u64).wrapping_neg(),
        "base:SUBS (immediate)" => inst.imm as u64,
        "base:SUBS (shifted register) [amount 0]" if compares => {
            cpu.x(if inst.rn == source.0 { inst.rm } else { inst.rn })
        }
        _ => return 0,
    };
    iterations_with_sign(value, step(source)).min(iterations_with_sign(value.wrapping_sub(other), step(source)))
}

/// Returns for how many iterations, starting with the next one, a number is nonzero and keeps its sign, both as a 32-bit and as a
/// 64-bit number, if it is `value` in the next iteration and grows by `step` in each.
fn iterations_with_sign(value: u64, step: u64) -> u64 {
    const HALF: u64 = 1 << 31;
    let at = value % HALF;
    let by = (step as i64).unsigned_abs();
    let room = if (step as i64) < 0 { at.saturating_sub(1) } else { HALF - 1 - at };
    if at == 0 || by == 0 { 0 } else { room / by + 1 }
}
