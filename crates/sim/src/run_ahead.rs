//! Functional run-ahead: a queue of blocks that a thread has executed and that are not timed yet.

use std::collections::VecDeque;

use fxscope_aarch64::{BlockId, Engine};
use fxscope_calendar::Cycle;
use fxscope_isa::{Partial, Subnormal};
use fxscope_linux::Guest;
use fxscope_memory::{Chip, NEVER};
use fxscope_pipeline::BoundBlock;

use crate::core::Core;
use crate::execution::Execution;
use crate::timing::{Driver, Timing};

/// A block that was executed and is not timed yet.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
struct Executed {
    block: usize,
    /// Its instructions that completed, the words that they left in the dynamic stream, and the next address.
    instructions: usize,
    words: usize,
    next_pc: u64,
    partials: Box<[Partial]>,
    /// Its instructions that encountered subnormal numbers.
    subnormals: Box<[Subnormal]>,
    /// Cycles of the kernel's work on pages after it.
    pause: Cycle,
}

/// The blocks that the thread of a core has executed ahead of the timing.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct RunAhead {
    blocks: VecDeque<Executed>,
    /// The words of all blocks, from `first` on.
    words: Vec<u64>,
    first: usize,
    /// The instructions of all blocks.
    instructions: u64,
    /// Simulated time at which the thread began to run ahead, ns, if it has not been active since.
    since_ns: Option<u64>,
    /// Whether the next block must not, or cannot, execute early.
    pub(crate) stuck: bool,
    /// Recent instructions per [`RunAhead::PACE_CYCLES`] cycles.
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

    /// Notes that the thread begins to run ahead at `now_ns`.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.since_ns = Some(now_ns);
        self.words.drain(..std::mem::take(&mut self.first));
    }

    /// Takes the time since when the thread has run ahead, if it has not been active since.
    pub(crate) fn take_since(&mut self) -> Option<u64> {
        self.since_ns.take()
    }

    /// Returns whether its instructions probably last for `cycles` cycles and a margin.
    pub(crate) fn lasts(&self, cycles: Cycle) -> bool {
        self.instructions * RunAhead::PACE_CYCLES > cycles * self.pace * 5 / 4
    }

    /// Notes that `instructions` instructions took `cycles` cycles.
    pub(crate) fn keep_pace(&mut self, cycles: Cycle, instructions: u64) {
        if cycles > 0 && instructions > 0 {
            self.pace = (instructions * RunAhead::PACE_CYCLES / cycles).max(1);
        }
    }

    /// Returns the recent rate of its instructions, for [`RunAhead::cycles_of`].
    pub(crate) fn pace(&self) -> u64 {
        self.pace
    }

    /// Returns the cycles that `instructions` instructions take on cores whose rates add up to `paces`.
    pub(crate) fn cycles_of(instructions: u64, paces: u64) -> Cycle {
        instructions * RunAhead::PACE_CYCLES / paces.max(1)
    }

    /// Returns the number of instructions that are not timed yet.
    pub(crate) fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Returns whether it is a state that a core with these blocks can have.
    pub(crate) fn is_sound(&self, blocks: &[Option<BoundBlock>]) -> bool {
        let words: usize = self.blocks.iter().map(|executed| executed.words).fold(self.first, usize::saturating_add);
        let instructions: usize =
            self.blocks.iter().map(|executed| executed.instructions).fold(0, usize::saturating_add);
        let fits = |executed: &Executed| {
            let block = blocks.get(executed.block).and_then(Option::as_ref);
            let inside = |inst: u8| block.is_some_and(|block| usize::from(inst) < block.profile.len());
            block.is_some_and(|block| executed.instructions <= block.profile.len())
                && executed.partials.iter().all(|partial| inside(partial.inst))
                && executed.subnormals.iter().all(|subnormal| inside(subnormal.inst))
        };
        words == self.words.len() && instructions as u64 == self.instructions && self.blocks.iter().all(fits)
    }

    /// Appends `instructions` instructions of `block`, which the current thread has executed.
    pub(crate) fn push(&mut self, block: BlockId, instructions: usize, guest: &Guest) {
        let cpu = guest.cpu();
        self.words.extend(cpu.stream());
        self.instructions += instructions as u64;
        self.blocks.push_back(Executed {
            block: block.0 as usize,
            instructions,
            words: cpu.stream().len(),
            next_pc: cpu.pc,
            partials: cpu.partials().into(),
            subnormals: cpu.subnormals().into(),
            pause: 0,
        });
    }

    /// Adds `cycles` cycles of the kernel's work after the last block.
    pub(crate) fn pause(&mut self, cycles: Cycle) {
        if let Some(last) = self.blocks.back_mut() {
            last.pause += cycles;
        }
    }
}

impl Core {
    /// Times the first block of the queue, if there is one.
    #[inline(always)]
    pub(crate) fn run_ahead(&mut self, chip: &mut Chip) -> bool {
        let ahead = &mut self.ahead;
        let Some(executed) = ahead.blocks.pop_front() else { return false };
        let words = &ahead.words[ahead.first..ahead.first + executed.words];
        ahead.first += executed.words;
        ahead.instructions -= executed.instructions as u64;
        let block = self.blocks[executed.block].as_mut().expect("bound when it was executed");
        let execution = Execution {
            instructions: executed.instructions,
            next_pc: executed.next_pc,
            words,
            partials: &executed.partials,
            subnormals: &executed.subnormals,
        };
        execution.time(block, &mut self.calls, &mut self.pipeline, chip);
        if executed.pause > 0 {
            self.pipeline.pause(executed.pause);
        }
        true
    }

    /// Times blocks of the queue until `end`. Returns whether the queue is empty.
    pub(crate) fn catch_up_to(&mut self, end: Cycle, chip: &mut Chip) -> bool {
        while self.pipeline.now() < end {
            if !self.run_ahead(chip) {
                return true;
            }
        }
        self.ahead.is_empty()
    }

    /// Times all blocks of the queue.
    pub(crate) fn catch_up(&mut self, chip: &mut Chip) {
        while self.run_ahead(chip) {}
    }
}

impl<E: Engine> Driver<'_, E> {
    /// Times all blocks of all queues.
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
