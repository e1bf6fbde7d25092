//! The engine: the interpreter, and units of host code for what it has executed often.

use std::collections::{HashMap, HashSet};

use fxscope_aarch64::fp::FpEnv;
use fxscope_aarch64::{BlockId, Counting, Cpu, Engine, Exit, Inst, Interpreter, Outcome, StaticBlock, Trap};
use fxscope_guestmem::Memory;

use crate::code::CodeMemory;
use crate::compiler::Compiler;
use crate::context::Context;
use crate::emit::{BLOCK_SHIFT, HOW, INDEX_SHIFT, INTERPRET, STOPPED, Surroundings, UNIT_SHIFT};
use crate::front::{FrontEntry, FrontTable};
use crate::traced::{Code, Referred, Traced};
use crate::unit::{self, UnitBlock};

/// Executions after which a block becomes the head of a unit, unless a driver chooses otherwise. To translate an instruction takes
/// as long as to interpret it several thousand times.
pub const OFTEN: u32 = 4096;

/// A block that has been executed less often than the head of a unit by this factor is not part of it. So much more often must a block be
/// executed, too, before it is translated for floating point that is not plain: that gains little.
const RARELY: u32 = 8;

/// Most bytes of host code. With more, all is dropped, and begins again.
const MOST_CODE: usize = 32 << 20;

/// The function that calls a unit, whose address is the last argument.
type Gate = unsafe extern "C" fn(*mut Cpu, *mut Context, usize) -> u64;

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
    entries: HashMap<(u64, bool), Option<FrontEntry>>,
    /// Each block as it is executed by itself, by its number; empty: nothing is translated.
    traced: Vec<Traced>,
    /// What the code of these blocks refers to.
    referred: Vec<Referred>,
    /// Entries that were used recently; those that assume plain floating point second.
    fronts: [FrontTable; 2],
    memory: CodeMemory,
    /// Whether units count executions of blocks: all of them, or none.
    units_count: bool,
    translation: Translation,
    /// Instructions to be interpreted before executions are counted.
    wait: Wait,
}

/// Whether blocks are translated.
enum Translation {
    /// They are not.
    Off,
    /// They are, as soon as one is executed often.
    Later,
    /// Some were.
    Begun(Box<Compiler>, Gate),
}

/// How many instructions are interpreted before executions are counted: programs that end earlier take no longer than with the
/// interpreter.
#[derive(Clone, Copy, Default)]
struct Wait {
    all: u64,
    left: u64,
}

/// Returns whether floating-point results are rounded to nearest, denormal numbers are not flushed, and the inexact flag is set.
pub(crate) fn is_plain(cpu: &Cpu) -> bool {
    !cpu.fp.control(FpEnv::RMODE | FpEnv::FZ) && cpu.fp.fpsr & FpEnv::IXC != 0
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
        Translator { translation: Translation::Off, ..Translator::new(vl) }
    }

    /// Returns an engine that interprets the first `instructions` instructions.
    #[must_use]
    pub fn after(vl: usize, instructions: u64) -> Translator<HOT> {
        Translator { wait: Wait { all: instructions, left: instructions }, ..Translator::new(vl) }
    }

    /// Returns the number of units, with those that are a block which is executed by itself.
    #[must_use]
    pub fn units(&self) -> usize {
        self.units.len() + self.referred.len()
    }

    /// Executes translated code from `entry`, at `cpu.pc`, on. `counting` is there if and only if units count.
    fn run_units(
        &mut self,
        entry: FrontEntry,
        cpu: &mut Cpu,
        mem: &mut Memory,
        instructions: u64,
        mut counting: Option<&mut Counting<'_>>,
    ) -> (u64, Option<Exit>) {
        let Translation::Begun(_, gate) = self.translation else { return (0, None) };
        let budget = i64::try_from(instructions).unwrap_or(i64::MAX);
        let mut context = Context::new(mem, budget);
        let mut next = Some(entry);
        while let Some(entry) = next {
            (context.memory, context.entry) = (&raw mut *mem, entry.block);
            counting.iter_mut().for_each(|counting| context.count_in(counting));
            // SAFETY: the code was made for this purpose from units that exist. It accesses `cpu`, `context`, memory as the view
            // allows, and the elements of `counting` for blocks that exist, all of which this function borrows exclusively, and the
            // front tables, which nothing else uses meanwhile.
            #[allow(unsafe_code)]
            let left = unsafe { gate(cpu, &raw mut context, entry.code) };
            counting.iter_mut().for_each(|counting| counting.cost = context.cost);
            let how = left & HOW;
            if how == STOPPED || how == INTERPRET {
                context.settle_flags(cpu);
                let (id, outcome) = self.complete(left, cpu, mem);
                context.remaining -= outcome.executed as i64;
                if let Some(counting) = &mut counting {
                    let cost = counting.cost_of(id).unwrap_or_default();
                    counting.ran(id, cost, outcome);
                }
                if let Some(trap) = outcome.trap {
                    return ((budget - context.remaining) as u64, Some(Exit::Trap(trap)));
                }
            }
            next = if context.remaining > 0 { self.entry_at(cpu) } else { None };
        }
        context.settle_flags(cpu);
        ((budget - context.remaining) as u64, (context.remaining <= 0).then_some(Exit::Done))
    }

    /// Completes the block at whose instruction a unit has returned `left`. Returns its number and outcome.
    fn complete(&mut self, left: u64, cpu: &mut Cpu, mem: &mut Memory) -> (BlockId, Outcome) {
        let at = (left >> INDEX_SHIFT & ((1 << (BLOCK_SHIFT - INDEX_SHIFT)) - 1)) as usize;
        let unit = &self.units[(left >> UNIT_SHIFT) as usize];
        let start = unit[(left >> BLOCK_SHIFT & ((1 << (UNIT_SHIFT - BLOCK_SHIFT)) - 1)) as usize].0;
        let id = self.by_start[&start];
        let outcome = match left & HOW {
            STOPPED => Outcome::stopped(start, at, cpu),
            _ => self.interpreter.run_from(id, at, cpu, mem),
        };
        (id, outcome)
    }

    /// Has units count executions of blocks from now on, or not.
    fn make_units_count(&mut self, count: bool) {
        if self.units_count != count {
            self.drop_units();
            self.units_count = count;
        }
    }

    /// Returns the translation of the block at `cpu.pc` for the state of floating point, if it is found quickly.
    fn entry_at(&self, cpu: &Cpu) -> Option<FrontEntry> {
        self.fronts[usize::from(is_plain(cpu))].get(cpu.pc)
    }

    /// Counts an execution of a block that is not in the front table. Returns its translation, if there is one now. Units are made of
    /// blocks that `may_run` admits.
    fn count(&mut self, id: BlockId, cpu: &Cpu, may_run: impl Fn(BlockId) -> bool) -> Option<FrontEntry> {
        let count = self.counts[id.0 as usize].saturating_add(1);
        self.counts[id.0 as usize] = count;
        let plain = is_plain(cpu);
        let due = if plain { HOT } else { HOT.saturating_mul(RARELY) };
        if count < due { None } else { self.entry_of(id, plain, &may_run) }
    }

    /// Returns the translation of a block, which is made if it is new and possible.
    #[cold]
    fn entry_of(&mut self, id: BlockId, plain: bool, may_run: &dyn Fn(BlockId) -> bool) -> Option<FrontEntry> {
        let start = self.interpreter.block(id).start;
        if !self.entries.contains_key(&(start, plain)) {
            if self.memory.bytes() > MOST_CODE {
                self.drop_units();
            }
            if !self.translate(start, plain, may_run) {
                self.entries.insert((start, plain), None);
            }
        }
        let entry = self.entries.get(&(start, plain)).copied().flatten()?;
        self.fronts[usize::from(plain)].insert(entry);
        Some(entry)
    }

    /// Makes a unit from the block at `head` and others; returns whether that was possible.
    fn translate(&mut self, head: u64, plain: bool, may_run: &dyn Fn(BlockId) -> bool) -> bool {
        let blocks = self.choose(head, plain, may_run);
        if blocks.is_empty() || !self.begin() {
            return false;
        }
        let Translation::Begun(compiler, _) = &mut self.translation else { return false };
        let number = self.units.len() as u32;
        let entries = &self.fronts[usize::from(plain)];
        let surroundings = Surroundings { number, vl: self.interpreter.vl(), plain, counts: self.units_count, entries };
        let Some(code) = compiler.unit(&blocks, surroundings).and_then(|code| self.add(&code)) else { return false };
        for (block, number) in blocks.iter().zip(0..) {
            let entry = FrontEntry { start: block.start, code: code as usize, block: number };
            self.entries.insert((block.start, plain), Some(entry));
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
        let unit =
            UnitBlock::new(id, block, self.interpreter.insts(id), words).governed_by(self.interpreter.governed(id));
        let code = if is_whole && self.begin() { self.traced_code(&unit) } else { None };
        self.traced[id.0 as usize] = Traced::translated(code, &unit.infos);
        self.referred.push(unit.into());
    }

    /// Returns the code of a block that is executed by itself; `None`: it cannot be translated.
    fn traced_code(&mut self, unit: &UnitBlock) -> Option<Code> {
        let Translation::Begun(compiler, _) = &mut self.translation else { return None };
        let surroundings = Surroundings {
            number: 0,
            vl: self.interpreter.vl(),
            plain: true,
            counts: false,
            entries: &self.fronts[usize::from(true)],
        };
        let code = compiler.traced(unit, surroundings)?;
        self.add(&code).map(function)
    }

    /// Sets up the compiler, and what calls units, if that has not been done; returns whether blocks are translated.
    fn begin(&mut self) -> bool {
        if matches!(self.translation, Translation::Later) {
            self.translation = Translation::Off;
            if let Some(mut compiler) = Compiler::for_host().map(Box::new)
                && let Some(gate) = compiler.gate().and_then(|code| self.add(&code))
            {
                // SAFETY: the code is a function of this type for this host, and stays where it is as long as units exist.
                #[allow(unsafe_code)]
                let gate = unsafe { std::mem::transmute::<*const u8, Gate>(gate) };
                self.translation = Translation::Begun(compiler, gate);
            }
        }
        matches!(self.translation, Translation::Begun(..))
    }

    /// Adds host code to memory; returns where it is.
    fn add(&mut self, code: &[u8]) -> Option<*const u8> {
        let place = self.memory.add(code).ok();
        if place.is_none() {
            // The host does not let this process execute what it has written.
            self.translation = Translation::Off;
        }
        place
    }

    /// Returns the blocks of the unit that begins at `head`: those that have been executed nearly as often as it, and are in no other.
    fn choose(&self, head: u64, plain: bool, may_run: &dyn Fn(BlockId) -> bool) -> Vec<UnitBlock> {
        let usable = |start: u64| {
            let &id = self.by_start.get(&start)?;
            let (count, words) = (self.counts[id.0 as usize], &self.words[id.0 as usize]);
            let is_often =
                start == head || count >= HOT.div_ceil(RARELY) && !self.entries.contains_key(&(start, plain));
            let is_whole = words.len() == self.interpreter.block(id).infos.len();
            let is_hidden = self.hidden.contains(&start) || !may_run(id);
            (is_often && is_whole && !is_hidden && UnitBlock::is_translatable(words)).then_some(id)
        };
        let starts = unit::choose(head, |start| {
            let id = usable(start)?;
            let block = self.interpreter.block(id);
            Some((block.infos.len(), unit::successors(block, &self.interpreter.insts(id))))
        });
        let block = |&start: &u64| {
            let id = self.by_start[&start];
            UnitBlock::new(id, self.interpreter.block(id), self.interpreter.insts(id), &self.words[id.0 as usize])
        };
        starts.iter().map(block).collect()
    }

    /// Drops all units.
    fn drop_units(&mut self) {
        self.fronts.iter_mut().for_each(FrontTable::clear);
        self.units.clear();
        self.entries.clear();
        self.traced.fill(Traced::default());
        self.referred.clear();
        self.memory = CodeMemory::default();
        if matches!(self.translation, Translation::Begun(..)) {
            self.translation = Translation::Later;
        }
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
            fronts: [FrontTable::new(), FrontTable::new()],
            memory: CodeMemory::default(),
            units_count: false,
            translation: Translation::Later,
            wait: Wait::default(),
        }
    }

    fn another(&self, vl: usize) -> Translator<HOT> {
        match self.translation {
            Translation::Off => Translator::interpreting(vl),
            _ => Translator::after(vl, self.wait.all),
        }
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
            if !matches!(self.translation, Translation::Off) {
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
        if self.wait.left > 0 {
            let (done, exit) = self.interpreter.run_until(cpu, mem, instructions);
            self.wait.left = self.wait.left.saturating_sub(done);
            return (done, exit);
        }
        self.make_units_count(false);
        let translates = !matches!(self.translation, Translation::Off);
        let mut done = 0;
        while done < instructions {
            let mut entry = if translates { self.entry_at(cpu) } else { None };
            if entry.is_none() {
                let Some(id) = self.lookup(cpu.pc) else { return (done, Exit::Unknown) };
                entry = if translates { self.count(id, cpu, |_| true) } else { None };
                if entry.is_none() {
                    let outcome = self.interpreter.run(id, cpu, mem);
                    done += outcome.executed as u64;
                    if let Some(trap) = outcome.trap {
                        return (done, Exit::Trap(trap));
                    }
                }
            }
            if let Some(entry) = entry {
                let (more, exit) = self.run_units(entry, cpu, mem, instructions - done, None);
                done += more;
                if let Some(exit) = exit {
                    return (done, exit);
                }
            }
        }
        (done, Exit::Done)
    }

    fn run_counted(
        &mut self,
        cpu: &mut Cpu,
        mem: &mut Memory,
        instructions: u64,
        counting: &mut Counting<'_>,
    ) -> (u64, Exit) {
        // Translated code relies on there being a cost and a number for each block.
        if counting.costs.len().min(counting.executions.len()) < self.interpreter.len() {
            return (0, Exit::Unknown);
        }
        self.make_units_count(true);
        let translates = !matches!(self.translation, Translation::Off);
        let mut done = 0;
        while done < instructions {
            let mut entry = if translates { self.entry_at(cpu) } else { None };
            if entry.is_none() {
                let Some(id) = self.lookup(cpu.pc) else { return (done, Exit::Unknown) };
                let Some(cost) = counting.cost_of(id) else { return (done, Exit::Unknown) };
                let may_run = |id| counting.cost_of(id).is_some();
                entry = if translates { self.count(id, cpu, may_run) } else { None };
                if entry.is_none() {
                    let outcome = self.interpreter.run(id, cpu, mem);
                    done += outcome.executed as u64;
                    if let Some(trap) = counting.ran(id, cost, outcome) {
                        return (done, Exit::Trap(trap));
                    }
                }
            }
            if let Some(entry) = entry {
                let (more, exit) = self.run_units(entry, cpu, mem, instructions - done, Some(counting));
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
