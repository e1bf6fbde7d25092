//! Functional warming: the long-lived state of a core follows instructions that are not timed.
//!
//! Caches, translations, prefetch streams and branch predictors are as they would be had the instructions been timed, as far as
//! their state does not depend on time. What is short-lived (queues, pipes, the write buffer) is empty when timing begins again,
//! and fills within some hundred instructions.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};
use fxscope_isa::{Access, Branch, MemOp, Shape};
use fxscope_memory::{Chip, Hierarchy};

use crate::bind::{BoundAccess, BoundBlock};
use crate::core::Pipeline;
use crate::predict::Branched;
use crate::sampled::{COST_UNIT, Reach, Reached};

/// A memory access of a block, as warming follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Followed {
    /// Index of its instruction in the block.
    inst: u8,
    /// How many words it leaves in the dynamic stream, and where they begin in that of its block.
    words: u8,
    word: u16,
    op: MemOp,
}

impl Followed {
    /// Returns the accesses of a block whose instructions have the accesses `mem`.
    pub(crate) fn all(mem: &[Option<BoundAccess>]) -> Box<[Followed]> {
        let mut word = 0;
        let accesses = mem.iter().enumerate().filter_map(|(inst, access)| {
            let access = access.as_ref()?;
            let followed = Followed { inst: inst as u8, words: access.words, word, op: access.op };
            word += u16::from(access.words);
            Some(followed)
        });
        accesses.collect()
    }
}

impl Pipeline {
    /// Follows the first `executed` instructions of `block`, which left `stream` and continued at `next_pc`, without timing them:
    /// the clock advances by that one of `costs` ([`COST_UNIT`]) that is for how far its accesses went ([`Reach`]), which is returned. Events whose number does not
    /// depend on time are counted, unless the core is cold ([`Pipeline::set_cold`]).
    pub fn warm(
        &mut self,
        block: &BoundBlock,
        executed: usize,
        stream: &[u64],
        next_pc: u64,
        costs: &[u32; Reach::COUNT],
        chip: &mut Chip,
    ) -> u32 {
        let Some(last) = executed.checked_sub(1) else { return 0 };
        let now = self.now();
        let counts = self.sampled.get_or_insert_default();
        let was_timed = std::mem::replace(&mut counts.is_timed, false);
        let signals = if counts.is_cold { &mut counts.cold } else { &mut counts.warmed };
        let before = Reached::so_far(signals, chip);
        let memory = &mut self.memory.untimed(chip);
        if was_timed {
            memory.begin_warming();
        }
        if !self.front.is_buffered() {
            memory.touch_code(block.start, block.start + 4 * executed as u64, now, signals);
        }
        for access in block.tables.followed.iter().take_while(|access| usize::from(access.inst) <= last) {
            let first = usize::from(access.word);
            let Some(words) = stream.get(first..first + usize::from(access.words)) else { break };
            follow(&access.op, words, now, memory, signals);
        }
        if block.branch != Branch::None && executed == block.profile.len() {
            let pc = block.start + 4 * last as u64;
            let taken = next_pc != pc + 4;
            let prediction = self.predictor.branch_inline(Branched { kind: block.branch, pc, taken, next: next_pc });
            self.front.supply_from_buffer(prediction.buffered);
            signals.add(Signal::BrMisPred, u64::from(!prediction.right));
        }
        let reach = Reached::so_far(signals, chip).since(&before);
        let cost = costs[reach as usize];
        let cycles = counts.cycles(cost.into());
        self.commit.skip(cycles);
        self.dispatch.hold_until(self.commit.now() + 1);
        cost
    }

    /// A loop that executes the blocks of `path` was executed `times` times without being followed: the branch predictors see its branches as often
    /// as it takes until more would not change what they predict. No events are counted.
    pub fn repeat_branches(&mut self, path: &[&BoundBlock], times: u64) {
        for _ in 0..seen_repetitions(times, self.predictor.settled_after()) {
            for (block, next) in path.iter().zip(path.iter().cycle().skip(1)) {
                self.repeat_branch(block, next.start);
            }
        }
    }

    /// The branch predictors see the branch at the end of `block`, if it has one, which continues at `next`.
    #[inline(always)]
    fn repeat_branch(&mut self, block: &BoundBlock, next: u64) {
        if block.branch != Branch::None {
            let pc = block.start + 4 * (block.profile.len() as u64 - 1);
            let prediction =
                self.predictor.branch_inline(Branched { kind: block.branch, pc, taken: next != pc + 4, next });
            self.front.supply_from_buffer(prediction.buffered);
        }
    }

    /// Blocks were executed that are neither timed nor followed: the clock advances by what they cost ([`COST_UNIT`]). All other state
    /// stays as it is.
    pub fn skip(&mut self, cost: u64, chip: &mut Chip) {
        let counts = self.sampled.get_or_insert_default();
        if std::mem::replace(&mut counts.is_timed, false) {
            self.memory.untimed(chip).begin_warming();
        }
        let cycles = counts.cycles(cost);
        self.commit.skip(cycles);
        self.dispatch.hold_until(self.commit.now() + 1);
    }

    /// The clock advances to `cycle`, if it is behind, as if blocks had been skipped until then.
    pub fn catch_up(&mut self, cycle: Cycle, chip: &mut Chip) {
        self.skip(COST_UNIT * cycle.saturating_sub(self.now()), chip);
    }

    /// The page of an address was touched first by a block that was neither timed nor followed: it gets its frame.
    pub fn first_touch(&mut self, address: u64, chip: &mut Chip) {
        self.memory.untimed(chip).give_frame(address);
    }
}

/// Returns how many of `times` equal iterations the predictors must see, which `settled` of them settle: as many, and a few more that differ from wait to
/// wait. If their number were always the same, the loop predictor would learn it.
fn seen_repetitions(times: u64, settled: u64) -> u64 {
    if times < 2 * settled { times } else { settled + times % settled }
}

/// Follows a memory access that left `words`.
#[inline(always)]
fn follow(op: &MemOp, words: &[u64], t: Cycle, memory: &mut Hierarchy<'_, false>, signals: &mut Signals) {
    match (op.access, op.shape) {
        (Access::Load | Access::Store | Access::Atomic, Shape::Single | Shape::Masked) => {
            if op.shape == Shape::Masked && words[1] == 0 {
                memory.inactive(words[0].into(), t, signals);
            } else {
                memory.touch(words[0], op.bytes.into(), op.access != Access::Load, t, signals);
            }
        }
        _ => follow_other(op, words, t, memory, signals),
    }
}

/// Follows accesses of single elements, prefetches and `DC ZVA`.
#[cold]
#[inline(never)]
fn follow_other(op: &MemOp, words: &[u64], t: Cycle, memory: &mut Hierarchy<'_, false>, signals: &mut Signals) {
    let Some((&first, addresses)) = words.split_first() else { return };
    let step = usize::from(op.reg_esize);
    let is_active = |i: usize| first >> (i * step) & 1 == 1;
    let elements = addresses.iter().enumerate().map(|(i, &address)| (address, is_active(i)));
    match (op.access, op.shape) {
        (Access::ZeroLine, _) => {
            memory.zero_line(first.into(), t, signals);
        }
        (Access::PrefetchLoad(level) | Access::PrefetchStore(level), Shape::Indexed) => {
            for (pointer, _) in elements.filter(|&(_, active)| active) {
                memory.prefetch_instruction(pointer.into(), 1, level, t, signals);
            }
        }
        (Access::PrefetchLoad(level) | Access::PrefetchStore(level), shape) => {
            if shape != Shape::Masked || addresses.first() != Some(&0) {
                memory.prefetch_instruction(first.into(), op.bytes.into(), level, t, signals);
            }
        }
        (access, _) => {
            let write = access != Access::Load;
            for (pointer, active) in elements {
                if active {
                    memory.touch(pointer, op.mem_esize.into(), write, t, signals);
                } else if write {
                    memory.inactive(pointer.into(), t, signals);
                }
            }
        }
    }
}
