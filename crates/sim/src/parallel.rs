//! CMGs side by side, on several threads of the host.
//!
//! Where threads tell each other nothing for a while, a stretch of time is simulated in two steps. First the threads
//! execute what they are likely to execute in it, one core after the other: blocks that only compute and access memory,
//! up to the first one that synchronises, calls the kernel or controls the processor. Then the cores of each CMG have the
//! time of these blocks, taking turns as ever, beside those of other CMGs ([`fxscope_memory::partition`]). Whatever must not
//! be executed before its time is left to a turn of its own ([`crate::timing`]), when all others have come as far.
//!
//! So results hang neither on the host's threads nor on its load. They differ a little from those of snoop_queue: what threads
//! without synchronisation see of each other's plain accesses is up to a stretch older or newer, and of requests of two
//! CMGs to the same line, memory or link that come in one stretch the order may be another one.

use std::ops::{Range, RangeInclusive};

use fxscope_calendar::Cycle;
use fxscope_linux::Step;
use fxscope_machine::spec::Topology;
use fxscope_memory::{Chip, NEVER, Partition, PartitionResult};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::core::Core;
use crate::machine::Machine;
use crate::pages;
use crate::run::Finish;
use crate::run_ahead::RunAhead;
use crate::spin_skip::Spin;
use crate::timing::{Driver, Quantum, Timing};
use crate::trace::Trace;

/// Instructions that a stretch is to have, all cores together. A host thread simulates ten in a microsecond, and wakes
/// another one in some tens of them.
const INSTRUCTIONS: u64 = 60_000;
/// Quanta of a stretch, at least and at most.
const QUANTA: RangeInclusive<Cycle> = 5..=40;
/// Steps of a stretch: after each a part lets others have what they wait for.
const STEPS: Cycle = 8;
/// Instructions for each time that parts wait for each other, and for the stretch, below which one host thread is as fast.
const WORTH_IT: u64 = 500;
/// Cycles until the next stretch after one that was not worth it, and after the last of many in a row.
pub(crate) const BACKOFF: RangeInclusive<Cycle> = 3_000..=1_000_000;
/// Blocks between two looks at what the kernel has done about pages.
const LOOK_BLOCKS: u64 = 8;

/// Threads of the host that simulate a chip together.
pub struct HostThreads {
    /// The CMGs of each.
    parts: Vec<Range<usize>>,
    cores_per_cmg: usize,
    /// All but the first one.
    threads: ThreadPool,
}

impl HostThreads {
    /// So many for the cores of a machine, each for those of some CMGs: as many as there are CMGs at most.
    ///
    /// # Errors
    /// When the host does not give them.
    pub fn new(threads: usize, topology: &Topology) -> std::io::Result<HostThreads> {
        let cmgs = topology.cmgs as usize;
        let parts = threads.clamp(1, cmgs);
        let begins = |part: usize| part * cmgs / parts;
        let others = ThreadPoolBuilder::new().num_threads((parts - 1).max(1)).build();
        Ok(HostThreads {
            parts: (0..parts).map(|part| begins(part)..begins(part + 1)).collect(),
            cores_per_cmg: topology.cores_per_cmg as usize,
            threads: others.map_err(std::io::Error::other)?,
        })
    }

    /// Which of them has CPU number `index`.
    fn part_of(&self, index: usize) -> usize {
        let cmg = index / self.cores_per_cmg;
        self.parts.partition_point(|cmgs| cmgs.end <= cmg)
    }

    /// The cores of each part go on with their CMGs of `chip` until the ends of `steps`. Returns the chip, and how often a
    /// part had to wait for all others meanwhile.
    fn run(
        &self,
        chip: &mut Chip,
        runners: &mut [Vec<Runner>],
        steps: impl Iterator<Item = Cycle> + Clone + Send,
        quantum: Cycle,
    ) -> u64 {
        let (partitioned, partitions) = chip.partition(&self.parts);
        let mut results: Vec<Option<PartitionResult>> = runners.iter().map(|_| None).collect();
        self.threads.in_place_scope(|scope| {
            let mut work = runners.iter_mut().zip(partitions).zip(&mut results);
            let first = work.next();
            for ((cores, partition), result) in work {
                let steps = steps.clone();
                scope.spawn(move |_| *result = Some(run_partition(cores, partition, steps, quantum)));
            }
            if let Some(((cores, partition), result)) = first {
                *result = Some(run_partition(cores, partition, steps, quantum));
            }
        });
        partitioned.join(chip, results.into_iter().flatten().collect())
    }
}

/// A core of a stretch.
struct Runner<'a> {
    /// Number of its CPU.
    index: usize,
    core: &'a mut Core,
    /// Its clock at the beginning, and its instructions ahead.
    began: Cycle,
    ahead: u64,
}

impl Driver<'_> {
    /// The cores of several CMGs go on side by side from `turn` on, if there is more than one that can. `None`: there is
    /// not, the turn is to be taken; `Some(Some)`: the run is over.
    #[inline(always)]
    pub(crate) fn run_parallel<T: Trace>(
        &mut self,
        quantum: Quantum,
        blocks: &mut u64,
        _: &mut T,
    ) -> Option<Option<Finish>> {
        if !T::AHEAD || self.options.host_threads.is_none() { None } else { self.run_epoch(quantum, blocks) }
    }

    fn run_epoch(&mut self, quantum: Quantum, blocks: &mut u64) -> Option<Option<Finish>> {
        let from = self.timing.clocks[quantum.index];
        if from < self.timing.alone_until {
            return None;
        }
        let end = self.epoch_end(from);
        if !self.is_worth_it(quantum.index, end) {
            return None;
        }
        let others = (0..self.timing.machine.cores.len()).filter(|&index| index != quantum.index);
        for index in [quantum.index].into_iter().chain(others) {
            if !self.timing.may_go_ahead(index, end) {
                continue;
            }
            if let Some(finish) = self.execute_ahead(index, end, blocks) {
                return Some(Some(finish));
            }
            if index == quantum.index && self.timing.machine.core().ahead.is_empty() {
                return None;
            }
            if *blocks == 0 || self.process.cpu_changes() != self.timing.changes {
                break;
            }
        }
        self.time_epoch(from, end);
        Some(None)
    }

    /// The end of a stretch from `from` on: no interval of counts ends in it, and no time limit expires.
    fn epoch_end(&self, from: Cycle) -> Cycle {
        let due = self.process.next_due_ns().map_or(NEVER, |ns| self.timing.machine.core().cycle_at(ns));
        let runs = self.timing.clocks.iter().enumerate().filter(|&(_, clock)| clock != NEVER);
        let paces = runs.filter_map(|(index, _)| Some(self.timing.machine.get(index)?.ahead.pace()));
        let cycles = RunAhead::cycles_of(INSTRUCTIONS, paces.sum());
        // One behind others that were not worth it is a try.
        let most = if self.timing.backoff > *BACKOFF.start() { *QUANTA.start() } else { *QUANTA.end() };
        let quanta = cycles.div_ceil(self.options.quantum).clamp(*QUANTA.start(), most);
        (from + quanta * self.options.quantum).min(self.timing.intervals.due()).min(due)
    }

    /// Whether the core furthest behind and one of another CMG can go on by `end`.
    fn is_worth_it(&self, first: usize, end: Cycle) -> bool {
        let t = &*self.timing;
        let Some(host) = &self.options.host_threads else { return false };
        let runs = |index: usize| t.may_go_ahead(index, end);
        t.spinning.is_empty()
            && self.process.is_alone()
            && runs(first)
            && (0..t.machine.cores.len()).any(|index| host.part_of(index) != host.part_of(first) && runs(index))
    }

    /// The thread of CPU number `index` executes what it is likely to execute until `end`. `Some`: the run is over.
    fn execute_ahead(&mut self, index: usize, end: Cycle, blocks: &mut u64) -> Option<Finish> {
        self.enter(index);
        self.process.hold(true);
        if let Some(step) = self.process.attend_due() {
            let (core, chip) = self.timing.machine.running();
            core.catch_up(chip);
            match step {
                Step::Switched => self.switched(),
                Step::CodeChanged => self.forget_blocks(),
                Step::Ended => return Some(self.ended()),
                _ => {}
            }
            self.timing.machine.core_mut().ahead.stuck = true;
            return None;
        }
        let core = self.timing.machine.core_mut();
        let (now_ns, left) = (core.now_ns(), end.saturating_sub(core.pipeline.now()));
        core.ahead.begin(now_ns);
        let mut executed: u64 = 0;
        while *blocks > 0 && !self.timing.machine.core().ahead.lasts(left) {
            if !self.execute_block() {
                let ahead = &mut self.timing.machine.core_mut().ahead;
                ahead.stuck = ahead.is_empty();
                break;
            }
            *blocks -= 1;
            executed += 1;
            if executed.is_multiple_of(LOOK_BLOCKS) {
                self.look_at_pages(now_ns);
            }
        }
        self.look_at_pages(now_ns);
        None
    }

    /// The thread in place executes its next block, unless that has to wait for its time.
    #[inline(always)]
    fn execute_block(&mut self) -> bool {
        if self.process.has_trap() {
            return false;
        }
        let Some(id) = self.process.next_block() else { return false };
        let (core, index) = (self.timing.machine.core_mut(), id.0 as usize);
        if core.blocks.get(index).is_none_or(Option::is_none) {
            core.resolve(self.process, id, &self.options.spec, &mut self.timing.known);
        }
        if core.blocks[index].as_ref().is_none_or(|block| block.controls || block.marked || block.reads_time) {
            return false;
        }
        let Step::Ran { executed, .. } = self.process.step() else { return false };
        core.ahead.push(id, executed, self.process);
        true
    }

    /// What the kernel has done about pages takes its time behind the last block.
    fn look_at_pages(&mut self, now_ns: u64) {
        self.process.set_now_ns(now_ns);
        if let Some(work) = self.process.take_memory_work() {
            self.timing.machine.core_mut().ahead.pause(pages::cycles(work, &self.options.spec));
        }
    }

    /// The time from `from` to `end` comes of what was executed ahead, part by part side by side.
    fn time_epoch(&mut self, from: Cycle, end: Cycle) {
        let Some(host) = &self.options.host_threads else { return };
        let t = &mut *self.timing;
        let resumes = t.clocks[t.machine.active] != NEVER;
        let (core, chip) = t.machine.running();
        core.pipeline.suspend(chip, resumes);
        let Machine { chip, cores, .. } = &mut t.machine;
        let mut runners = runners(cores, host, end);
        let steps = (1..=STEPS).map(|step| from + (end - from) * step / STEPS);
        let waits = host.run(chip, &mut runners, steps, self.options.quantum);
        let (mut instructions, mut clocks) = (0, Vec::new());
        for Runner { index, core, began, ahead } in runners.into_iter().flatten() {
            let (now, done) = (core.pipeline.now(), ahead - core.ahead.instructions());
            core.ahead.keep_pace(now - began, done);
            clocks.push((index, now));
            instructions += done;
        }
        clocks.into_iter().for_each(|(index, now)| t.clocks.set(index, now));
        let (core, chip) = t.machine.running();
        core.pipeline.resume(chip);
        t.parallel_instructions += instructions;
        if instructions < (waits + 1) * WORTH_IT {
            t.alone_until = end + t.backoff;
            t.backoff = (2 * t.backoff).min(*BACKOFF.end());
        } else {
            t.backoff = *BACKOFF.start();
        }
    }
}

impl Timing {
    /// Whether the thread of CPU number `index` may execute blocks ahead for the time until `end`.
    fn may_go_ahead(&self, index: usize, end: Cycle) -> bool {
        let free = |core: &Core| {
            !core.ahead.stuck && !core.untimed && !core.called_kernel && matches!(core.spin, Spin::Runs(_))
        };
        self.clocks[index] < end && self.machine.get(index).is_some_and(free)
    }
}

/// The cores of each partition that have run ahead, for the time until `end`.
fn runners<'a>(cores: &'a mut [Option<Box<Core>>], host: &HostThreads, end: Cycle) -> Vec<Vec<Runner<'a>>> {
    let mut runners: Vec<Vec<Runner>> = host.parts.iter().map(|_| Vec::new()).collect();
    for (index, core) in cores.iter_mut().enumerate() {
        let core = core.as_deref_mut().filter(|core| !core.ahead.is_empty() && core.pipeline.now() < end);
        if let Some(core) = core {
            let (began, ahead) = (core.pipeline.now(), core.ahead.instructions());
            runners[host.part_of(index)].push(Runner { index, core, began, ahead });
        }
    }
    runners
}

/// The cores of a partition run until each has reached the end of `steps` or has no block left that it ran ahead.
fn run_partition(
    cores: &mut [Runner],
    mut partition: Partition,
    steps: impl Iterator<Item = Cycle>,
    quantum: Cycle,
) -> PartitionResult {
    let chip = &mut partition.chip;
    for end in steps {
        if let Some(first) = cores.first_mut() {
            first.core.pipeline.resume(chip);
            let active = run_cores(cores, chip, end, quantum);
            cores[active].core.pipeline.suspend(chip, true);
        }
        chip.sync();
    }
    partition.finish()
}

/// Cores, the first of which is active, run in quanta until each has reached `end` or has no block left that it ran ahead.
/// Returns which one is active then.
fn run_cores(cores: &mut [Runner], chip: &mut Chip, end: Cycle, quantum: Cycle) -> usize {
    let mut active = 0;
    loop {
        let clock = |runner: &Runner| {
            let now = runner.core.pipeline.now();
            if runner.core.ahead.is_empty() || now >= end { NEVER } else { now }
        };
        let (mut next, mut first, mut second) = (active, NEVER, NEVER);
        for (i, now) in cores.iter().map(clock).enumerate() {
            if now < first {
                (next, first, second) = (i, now, first);
            } else {
                second = second.min(now);
            }
        }
        if first == NEVER {
            return active;
        }
        if next != active {
            cores[active].core.pipeline.suspend(chip, true);
            cores[next].core.pipeline.resume(chip);
            active = next;
        }
        run_quantum(cores[active].core, chip, second, end.min(second.saturating_add(quantum)));
    }
}

/// A core runs until `end`, or beyond `in_order` until it takes lines from other cores.
fn run_quantum(core: &mut Core, chip: &mut Chip, in_order: Cycle, end: Cycle) {
    let snoops = chip.snoops();
    while core.run_ahead(chip) {
        let now = core.pipeline.now();
        if now >= end || now > in_order && chip.snoops() != snoops {
            break;
        }
    }
}
