//! Detects spin loops whose iterations are identical.
//!
//! A core whose quanta end at the same few places again and again may be in a small loop. It is then watched block by
//! block. A loop that only loads, computes with general registers and branches, and whose iterations take the same
//! path, read the same addresses and change registers by the same amounts, repeats until somebody writes one of these
//! addresses or a counter runs out. Once the timing of its iterations repeats as well, it need not be simulated until
//! then.

use fxscope_aarch64::cpu::Cpu;
use fxscope_aarch64::spin::{Iteration, REGISTERS};
use fxscope_aarch64::{BlockId, Engine};
use fxscope_calendar::Cycle;
use fxscope_isa::{Access, InstKind, Reg, RegClass, Shape, StaticInst};
use fxscope_linux::Code;
use fxscope_pipeline::{BoundBlock, Pipeline};

use super::known::{KnownLoops, times_of};
use super::summary::{Counts, LoopCounts, SpinSummary};

/// Places where quanta ended that a core remembers.
const PLACES: usize = 4;
/// Consecutive quanta that end at such places before the core is watched.
const QUANTA: u32 = 8;
/// Quanta until a core is watched again whose loop turned out not to spin.
const BACKOFF: u32 = 200;
/// Longest loop, in blocks.
const BLOCKS: usize = 12;
/// Iterations that are compared.
const COMPARED: usize = 64;
/// Iterations that are compared with those of a known loop, as a multiple of those in flight: after twice as many, waits for misses come out
/// one percent short (`docs/notes/2026-11-27-windows-on-several-cores.md`).
const FLIGHTS: usize = 4;
/// Iterations that are compared where the timing of a wait does not matter: one that shows the path, and two that repeat it.
const BRIEF: usize = 3;
/// Longest period of the iterations' timing, in iterations.
const PERIOD: usize = 16;
/// Iterations after which a loop whose timing has not repeated is given up.
const PATIENCE: usize = 400;

/// Whether a core's thread spins, as far as it is known.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) enum Spin {
    /// It runs, and nothing suggests that it spins.
    Runs(Places),
    /// Its iterations are being compared.
    Watched(Box<Iterations>),
    /// It spins, and is not simulated.
    Spins(Box<SpinSummary>),
}

impl Default for Spin {
    fn default() -> Spin {
        Spin::Runs(Places::default())
    }
}

impl Spin {
    /// Returns the state after a loop turned out not to spin: the core is not watched for a while.
    pub(crate) fn backed_off() -> Spin {
        Spin::Runs(Places { backoff: BACKOFF, ..Places::default() })
    }

    /// Completes the state from a snapshot, for a core whose process is executed by `engine` and has `blocks` bound blocks.
    /// Returns whether it is consistent.
    pub(crate) fn reload(&mut self, engine: Option<&impl Engine>, blocks: usize) -> bool {
        let known = |iteration: &mut Iteration| engine.is_some_and(|engine| iteration.reload(engine));
        match self {
            Spin::Runs(_) => true,
            Spin::Watched(iterations) => {
                let sound = iterations.is_sound(blocks);
                // The code may have changed since the first iteration: then the loop is over.
                if sound && !known(&mut iterations.first) {
                    *self = Spin::backed_off();
                }
                sound
            }
            Spin::Spins(summary) => summary.is_sound(blocks) && known(&mut summary.iteration),
        }
    }

    /// Notes the end of a quantum of the thread with registers `cpu`, on a core that knows `loops`.
    #[inline(always)]
    pub(crate) fn quantum_ended(&mut self, cpu: &Cpu, now: Cycle, loops: &KnownLoops) {
        if let Spin::Runs(places) = self
            && (places.ended_at(cpu.pc) || loops.begin_at(cpu.pc))
        {
            *self = Spin::Watched(Box::new(Iterations::new(cpu, now)));
        }
    }
}

/// Where the last quanta ended.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct Places {
    last: [u64; PLACES],
    next: usize,
    /// Consecutive quanta that ended at a known place.
    known: u32,
    /// Quanta that are ignored.
    backoff: u32,
}

impl Places {
    /// Notes a quantum that ended at `pc`. Returns whether the core must be watched.
    #[inline(always)]
    fn ended_at(&mut self, pc: u64) -> bool {
        if self.backoff > 0 {
            self.backoff -= 1;
            return false;
        }
        if self.last.contains(&pc) {
            self.known += 1;
            return self.known >= QUANTA;
        }
        self.last[self.next % PLACES] = pc;
        self.next += 1;
        self.known = 0;
        false
    }
}

/// Iterations of a loop that are being compared.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Iterations {
    /// Where each iteration begins.
    head: u64,
    /// The first iteration; the others must match it.
    first: Iteration,
    /// Blocks and stream words of the current iteration so far.
    blocks: usize,
    words: usize,
    registers: [u64; REGISTERS],
    /// The clock at the start of the first iteration and at the end of each.
    ends: Vec<Cycle>,
    /// The counts when a measurement began, and up to its last period; the iterations of a period, and the length of
    /// `ends` at which the measurement continues.
    measured: Vec<Counts>,
    period: usize,
    look_at: usize,
}

/// What a block shows.
pub(crate) enum Seen {
    /// It may belong to a spin loop.
    Continues,
    /// It does not.
    Differs,
    /// It ends an iteration.
    Iterated,
    /// It ends an iteration, and the timing repeats after this number of iterations.
    Repeats(usize),
}

impl Iterations {
    fn new(cpu: &Cpu, now: Cycle) -> Iterations {
        Iterations {
            head: cpu.pc,
            first: Iteration::new(cpu.nzcv),
            blocks: 0,
            words: 0,
            registers: std::array::from_fn(|i| cpu.x[i]),
            ends: vec![now],
            measured: Vec::new(),
            period: 0,
            look_at: 0,
        }
    }

    /// Examines a block that ran up to cycle `now` and left `cpu`.
    pub(crate) fn block<E: Engine>(
        &mut self,
        id: BlockId,
        code: &Code<E>,
        executed: usize,
        cpu: &Cpu,
        now: Cycle,
    ) -> Seen {
        let block = code.block(id);
        let first = self.ends.len() == 1;
        if first {
            if executed < block.infos.len() || self.first.path.len() == BLOCKS || !block.infos.iter().all(may_spin) {
                return Seen::Differs;
            }
            self.first.push(id, block, code.engine().insts(id), cpu.stream());
        } else {
            let whole =
                self.first.path.get(self.blocks).is_some_and(|part| part.id == id) && executed == block.infos.len();
            if !whole || !self.first.words[self.words..].starts_with(cpu.stream()) {
                return Seen::Differs;
            }
        }
        self.blocks += 1;
        self.words += cpu.stream().len();
        match (cpu.pc == self.head, first || self.blocks == self.first.path.len()) {
            (true, true) => self.iteration_ended(cpu, now),
            (false, _) if first || self.blocks < self.first.path.len() => Seen::Continues,
            _ => Seen::Differs,
        }
    }

    /// Returns whether it is a state that a core with `blocks` bound blocks can have.
    fn is_sound(&self, blocks: usize) -> bool {
        let places = self.words <= self.first.words.len() && self.blocks <= self.first.path.len();
        places && !self.ends.is_empty() && self.measured.iter().all(|counts| counts.is_sound(blocks))
    }

    fn iteration_ended(&mut self, cpu: &Cpu, now: Cycle) -> Seen {
        let before = std::mem::replace(&mut self.registers, std::array::from_fn(|i| cpu.x[i]));
        let steps = std::array::from_fn(|i| {
            let set = self.first.sets(Reg(i as u8));
            if set { 0 } else { self.registers[i].wrapping_sub(before[i]) }
        });
        // The first iteration starts from what the code before the loop left.
        if self.ends.len() <= 2 {
            (self.first.steps, self.first.flags) = (steps, cpu.nzcv);
        }
        let flags = self.first.sets(Reg::NZCV) || cpu.nzcv == self.first.flags;
        let alike = flags && steps == self.first.steps && cpu.monitor.is_none();
        (self.blocks, self.words) = (0, 0);
        self.ends.push(now);
        if !alike || self.ends.len() > PATIENCE {
            return Seen::Differs;
        }
        if self.ends.len() < self.look_at { Seen::Iterated } else { self.repeats() }
    }

    /// Returns whether the timing of iterations repeats.
    fn repeats(&self) -> Seen {
        let Some(start) = self.ends.len().checked_sub(COMPARED + 1) else { return Seen::Iterated };
        let times = times_of(&self.ends[start..]);
        let period = (1..=PERIOD).find(|&n| times[n..] == times[..times.len() - n]);
        period.map_or(Seen::Iterated, Seen::Repeats)
    }

    /// Returns what the iterations count if they are those of a known loop. All that are in flight must have been dispatched at the pace of those
    /// compared: otherwise loads of a later one would have been issued long before it commits, and before the write that it waits for.
    /// `is_brief`: few iterations are enough, however long they took.
    pub(crate) fn known(&self, loops: &KnownLoops, pipeline: &Pipeline, is_brief: bool) -> Option<SpinSummary> {
        if is_brief {
            return if self.ends.len() > BRIEF { loops.find_path(self.head, &self.first) } else { None };
        }
        let in_flight = pipeline.iterations_in_flight(self.first.infos().count());
        loops.find(self.head, &self.first, &self.ends, FLIGHTS * in_flight)
    }

    /// Returns whether they may be iterations of a known loop.
    pub(crate) fn may_be(&self, loops: &KnownLoops) -> bool {
        loops.begin_at(self.head)
    }

    /// Adds the loop to those that are known.
    pub(crate) fn add_to(&self, loops: &mut KnownLoops, summary: &SpinSummary) {
        let period = summary.iterations() as usize;
        loops.add(self.head, &times_of(&self.ends[self.ends.len() - 1 - period..]), summary);
    }

    /// Begins, continues or ends a measurement of what a period counts; the timing repeats every `period` iterations.
    pub(crate) fn measure(
        &mut self,
        period: usize,
        pipeline: &Pipeline,
        blocks: &[Option<BoundBlock>],
    ) -> Option<SpinSummary> {
        if self.period != period {
            (self.period, self.measured) = (period, Vec::new());
        }
        let periods = COMPARED.div_ceil(period);
        let now = Counts::of(&self.first, pipeline, blocks);
        if let [begin, last] = &self.measured[..] {
            let (one, all) = (now.since(last, blocks), now.since(begin, blocks));
            let steady = one.cycles > 0 && all.tally.is_private() && all.cycles == periods as u64 * one.cycles;
            self.measured = Vec::new();
            return steady.then(|| SpinSummary::new(&self.first, LoopCounts::new(period as u64, one, all)));
        }
        // The last period is measured by itself, too.
        let further = if self.measured.is_empty() { (periods - 1) * period } else { period };
        self.look_at = self.ends.len() + further;
        self.measured.push(now);
        None
    }
}

/// Returns whether an instruction may be part of a spin loop: it only loads general registers, computes with them, branches, or
/// orders memory accesses.
fn may_spin(info: &StaticInst) -> bool {
    const ORDERS: [&str; 5] = ["base:HINT {NOP}", "base:HINT {YIELD}", "base:ISB", "base:DMB", "base:DSB"];
    let class = info.class.name();
    let exclusive = |class: &str| class.starts_with("base:LDX") || class.starts_with("base:LDAX");
    let does = match info.mem {
        Some(mem) => mem.access == Access::Load && mem.shape == Shape::Single && !exclusive(class),
        None => {
            matches!(info.kind, InstKind::Integer | InstKind::Branch) || ORDERS.iter().any(|c| class.starts_with(c))
        }
    };
    let general = |class| matches!(class, RegClass::Gpr | RegClass::Flags);
    does && !info.enters_kernel && info.dsts.iter().chain(info.writeback).all(|reg| general(reg.class()))
}
