//! The engine: the interpreter, and units of host code for what it has executed often.

use std::collections::{HashMap, HashSet};

use fxscope_aarch64::fp::FpEnv;
use fxscope_aarch64::{BlockId, Cpu, Engine, Exit, Inst, Interpreter, Outcome, StaticBlock, Trap};
use fxscope_guestmem::Memory;

use crate::code::CodeMemory;
use crate::compiler::Compiler;
use crate::context::{Context, IN_CPU};
use crate::emit::{INTERPRET, STOPPED};
use crate::unit::{self, UnitBlock};

/// Executions after which a block becomes the head of a unit, unless a driver chooses otherwise. To translate an instruction takes
/// as long as to interpret it some thousand times.
pub const OFTEN: u32 = 2000;

/// A block that has been executed less often than the head of a unit by this factor is not part of it.
const RARELY: u32 = 32;

/// Entries of the table by which units are found quickly.
const FRONT: usize = 1 << 12;

/// Most bytes of host code. With more, all is dropped, and begins again.
const MOST_CODE: usize = 64 << 20;

/// The function of a unit.
type Code = unsafe extern "C" fn(*mut Cpu, *mut Context) -> u64;

/// A unit.
struct Unit {
    code: Code,
    /// Its blocks. Its code refers to their instructions.
    blocks: Vec<UnitBlock>,
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
    /// By their head, and whether they assume plain floating point ([`is_plain`]); `None`: it cannot be translated.
    units: HashMap<(u64, bool), Option<Unit>>,
    /// Direct-mapped: the heads of units that were used recently, with their code; those that assume plain floating point second.
    fronts: [Front; 2],
    memory: CodeMemory,
    /// `None`: nothing is translated.
    compiler: Option<Compiler>,
}

type Front = Box<[(u64, Option<Code>); FRONT]>;

/// An entry of a front table without a unit.
const NOTHING: (u64, Option<Code>) = (u64::MAX, None);

fn front() -> Front {
    vec![NOTHING; FRONT].try_into().unwrap_or_else(|_| unreachable!("the length is fixed"))
}

/// Returns whether floating-point results are rounded to nearest, denormal numbers are not flushed, and the inexact flag is set.
fn is_plain(cpu: &Cpu) -> bool {
    !cpu.fp.control(FpEnv::RMODE | FpEnv::FZ) && cpu.fp.fpsr & FpEnv::IXC != 0
}

fn front_slot(pc: u64) -> usize {
    (pc >> 2) as usize & (FRONT - 1)
}

impl<const HOT: u32> Translator<HOT> {
    /// Returns an engine that translates nothing.
    #[must_use]
    pub fn interpreting(vl: usize) -> Translator<HOT> {
        Translator { compiler: None, ..Translator::new(vl) }
    }

    /// Returns the number of units.
    #[must_use]
    pub fn units(&self) -> usize {
        self.units.values().flatten().count()
    }

    /// Executes the unit at `cpu.pc`, whose function is `code`, and those that follow it.
    fn run_units(&mut self, code: Code, cpu: &mut Cpu, mem: &mut Memory, instructions: u64) -> (u64, Option<Exit>) {
        let view = mem.view();
        let budget = i64::try_from(instructions).unwrap_or(i64::MAX);
        let mut context = Context {
            memory: mem,
            translations: view.translations,
            arena: view.arena,
            arena_bytes: view.arena_bytes,
            remaining: budget,
            flags: IN_CPU,
            operands: [0; 2],
            start: 0,
            at: 0,
        };
        let mut code = Some(code);
        while let Some(unit) = code {
            context.memory = mem;
            // SAFETY: the code was made for this purpose from a unit that exists. It accesses `cpu`, `context`, and memory as the view
            // allows, all of which this function borrows exclusively.
            #[allow(unsafe_code)]
            let how = unsafe { unit(cpu, &raw mut context) };
            if how == STOPPED || how == INTERPRET {
                context.settle_flags(cpu);
                let (start, at) = (context.start, context.at as usize);
                let outcome = match how {
                    STOPPED => Outcome::stopped(start, at, cpu),
                    _ => self.interpreter.run_from(self.by_start[&start], at, cpu, mem),
                };
                context.remaining -= outcome.executed as i64;
                if let Some(trap) = outcome.trap {
                    return ((budget - context.remaining) as u64, Some(Exit::Trap(trap)));
                }
            }
            code = if context.remaining > 0 { self.unit_at(cpu) } else { None };
        }
        context.settle_flags(cpu);
        ((budget - context.remaining) as u64, (context.remaining <= 0).then_some(Exit::Done))
    }

    /// Returns the unit at `cpu.pc` for the state of floating point, if it is found quickly.
    fn unit_at(&self, cpu: &Cpu) -> Option<Code> {
        let (head, code) = self.fronts[usize::from(is_plain(cpu))][front_slot(cpu.pc)];
        if head == cpu.pc { code } else { None }
    }

    /// Counts an execution of a block that is not the head of a unit in the front table. Returns its unit, if there is one now.
    fn count(&mut self, id: BlockId, cpu: &Cpu) -> Option<Code> {
        let count = self.counts[id.0 as usize].saturating_add(1);
        self.counts[id.0 as usize] = count;
        if count < HOT { None } else { self.unit_of(id, is_plain(cpu)) }
    }

    /// Returns the unit that begins with a block, which is made if it is new and possible.
    #[cold]
    fn unit_of(&mut self, id: BlockId, plain: bool) -> Option<Code> {
        let head = self.interpreter.block(id).start;
        if !self.units.contains_key(&(head, plain)) {
            if self.memory.bytes() > MOST_CODE {
                self.drop_units();
            }
            let unit = self.translate(head, plain);
            self.units.insert((head, plain), unit);
        }
        let code = self.units[&(head, plain)].as_ref()?.code;
        self.fronts[usize::from(plain)][front_slot(head)] = (head, Some(code));
        Some(code)
    }

    /// Makes the unit that begins at `head`, if that is possible.
    fn translate(&mut self, head: u64, plain: bool) -> Option<Unit> {
        let blocks = self.choose(head, plain);
        let compiler = self.compiler.as_mut().filter(|_| !blocks.is_empty())?;
        let bytes = compiler.compile(&blocks, self.interpreter.vl(), plain)?;
        match self.memory.add(&bytes) {
            Ok(address) => {
                // SAFETY: the bytes are a function of this type for this host, and stay where they are as long as the unit exists.
                #[allow(unsafe_code)]
                let code = unsafe { std::mem::transmute::<*const u8, Code>(address) };
                Some(Unit { code, blocks })
            }
            // The host does not let this process execute what it has written.
            Err(_) => {
                self.compiler = None;
                None
            }
        }
    }

    /// Returns the blocks of the unit that begins at `head`: those that have been executed nearly as often as it, and are not the
    /// heads of others.
    fn choose(&self, head: u64, plain: bool) -> Vec<UnitBlock> {
        let usable = |start: u64| {
            let &id = self.by_start.get(&start)?;
            let (count, words) = (self.counts[id.0 as usize], &self.words[id.0 as usize]);
            let is_head = || matches!(self.units.get(&(start, plain)), Some(Some(_)));
            let is_often = start == head || count >= HOT.div_ceil(RARELY) && !is_head();
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
            units: HashMap::new(),
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
            self.by_start.insert(pc, id);
        }
        Ok(id)
    }

    fn hide(&mut self, pc: u64) {
        self.interpreter.hide(pc);
        self.hidden.insert(pc);
        if self.units.values().flatten().any(|unit| unit.blocks.iter().any(|block| block.start == pc)) {
            self.drop_units();
        }
    }

    #[inline(always)]
    fn run(&mut self, id: BlockId, cpu: &mut Cpu, mem: &mut Memory) -> Outcome {
        self.interpreter.run(id, cpu, mem)
    }

    fn run_until(&mut self, cpu: &mut Cpu, mem: &mut Memory, instructions: u64) -> (u64, Exit) {
        let translates = self.compiler.is_some();
        let mut done = 0;
        while done < instructions {
            let mut unit = if translates { self.unit_at(cpu) } else { None };
            if unit.is_none() {
                let Some(id) = self.lookup(cpu.pc) else { return (done, Exit::Unknown) };
                if translates {
                    unit = self.count(id, cpu);
                }
                if unit.is_none() {
                    let outcome = self.interpreter.run(id, cpu, mem);
                    done += outcome.executed as u64;
                    if let Some(trap) = outcome.trap {
                        return (done, Exit::Trap(trap));
                    }
                    continue;
                }
            }
            let Some(code) = unit else { continue };
            let (more, exit) = self.run_units(code, cpu, mem, instructions - done);
            done += more;
            if let Some(exit) = exit {
                return (done, exit);
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
