//! Traces: the micro-operations of a window of executed instructions.

use fxscope_linux::Guest;
use fxscope_linux::symbols::{Place, Symbols};
use fxscope_memory::Chip;
use fxscope_pipeline::bind::BoundUop;
use fxscope_pipeline::uop_probe::{StageTimes, UopProbe};
use fxscope_pipeline::{BoundBlock, Pipeline};

use crate::sampling::Sampling;

/// A micro-operation that has passed through the pipeline.
pub struct Traced<'a> {
    /// The number of its instruction among those that were executed and timed, from 0.
    pub instruction: u64,
    /// Address of its instruction.
    pub pc: u64,
    /// The instruction word; `None` when the program may execute it but not read it.
    pub word: Option<u32>,
    /// Its function.
    pub place: Option<Place<'a>>,
    /// The number of the thread that executed it.
    pub thread: u32,
    /// Which micro-operation of its instruction it is, from 0.
    pub part: u32,
    /// Number of the instruction's micro-operations.
    pub parts: u32,
    /// The micro-operation.
    pub uop: &'a BoundUop,
    /// When it passed each stage.
    pub times: &'a StageTimes,
}

/// Takes a trace.
pub trait Tracer {
    /// Called for each micro-operation, in program order.
    fn passed(&mut self, traced: &Traced<'_>);
}

/// The instructions that are traced.
pub struct Window<'t> {
    from: u64,
    end: u64,
    executed: u64,
    tracer: &'t mut dyn Tracer,
}

impl<'t> Window<'t> {
    /// Traces `instructions` instructions after the first `from` that are executed and timed.
    pub fn new(from: u64, instructions: u64, tracer: &'t mut dyn Tracer) -> Window<'t> {
        Window { from, end: from.saturating_add(instructions), executed: 0, tracer }
    }

    #[cold]
    fn run_traced(
        &mut self,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
    ) {
        let mut word = |i: usize| {
            let mut bytes = [0; 4];
            for (byte, address) in bytes.iter_mut().zip(block.start + 4 * i as u64..) {
                *byte = guest.read_byte(address)?;
            }
            Some(u32::from_le_bytes(bytes))
        };
        let words = (0..executed).map(&mut word).collect();
        let cpu = guest.cpu();
        let mut probe = BlockProbe {
            first: self.executed,
            start: block.start,
            words,
            uop_end: block.tables.uop_end.clone(),
            passed: 0,
            thread: guest.thread().tid,
            symbols: guest.running_symbols(),
            window: self,
        };
        pipeline.run_partly(block, executed, (cpu.stream(), cpu.partials()), cpu.pc, &mut probe, chip);
    }
}

/// How the pipeline is run. Runs without a trace are compiled for `()`; all others share the code for `dyn Trace`, since each
/// type of trace would bring another copy of the timing model.
pub(crate) trait Trace {
    /// Returns whether iterations of spin loops may be skipped.
    fn may_skip_iterations(&self) -> bool;

    /// Returns the sample of a sampled run.
    fn sampling(&mut self) -> Option<&mut Sampling> {
        None
    }

    /// Returns whether threads may run ahead of the timing.
    fn may_run_ahead(&self) -> bool {
        false
    }

    /// Returns whether blocks are recorded, to be timed later.
    #[inline(always)]
    fn records(&self) -> bool {
        false
    }

    /// The same for a core whose iterations are being compared: they are timed in any case.
    fn run_watched(
        &mut self,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
    ) {
        self.run(pipeline, chip, block, executed, guest);
    }

    /// A block was followed that is not in the part of the run that is timed.
    #[inline(always)]
    fn followed(&mut self, _pipeline: &mut Pipeline, _block: &BoundBlock, _executed: usize, _guest: &mut Guest) {}

    /// Runs the first `executed` instructions of `block`, which `guest` has executed.
    fn run(
        &mut self,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
    );
}

/// Without a trace.
impl Trace for () {
    #[inline(always)]
    fn may_skip_iterations(&self) -> bool {
        true
    }

    #[inline(always)]
    fn may_run_ahead(&self) -> bool {
        true
    }

    #[inline(always)]
    fn run(
        &mut self,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
    ) {
        let cpu = guest.cpu();
        if cpu.partials().is_empty() {
            pipeline.run(block, executed, cpu.stream(), cpu.pc, chip);
        } else {
            pipeline.run_partly(block, executed, (cpu.stream(), cpu.partials()), cpu.pc, &mut (), chip);
        }
    }
}

impl Trace for Window<'_> {
    fn may_skip_iterations(&self) -> bool {
        false
    }

    fn run(
        &mut self,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
    ) {
        let after = self.executed + executed as u64;
        if self.executed < self.end && after > self.from {
            self.run_traced(pipeline, chip, block, executed, guest);
        } else {
            ().run(pipeline, chip, block, executed, guest);
        }
        self.executed = after;
    }
}

/// Passes the micro-operations of one block on to a tracer.
struct BlockProbe<'a, 't> {
    window: &'a mut Window<'t>,
    /// The number of the block's first instruction, and its address.
    first: u64,
    start: u64,
    words: Vec<Option<u32>>,
    uop_end: Box<[u32]>,
    /// The number of the block's micro-operations so far.
    passed: u32,
    thread: u32,
    symbols: &'a Symbols,
}

impl UopProbe for BlockProbe<'_, '_> {
    const ACTIVE: bool = true;

    fn passed(&mut self, uop: &BoundUop, pc: u64, times: &StageTimes) {
        let i = ((pc - self.start) / 4) as usize;
        let first_part = i.checked_sub(1).map_or(0, |before| self.uop_end[before]);
        let part = self.passed - first_part;
        self.passed += 1;
        let instruction = self.first + i as u64;
        if !(self.window.from..self.window.end).contains(&instruction) {
            return;
        }
        self.window.tracer.passed(&Traced {
            instruction,
            pc,
            word: self.words[i],
            place: self.symbols.at(pc),
            thread: self.thread,
            part,
            parts: self.uop_end[i] - first_part,
            uop,
            times,
        });
    }
}
