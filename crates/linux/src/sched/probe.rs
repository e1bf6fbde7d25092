//! Threads of functional runs that wait by looking at the same memory again and again. The blocks at the beginning of some of a thread's
//! turns are followed: if it repeats them with the same accesses, and stores nothing or the same, it looks for what others do. Its
//! turns are short then, while others have something to do. That changes only the order in which threads run.

use fxscope_aarch64::{DataAccess, StaticBlock};
use serde::{Deserialize, Serialize};

use crate::guest::Guest;

/// Blocks that are followed: three times as many as the longest loop has that is recognised.
const BLOCKS: u32 = 96;
/// Iterations like the one before that a loop must have.
const ALIKE: u32 = 2;
/// Most turns of a thread between two of which the beginning is followed.
const MOST_TURNS: u32 = 64;
/// Bits of an address that select the place in memory.
const ADDRESS: u64 = (1 << 56) - 1;

/// What is known of how a thread runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Probe {
    /// Whether it looked again and again at the beginning of the last turn that was followed.
    pub spins: bool,
    /// Turns until the next one that is followed, and how many there were before.
    turns_left: u32,
    turns: u32,
    /// The loop in which it may be, while it is followed.
    following: Option<Loop>,
}

/// The search for a loop.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Loop {
    blocks: u32,
    /// Where iterations are taken to begin.
    head: u64,
    /// The digest of the current iteration so far, and that of the last one.
    digest: u64,
    last: Option<u64>,
    alike: u32,
    /// Whether it has loaded something: loops that do not cannot wait.
    loads: bool,
}

impl Probe {
    /// A turn begins: its first blocks are followed, or not.
    pub(crate) fn begins(&mut self) {
        let follows = self.turns_left == 0;
        self.turns_left = self.turns_left.saturating_sub(1);
        self.following = follows.then(Loop::default);
    }

    /// Returns whether the blocks of the turn are followed.
    pub(crate) fn is_following(&self) -> bool {
        self.following.is_some()
    }

    /// The thread either spins, which the next turn must confirm, or works, which is assumed of ever more turns.
    fn ends(&mut self, spins: bool) {
        self.turns = if spins { 0 } else { (2 * self.turns).clamp(1, MOST_TURNS) };
        (self.spins, self.turns_left, self.following) = (spins, self.turns, None);
    }
}

impl Loop {
    fn mix(&mut self, word: u64) {
        self.digest = (self.digest.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// The next block begins at `pc`.
    fn arrives(&mut self, pc: u64) {
        self.blocks += 1;
        self.mix(pc);
        if pc == self.head {
            let digest = std::mem::take(&mut self.digest);
            self.alike = if self.last == Some(digest) { self.alike + 1 } else { 0 };
            self.last = Some(digest);
        } else if self.blocks.is_power_of_two() && self.alike == 0 {
            // The loop may begin later, or be longer.
            (self.head, self.digest, self.last) = (pc, 0, None);
        }
    }
}

impl Guest {
    /// Follows a block of the running thread of which `executed` instructions completed.
    pub(crate) fn follow(&mut self, block: &StaticBlock, executed: usize) {
        let thread = &mut self.threads[self.running];
        let Some(found) = &mut thread.probe.following else { return };
        let space = self.memory.active();
        for DataAccess { address, bytes, writes } in block.accesses(&thread.cpu, executed) {
            found.mix(address);
            found.loads |= !writes;
            if writes {
                let start = address & ADDRESS;
                let words = (start & !7..start.saturating_add(bytes)).step_by(8);
                words.for_each(|word| found.mix(self.memory.peek(space, word).unwrap_or(0)));
            }
        }
        found.arrives(thread.cpu.pc);
        let spins = found.alike >= ALIKE && found.loads;
        if spins || found.blocks >= BLOCKS {
            thread.probe.ends(spins);
            self.set_turn();
        }
    }
}
