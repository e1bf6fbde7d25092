//! Loops in which a thread waits: how long they go on by themselves, and many rounds at once.

use fxscope_aarch64::cpu::Nzcv;
use fxscope_aarch64::{BlockId, Cpu, Inst, Memory};
use fxscope_uop::{Reg, StaticInst};

use crate::process::Process;
use crate::thread::Thread;
use crate::wait::FOR_EVER;

/// General registers, stack pointer included.
pub const REGISTERS: usize = 32;

/// A round of a loop that loads, computes with general registers and branches, and does nothing else.
#[derive(Clone)]
pub struct Round {
    /// The blocks that it executes whole, in order.
    pub path: Vec<BlockId>,
    /// Its dynamic stream.
    pub words: Vec<u64>,
    /// What it adds to each general register.
    pub steps: [u64; REGISTERS],
    /// The condition flags at its beginning and its end.
    pub flags: Nzcv,
}

impl Process {
    /// The thread with this number, of whichever process.
    fn thread_numbered(&mut self, tid: u32) -> Option<&mut Thread> {
        let parked = self.kernel.system.threads.iter_mut().map(Box::as_mut);
        parked.chain([&mut *self.thread]).find(|thread| thread.tid == tid)
    }

    /// How many rounds more thread `tid` would run if nobody wrote what it reads, for sure; 0 if nothing can be said, as
    /// when its process is not in place. Nothing changes by this.
    ///
    /// A round is run for a look at the registers that change from round to round: where nothing is done with them but
    /// counting and comparing with what stays the same, the way is the same as long as no difference changes its sign.
    pub fn rounds_ahead(&mut self, tid: u32, round: &Round) -> u64 {
        let (blocks, mem, pid) = (&self.blocks, &mut self.kernel.mem, self.kernel.pid);
        let parked = self.kernel.system.threads.iter_mut().map(Box::as_mut);
        let thread = parked.chain([&mut *self.thread]).find(|thread| thread.tid == tid && thread.pid == pid);
        let Some(Thread { cpu, .. }) = thread else { return 0 };
        let (registers, pc, flags) = (cpu.x, cpu.pc, cpu.nzcv);
        let mut rounds = u64::MAX;
        for &id in &round.path {
            let block = blocks.get(id);
            if block.start != cpu.pc {
                rounds = 0;
                break;
            }
            for (inst, info) in block.insts.iter().zip(&block.infos) {
                rounds = rounds.min(same_way(cpu, inst, info, &round.steps));
                cpu.pc = block.end;
                cpu.clear_stream();
                if (inst.exec)(cpu, mem, inst).is_err() {
                    rounds = 0;
                }
            }
        }
        let whole = cpu.pc == pc;
        (cpu.x, cpu.pc, cpu.nzcv) = (registers, pc, flags);
        if whole { rounds } else { 0 }
    }

    /// Thread `tid` has run `rounds` rounds of `instructions` instructions each, which took it `ns`.
    pub fn skip_rounds(&mut self, tid: u32, round: &Round, rounds: u64, instructions: u64, ns: u64) {
        self.instructions += rounds * instructions;
        let Some(thread) = self.thread_numbered(tid) else { return };
        for (x, step) in thread.cpu.x.iter_mut().zip(&round.steps) {
            *x = x.wrapping_add(step.wrapping_mul(rounds));
        }
        thread.cpu_ns += ns;
        let pid = thread.pid;
        if pid == self.kernel.pid {
            self.kernel.cpu_ns += ns;
        } else if let Some(other) = self.kernel.system.processes.get_mut(&pid) {
            other.kernel.cpu_ns += ns;
        }
    }

    /// Whether thread `tid` has its CPU for itself and nothing but its own program to attend to.
    #[must_use]
    pub fn is_undisturbed(&self, tid: u32) -> bool {
        let all = || self.kernel.system.parked().chain([&*self.thread]);
        let Some(thread) = all().find(|thread| thread.tid == tid) else { return false };
        let runs = !thread.ended && thread.blocked.is_none() && thread.trap.is_none() && !thread.poked;
        let mut others = all().filter(|t| t.tid != tid && t.queued.is_some());
        runs && self.end.is_none() && thread.queued.is_some() && others.all(|t| t.cpu_number != thread.cpu_number)
    }

    /// Simulated time in ns at which a time limit or timer expires next.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        Some(self.next_event()).filter(|&ns| ns != FOR_EVER)
    }

    /// The address space, to be watched.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.kernel.mem
    }
}

/// For how many rounds an instruction that is about to be executed does not lead elsewhere by what it does with registers
/// that change by `steps` from round to round.
fn same_way(cpu: &Cpu, inst: &Inst, info: &StaticInst, steps: &[u64; REGISTERS]) -> u64 {
    let step = |reg: Reg| steps.get(usize::from(reg.0)).copied().unwrap_or(0);
    let results = || info.dsts.iter().chain(info.writeback).filter(|reg| usize::from(reg.0) < REGISTERS);
    let mut moving = info.srcs.iter().chain(info.addr_srcs.iter()).filter(|&reg| step(reg) != 0);
    let Some(source) = moving.next() else {
        return if results().all(|reg| step(reg) == 0) { u64::MAX } else { 0 };
    };
    if moving.next().is_some() || results().any(|reg| reg != source) {
        return 0;
    }
    let value = cpu.x[usize::from(source.0)];
    let compares = results().next().is_none();
    let other = match info.class.name() {
        "base:ADD (immediate)" | "base:SUB (immediate)" | "base:CBZ" | "base:CBNZ" => 0,
        "base:ADDS (immediate)" => (inst.imm as u64).wrapping_neg(),
        "base:SUBS (immediate)" => inst.imm as u64,
        "base:SUBS (shifted register) [amount 0]" if compares => {
            cpu.x(if inst.rn == source.0 { inst.rm } else { inst.rn })
        }
        _ => return 0,
    };
    rounds_with_sign(value, step(source)).min(rounds_with_sign(value.wrapping_sub(other), step(source)))
}

/// For how many rounds, the next one first, a number does not become zero and keeps its sign, as one of 32 bits and as one
/// of 64 bits, if it is `value` in the next one and grows by `step` with each.
fn rounds_with_sign(value: u64, step: u64) -> u64 {
    const HALF: u64 = 1 << 31;
    let at = value % HALF;
    let by = (step as i64).unsigned_abs();
    let room = if (step as i64) < 0 { at.saturating_sub(1) } else { HALF - 1 - at };
    if at == 0 || by == 0 { 0 } else { room / by + 1 }
}

#[cfg(test)]
mod tests {
    use super::rounds_with_sign;

    #[test]
    fn a_number_that_counts_down_keeps_its_sign_until_it_would_be_zero() {
        assert_eq!(rounds_with_sign(5, 1_u64.wrapping_neg()), 5);
        assert_eq!(rounds_with_sign(5, 2_u64.wrapping_neg()), 3);
        assert_eq!(rounds_with_sign(0, 1), 0);
    }

    #[test]
    fn a_number_that_counts_up_from_below_zero_keeps_its_sign_until_it_would_be_zero() {
        assert_eq!(rounds_with_sign(3_u64.wrapping_neg(), 1), 3);
        assert_eq!(rounds_with_sign(3_u64.wrapping_neg(), 2), 2);
    }

    #[test]
    fn a_number_keeps_its_sign_as_one_of_32_bits() {
        assert_eq!(rounds_with_sign((1 << 31) - 2, 1), 2);
        assert_eq!(rounds_with_sign((1 << 32) - 2, 1), 2);
    }
}
