//! Blocks that a thread has executed before their time: what the timing model needs of them, until their time comes.

use std::collections::VecDeque;

use fxscope_aarch64::BlockId;
use fxscope_calendar::Cycle;
use fxscope_isa::{Partial, Subnormal};
use fxscope_linux::Guest;
use fxscope_memory::{Chip, NEVER};

use crate::core::Core;
use crate::timing::{Driver, Timing};

/// A block that was executed.
struct Executed {
    block: BlockId,
    /// Instructions of it that completed, words that they left in the dynamic stream, and what comes behind it.
    instructions: usize,
    words: usize,
    next_pc: u64,
    partials: Box<[Partial]>,
    /// Instructions of it that met subnormal numbers.
    subnormals: Box<[Subnormal]>,
    /// Cycles of the kernel's work on pages behind it.
    pause: Cycle,
}

/// The blocks that the thread of a core has executed before their time.
pub(crate) struct RunAhead {
    blocks: VecDeque<Executed>,
    /// Their words, from `first` on.
    words: Vec<u64>,
    first: usize,
    /// Their instructions.
    instructions: u64,
    /// Simulated time at which the thread went on executing, ns, if it has not been on its CPU since.
    since_ns: Option<u64>,
    /// The next block must not be executed before its time, or cannot be.
    pub(crate) stuck: bool,
    /// Instructions in [`RunAhead::PACE_CYCLES`] cycles lately.
    pace: u64,
}

impl Default for RunAhead {
    fn default() -> RunAhead {
        RunAhead {
            blocks: VecDeque::new(),
            words: Vec::new(),
            first: 0,
            instructions: 0,
            since_ns: None,
            stuck: false,
            pace: RunAhead::PACE_CYCLES,
        }
    }
}

impl RunAhead {
    const PACE_CYCLES: u64 = 1 << 10;

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The thread goes on executing at `now_ns`.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.since_ns = Some(now_ns);
        self.words.drain(..std::mem::take(&mut self.first));
    }

    /// Since when the thread has been running, if it has executed blocks since it was on its CPU last.
    pub(crate) fn take_since(&mut self) -> Option<u64> {
        self.since_ns.take()
    }

    /// Whether its instructions are likely to take `cycles` cycles, and some more.
    pub(crate) fn lasts(&self, cycles: Cycle) -> bool {
        self.instructions * RunAhead::PACE_CYCLES > cycles * self.pace * 5 / 4
    }

    /// So many cycles have been so many instructions' time.
    pub(crate) fn keep_pace(&mut self, cycles: Cycle, instructions: u64) {
        if cycles > 0 && instructions > 0 {
            self.pace = (instructions * RunAhead::PACE_CYCLES / cycles).max(1);
        }
    }

    /// How fast its instructions come; a measure for [`RunAhead::cycles_of`] only.
    pub(crate) fn pace(&self) -> u64 {
        self.pace
    }

    /// Cycles that so many instructions of cores take whose paces make `paces` together.
    pub(crate) fn cycles_of(instructions: u64, paces: u64) -> Cycle {
        instructions * RunAhead::PACE_CYCLES / paces.max(1)
    }

    /// Instructions whose time has not come.
    pub(crate) fn instructions(&self) -> u64 {
        self.instructions
    }

    /// The thread in place has executed `instructions` instructions of `block`.
    pub(crate) fn push(&mut self, block: BlockId, instructions: usize, process: &Guest) {
        let cpu = process.cpu();
        self.words.extend(cpu.stream());
        self.instructions += instructions as u64;
        self.blocks.push_back(Executed {
            block,
            instructions,
            words: cpu.stream().len(),
            next_pc: cpu.pc,
            partials: cpu.partials().into(),
            subnormals: cpu.subnormals().into(),
            pause: 0,
        });
    }

    /// The kernel has worked for `cycles` cycles behind the last block.
    pub(crate) fn pause(&mut self, cycles: Cycle) {
        if let Some(last) = self.blocks.back_mut() {
            last.pause += cycles;
        }
    }
}

impl Core {
    /// The time of the first block comes that was executed ahead, if there is one.
    #[inline(always)]
    pub(crate) fn run_ahead(&mut self, chip: &mut Chip) -> bool {
        let ahead = &mut self.ahead;
        let Some(executed) = ahead.blocks.pop_front() else { return false };
        let words = &ahead.words[ahead.first..ahead.first + executed.words];
        ahead.first += executed.words;
        ahead.instructions -= executed.instructions as u64;
        let block = self.blocks[executed.block.0 as usize].as_mut().expect("resolved when it was executed");
        let (instructions, next_pc) = (executed.instructions, executed.next_pc);
        if executed.partials.is_empty() {
            self.pipeline.run(block, instructions, words, next_pc, chip);
        } else {
            self.pipeline.run_partly(block, instructions, (words, &executed.partials), next_pc, &mut (), chip);
        }
        if !executed.subnormals.is_empty() {
            self.pipeline.subnormals(block, &executed.subnormals);
        }
        block.count(instructions);
        if executed.pause > 0 {
            self.pipeline.pause(executed.pause);
        }
        true
    }

    /// The time of blocks comes that were executed ahead, until `end`. Returns whether that was all of them.
    pub(crate) fn catch_up_to(&mut self, end: Cycle, chip: &mut Chip) -> bool {
        while self.pipeline.now() < end {
            if !self.run_ahead(chip) {
                return true;
            }
        }
        self.ahead.is_empty()
    }

    /// The time of all blocks comes that were executed ahead.
    pub(crate) fn catch_up(&mut self, chip: &mut Chip) {
        while self.run_ahead(chip) {}
    }
}

impl Driver<'_> {
    /// The time of all blocks comes that threads have executed ahead.
    pub(crate) fn catch_up_all(&mut self) {
        let Timing { machine, clocks, .. } = &mut *self.timing;
        let (core, chip) = machine.running();
        core.catch_up(chip);
        machine.for_others(
            true,
            |core| !core.ahead.is_empty(),
            |index, core, chip| {
                core.catch_up(chip);
                if clocks[index] != NEVER {
                    clocks.set(index, core.pipeline.now());
                }
            },
        );
    }
}
