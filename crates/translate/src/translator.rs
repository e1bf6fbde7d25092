//! The engine: the interpreter, and units of host code for what it has executed often.

use std::collections::{HashMap, HashSet};

use fxscope_aarch64::fp::FpEnv;
use fxscope_aarch64::{BlockId, Cpu, Engine, Exit, Inst, Interpreter, Outcome, StaticBlock, Trap};
use fxscope_guestmem::Memory;

use crate::code::CodeMemory;
use crate::compiler::Compiler;
use crate::context::Context;
use crate::emit::{BLOCK_SHIFT, HOW, INDEX_SHIFT, INTERPRET, STOPPED};
use crate::traced::{Referred, Traced};
use crate::unit::{self, UnitBlock};

/// Executions after which a block becomes the head of a unit, unless a driver chooses otherwise. To translate an instruction takes
/// as long as to interpret it ten thousand times.
pub const OFTEN: u32 = 8192;

/// A block that has been executed less often than the head of a unit by this factor is not part of it. So much more often must a block be
/// executed, too, before it is translated for floating point that is not plain: that gains little.
const RARELY: u32 = 8;

/// Entries of the table by which units are found quickly.
const FRONT: usize = 1 << 12;

/// Most bytes of host code. With more, all is dropped, and begins again.
const MOST_CODE: usize = 32 << 20;

/// The function of a unit.
pub(crate) type Code = unsafe extern "C" fn(*mut Cpu, *mut Context) -> u64;

/// A place at which translated code begins: a block of a unit.
#[derive(Clone, Copy)]
struct Entry {
    code: Code,
    /// The number of the unit.
    unit: u32,
    /// The number of the block in the unit.
    block: u32,
}

/// Interprets, and translates blocks that have been executed `HOT` times.
pub struct Translator<const HOT: u32 = OFTEN> {
    interpreter: Interpreter,
    /// The instruction words of each block, by its number.
    words: Vec<Box<[u32]>>,
    /// The numbers of blocks by their start.
    by_start: HashMap<u64, BlockId>,
    /// How often each block was interpreted by [`Engine::run_until`], by its number.
    counts: Vec<u32>,
    /// Starts of blocks that [`Engine::lookup`] must not return.
    hidden: HashSet<u64>,
    /// The blocks of each unit: their starts, and the instructions that its code refers to.
    units: Vec<Vec<(u64, Box<[Inst]>)>>,
    /// Where the translation of a block begins, by its start, and by whether it assumes plain floating point ([`is_plain`]). `None`: it
    /// cannot be translated.
    entries: HashMap<(u64, bool), Option<Entry>>,
    /// Each block as it is executed by itself, by its number; empty: nothing is translated.
    traced: Vec<Traced>,
    /// What the code of these blocks refers to.
    referred: Vec<Referred>,
    /// Direct-mapped: entries that were used recently, by start; those that assume plain floating point second.
    fronts: [Front; 2],
    memory: CodeMemory,
    /// `None`: nothing is translated.
    compiler: Option<Compiler>,
}

type Front = Box<[(u64, Option<Entry>); FRONT]>;

/// An entry of a front table without a unit.
const NOTHING: (u64, Option<Entry>) = (u64::MAX, None);

fn front() -> Front {
    vec![NOTHING; FRONT].try_into().unwrap_or_else(|_| unreachable!("the length is fixed"))
}

/// Returns whether floating-point results are rounded to nearest, denormal numbers are not flushed, and the inexact flag is set.
pub(crate) fn is_plain(cpu: &Cpu) -> bool {
    !cpu.fp.control(FpEnv::RMODE | FpEnv::FZ) && cpu.fp.fpsr & FpEnv::IXC != 0
}

fn front_slot(pc: u64) -> usize {
    (pc >> 2) as usize & (FRONT - 1)
}

/// Returns host code as a function. It was made by the compiler, and stays where it is as long as it is called.
fn function(address: *const u8) -> Code {
    // SAFETY: the bytes are a function of this type for this host.
    #[allow(unsafe_code)]
    unsafe {
        std::mem::transmute::<*const u8, Code>(address)
    }
}

impl<const HOT: u32> Translator<HOT> {
    /// Returns an engine that translates nothing.
    #[must_use]
    pub fn interpreting(vl: usize) -> Translator<HOT> {
        Translator { compiler: None, ..Translator::new(vl) }
    }

    /// Returns the number of units, with those that are a block which is executed by itself.
    #[must_use]
    pub fn units(&self) -> usize {
        self.units.len() + self.referred.len()
    }

    /// Executes translated code from `entry`, at `cpu.pc`, on.
    fn run_units(&mut self, entry: Entry, cpu: &mut Cpu, mem: &mut Memory, instructions: u64) -> (u64, Option<Exit>) {
        let budget = i64::try_from(instructions).unwrap_or(i64::MAX);
        let mut context = Context::new(mem, budget);
        let mut next = Some(entry);
        while let Some(Entry { code, unit, block }) = next {
            (context.memory, context.entry) = (&raw mut *mem, block);
            // SAFETY: the code was made for this purpose from a unit that exists. It accesses `cpu`, `context`, and memory as the view
            // allows, all of which this function borrows exclusively.
            #[allow(unsafe_code)]
            let left = unsafe { code(cpu, &raw mut context) };
            let how = left & HOW;
            if how == STOPPED || how == INTERPRET {
                context.settle_flags(cpu);
                let at = (left >> INDEX_SHIFT & ((1 << (BLOCK_SHIFT - INDEX_SHIFT)) - 1)) as usize;
                let start = self.units[unit as usize][(left >> BLOCK_SHIFT) as usize].0;
                let outcome = match how {
                    STOPPED => Outcome::stopped(start, at, cpu),
                    _ => self.interpreter.run_from(self.by_start[&start], at, cpu, mem),
                };
                context.remaining -= outcome.executed as i64;
                if let Some(trap) = outcome.trap {
                    return ((budget - context.remaining) as u64, Some(Exit::Trap(trap)));
                }
            }
            next = if context.remaining > 0 { self.entry_at(cpu) } else { None };
        }
        context.settle_flags(cpu);
        ((budget - context.remaining) as u64, (context.remaining <= 0).then_some(Exit::Done))
    }

    /// Returns the translation of the block at `cpu.pc` for the state of floating point, if it is found quickly.
    fn entry_at(&self, cpu: &Cpu) -> Option<Entry> {
        let (start, entry) = self.fronts[usize::from(is_plain(cpu))][front_slot(cpu.pc)];
        if start == cpu.pc { entry } else { None }
    }

    /// Counts an execution of a block that is not in the front table. Returns its translation, if there is one now.
    fn count(&mut self, id: BlockId, cpu: &Cpu) -> Option<Entry> {
        let count = self.counts[id.0 as usize].saturating_add(1);
        self.counts[id.0 as usize] = count;
        let plain = is_plain(cpu);
        let due = if plain { HOT } else { HOT.saturating_mul(RARELY) };
        if count < due { None } else { self.entry_of(id, plain) }
    }

    /// Returns the translation of a block, which is made if it is new and possible.
    #[cold]
    fn entry_of(&mut self, id: BlockId, plain: bool) -> Option<Entry> {
        let start = self.interpreter.block(id).start;
        if !self.entries.contains_key(&(start, plain)) {
            if self.memory.bytes() > MOST_CODE {
                self.drop_units();
            }
            if !self.translate(start, plain) {
                self.entries.insert((start, plain), None);
            }
        }
        let entry = *self.entries.get(&(start, plain))?;
        self.fronts[usize::from(plain)][front_slot(start)] = (start, entry);
        entry
    }

    /// Makes a unit from the block at `head` and others; returns whether that was possible.
    fn translate(&mut self, head: u64, plain: bool) -> bool {
        let blocks = self.choose(head, plain);
        let compiler = self.compiler.as_mut().filter(|_| !blocks.is_empty());
        let bytes = compiler.and_then(|compiler| compiler.compile(&blocks, self.interpreter.vl(), plain));
        let Some(address) = bytes.map(|bytes| self.memory.add(&bytes)) else { return false };
        let Ok(address) = address else {
            // The host does not let this process execute what it has written.
            self.compiler = None;
            return false;
        };
        let code = function(address);
        let unit = self.units.len() as u32;
        for (block, number) in blocks.iter().zip(0..) {
            self.entries.insert((block.start, plain), Some(Entry { code, unit, block: number }));
        }
        self.units.push(blocks.into_iter().map(|block| (block.start, block.insts)).collect());
        true
    }

    /// Executes a block of which no code can be used now. It is translated after many executions.
    #[inline(never)]
    fn interpret(&mut self, id: BlockId, cpu: &mut Cpu, mem: &mut Memory) -> Outcome {
        if self.traced.get_mut(id.0 as usize).is_some_and(|block| block.is_due(HOT)) {
            self.translate_traced(id);
        }
        self.interpreter.run(id, cpu, mem)
    }

    /// Makes code that executes a block by itself, if that is possible.
    #[cold]
    fn translate_traced(&mut self, id: BlockId) {
        if self.memory.bytes() > MOST_CODE {
            self.drop_units();
        }
        let (block, words) = (self.interpreter.block(id), &self.words[id.0 as usize]);
        let is_whole = words.len() == block.infos.len() && UnitBlock::is_translatable(words);
        let unit = UnitBlock::new(block, self.interpreter.insts(id), words).governed_by(self.interpreter.governed(id));
        let compiler = self.compiler.as_mut().filter(|_| is_whole);
        let bytes = compiler.and_then(|compiler| compiler.compile_traced(&unit, self.interpreter.vl()));
        let address = bytes.and_then(|bytes| self.memory.add(&bytes).ok());
        self.traced[id.0 as usize] = Traced::translated(address.map(function), &unit.infos);
        self.referred.push(unit.into());
    }

    /// Returns the blocks of the unit that begins at `head`: those that have been executed nearly as often as it, and are in no other.
    fn choose(&self, head: u64, plain: bool) -> Vec<UnitBlock> {
        let usable = |start: u64| {
            let &id = self.by_start.get(&start)?;
            let (count, words) = (self.counts[id.0 as usize], &self.words[id.0 as usize]);
            let is_often =
                start == head || count >= HOT.div_ceil(RARELY) && !self.entries.contains_key(&(start, plain));
            let is_whole = words.len() == self.interpreter.block(id).infos.len();
            (is_often && is_whole && !self.hidden.contains(&start) && UnitBlock::is_translatable(words)).then_some(id)
        };
        let starts = unit::choose(head, |start| {
            let id = usable(start)?;
            let block = self.interpreter.block(id);
            Some((block.infos.len(), unit::successors(block, &self.interpreter.insts(id))))
        });
        let block = |&start: &u64| {
            let id = self.by_start[&start];
            UnitBlock::new(self.interpreter.block(id), self.interpreter.insts(id), &self.words[id.0 as usize])
        };
        starts.iter().map(block).collect()
    }

    /// Drops all units.
    fn drop_units(&mut self) {
        self.fronts.iter_mut().for_each(|front| front.fill(NOTHING));
        self.units.clear();
        self.entries.clear();
        self.traced.fill(Traced::default());
        self.referred.clear();
        self.memory = CodeMemory::default();
        self.counts.fill(0);
    }
}

impl<const HOT: u32> Engine for Translator<HOT> {
    fn new(vl: usize) -> Translator<HOT> {
        Translator {
            interpreter: Interpreter::new(vl),
            words: Vec::new(),
            by_start: HashMap::new(),
            counts: Vec::new(),
            hidden: HashSet::new(),
            units: Vec::new(),
            entries: HashMap::new(),
            traced: Vec::new(),
            referred: Vec::new(),
            fronts: [front(), front()],
            memory: CodeMemory::default(),
            compiler: Compiler::for_host(),
        }
    }

    fn another(&self, vl: usize) -> Translator<HOT> {
        if self.compiler.is_some() { Translator::new(vl) } else { Translator::interpreting(vl) }
    }

    fn vl(&self) -> usize {
        self.interpreter.vl()
    }

    #[inline(always)]
    fn lookup(&self, pc: u64) -> Option<BlockId> {
        self.interpreter.lookup(pc)
    }

    #[cold]
    fn find(&mut self, pc: u64, mem: &mut Memory) -> Result<BlockId, Trap> {
        let id = self.interpreter.find(pc, mem)?;
        self.hidden.remove(&pc);
        if id.0 as usize == self.words.len() {
            // As just decoded: the program may change them later.
            let places = self.interpreter.block(id).infos.iter().map(|info| info.addr);
            let words: Result<Box<[u32]>, _> = places.map(|place| mem.fetch(place)).collect();
            self.words.push(words.unwrap_or_default());
            self.counts.push(0);
            if self.compiler.is_some() {
                self.traced.resize(self.words.len(), Traced::default());
            }
            self.by_start.insert(pc, id);
        }
        Ok(id)
    }

    fn hide(&mut self, pc: u64) {
        self.interpreter.hide(pc);
        self.hidden.insert(pc);
        if [false, true].iter().any(|&plain| self.entries.contains_key(&(pc, plain))) {
            self.drop_units();
        }
    }

    #[inline(always)]
    fn run(&mut self, id: BlockId, cpu: &mut Cpu, mem: &mut Memory) -> Outcome {
        match self.traced.get(id.0 as usize) {
            None => self.interpreter.run(id, cpu, mem),
            Some(block) => match block.usable(cpu) {
                Some(code) => block.run(code, id, &mut self.interpreter, cpu, mem),
                None => self.interpret(id, cpu, mem),
            },
        }
    }

    fn run_until(&mut self, cpu: &mut Cpu, mem: &mut Memory, instructions: u64) -> (u64, Exit) {
        let translates = self.compiler.is_some();
        let mut done = 0;
        while done < instructions {
            let mut entry = if translates { self.entry_at(cpu) } else { None };
            if entry.is_none() {
                let Some(id) = self.lookup(cpu.pc) else { return (done, Exit::Unknown) };
                entry = if translates { self.count(id, cpu) } else { None };
                if entry.is_none() {
                    let outcome = self.interpreter.run(id, cpu, mem);
                    done += outcome.executed as u64;
                    if let Some(trap) = outcome.trap {
                        return (done, Exit::Trap(trap));
                    }
                }
            }
            if let Some(entry) = entry {
                let (more, exit) = self.run_units(entry, cpu, mem, instructions - done);
                done += more;
                if let Some(exit) = exit {
                    return (done, exit);
                }
            }
        }
        (done, Exit::Done)
    }

    #[inline(always)]
    fn block(&self, id: BlockId) -> &StaticBlock {
        self.interpreter.block(id)
    }

    fn insts(&self, id: BlockId) -> Box<[Inst]> {
        self.interpreter.insts(id)
    }

    fn len(&self) -> usize {
        self.interpreter.len()
    }

    fn instructions(&self) -> usize {
        self.interpreter.instructions()
    }
}
