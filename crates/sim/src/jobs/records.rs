//! What a core did in an interval, in order: blocks that its thread executed, and what the kernel did to it between them.

use fxscope_aarch64::{BlockId, Cpu};
use fxscope_calendar::Cycle;
use fxscope_isa::{Partial, Subnormal};
use fxscope_memory::Chip;
use fxscope_pipeline::{BoundBlock, SharedTables};
use serde::{Deserialize, Serialize};

use super::block_trace::{BlockTrace, Executed};
use super::{Unfit, first_of};
use crate::controls::Controls;
use crate::core::Core;
use crate::execution::Execution;
use crate::markers::Edge;
use crate::pages::PagesChange;

/// What happens to a core between two blocks.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) enum Change {
    /// A block is bound, and has this number from now on.
    Binds { index: usize, block: Box<BoundBlock> },
    /// Code of a process has changed: its block numbers are invalid. `restarts`: the thread executes another program.
    Forgets { pid: u32, restarts: bool },
    /// The thread spends cycles in the kernel.
    Pauses(Cycle),
    /// The thread sleeps.
    Sleeps(Cycle),
    /// The control registers have been read.
    Controls(Box<Controls>),
    /// The pages of the process are others.
    Pages(Box<PagesChange>),
    /// A region begins or ends.
    Mark(Box<Mark>),
}

/// The beginning or the end of a region.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Mark {
    pub(crate) edge: Edge,
    /// The region, if the program names it.
    pub(crate) name: Option<String>,
}

/// Instructions of a block that operated on some elements only, and that encountered subnormal numbers: how many.
#[derive(Clone, Copy, Deserialize, Serialize)]
struct Special {
    partials: u8,
    subnormals: u8,
}

/// The records of an interval. What blocks have left is in lists of its own, in their order.
#[derive(Clone, Default, Deserialize, Serialize)]
pub(crate) struct Records {
    blocks: BlockTrace,
    special: Vec<Special>,
    partials: Vec<Partial>,
    subnormals: Vec<Subnormal>,
    /// Changes, each with the number of blocks before it.
    changes: Vec<(usize, Change)>,
    /// Why the run cannot be timed in intervals, once that is known. Such intervals are not timed.
    #[serde(skip)]
    pub(crate) unfit: Option<Unfit>,
}

impl Records {
    /// The thread has executed `instructions` instructions of a block, which left `cpu` behind.
    #[inline(always)]
    pub(crate) fn push(&mut self, block: BlockId, instructions: usize, cpu: &Cpu) {
        let (words, partials, subnormals) = (cpu.stream(), cpu.partials(), cpu.subnormals());
        let is_special = !partials.is_empty() || !subnormals.is_empty();
        if is_special {
            self.special.push(Special { partials: partials.len() as u8, subnormals: subnormals.len() as u8 });
            self.partials.extend_from_slice(partials);
            self.subnormals.extend_from_slice(subnormals);
        }
        let executed = Executed {
            next_pc: cpu.pc,
            block: block.0,
            words: words.len() as u16,
            instructions: instructions as u8,
            is_special,
        };
        self.blocks.push(executed, words);
    }

    /// Returns the bytes that blocks have taken.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.bytes()
    }

    /// Lets all blocks share their tables, unless those of one are not sound. Returns whether all are.
    pub(super) fn share_tables(&mut self, shared: &mut SharedTables) -> bool {
        let mut bound = self.changes.iter_mut().filter_map(|(_, change)| match change {
            Change::Binds { block, .. } => Some(block),
            _ => None,
        });
        bound.all(|block| share(shared, block))
    }

    /// Something happens to the core before the next block.
    pub(crate) fn change(&mut self, change: Change) {
        self.changes.push((self.blocks.len(), change));
    }
}

impl Core {
    /// Does what was recorded. `marked` is called for each beginning and end of a region, and system calls take `system_call` cycles.
    pub(super) fn replay(
        &mut self,
        records: Records,
        chip: &mut Chip,
        system_call: Cycle,
        mut marked: impl FnMut(&Core, Mark),
    ) {
        let Records { blocks, special, partials, subnormals, changes, unfit: _ } = records;
        let (mut partials, mut subnormals) = (&partials[..], &subnormals[..]);
        let mut special = special.into_iter();
        let mut changes = changes.into_iter().peekable();
        for (number, (executed, words)) in blocks.iter().enumerate() {
            while let Some((_, change)) = changes.next_if(|(before, _)| *before == number) {
                self.apply(change, chip, &mut marked);
            }
            let few = if executed.is_special { special.next() } else { None };
            let few = few.unwrap_or(Special { partials: 0, subnormals: 0 });
            let execution = Execution {
                instructions: executed.instructions.into(),
                next_pc: executed.next_pc,
                words,
                partials: first_of(&mut partials, few.partials.into()),
                subnormals: first_of(&mut subnormals, few.subnormals.into()),
            };
            let block = self.blocks[executed.block as usize].as_mut().expect("bound before it was executed");
            execution.time(block, &mut self.calls, &mut self.pipeline, chip);
            if block.enters_kernel {
                block.charge_kernel(execution.instructions, system_call);
            }
        }
        changes.for_each(|(_, change)| self.apply(change, chip, &mut marked));
    }

    #[cold]
    fn apply(&mut self, change: Change, chip: &mut Chip, marked: &mut impl FnMut(&Core, Mark)) {
        match change {
            Change::Binds { index, block } => self.bind_again(index, *block),
            Change::Forgets { pid, restarts } => self.forget_blocks_of(pid, restarts),
            Change::Pauses(cycles) => self.pause(cycles),
            Change::Sleeps(cycles) => self.sleep(cycles),
            Change::Controls(controls) => self.control(&controls, chip),
            Change::Pages(pages) => pages.apply(&mut self.pipeline.memory.with(chip)),
            Change::Mark(mark) => marked(self, *mark),
        }
    }
}

/// Lets a block share its tables. Returns whether they are sound.
pub(super) fn share(shared: &mut SharedTables, block: &mut BoundBlock) -> bool {
    shared.share(block);
    block.is_sound()
}
