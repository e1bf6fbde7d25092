//! Threads that wait in loops: how a core comes to know that it runs rounds that are all alike, and what it knows then.
//!
//! A core whose turns end at the same few places again and again may be in a small loop. It is watched then, block by
//! block: a loop that only loads, computes with general registers and branches, whose rounds go the same way, read the
//! same places and change registers by the same amounts, goes on so until somebody writes one of these places, or a count
//! runs out. When the time of its rounds repeats itself, too, it need not be simulated until then.

use std::ops::Range;

use fxscope_aarch64::block::{Block, BlockId};
use fxscope_aarch64::cpu::Cpu;
use fxscope_calendar::Cycle;
use fxscope_counts::Signals;
use fxscope_isa::{Access, InstKind, Reg, RegClass, Shape, StaticInst};
use fxscope_linux::rounds::{REGISTERS, Round};
use fxscope_pipeline::{BlockTally, Pipeline, ResolvedBlock, Tally};

/// Places where turns ended that a core remembers.
const PLACES: usize = 4;
/// Turns in a row that end at such places before the core is watched.
const TURNS: u32 = 8;
/// Turns until a core is watched again whose loop was not one to wait in.
const REST: u32 = 200;
/// Blocks of a loop at most.
const BLOCKS: usize = 12;
/// Rounds that are compared.
const ROUNDS: usize = 32;
/// Rounds after which their time repeats itself, at most.
const PERIOD: usize = 8;
/// Rounds after which a loop that has not repeated itself is given up.
const PATIENCE: usize = 400;
/// Ranges of addresses that a loop reads, at most.
const RANGES: usize = 16;
/// Periods of a loop that are looked into when its thread begins to wait.
const FIRST_LOOK: u64 = 32;

/// Whether a core's thread waits in a loop.
pub(crate) enum Spin {
    /// Nothing is known.
    Runs(Places),
    /// Its rounds are being compared.
    Watched(Box<Rounds>),
    /// It waits.
    Waits(Box<Wait>),
}

impl Default for Spin {
    fn default() -> Spin {
        Spin::Runs(Places::default())
    }
}

impl Spin {
    /// What is known of a loop that is not one to wait in.
    pub(crate) fn rests() -> Spin {
        Spin::Runs(Places { rest: REST, ..Places::default() })
    }

    /// A turn of the thread with registers `cpu` is over.
    #[inline(always)]
    pub(crate) fn turn_ended(&mut self, cpu: &Cpu, now: Cycle) {
        if let Spin::Runs(places) = self
            && places.ended_at(cpu.pc)
        {
            *self = Spin::Watched(Box::new(Rounds::new(cpu, now)));
        }
    }
}

/// Where the last turns ended.
#[derive(Default)]
pub(crate) struct Places {
    last: [u64; PLACES],
    next: usize,
    /// Turns in a row that ended at a place that was known.
    known: u32,
    /// Turns that need not be looked at.
    rest: u32,
}

impl Places {
    /// A turn ended at `pc`. Returns whether the core is to be watched.
    #[inline(always)]
    fn ended_at(&mut self, pc: u64) -> bool {
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        if self.last.contains(&pc) {
            self.known += 1;
            return self.known >= TURNS;
        }
        self.last[self.next % PLACES] = pc;
        self.next += 1;
        self.known = 0;
        false
    }
}

/// Rounds of a loop that are being compared.
pub(crate) struct Rounds {
    /// Where they begin.
    head: u64,
    /// The first one; the others must be like it.
    round: Round,
    /// Blocks and words of the round that runs, so far.
    blocks: usize,
    words: usize,
    registers: [u64; REGISTERS],
    /// The clock at the ends of rounds, and at the beginning of the first one.
    ends: Vec<Cycle>,
    /// What had been counted when a measurement began, and up to its last period; the rounds of a period, and the number of
    /// `ends` at which it goes on.
    measured: Vec<Counts>,
    period: usize,
    look_at: usize,
}

/// What comes of a block.
pub(crate) enum Seen {
    /// It may be part of a loop to wait in.
    Goes,
    /// It is not.
    Differs,
    /// Its round is the last one of a period of so many.
    Repeats(usize),
}

impl Rounds {
    fn new(cpu: &Cpu, now: Cycle) -> Rounds {
        Rounds {
            head: cpu.pc,
            round: Round::new(cpu.nzcv),
            blocks: 0,
            words: 0,
            registers: std::array::from_fn(|i| cpu.x[i]),
            ends: vec![now],
            measured: Vec::new(),
            period: 0,
            look_at: 0,
        }
    }

    /// A block ran up to cycle `now` and left `cpu`.
    pub(crate) fn block(&mut self, id: BlockId, block: &Block, executed: usize, cpu: &Cpu, now: Cycle) -> Seen {
        let first = self.ends.len() == 1;
        if first {
            if executed < block.insts.len() || self.round.path.len() == BLOCKS || !block.infos.iter().all(waits) {
                return Seen::Differs;
            }
            self.round.push(id, block, cpu.stream());
        } else {
            let whole =
                self.round.path.get(self.blocks).is_some_and(|part| part.id == id) && executed == block.insts.len();
            if !whole || !self.round.words[self.words..].starts_with(cpu.stream()) {
                return Seen::Differs;
            }
        }
        self.blocks += 1;
        self.words += cpu.stream().len();
        match (cpu.pc == self.head, first || self.blocks == self.round.path.len()) {
            (true, true) => self.round_ended(cpu, now),
            (false, _) if first || self.blocks < self.round.path.len() => Seen::Goes,
            _ => Seen::Differs,
        }
    }

    fn round_ended(&mut self, cpu: &Cpu, now: Cycle) -> Seen {
        let before = std::mem::replace(&mut self.registers, std::array::from_fn(|i| cpu.x[i]));
        let steps = std::array::from_fn(|i| {
            let set = self.round.sets(Reg(i as u8));
            if set { 0 } else { self.registers[i].wrapping_sub(before[i]) }
        });
        // The first round begins with what was there before the loop.
        if self.ends.len() <= 2 {
            (self.round.steps, self.round.flags) = (steps, cpu.nzcv);
        }
        let flags = self.round.sets(Reg::NZCV) || cpu.nzcv == self.round.flags;
        let alike = flags && steps == self.round.steps && cpu.monitor.is_none();
        (self.blocks, self.words) = (0, 0);
        self.ends.push(now);
        if !alike || self.ends.len() > PATIENCE {
            return Seen::Differs;
        }
        if self.ends.len() < self.look_at { Seen::Goes } else { self.repeats() }
    }

    /// Whether the time of rounds has repeated itself.
    fn repeats(&self) -> Seen {
        let Some(start) = self.ends.len().checked_sub(ROUNDS + 1) else { return Seen::Goes };
        let times: Vec<Cycle> = self.ends[start..].windows(2).map(|two| two[1] - two[0]).collect();
        let period = (1..=PERIOD).find(|&n| times[n..] == times[..times.len() - n]);
        period.map_or(Seen::Goes, Seen::Repeats)
    }

    /// The time of rounds has repeated itself every `rounds` rounds: a measurement begins, goes on or ends.
    pub(crate) fn measure(
        &mut self,
        rounds: usize,
        pipeline: &Pipeline,
        blocks: &[Option<ResolvedBlock>],
    ) -> Option<Wait> {
        if self.period != rounds {
            (self.period, self.measured) = (rounds, Vec::new());
        }
        let periods = ROUNDS.div_ceil(rounds);
        let now = Counts::of(&self.round, pipeline, blocks);
        if let [begin, last] = &self.measured[..] {
            let (one, all) = (now.since(last, blocks), now.since(begin, blocks));
            let steady = one.cycles > 0 && all.tally.keeps_to_itself() && all.cycles == periods as u64 * one.cycles;
            self.measured = Vec::new();
            return steady.then(|| Wait::new(&self.round, rounds as u64, one, all));
        }
        // The last period is measured by itself, too.
        let further = if self.measured.is_empty() { (periods - 1) * rounds } else { rounds };
        self.look_at = self.ends.len() + further;
        self.measured.push(now);
        None
    }
}

/// Whether an instruction may be part of a loop to wait in: it does nothing but load general registers, compute with them
/// and branch, or order what others do.
fn waits(info: &StaticInst) -> bool {
    const ORDERS: [&str; 5] = ["base:HINT {NOP}", "base:HINT {YIELD}", "base:ISB", "base:DMB", "base:DSB"];
    let class = info.class.name();
    let arms = |class: &str| class.starts_with("base:LDX") || class.starts_with("base:LDAX");
    let does = match info.mem {
        Some(mem) => mem.access == Access::Load && mem.shape == Shape::Single && !arms(class),
        None => {
            matches!(info.kind, InstKind::Integer | InstKind::Branch) || ORDERS.iter().any(|c| class.starts_with(c))
        }
    };
    let general = |class| matches!(class, RegClass::Gpr | RegClass::Flags);
    does && !info.enters_kernel && info.dsts.iter().chain(info.writeback).all(|reg| general(reg.class()))
}

/// What a core had counted at a time.
struct Counts {
    now: Cycle,
    counters: Signals,
    tally: Tally,
    /// By place in the loop's path; a block that is there twice, the first time.
    blocks: Vec<(BlockId, BlockTally)>,
}

/// What is counted in a period, or in several.
struct Each {
    cycles: Cycle,
    counters: Signals,
    tally: Tally,
    blocks: Vec<(BlockId, BlockTally)>,
}

impl Counts {
    fn of(round: &Round, pipeline: &Pipeline, blocks: &[Option<ResolvedBlock>]) -> Counts {
        let mut ids: Vec<BlockId> = round.path.iter().map(|part| part.id).collect();
        ids.sort_unstable_by_key(|id| id.0);
        ids.dedup();
        let resolved = ids.iter().filter_map(|&id| Some((id, blocks.get(id.0 as usize)?.as_ref()?.tally())));
        Counts {
            now: pipeline.now(),
            counters: pipeline.counters(),
            tally: pipeline.tally(),
            blocks: resolved.collect(),
        }
    }

    fn since(&self, before: &Counts, blocks: &[Option<ResolvedBlock>]) -> Each {
        let mut counters = self.counters.since(&before.counters);
        let pairs = self.blocks.iter().zip(&before.blocks);
        let tallies: Vec<_> = pairs.map(|((id, now), (_, before))| (*id, now.since(before))).collect();
        for (id, tally) in &tallies {
            if let Some(block) = &blocks[id.0 as usize] {
                block.add_mix_of(tally, &mut counters);
            }
        }
        Each { cycles: self.now - before.now, counters, tally: self.tally.since(&before.tally), blocks: tallies }
    }
}

/// A thread that waits in a loop, at the beginning of a round.
pub(crate) struct Wait {
    pub(crate) round: Round,
    /// Rounds of a period.
    pub(crate) rounds: u64,
    /// What is counted in one, and in several: which pipe an operation takes repeats itself later than time.
    one: Each,
    several: Each,
    /// Periods that it goes on so, if nobody writes what it reads.
    pub(crate) left: u64,
    /// Periods that are looked into when that is asked the next time.
    ahead: u64,
}

impl Wait {
    fn new(round: &Round, rounds: u64, one: Each, several: Each) -> Wait {
        Wait { round: round.clone(), rounds, one, several, left: 0, ahead: FIRST_LOOK }
    }

    /// `periods` periods as several at once, so many times, and single ones.
    fn divided(&self, periods: u64) -> [(&Each, u64); 2] {
        let several = self.several.cycles / self.one.cycles;
        [(&self.several, periods / several), (&self.one, periods % several)]
    }

    /// How many rounds are to be looked into now, `most` periods at most. A thread that has waited for long will go on
    /// waiting for long.
    pub(crate) fn rounds_to_look_into(&mut self, most: u64) -> u64 {
        let periods = self.ahead.min(most);
        self.ahead = 2 * periods;
        periods * self.rounds
    }

    /// Cycles of a period.
    pub(crate) fn cycles(&self) -> Cycle {
        self.one.cycles
    }

    /// What its rounds read; `None`: too many places.
    pub(crate) fn reads(&self) -> Option<Vec<Range<u64>>> {
        const ADDRESS: u64 = (1 << 56) - 1;
        let bytes = self.round.infos().filter_map(|info| Some(u64::from(info.mem?.bytes)));
        let mut ranges: Vec<Range<u64>> = self
            .round
            .words
            .iter()
            .zip(bytes)
            .map(|(word, bytes)| {
                let start = word & ADDRESS;
                start..start + bytes
            })
            .collect();
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ranges.dedup();
        (ranges.len() <= RANGES).then_some(ranges)
    }

    /// Counts of `periods` periods.
    pub(crate) fn add_counters(&self, periods: u64, signals: &mut Signals) {
        for (each, times) in self.divided(periods) {
            signals.add_times(&each.counters, times);
        }
    }

    /// `periods` periods pass.
    pub(crate) fn leap(&mut self, periods: u64, pipeline: &mut Pipeline, blocks: &mut [Option<ResolvedBlock>]) {
        for (each, times) in self.divided(periods) {
            pipeline.leap(each.cycles, &each.tally, times);
            for (id, tally) in &each.blocks {
                if let Some(Some(block)) = blocks.get_mut(id.0 as usize) {
                    block.leap(tally, times);
                }
            }
        }
        self.left -= periods;
    }
}
