//! Loops that change nothing: a thread is in one when two consecutive iterations leave all registers, and everything that they store,
//! exactly the same. It stays there until somebody else writes what it reads.

use fxscope_aarch64::{Cpu, DataAccess, StaticBlock};
use fxscope_linux::Guest;
use serde::{Deserialize, Serialize};

/// Alike iterations, one after the other, before a loop is taken to change nothing.
const ALIKE: u32 = 2;

/// The call that only lets others run. Those that look at descriptors may see what the host does.
const SCHED_YIELD: u64 = 124;

/// Bits of an address that select the place in memory.
const ADDRESS: u64 = (1 << 56) - 1;

/// The search for such a loop, block by block.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Cycle {
    /// Where iterations are taken to begin.
    head: u64,
    /// The digest of the current iteration so far, and that of the last one.
    digest: u64,
    last: Option<u64>,
    alike: u32,
    /// Blocks so far, those of the current iteration, and those of the last one.
    blocks: u32,
    current: u32,
    length: u32,
    /// It has read the time or made another call: it may leave the loop by itself.
    active: bool,
}

impl Cycle {
    /// Returns whether the thread is in a loop that changes nothing. It may leave it again, when another thread writes what it reads.
    pub(super) fn is_found(&self) -> bool {
        self.alike >= ALIKE && !self.active
    }

    /// Follows a block of the running thread of which `executed` instructions completed.
    pub(super) fn ran(&mut self, guest: &Guest, block: &StaticBlock, executed: usize) {
        let cpu = guest.cpu();
        let infos = &block.infos[..executed.min(block.infos.len())];
        let calls = infos.last().is_some_and(|info| info.enters_kernel);
        self.active |= infos.iter().any(|info| info.reads_time) || (calls && cpu.x(8) != SCHED_YIELD);
        if self.active {
            return;
        }
        self.blocks = self.blocks.saturating_add(1);
        self.current += 1;
        self.mix(cpu.pc);
        self.mix_registers(cpu);
        self.mix_stores(guest, block, executed);
        if cpu.pc == self.head {
            let digest = std::mem::take(&mut self.digest);
            self.alike = if self.last == Some(digest) { self.alike + 1 } else { 0 };
            self.last = Some(digest);
            self.length = std::mem::take(&mut self.current);
        } else if self.alike > 0 && self.current >= self.length {
            self.begin_at(cpu.pc);
        } else if self.blocks.is_power_of_two() && self.alike == 0 {
            // The loop may begin later, or be longer.
            self.begin_at(cpu.pc);
        }
    }

    fn begin_at(&mut self, head: u64) {
        *self = Cycle { head, blocks: self.blocks, ..Cycle::default() };
    }

    fn mix(&mut self, word: u64) {
        self.digest = (self.digest.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn mix_registers(&mut self, cpu: &Cpu) {
        (0..31).chain([Cpu::SP]).for_each(|n| self.mix(cpu.x(n)));
        self.mix(u32::from(cpu.nzcv).into());
        cpu.z.iter().flat_map(|z| z.0).chain(cpu.p).for_each(|word| self.mix(word));
    }

    fn mix_stores(&mut self, guest: &Guest, block: &StaticBlock, executed: usize) {
        let (memory, space) = (guest.memory(), guest.memory().active());
        for DataAccess { address, bytes, .. } in block.accesses(guest.cpu(), executed).filter(|access| access.writes) {
            self.mix(address);
            for word in (address & ADDRESS & !7..(address & ADDRESS) + bytes).step_by(8) {
                self.mix(memory.peek(space, word).unwrap_or(0));
            }
        }
    }
}
