//! One core of a run: its pipeline, and the code and pages of the processes that run on it.

use std::collections::BTreeMap;

use fxscope_aarch64::{BlockId, Engine, StaticBlock};
use fxscope_calendar::Cycle;
use fxscope_counts::Signals;
use fxscope_linux::guest::{FUNCTIONAL_NS, PID};
use fxscope_linux::pages::MemoryWork;
use fxscope_linux::{Code, Guest};
use fxscope_machine::Spec;
use fxscope_memory::Chip;
use fxscope_pipeline::{BoundBlock, Pipeline, SharedTables, bind_block};

use crate::calls::ThreadCalls;
use crate::code_map::CodeMap;
use crate::controls::Controls;
use crate::event_samples::EventSampler;
use crate::jobs::{Change, Records};
use crate::markers::Markers;
use crate::pages::{AddressSpaceLocks, KnownPages};
use crate::part::PartPlan;
use crate::region::Counts;
use crate::run::{Follow, Options};
use crate::run_ahead::RunAhead;
use crate::sectors::{self, SectorData, SectorWays};
use crate::skipping::Backoff;
use crate::spin_skip::{KnownLoops, Spin};

/// A core that threads run on.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Core {
    pub(crate) pipeline: Pipeline,
    /// The blocks of the current process.
    pub(crate) blocks: Vec<Option<BoundBlock>>,
    /// The number of the current process.
    pid: u32,
    /// The blocks of the other parts of the run ([`Core::switch_part`]).
    elsewhere: Elsewhere,
    /// Whether the current process is not timed.
    pub(crate) untimed: bool,
    /// Instructions of untimed processes whose time has not passed yet.
    pub(crate) untimed_instructions: u64,
    /// The code of other processes, by process number.
    others: BTreeMap<u32, OtherCode>,
    /// Blocks of code that has changed and of processes that have ended, by origin: a block that comes back continues its
    /// counts.
    retired: BTreeMap<u32, Vec<BoundBlock>>,
    /// Whether the last block called the kernel, which serves the call before the next block.
    pub(crate) called_kernel: bool,
    /// The version of the page ranges that the model uses.
    pages_of: u64,
    /// The sector ways that the caches use.
    sector_ways: SectorWays,
    ns_per_cycle_32: u64,
    /// Where regions begin and end in the current process.
    pub(crate) markers: Markers,
    /// Whether the thread spins.
    pub(crate) spin: Spin,
    /// Loops of the current process in which it has spun; none in runs that time everything.
    pub(crate) known_loops: KnownLoops,
    /// Whether it is worth to skip its next blocks, in a sampled run.
    pub(crate) backoff: Backoff,
    /// The thread that is counted: it runs or sleeps on this core.
    pub(crate) thread: Option<u32>,
    /// The counters at the time when the thread arrived.
    since: Counts,
    /// The calls of that thread.
    pub(crate) calls: ThreadCalls,
    /// Blocks that the thread has executed ahead of the timing.
    pub(crate) ahead: RunAhead,
    /// What its thread has counted, if performance events sample it. Guests with events have no snapshots.
    #[serde(skip)]
    pub(crate) event_sampler: Option<Box<EventSampler>>,
    /// What it does is recorded here, for those who time it later. Such runs have no snapshots.
    #[serde(skip)]
    pub(crate) records: Option<Box<Records>>,
}

/// Bound blocks with what they have counted: those outside of the part that is timed while it is, and otherwise those in it.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
struct Elsewhere {
    /// Those of the current process, and of others by number.
    blocks: Vec<Option<BoundBlock>>,
    others: BTreeMap<u32, Vec<Option<BoundBlock>>>,
    retired: BTreeMap<u32, Vec<BoundBlock>>,
}

impl Elsewhere {
    fn all(&self) -> impl Iterator<Item = &BoundBlock> {
        let blocks = self.others.values().chain([&self.blocks]);
        self.retired.values().flatten().chain(blocks.flatten().flatten())
    }

    fn retire(&mut self, blocks: Vec<Option<BoundBlock>>) {
        for block in blocks.into_iter().flatten() {
            self.retired.entry(block.origin).or_default().push(block);
        }
    }
}

/// The code of a process that does not run on the core now.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
struct OtherCode {
    blocks: Vec<Option<BoundBlock>>,
    markers: Markers,
}

impl OtherCode {
    /// Returns the code of a process that has not run on the core: that of `guest`, which is about to.
    fn new(guest: &Guest, functions: &[String]) -> OtherCode {
        OtherCode { blocks: Vec::new(), markers: Markers::of(guest, functions) }
    }
}

impl Core {
    /// Returns a core that has not run the current process yet. It reads the program's control registers when its first
    /// thread arrives.
    pub(crate) fn new(mut pipeline: Pipeline, guest: &Guest, options: &Options, data: &SectorData) -> Core {
        pipeline.memory.assign_sectors(sectors::assignment(&options.spec));
        let mut core = Core {
            sector_ways: SectorWays::default(),
            pipeline,
            blocks: Vec::new(),
            elsewhere: Elsewhere::default(),
            pid: guest.pid(),
            untimed: options.follow == Follow::First && guest.pid() != PID,
            untimed_instructions: 0,
            others: BTreeMap::new(),
            retired: BTreeMap::new(),
            called_kernel: false,
            pages_of: u64::MAX,
            ns_per_cycle_32: (1_000_000_000u64 << 32) / options.spec.clock.core_hz,
            markers: Markers::of(guest, &options.part.as_ref().map_or_else(Vec::new, PartPlan::functions)),
            spin: Spin::default(),
            known_loops: KnownLoops::default(),
            backoff: Backoff::default(),
            thread: None,
            calls: ThreadCalls::default(),
            since: Counts::default(),
            ahead: RunAhead::default(),
            event_sampler: None,
            records: None,
        };
        core.assign_sectors(data);
        core
    }

    /// Assigns data to cache sectors by address.
    pub(crate) fn assign_sectors(&mut self, data: &SectorData) {
        if !data.is_empty() {
            let sectors = self.pipeline.memory.sectors().clone().with_data(data.clone());
            self.pipeline.memory.assign_sectors(sectors);
        }
    }

    /// Returns the simulated time of the last commit in ns.
    pub(crate) fn now_ns(&self) -> u64 {
        self.ns_at(self.pipeline.now())
    }

    /// Returns the simulated time of a cycle in ns.
    pub(crate) fn ns_at(&self, cycle: Cycle) -> u64 {
        ((u128::from(cycle) * u128::from(self.ns_per_cycle_32)) >> 32) as u64
    }

    /// Returns the cycle at a time in ns.
    pub(crate) fn cycle_at(&self, ns: u64) -> Cycle {
        ((u128::from(ns) << 32) / u128::from(self.ns_per_cycle_32.max(1))) as Cycle
    }

    /// Lets the core sleep until `cycle`.
    pub(crate) fn sleep_until(&mut self, cycle: Cycle) {
        let left = cycle.saturating_sub(self.pipeline.now() + 1);
        if left > 0 {
            self.sleep(left);
        }
    }

    /// Records what is done to the core between blocks.
    #[inline(always)]
    fn record(&mut self, change: impl FnOnce() -> Change) {
        if let Some(records) = &mut self.records {
            records.change(change());
        }
    }

    /// Lets the core sleep for `cycles`.
    pub(crate) fn sleep(&mut self, cycles: Cycle) {
        self.record(|| Change::Sleeps(cycles));
        let before = self.pipeline.now();
        self.pipeline.sleep(cycles);
        self.calls.sleeps(self.pipeline.now() - before);
    }

    /// Switches to the current thread, which may be of another process than the one before.
    pub(crate) fn switched(&mut self, guest: &Guest, follow: Follow, chip: &mut Chip) {
        let pid = guest.pid();
        if pid != self.pid {
            self.catch_up(chip);
            self.known_loops.clear();
            let new = || OtherCode::new(guest, self.markers.functions());
            let mut next = self.others.remove(&pid).unwrap_or_else(new);
            next.markers.learn(guest);
            let blocks = std::mem::replace(&mut self.blocks, next.blocks);
            let markers = std::mem::replace(&mut self.markers, next.markers);
            self.others.insert(self.pid, OtherCode { blocks, markers });
            let elsewhere = &mut self.elsewhere;
            let next = elsewhere.others.remove(&pid).unwrap_or_default();
            elsewhere.others.insert(self.pid, std::mem::replace(&mut elsewhere.blocks, next));
            // With more codes than processes, some are of processes that have ended.
            if self.others.len() >= guest.process_count() {
                self.retire_ended(guest);
            }
            self.pid = pid;
            self.untimed = follow == Follow::First && pid != PID;
            self.pages_of = u64::MAX;
        }
        if let Spin::Watched(_) = self.spin
            && self.thread != Some(guest.thread().tid - PID)
        {
            self.spin = Spin::default();
        }
    }

    /// Retires the blocks of processes that have ended.
    #[cold]
    fn retire_ended(&mut self, guest: &Guest) {
        let (others, ended) =
            std::mem::take(&mut self.others).into_iter().partition(|&(pid, _)| guest.has_process(pid));
        self.others = others;
        let ended: BTreeMap<u32, OtherCode> = ended;
        ended.into_values().for_each(|code| self.retire(code.blocks));
        let (others, ended) =
            std::mem::take(&mut self.elsewhere.others).into_iter().partition(|&(pid, _)| guest.has_process(pid));
        self.elsewhere.others = others;
        let ended: BTreeMap<u32, Vec<Option<BoundBlock>>> = ended;
        ended.into_values().for_each(|blocks| self.elsewhere.retire(blocks));
    }

    /// Keeps the counts of blocks that are no longer valid.
    fn retire(&mut self, blocks: Vec<Option<BoundBlock>>) {
        for block in blocks.into_iter().flatten() {
            self.retired.entry(block.origin).or_default().push(block);
        }
    }

    /// Returns the retired block of the same code as `bound` if there is one, otherwise `bound`.
    fn revived(&mut self, bound: BoundBlock) -> BoundBlock {
        let Some(retired) = self.retired.get_mut(&bound.origin) else { return bound };
        retired.iter().position(|block| block.shares_code_of(&bound)).map_or(bound, |found| retired.swap_remove(found))
    }

    /// The thread spends `cycles` in the kernel.
    pub(crate) fn pause(&mut self, cycles: Cycle) {
        self.record(|| Change::Pauses(cycles));
        self.pipeline.pause(cycles);
    }

    /// Reads the control registers of the current thread.
    pub(crate) fn read_controls(&mut self, guest: &Guest, chip: &mut Chip) {
        self.control(&Controls::of(guest.cpu()), chip);
    }

    /// The control registers have these values.
    pub(crate) fn control(&mut self, controls: &Controls, chip: &mut Chip) {
        self.record(|| Change::Controls(Box::new(*controls)));
        self.pipeline.judge_exceptions(controls.judges_exceptions);
        self.pipeline.memory.set_prefetch_registers(&controls.prefetch());
        self.sector_ways.learn(&controls.registers, &mut self.pipeline.memory.with(chip));
    }

    /// Updates the model after changes to the address space. `known` has the last state that a core has requested.
    #[inline(always)]
    pub(crate) fn learn_pages(&mut self, guest: &Guest, known: &mut KnownPages, spec: &Spec, chip: &mut Chip) {
        let version = guest.pages_version();
        if version != self.pages_of {
            self.pages_of = version;
            let change = known.tell(guest, spec, &mut self.pipeline.memory.with(chip));
            self.record(|| Change::Pages(Box::new(change)));
        }
    }

    /// Charges the time of mapping or unmapping pages for the program, and of waiting for its other threads meanwhile.
    #[cold]
    pub(crate) fn pages_worked(&mut self, work: MemoryWork, locks: &mut AddressSpaceLocks, spec: &Spec) {
        if !self.untimed {
            self.pause(locks.cycles(self.pid, work, self.pipeline.now(), spec));
        }
    }

    /// Lets the time of untimed instructions pass; the timed core sleeps meanwhile.
    #[cold]
    pub(crate) fn pass_untimed(&mut self) {
        let ns = std::mem::take(&mut self.untimed_instructions) * FUNCTIONAL_NS;
        self.sleep(self.cycle_at(ns));
    }

    /// Drops the blocks of the current process, whose code has changed.
    #[cold]
    pub(crate) fn forget_blocks(&mut self, guest: &Guest) {
        let pid = guest.pid();
        // Linux clears the registers when a thread executes another program.
        let restarts = guest.cpu().x(29) == 0 && guest.cpu().x(30) == 0;
        let restarts = restarts && self.thread == Some(guest.thread().tid - PID);
        if pid == self.pid {
            self.markers = Markers::of(guest, self.markers.functions());
        }
        self.forget_blocks_of(pid, restarts);
    }

    /// Drops the blocks of a process, whose code has changed. `restarts`: the thread of the core executes another program.
    #[cold]
    pub(crate) fn forget_blocks_of(&mut self, pid: u32, restarts: bool) {
        self.record(|| Change::Forgets { pid, restarts });
        if restarts {
            self.calls.restart(self.pipeline.now());
        }
        let blocks = if pid == self.pid {
            self.known_loops.clear();
            std::mem::take(&mut self.blocks)
        } else {
            self.others.remove(&pid).map_or_else(Vec::new, |code| code.blocks)
        };
        self.retire(blocks);
        let elsewhere = &mut self.elsewhere;
        let blocks = if pid == self.pid {
            std::mem::take(&mut elsewhere.blocks)
        } else {
            elsewhere.others.remove(&pid).unwrap_or_default()
        };
        elsewhere.retire(blocks);
    }

    /// Completes the state from a snapshot: see [`Timing::reload`](crate::timing::Timing). `known` are the numbers of functions and of origins of
    /// code, and `spins` says how often the core is in the list of spinning ones.
    pub(crate) fn reload<E: Engine>(&mut self, code: &Code<E>, known: (usize, usize), spins: usize) -> bool {
        let (functions, origins) = known;
        // An engine without blocks has yet to decode them: the code has changed.
        let fits = |blocks: &[Option<BoundBlock>], engine: Option<&E>| {
            let engine = engine.filter(|engine| !engine.is_empty());
            engine.is_none_or(|engine| {
                let same = |(id, bound): (u32, &Option<BoundBlock>)| {
                    bound.as_ref().is_none_or(|bound| {
                        let block = engine.block(BlockId(id));
                        bound.start == block.start && bound.profile.len() == block.infos.len()
                    })
                };
                blocks.len() <= engine.len() && (0..).zip(blocks).all(same)
            })
        };
        let engine = code.of_process(self.pid);
        fits(&self.blocks, engine)
            && self.others.iter().all(|(&pid, other)| fits(&other.blocks, code.of_process(pid)))
            && fits(&self.elsewhere.blocks, engine)
            && self.elsewhere.others.iter().all(|(&pid, blocks)| fits(blocks, code.of_process(pid)))
            && self.every_block().all(|block| {
                block.is_sound() && (block.origin as usize) < origins && (block.function as usize) < functions
            })
            && self.calls.is_sound(functions, origins)
            && self.ahead.is_sound(&self.blocks)
            && matches!(self.spin, Spin::Spins(_)) == (spins == 1)
            && spins <= 1
            && self.spin.reload(engine, self.blocks.len())
            && self.known_loops.are_sound(self.blocks.len())
    }

    /// Leaves or enters the part of the run that is timed: blocks count separately from now on. Loops that may spin are found again.
    pub(crate) fn switch_part(&mut self, is_timed: bool) {
        std::mem::swap(&mut self.blocks, &mut self.elsewhere.blocks);
        std::mem::swap(&mut self.retired, &mut self.elsewhere.retired);
        let mut elsewhere = std::mem::take(&mut self.elsewhere.others);
        for (pid, code) in &mut self.others {
            let blocks = elsewhere.remove(pid).unwrap_or_default();
            self.elsewhere.others.insert(*pid, std::mem::replace(&mut code.blocks, blocks));
        }
        self.spin = Spin::default();
        self.known_loops.clear();
        self.calls.switch(self.pipeline.now(), is_timed);
        if is_timed && self.pipeline.is_sampled() {
            self.pipeline.begin_timing();
        }
    }

    /// Iterates over the blocks in the part of the run that is timed, which is now the case or not.
    pub(crate) fn blocks_of_part(&self, is_timed: bool) -> Box<dyn Iterator<Item = &BoundBlock> + '_> {
        if is_timed { Box::new(self.all_blocks()) } else { Box::new(self.elsewhere.all()) }
    }

    /// Iterates over the blocks of all parts of the run.
    fn every_block(&self) -> impl Iterator<Item = &BoundBlock> {
        self.all_blocks().chain(self.elsewhere.all())
    }

    fn all_blocks(&self) -> impl Iterator<Item = &BoundBlock> {
        let blocks = self.others.values().map(|code| &code.blocks).chain([&self.blocks]);
        self.retired.values().flatten().chain(blocks.flatten().flatten())
    }

    /// Lets all its blocks share their tables.
    pub(crate) fn share_tables(&mut self, shared: &mut SharedTables) {
        let blocks = self.others.values_mut().map(|code| &mut code.blocks).chain([&mut self.blocks]);
        let blocks = blocks.chain(self.elsewhere.others.values_mut()).chain([&mut self.elsewhere.blocks]);
        let retired = self.retired.values_mut().chain(self.elsewhere.retired.values_mut());
        retired.flatten().chain(blocks.flatten().flatten()).for_each(|block| shared.share(block));
    }

    /// The same, for tables that others have written. Returns whether they are sound.
    pub(crate) fn share_sound_tables(&mut self, shared: &mut SharedTables) -> bool {
        self.share_tables(shared);
        self.every_block().all(BoundBlock::is_sound)
    }

    /// Returns the counted events and those that follow from the executions of each block.
    pub(crate) fn signals(&self) -> Signals {
        let mut signals = self.pipeline.counters();
        self.every_block().for_each(|block| block.add_mix(&mut signals));
        signals
    }

    /// Returns the same and, in a sampled run, how often each block was executed.
    fn counters(&self) -> Counts {
        let mut counts = Counts { signals: self.signals(), ..Counts::default() };
        if self.pipeline.is_sampled() {
            for block in self.every_block() {
                counts.exposure.add(block.origin, block.sampled_executions());
                counts.skipped.add(block.origin, block.skipped);
            }
        }
        counts
    }

    /// Counts from now on: blocks are as before they were executed. What is executed next is timed.
    pub(crate) fn begin_to_count(&mut self) {
        self.retired.clear();
        let blocks = self.blocks.iter_mut().flatten();
        blocks.for_each(|block| *block = block.without_counts());
        self.calls.begin_to_count(self.pipeline.now());
        if self.pipeline.is_sampled() {
            self.pipeline.begin_timing();
        }
    }

    /// Takes the blocks that were executed.
    pub(crate) fn take_executed_blocks(&mut self) -> Vec<BoundBlock> {
        let blocks = std::mem::take(&mut self.blocks).into_iter().flatten();
        let retired = std::mem::take(&mut self.retired).into_values().flatten();
        retired.chain(blocks).filter(|block| block.executions_of(0) > 0).collect()
    }

    /// Returns the counts since the thread arrived; for a spinning thread, up to `now`.
    pub(crate) fn counted_by(&self, now: Cycle) -> Counts {
        let mut counters = self.counters();
        if let Spin::Spins(summary) = &self.spin {
            let periods = now.saturating_sub(self.pipeline.now()) / summary.cycles();
            summary.add_counters(periods.min(summary.left), &mut counters.signals);
        }
        counters.since(&self.since)
    }

    /// Starts counting for another thread, or for none. Returns the previous one with its counts.
    pub(crate) fn count_for(&mut self, thread: Option<u32>) -> Option<(u32, Counts)> {
        let now = self.counters();
        let counted = now.since(&self.since);
        (self.since, self.event_sampler) = (now, None);
        std::mem::replace(&mut self.thread, thread).map(|before| (before, counted))
    }

    /// Binds a block that has just run for the first time to the machine.
    #[cold]
    pub(crate) fn bind(&mut self, guest: &Guest, id: BlockId, block: &StaticBlock, spec: &Spec, known: &mut Known) {
        let index = id.0 as usize;
        let mut bound = bind_block(block.start, &block.infos, spec);
        known.tables.share(&mut bound);
        bound.origin = known.code_map.note(guest, block.start, block.infos.len());
        (bound.function, bound.begins_function) = known.code_map.function_of(bound.origin);
        let mut bound = self.revived(bound);
        let last = block.start + 4 * (block.infos.len() as u64 - 1);
        bound.marked = self.markers.may_meet(bound.branch, last);
        for &i in &bound.tables.unknown {
            let name = block.infos[i].class.name();
            match known.unknown.iter_mut().find(|(n, _)| n == name) {
                Some((_, count)) => *count += 1,
                None => known.unknown.push((name.to_owned(), 1)),
            }
        }
        self.record(|| Change::Binds { index, block: Box::new(bound.without_counts()) });
        self.set_block(index, bound);
    }

    /// A block that was bound by the core that this one is a copy of has number `index`.
    pub(crate) fn bind_again(&mut self, index: usize, bound: BoundBlock) {
        let bound = self.revived(bound);
        self.set_block(index, bound);
    }

    fn set_block(&mut self, index: usize, bound: BoundBlock) {
        if self.blocks.len() <= index {
            self.blocks.resize_with(index + 1, || None);
        }
        self.blocks[index] = Some(bound);
    }
}

/// What all cores know about code.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Known {
    /// The files and functions of all blocks.
    pub(crate) code_map: CodeMap,
    /// Timing classes without a row, with their number of instructions.
    pub(crate) unknown: Vec<(String, usize)>,
    /// The tables of all bound blocks.
    #[serde(skip)]
    pub(crate) tables: SharedTables,
}
