//! Loops in which a thread waits: how long they go on by themselves, and many rounds at once.

use fxscope_aarch64::block::Block;
use fxscope_aarch64::cpu::Nzcv;
use fxscope_aarch64::{BlockId, Cpu, Inst};
use fxscope_guestmem::Memory;
use fxscope_isa::{Reg, StaticInst};

use crate::guest::Guest;
use crate::sched::wait::FOR_EVER;
use crate::thread::Thread;

/// General registers, stack pointer included.
pub const REGISTERS: usize = 32;

/// A round of a loop that loads, computes with general registers and branches, and does nothing else.
#[derive(Clone)]
pub struct Round {
    /// The blocks that it executes whole, in order.
    pub path: Vec<Part>,
    /// Its dynamic stream.
    pub words: Vec<u64>,
    /// What it adds to each general register; 0 for one that it sets anew ([`Round::sets`]).
    pub steps: [u64; REGISTERS],
    /// The condition flags at its beginning and its end, if it needs them.
    pub flags: Nzcv,
    /// Registers that it reads before it writes them, and those that it sets anew, bit by number.
    needed: u128,
    set: u128,
    /// What its loads give, in their order: results and base addresses.
    loaded: Vec<u64>,
}

/// A block of a round: it outlives the cache of decoded blocks.
#[derive(Clone)]
pub struct Part {
    /// Its number while the thread is in the loop.
    pub id: BlockId,
    start: u64,
    end: u64,
    insts: Box<[Inst]>,
    infos: Box<[StaticInst]>,
}

impl Round {
    /// Nothing yet, with `flags` at its beginning.
    #[must_use]
    pub fn new(flags: Nzcv) -> Round {
        let (path, words, loaded) = (Vec::new(), Vec::new(), Vec::new());
        Round { path, words, steps: [0; REGISTERS], flags, needed: 0, set: 0, loaded }
    }

    /// It goes on with `block`, which leaves `words` in the stream.
    pub fn push(&mut self, id: BlockId, block: &Block, words: &[u64]) {
        let (insts, infos) = (block.insts.clone(), block.infos.clone());
        for info in &infos {
            self.needed |= numbers(sources(info)) & !self.set;
            self.set |= numbers(results(info)) & !self.needed;
        }
        self.path.push(Part { id, start: block.start, end: block.end, insts, infos });
        self.words.extend(words);
    }

    /// Whether it writes a register before it reads it: what that is at its beginning does not matter.
    #[must_use]
    pub fn sets(&self, reg: Reg) -> bool {
        self.set >> reg.0 & 1 == 1
    }

    /// What its instructions do, in order.
    pub fn infos(&self) -> impl Iterator<Item = &StaticInst> {
        self.path.iter().flat_map(|part| &part.infos)
    }

    /// Executes it, instruction by instruction with `execute`, which says whether it goes on. Returns whether it went its
    /// way to the end.
    #[inline(always)]
    fn run(&self, cpu: &mut Cpu, mut execute: impl FnMut(&mut Cpu, &Inst, &StaticInst) -> bool) -> bool {
        let head = cpu.pc;
        for part in &self.path {
            if cpu.pc != part.start {
                return false;
            }
            for (inst, info) in part.insts.iter().zip(&part.infos) {
                cpu.pc = part.end;
                cpu.clear_stream();
                if !execute(cpu, inst, info) {
                    return false;
                }
            }
        }
        cpu.pc == head
    }

    /// For how many rounds at least it goes the same way, from a look at the registers that change: where nothing is done
    /// with them but counting and comparing with what stays the same, it is the same as long as no difference changes its
    /// sign. 0: nothing can be said. What loads give is noted.
    fn look(&mut self, cpu: &mut Cpu, mem: &mut Memory) -> u64 {
        let (mut rounds, mut loaded) = (u64::MAX, Vec::new());
        let whole = self.run(cpu, |cpu, inst, info| {
            rounds = rounds.min(same_way(cpu, inst, info, &self.steps));
            let goes_on = (inst.exec)(cpu, mem, inst).is_ok();
            if info.mem.is_some() {
                loaded.extend(results(info).map(|reg| cpu.x[usize::from(reg.0)]));
            }
            goes_on
        });
        self.loaded = loaded;
        if whole { rounds } else { 0 }
    }

    /// How many rounds, `limit` at most, are like this one, by executing them.
    fn follow(&self, cpu: &mut Cpu, mem: &mut Memory, limit: u64) -> u64 {
        (0..limit).take_while(|_| self.is_repeated(cpu, mem)).count() as u64
    }

    /// Executes a round; whether it goes the same way, reads the same and changes what it needs by the same amounts.
    fn is_repeated(&self, cpu: &mut Cpu, mem: &mut Memory) -> bool {
        let before = cpu.x;
        let (mut words, mut loaded) = (&self.words[..], &self.loaded[..]);
        let whole = self.run(cpu, |cpu, inst, info| {
            if (inst.exec)(cpu, mem, inst).is_err() {
                return false;
            }
            if info.mem.is_none() {
                return true;
            }
            let rest = (
                words.strip_prefix(cpu.stream()),
                results(info).try_fold(loaded, |values, reg| values.strip_prefix(&[cpu.x[usize::from(reg.0)]])),
            );
            let (Some(more_words), Some(more_loaded)) = rest else { return false };
            (words, loaded) = (more_words, more_loaded);
            true
        });
        let mut steps = self.steps.iter().enumerate();
        let stepped = |(i, step): (usize, &u64)| self.set >> i & 1 == 1 || cpu.x[i] == before[i].wrapping_add(*step);
        whole && (self.sets(Reg::NZCV) || cpu.nzcv == self.flags) && steps.all(stepped)
    }

    /// The registers `cpu` of now become those `rounds` rounds later, though what they read may have changed by now.
    fn skip(&self, cpu: &mut Cpu, mem: &mut Memory, rounds: u64) {
        let Some(before_last) = rounds.checked_sub(1) else { return };
        for (x, step) in cpu.x.iter_mut().zip(&self.steps) {
            *x = x.wrapping_add(step.wrapping_mul(before_last));
        }
        // The last one leaves what it sets anew. Its loads give what they gave; nothing else looks into memory.
        let mut loaded = self.loaded.iter();
        self.run(cpu, |cpu, inst, info| {
            if info.mem.is_some() {
                results(info).zip(&mut loaded).for_each(|(reg, value)| cpu.x[usize::from(reg.0)] = *value);
                return true;
            }
            (inst.exec)(cpu, mem, inst).is_ok()
        });
    }
}

/// The registers that an instruction reads.
fn sources(info: &StaticInst) -> impl Iterator<Item = Reg> {
    info.srcs.iter().chain(info.addr_srcs.iter())
}

/// The registers that an instruction writes.
fn results(info: &StaticInst) -> impl Iterator<Item = Reg> {
    info.dsts.iter().chain(info.writeback)
}

/// A bit for the number of each register.
fn numbers(regs: impl Iterator<Item = Reg>) -> u128 {
    regs.fold(0, |all, reg| all | 1 << reg.0)
}

impl Guest {
    /// How many rounds more thread `tid` would run if nobody wrote what it reads, for sure; 0 if nothing can be said, as
    /// when its process is not in place. `limit` of them are executed at most, for their way and results; nothing changes
    /// by this.
    pub fn rounds_ahead(&mut self, tid: u32, round: &mut Round, limit: u64) -> u64 {
        let process = self.threads[self.running].process;
        let thread = self.threads.values_mut().find(|thread| thread.tid == tid && thread.process == process);
        let Some(Thread { cpu, .. }) = thread else { return 0 };
        let mem = &mut self.memory;
        let now = (cpu.x, cpu.pc, cpu.nzcv);
        let mut rounds = round.look(cpu, mem);
        if rounds == 0 {
            (cpu.x, cpu.pc, cpu.nzcv) = now;
            rounds = round.follow(cpu, mem, limit);
        }
        (cpu.x, cpu.pc, cpu.nzcv) = now;
        rounds
    }

    /// Thread `tid` has run `rounds` rounds, as many as [`Guest::rounds_ahead`] said at most, which took it `ns`.
    pub fn skip_rounds(&mut self, tid: u32, round: &Round, rounds: u64, ns: u64) {
        self.instructions += rounds * round.infos().count() as u64;
        let Some(thread) = self.threads.values_mut().find(|thread| thread.tid == tid) else { return };
        round.skip(&mut thread.cpu, &mut self.memory, rounds);
        thread.cpu_ns += ns;
        self.processes[thread.process].cpu_ns += ns;
    }

    /// Whether thread `tid` has its CPU for itself and nothing but its own program to attend to.
    #[must_use]
    pub fn is_undisturbed(&self, tid: u32) -> bool {
        let Some(thread) = self.threads.values().find(|thread| thread.tid == tid) else { return false };
        let runs = thread.can_run() && thread.trap.is_none() && !thread.poked;
        let mut others = self.threads.values().filter(|t| t.tid != tid && t.queued.is_some());
        runs && self.end.is_none() && thread.queued.is_some() && others.all(|t| t.cpu_number != thread.cpu_number)
    }

    /// Simulated time in ns at which a time limit or timer expires next.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        Some(self.next_event()).filter(|&ns| ns != FOR_EVER)
    }

    /// The address space, to be watched.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }
}

/// For how many rounds an instruction that is about to be executed does not lead elsewhere by what it does with registers
/// that change by `steps` from round to round.
fn same_way(cpu: &Cpu, inst: &Inst, info: &StaticInst, steps: &[u64; REGISTERS]) -> u64 {
    let step = |reg: Reg| steps.get(usize::from(reg.0)).copied().unwrap_or(0);
    let results = || results(info).filter(|reg| usize::from(reg.0) < REGISTERS);
    let mut moving = sources(info).filter(|&reg| step(reg) != 0);
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
    use fxscope_aarch64::table::{Ctx, decode};
    use fxscope_guestmem::{Prot, Segment};

    use super::*;

    const HEAD: u64 = 0x10000;
    const WORD: u64 = 0x20000;

    /// Two blocks that wait until the word at X20 is W21, but for each 10,000th round, whose number W19 is then, as GCC has
    /// it: LDAR W1, [X20]; MUL W0, W19, W22; ADD W19, W19, #1; CMP W21, W1; B.EQ; ROR W0, W0, #4; CMP W0, W23; B.HI.
    const LOOP: [&[u32]; 2] =
        [&[0x88df_fe81, 0x1b16_7e60, 0x1100_0673, 0x6b01_02bf, 0x5400_0220], &[0x1380_1000, 0x6b17_001f, 0x54ff_ff28]];

    /// A round of [`LOOP`], a thread before the one with number `polls`, and what it waits for.
    fn waiting(polls: u64) -> (Round, Cpu, Memory) {
        let mut mem = Memory::new(1 << 20).expect("reserve");
        mem.map(WORD, 0x10000, Prot::RW, Segment::Data).expect("map");
        let mut cpu = Cpu::new(64);
        (cpu.x[19], cpu.x[20], cpu.x[21]) = (polls, WORD, 1);
        (cpu.x[22], cpu.x[23], cpu.pc) = (0x3afb_7e91, 0x6_8db8, HEAD);
        let before = (cpu.x, cpu.nzcv);
        let mut round = Round::new(cpu.nzcv);
        for (i, words) in LOOP.into_iter().enumerate() {
            let at = |n: usize| Ctx { pc: cpu.pc + 4 * n as u64, vl: cpu.vl };
            let decoded: Vec<_> = words.iter().enumerate().map(|(n, &w)| decode(w, &at(n)).expect("decodes")).collect();
            let (insts, infos) = decoded.iter().map(|d| (d.inst, d.info)).unzip();
            let block = Block::new(cpu.pc, insts, infos, cpu.vl);
            cpu.clear_stream();
            assert_eq!(block.run(&mut cpu, &mut mem).trap, None);
            round.push(BlockId(i as u32), &block, cpu.stream());
        }
        assert_eq!(cpu.pc, HEAD);
        (cpu.x, cpu.nzcv) = before;
        round.steps[19] = 1;
        (round, cpu, mem)
    }

    #[test]
    fn registers_that_a_round_writes_before_it_reads_them_are_set_anew() {
        let (round, ..) = waiting(1);
        let set: Vec<u8> = (0..=Reg::NZCV.0).filter(|&n| round.sets(Reg(n))).collect();
        assert_eq!(set, [0, 1, Reg::NZCV.0]);
    }

    #[test]
    fn rounds_that_test_their_number_for_a_multiple_are_followed_up_to_the_one_that_goes_another_way() {
        let (mut round, mut cpu, mut mem) = waiting(9_001);
        let now = (cpu.x, cpu.pc);
        assert_eq!(round.look(&mut cpu, &mut mem), 0, "nothing is known without following them");
        (cpu.x, cpu.pc) = now;
        assert_eq!(round.follow(&mut cpu, &mut mem, 500), 500);
        (cpu.x, cpu.pc) = now;
        assert_eq!(round.follow(&mut cpu, &mut mem, 100_000), 999);
    }

    #[test]
    fn rounds_are_not_followed_once_they_read_something_else() {
        let (mut round, mut cpu, mut mem) = waiting(1);
        let now = (cpu.x, cpu.pc);
        round.look(&mut cpu, &mut mem);
        (cpu.x, cpu.pc) = now;
        // Another value, which does not change the way.
        mem.write(WORD, &[7]).expect("mapped");
        assert_eq!(round.follow(&mut cpu, &mut mem, 10), 0);
    }

    #[test]
    fn skipped_rounds_leave_the_registers_that_they_would_have_left() {
        let (mut round, mut cpu, mut mem) = waiting(1);
        let now = (cpu.x, cpu.pc, cpu.nzcv);
        round.look(&mut cpu, &mut mem);
        (cpu.x, cpu.pc, cpu.nzcv) = now;
        assert_eq!(round.follow(&mut cpu, &mut mem, 777), 777);
        let expected = (cpu.x, cpu.pc, cpu.nzcv);
        (cpu.x, cpu.pc, cpu.nzcv) = now;
        // What it waits for has come meanwhile.
        mem.write(WORD, &[1]).expect("mapped");
        round.skip(&mut cpu, &mut mem, 777);
        assert_eq!((cpu.x, cpu.pc, cpu.nzcv), expected);
    }

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
