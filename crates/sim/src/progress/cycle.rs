//! Loops that change nothing: a thread is in one when two consecutive iterations leave all registers, and everything that they store,
//! exactly the same. It stays there until somebody else writes what it reads.

use fxscope_aarch64::{Cpu, StaticBlock};
use fxscope_isa::{Access, MemOp, Shape, StaticInst};
use fxscope_linux::Guest;
use serde::{Deserialize, Serialize};

/// Alike iterations, one after the other, before a loop is taken to change nothing.
const ALIKE: u32 = 2;

/// The calls that only look or let others run: `pselect6`, `ppoll`, `epoll_pwait`, `sched_yield`.
const CALLS: [u64; 4] = [72, 73, 22, 124];

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
    blocks: u32,
    /// It has read the time or made another call: it may leave the loop by itself.
    active: bool,
}

impl Cycle {
    /// Returns whether the thread is in a loop that changes nothing.
    pub(super) fn is_found(&self) -> bool {
        self.alike >= ALIKE && !self.active
    }

    /// Follows a block of the running thread of which `executed` instructions completed.
    pub(super) fn ran(&mut self, guest: &Guest, block: &StaticBlock, executed: usize) {
        let cpu = guest.cpu();
        let infos = &block.infos[..executed.min(block.infos.len())];
        let calls = infos.last().is_some_and(|info| info.enters_kernel);
        self.active |= infos.iter().any(|info| info.reads_time) || (calls && !CALLS.contains(&cpu.x(8)));
        if self.active {
            return;
        }
        self.blocks += 1;
        self.mix(cpu.pc);
        self.mix_registers(cpu);
        self.mix_stores(guest, infos);
        if cpu.pc == self.head {
            let digest = std::mem::take(&mut self.digest);
            self.alike = if self.last == Some(digest) { self.alike + 1 } else { 0 };
            self.last = Some(digest);
        } else if self.blocks.is_power_of_two() && self.alike == 0 {
            // The loop may begin later, or be longer.
            *self = Cycle { head: cpu.pc, blocks: self.blocks, ..Cycle::default() };
        }
    }

    fn mix(&mut self, word: u64) {
        self.digest = (self.digest.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn mix_registers(&mut self, cpu: &Cpu) {
        (0..31).chain([Cpu::SP]).for_each(|n| self.mix(cpu.x(n)));
        self.mix(u32::from(cpu.nzcv).into());
        cpu.z.iter().flat_map(|z| z.0).chain(cpu.p).for_each(|word| self.mix(word));
    }

    fn mix_stores(&mut self, guest: &Guest, infos: &[StaticInst]) {
        let (memory, space) = (guest.memory(), guest.memory().active());
        for (start, bytes, _) in accesses(guest.cpu(), infos).filter(|(.., access)| *access != Access::Load) {
            self.mix(start);
            for word in (start & ADDRESS & !7..(start & ADDRESS) + bytes).step_by(8) {
                self.mix(memory.peek(space, word).unwrap_or(0));
            }
        }
    }
}

/// Iterates over what the instructions of the last block have accessed: address, bytes, and how.
pub(super) fn accesses<'a>(cpu: &'a Cpu, infos: &'a [StaticInst]) -> impl Iterator<Item = (u64, u64, Access)> + 'a {
    let mut stream = cpu.stream();
    infos.iter().filter_map(|info| info.mem).flat_map(move |op| {
        let words = words(&op, cpu.vl).min(stream.len());
        let (own, rest) = stream.split_at(words);
        stream = rest;
        let addresses = match op.shape {
            Shape::Single => own,
            Shape::Masked => &own[..own.len().min(1)],
            Shape::Indexed => &own[own.len().min(1)..],
        };
        addresses.iter().map(move |&address| (address, u64::from(op.bytes), op.access))
    })
}

/// Returns the number of words that an access leaves in the dynamic stream, with vectors of `vl` bytes (`fxscope_isa::mem`).
fn words(op: &MemOp, vl: usize) -> usize {
    match op.shape {
        Shape::Single => 1,
        Shape::Masked => 2,
        Shape::Indexed => 1 + vl / usize::from(op.reg_esize.max(1)),
    }
}
