//! Quantum-parallel simulation: CMGs on several host threads.
//!
//! While threads do not synchronise, an epoch of simulated time runs in two steps. First the threads run ahead, one
//! core after the other: they execute the blocks that will probably fall into the epoch, up to the first one that
//! synchronises, calls the kernel or controls the processor. Then these blocks are timed: the cores of each partition
//! of the chip in quanta, as in other runs, and the partitions in parallel ([`fxscope_memory::partition`]). A block that must
//! not execute early waits for a quantum of its own ([`crate::timing`]), when all other cores have reached the same time.
//!
//! Results depend neither on the host's threads nor on its load. They differ slightly from those of sequential quanta:
//! unsynchronised threads see plain accesses of each other up to an epoch early or late, and requests of two CMGs to
//! the same line, memory or link within an epoch may be served in another order.

use std::ops::{Range, RangeInclusive};

use fxscope_aarch64::Engine;
use fxscope_calendar::Cycle;
use fxscope_linux::Step;
use fxscope_machine::spec::Topology;
use fxscope_memory::{Chip, NEVER, Partition, PartitionResult};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::core::Core;
use crate::machine::Machine;
use crate::pages;
use crate::quantum::Quantum;
use crate::run::Finish;
use crate::run_ahead::RunAhead;
use crate::spin_skip::Spin;
use crate::timing::{Driver, Timing};
use crate::trace::Trace;

/// Instructions that an epoch should have, all cores together. A host thread simulates ten in a microsecond; waking
/// another one takes tens of microseconds.
const INSTRUCTIONS: u64 = 60_000;
/// Fewest and most quanta of an epoch.
const QUANTA: RangeInclusive<Cycle> = 5..=40;
/// Steps of an epoch. Partitions sync after each.
const STEPS: Cycle = 8;
/// Instructions per wait of a partition, and per epoch, below which one host thread is as fast.
const PAYS: u64 = 500;
/// Cycles until the next epoch after one that did not pay, and the most after many such epochs in a row.
pub(crate) const BACKOFF: RangeInclusive<Cycle> = 3_000..=1_000_000;
/// Blocks between two checks of the kernel's work on pages.
const LOOK_BLOCKS: u64 = 8;

/// Host threads that simulate a chip together.
pub struct HostThreads {
    /// The CMGs of each thread's partition.
    parts: Vec<Range<usize>>,
    cores_per_cmg: usize,
    /// All threads but the first.
    threads: ThreadPool,
}

impl HostThreads {
    /// Returns `threads` host threads, at most one for each CMG.
    ///
    /// # Errors
    /// When the host cannot start them.
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

    /// Returns the number of partitions.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Returns the partition of CPU number `index`.
    fn part_of(&self, index: usize) -> usize {
        let cmg = index / self.cores_per_cmg;
        self.parts.partition_point(|cmgs| cmgs.end <= cmg)
    }

    /// Runs the cores of each partition until the ends of `steps`. Returns how often a partition blocked.
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

/// A core in an epoch.
struct Runner<'a> {
    /// Number of its CPU.
    index: usize,
    core: &'a mut Core,
    /// Its clock at the beginning, and the instructions that it has run ahead.
    began: Cycle,
    ahead: u64,
}

impl<E: Engine> Driver<'_, E> {
    /// Runs an epoch from `quantum` on, if cores of several partitions can take part. `None`: they cannot, and the
    /// quantum must be run; `Some(Some)`: the run is over. Threads that are followed for progress, or may be
    /// sampled, do not run ahead.
    #[inline(always)]
    pub(crate) fn run_parallel<T: Trace + ?Sized>(
        &mut self,
        quantum: Quantum,
        blocks: &mut u64,
        trace: &T,
    ) -> Option<Option<Finish>> {
        let alone = self.progress.is_open() || self.guest.has_samples();
        if !trace.may_run_ahead() || self.options.host_threads.is_none() || alone {
            None
        } else {
            self.run_epoch(quantum, blocks)
        }
    }

    fn run_epoch(&mut self, quantum: Quantum, blocks: &mut u64) -> Option<Option<Finish>> {
        let from = self.timing.clocks[quantum.index];
        if from < self.timing.alone_until {
            return None;
        }
        let end = self.epoch_end(from);
        if !self.may_pay(quantum.index, end) {
            return None;
        }
        let others = (0..self.timing.machine.cores.len()).filter(|&index| index != quantum.index);
        for index in [quantum.index].into_iter().chain(others) {
            if !self.timing.may_run_ahead(index, end) {
                continue;
            }
            if let Some(finish) = self.execute_ahead(index, end, blocks) {
                return Some(Some(finish));
            }
            if index == quantum.index && self.timing.machine.core().ahead.is_empty() {
                return None;
            }
            if *blocks == 0 || self.guest.cpu_changes() != self.timing.changes {
                break;
            }
        }
        self.time_epoch(from, end);
        Some(None)
    }

    /// Returns the end of an epoch that begins at `from`. No interval of counts ends, no call stack is sampled and no time limit expires
    /// within it.
    fn epoch_end(&self, from: Cycle) -> Cycle {
        let due = self.guest.next_due_ns().map_or(NEVER, |ns| self.timing.machine.core().cycle_at(ns));
        let runs = self.timing.clocks.iter().enumerate().filter(|&(_, clock)| clock != NEVER);
        let paces = runs.filter_map(|(index, _)| Some(self.timing.machine.get(index)?.ahead.pace()));
        let cycles = RunAhead::cycles_of(INSTRUCTIONS, paces.sum());
        // After epochs that did not pay, a short one is a trial.
        let most = if self.timing.backoff > *BACKOFF.start() { *QUANTA.start() } else { *QUANTA.end() };
        let quanta = cycles.div_ceil(self.options.quantum).clamp(*QUANTA.start(), most);
        (from + quanta * self.options.quantum)
            .min(self.timing.intervals.due())
            .min(self.timing.stacks.due())
            .min(due)
            .min(self.pause_at_cycle)
    }

    /// Returns whether the core with the lowest clock and one of another partition can run until `end`.
    fn may_pay(&self, first: usize, end: Cycle) -> bool {
        let t = &*self.timing;
        let Some(host) = &self.options.host_threads else { return false };
        let runs = |index: usize| t.may_run_ahead(index, end);
        t.spinning.is_empty()
            && self.guest.is_alone()
            && runs(first)
            && (0..t.machine.cores.len()).any(|index| host.part_of(index) != host.part_of(first) && runs(index))
    }

    /// Lets the thread of CPU number `index` run ahead to about `end`. `Some`: the run is over.
    fn execute_ahead(&mut self, index: usize, end: Cycle, blocks: &mut u64) -> Option<Finish> {
        self.enter(index);
        self.guest.hold(true);
        if let Some(step) = self.guest.attend_due(self.code) {
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

    /// Executes the next block of the current thread, unless the block must not execute early.
    #[inline(always)]
    fn execute_block(&mut self) -> bool {
        if self.guest.has_trap() {
            return false;
        }
        let Some(id) = self.guest.next_block(self.code) else { return false };
        let (core, index) = (self.timing.machine.core_mut(), id.0 as usize);
        if core.blocks.get(index).is_none_or(Option::is_none) {
            core.bind(self.guest, id, self.code.block(id), &self.options.spec, &mut self.timing.known);
        }
        if core.blocks[index].as_ref().is_none_or(|block| block.controls || block.marked || block.reads_time) {
            return false;
        }
        let Step::Ran { executed, .. } = self.guest.step(self.code) else { return false };
        core.ahead.push(id, executed, self.guest);
        true
    }

    /// Adds the time of the kernel's work on pages after the last block: pages that it touched first. It was executed early,
    /// so whether another thread unmaps memory at its time is not known.
    fn look_at_pages(&mut self, now_ns: u64) {
        self.guest.set_now_ns(now_ns);
        if let Some(work) = self.guest.take_memory_work() {
            self.timing.machine.core_mut().ahead.pause(pages::cycles(work, &self.options.spec));
        }
    }

    /// Times the blocks that were run ahead, from `from` to `end`, partitions in parallel.
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
        if instructions < (waits + 1) * PAYS {
            t.alone_until = end + t.backoff;
            t.backoff = (2 * t.backoff).min(*BACKOFF.end());
        } else {
            t.backoff = *BACKOFF.start();
        }
    }
}

impl Timing {
    /// Returns whether the thread of CPU number `index` may run ahead for the time until `end`.
    fn may_run_ahead(&self, index: usize, end: Cycle) -> bool {
        let free = |core: &Core| {
            !core.ahead.stuck && !core.untimed && !core.called_kernel && matches!(core.spin, Spin::Runs(_))
        };
        self.clocks[index] < end && self.machine.get(index).is_some_and(free)
    }
}

/// Returns the cores of each partition that have run ahead, for the time until `end`.
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

/// Runs the cores of a partition until each has reached the end of `steps` or has no block left that it ran ahead.
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

/// Runs cores, the first of which is active, in quanta until each has reached `end` or has no block left that it ran
/// ahead. Returns which one is active afterwards.
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

/// Runs a core until `end`, or beyond `in_order` until it takes lines from other cores.
fn run_quantum(core: &mut Core, chip: &mut Chip, in_order: Cycle, end: Cycle) {
    let snoops = chip.snoops();
    while core.run_ahead(chip) {
        let now = core.pipeline.now();
        if now >= end || now > in_order && chip.snoops() != snoops {
            break;
        }
    }
}
