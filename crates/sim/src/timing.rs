//! A run with time: every CPU has its core, and the core whose clock is behind goes on.
//!
//! A core runs for a quantum: until its clock is a quantum ahead of the one that is furthest behind. What threads tell each
//! other by (atomic and ordered accesses, barriers, events, system calls) is done in the order of time: a core that is
//! ahead ends its turn in front of it. Everything else of a turn is seen by the others at most a quantum too early, and
//! their requests to what cores share meet in its calendars, whoever makes them first.

use fxscope_aarch64::block::MAX_BLOCK;
use fxscope_calendar::Cycle;
use fxscope_counts::{Signals, Stall};
use fxscope_linux::{Process, Step};
use fxscope_memory::NEVER;
use fxscope_pipeline::Pipeline;

use crate::clocks::Clocks;
use crate::code_map::CodeMap;
use crate::core::{Core, Known};
use crate::hotspots::{HotSpot, hot_spots};
use crate::intervals::{Interval, Intervals};
use crate::markers::Edge;
use crate::pages::KnownPages;
use crate::parallel;
use crate::region::{self, Counted, Regions, Snapshot, Totals};
use crate::run::{Control, Finish, Options, Progress, SpinLoops};
use crate::sectors::SectorData;
use crate::spin_skip::Spin;
use crate::spin_skip::Spinning;
use crate::trace::Trace;

/// Blocks between two looks at the limit and at whoever watches.
const WATCH_BLOCKS: u64 = 1 << 16;
/// Blocks between two updates of the program's clock.
const CLOCK_BLOCKS: u64 = 8;
/// Cycles from an event to the first one of the thread that waited for it: one as times are rounded down to cycles, one as a
/// core sleeps until the cycle before.
const EVENT_CYCLES: Cycle = 2;

/// Blocks for which a core may be ahead to end what is between a load-exclusive and its store.
const EXCLUSIVE_BLOCKS: u32 = 16;

/// The cores of a run.
pub(crate) struct Timing {
    /// The core that has the chip.
    pub(crate) core: Box<Core>,
    /// Its number among the CPUs.
    pub(crate) here: usize,
    /// The others, by their numbers; none for those that no thread has run on yet.
    pub(crate) parked: Vec<Option<Box<Core>>>,
    /// When each CPU goes on; [`NEVER`]: it has no thread that is ready.
    pub(crate) clocks: Clocks,
    /// Cores whose threads wait in loops; their clocks say until when.
    pub(crate) spinning: Vec<Spinning>,
    /// The state of the process's CPUs that `clocks` follow.
    pub(crate) changes: u64,
    /// What threads have counted on cores that others have now, or nobody.
    totals: Totals,
    pub(crate) known: Known,
    pages: KnownPages,
    sectors: SectorData,
    pub(crate) intervals: Intervals,
    /// Up to this time CMGs are not simulated side by side.
    pub(crate) alone_until: Cycle,
    /// Cycles that they are not the next time that this is not worth it.
    pub(crate) backoff: Cycle,
    /// Instructions that were simulated side by side.
    pub(crate) parallel_instructions: u64,
}

impl Timing {
    /// The cores of a run of `process`: that of its first thread.
    pub(crate) fn new(process: &mut Process, options: &Options) -> Timing {
        process.spread();
        let cpus: Vec<u32> = process.cpus().map(|state| state.place.cpu).collect();
        let here = cpus.iter().position(|&cpu| cpu == process.cpu_number()).unwrap_or(0);
        let pipeline = Pipeline::new(&options.spec, cpus[here] - options.spec.topology.first_core);
        let sectors = SectorData::new();
        Timing {
            core: Box::new(Core::new(pipeline, process, options, &sectors)),
            here,
            parked: cpus.iter().map(|_| None).collect(),
            clocks: Clocks::new(cpus.len()),
            spinning: Vec::new(),
            changes: u64::MAX,
            totals: Totals::new(),
            pages: KnownPages::default(),
            known: Known { code_map: CodeMap::new(process), unknown: Vec::new() },
            sectors,
            intervals: Intervals::new(options),
            alone_until: 0,
            backoff: *parallel::BACKOFF.start(),
            parallel_instructions: 0,
        }
    }

    /// Gives data sectors of the caches, whatever pointers say.
    pub(crate) fn assign_sectors(&mut self, data: SectorData) {
        self.core.assign_sectors(&data);
        self.sectors = data;
    }

    /// The clock of the core that has the chip.
    pub(crate) fn now(&self) -> Cycle {
        self.core.pipeline.now()
    }

    /// Claims on lines of other cores so far.
    fn snoops(&self) -> u64 {
        self.core.pipeline.memory.chip().snoops()
    }

    /// Instructions by file and place, of all cores.
    pub(crate) fn hot_spots(&self) -> Vec<HotSpot> {
        let cores = self.parked.iter().flatten().chain([&self.core]);
        hot_spots(cores.flat_map(|core| core.all_blocks()), &self.known.code_map)
    }

    /// The intervals of a run that is over at `now_ns`, with what they are to have counted in all.
    pub(crate) fn intervals(&mut self, now_ns: u64, counted: &Signals) -> Vec<Interval> {
        self.intervals.finish(now_ns, counted)
    }

    /// Files that code was mapped from.
    pub(crate) fn files(&self) -> Vec<Vec<u8>> {
        self.known.code_map.files().to_vec()
    }

    /// Timing classes that the machine has no row for.
    pub(crate) fn unknown_classes(&self) -> Vec<(&'static str, usize)> {
        self.known.unknown.clone()
    }
}

/// A turn of a core.
#[derive(Clone, Copy)]
pub(crate) struct Quantum {
    /// Which one's.
    pub(crate) index: usize,
    /// The clock of the core that is behind all others. Up to there nothing that others do can come before.
    in_order: Cycle,
    /// When the turn is over.
    end: Cycle,
}

/// What drives a run.
pub(crate) struct Driver<'a> {
    pub(crate) process: &'a mut Process,
    pub(crate) options: &'a Options,
    pub(crate) regions: &'a mut Regions,
    pub(crate) timing: &'a mut Timing,
}

impl Driver<'_> {
    /// Runs to the end, or until `watch` says to stop.
    pub(crate) fn run(&mut self, watch: &mut dyn FnMut(Progress) -> Control, trace: &mut impl Trace) -> Finish {
        let mut blocks = self.blocks_left();
        loop {
            self.follow_cpus();
            let turn = self.next_quantum();
            if let Some(quantum) = turn {
                self.reach(self.timing.clocks[quantum.index]);
            }
            let finish = match turn {
                Some(quantum) if self.spins(quantum.index) => {
                    self.spun(quantum.index);
                    blocks -= 1;
                    None
                }
                Some(quantum) => match self.run_parallel(quantum, &mut blocks, trace) {
                    Some(finish) => finish,
                    None => {
                        self.enter(quantum.index);
                        self.run_quantum(quantum, &mut blocks, trace)
                    }
                },
                None => self.nobody_ready(&mut blocks),
            };
            if let Some(finish) = finish.or_else(|| (blocks == 0).then(|| self.stop(watch)).flatten()) {
                return finish;
            }
            if blocks == 0 {
                blocks = self.blocks_left();
            }
        }
    }

    /// How many blocks can run until the limit or whoever watches must be looked at: each has at most [`MAX_BLOCK`]
    /// instructions.
    fn blocks_left(&self) -> u64 {
        let left =
            self.options.max_instructions.map_or(u64::MAX, |max| max.saturating_sub(self.process.instructions()));
        (left / MAX_BLOCK as u64).clamp(1, WATCH_BLOCKS)
    }

    /// Whether the run must stop now.
    fn stop(&self, watch: &mut dyn FnMut(Progress) -> Control) -> Option<Finish> {
        let progress = Progress {
            instructions: self.process.instructions(),
            cycles: self.timing.now(),
            now_ns: self.process.now_ns(),
        };
        if self.options.max_instructions.is_some_and(|max| progress.instructions >= max) {
            return Some(Finish::Limit);
        }
        (watch(progress) == Control::Stop).then_some(Finish::Stopped)
    }

    // ---- whose turn it is ---------------------------------------------------------------------

    /// CPUs whose threads have all begun to wait have no turns; those that have got one that is ready have.
    fn follow_cpus(&mut self) {
        if self.process.cpu_changes() == self.timing.changes {
            return;
        }
        self.review_spinning();
        self.timing.changes = self.process.cpu_changes();
        let wake = self.options.spec.assumptions.thread_wake;
        for (index, state) in self.process.cpus().enumerate() {
            let clock = self.timing.clocks[index];
            let clock = match state.ready_ns {
                None => NEVER,
                Some(_) if clock != NEVER => clock,
                Some(ready_ns) => {
                    let core = self.timing.parked[index].as_ref();
                    let core = if index == self.timing.here { Some(&self.timing.core) } else { core };
                    let ready = self.timing.core.cycle_at(ready_ns);
                    let begins = match ready {
                        0 => 0,
                        _ if state.on_core => ready + EVENT_CYCLES,
                        _ => ready + wake,
                    };
                    core.map_or(begins, |core| core.pipeline.now().max(begins))
                }
            };
            self.timing.clocks.set(index, clock);
        }
    }

    /// The turn of the core that is furthest behind.
    fn next_quantum(&self) -> Option<Quantum> {
        let (index, second) = self.timing.clocks.first_two()?;
        Some(Quantum { index, in_order: second, end: second.saturating_add(self.options.quantum) })
    }

    /// The CPU with this number goes on.
    pub(crate) fn enter(&mut self, index: usize) {
        let t = &mut *self.timing;
        if index != t.here {
            let goes_on = t.clocks[t.here] != NEVER && !matches!(t.core.spin, Spin::Spins(_));
            let next = t.parked[index].take();
            let spec = &self.options.spec;
            let mut next = next.unwrap_or_else(|| {
                let place = self.process.cpus().nth(index).expect("a CPU of the machine").place;
                let pipeline = Pipeline::waiting(spec, place.cpu - spec.topology.first_core);
                Box::new(Core::new(pipeline, self.process, self.options, &t.sectors))
            });
            next.pipeline.take_over(&mut t.core.pipeline, goes_on);
            t.parked[t.here] = Some(std::mem::replace(&mut t.core, next));
            t.here = index;
        }
        t.core.sleep_until(t.clocks[index]);
        self.process.enter(index, t.core.now_ns());
        if let Some(ns) = t.core.ahead.take_since() {
            self.process.has_run_since(ns);
        }
        self.process.hold(false);
        self.timing.core.switched(self.process, self.options.follow);
        self.come();
        self.set_clock();
    }

    /// Nobody is ready: time passes until somebody is.
    fn nobody_ready(&mut self, blocks: &mut u64) -> Option<Finish> {
        match self.process.wait() {
            Step::Ended => return Some(self.ended()),
            Step::Sleep { until_ns } => self.process.wake_due(until_ns),
            _ => {
                self.process.wake_due(self.process.now_ns());
                *blocks = 0;
            }
        }
        None
    }

    pub(crate) fn ended(&self) -> Finish {
        self.process.end().map_or(Finish::Stopped, |end| Finish::Ended(end.clone()))
    }

    // ---- a turn -------------------------------------------------------------------------------

    /// The core in place runs until its turn is over, or no block is left. `Some`: so is the run.
    fn run_quantum<T: Trace>(&mut self, quantum: Quantum, blocks: &mut u64, trace: &mut T) -> Option<Finish> {
        self.timing.core.ahead.stuck = false;
        if !self.timing.core.ahead.is_empty() && !self.timing.core.catch_up_to(quantum.end) {
            *blocks -= 1;
            self.timing.clocks.set(self.timing.here, self.timing.now());
            return None;
        }
        let mut patience = EXCLUSIVE_BLOCKS;
        let snoops = self.timing.snoops();
        let watched = matches!(self.timing.core.spin, Spin::Watched(_));
        let others_spin = !self.timing.spinning.is_empty();
        while *blocks > 0 {
            *blocks -= 1;
            let before = self.timing.now();
            match self.process.step() {
                Step::Ran { block, executed } => {
                    self.ran(block.0 as usize, block, executed, trace);
                    if watched && self.watch_block(block, executed) {
                        break;
                    }
                }
                Step::Switched => self.switched(),
                Step::CodeChanged => self.forget_blocks(),
                Step::Ended => return Some(self.ended()),
                Step::Synchronises | Step::Idle | Step::Sleep { .. } | Step::Waiting => break,
            }
            if blocks.is_multiple_of(CLOCK_BLOCKS) {
                self.set_clock();
                if self.process.cpu_changes() == self.timing.changes {
                    self.reach(self.timing.now().min(quantum.in_order));
                }
            }
            if others_spin && self.process.memory().has_written() {
                self.watched_written(before);
                break;
            }
            if self.process.cpu_changes() != self.timing.changes {
                break;
            }
            let now = self.timing.now();
            if now > quantum.in_order {
                // A line that several cores write goes from one to the other in the order of time, too.
                let contends = self.timing.snoops() != snoops;
                let over = now >= quantum.end || contends || self.process.has_trap();
                if over && !(self.process.in_exclusive() && patience > 0) {
                    break;
                }
                patience -= u32::from(over);
                self.process.hold(!self.process.in_exclusive());
            }
        }
        self.set_clock();
        let t = &mut *self.timing;
        let core = &mut *t.core;
        if t.clocks[t.here] != NEVER && !matches!(core.spin, Spin::Spins(_)) {
            let now = core.pipeline.now();
            t.clocks.set(t.here, now);
            if T::FAST && self.options.spin == SpinLoops::Fast && !core.untimed {
                core.spin.quantum_ended(self.process.cpu(), now);
            }
        }
        None
    }

    /// A block ran: its time.
    #[inline(always)]
    fn ran(&mut self, index: usize, id: fxscope_aarch64::BlockId, executed: usize, trace: &mut impl Trace) {
        let core = &mut *self.timing.core;
        if core.untimed {
            core.untimed_instructions += executed as u64;
            return;
        }
        if core.called_kernel {
            self.back_from_kernel();
        }
        let core = &mut *self.timing.core;
        if core.blocks.get(index).is_none_or(Option::is_none) {
            core.resolve(self.process, id, &self.options.spec, &mut self.timing.known);
        }
        let block = core.blocks[index].as_mut().expect("just resolved");
        trace.run(&mut core.pipeline, block, executed, self.process);
        let subnormals = self.process.cpu().subnormals();
        if !subnormals.is_empty() {
            core.pipeline.subnormals(block, subnormals);
        }
        block.count(executed);
        let (start, marked, enters_kernel) = (block.start, block.marked, block.enters_kernel);
        if enters_kernel {
            block.charge(executed.max(1) as u8 - 1, Stall::Kernel, self.options.spec.assumptions.system_call);
        }
        if block.controls {
            self.controlled(enters_kernel);
        }
        if marked {
            self.marked(start + 4 * (executed.max(1) as u64 - 1));
        }
    }

    /// The program may have written a register that controls the processor, or has called the kernel.
    #[cold]
    fn controlled(&mut self, enters_kernel: bool) {
        if enters_kernel {
            self.in_kernel();
        } else {
            self.timing.core.read_controls(self.process);
        }
    }

    /// Another thread goes on, after the kernel has switched to it.
    #[cold]
    pub(crate) fn switched(&mut self) {
        self.timing.core.switched(self.process, self.options.follow);
        self.come();
        self.in_kernel();
    }

    /// The program made a system call, or may have.
    #[cold]
    fn in_kernel(&mut self) {
        let core = &mut *self.timing.core;
        core.called_kernel = true;
        core.pipeline.pause(self.options.spec.assumptions.system_call);
        core.read_controls(self.process);
        core.markers.learn(self.process);
        self.set_clock();
    }

    /// The first block behind a system call ran: what the call has done about pages comes before it.
    #[cold]
    fn back_from_kernel(&mut self) {
        self.timing.core.called_kernel = false;
        self.set_clock();
        self.review_spinning();
    }

    /// The program's clock follows the core's; the model learns of changes to the address space.
    #[inline(always)]
    fn set_clock(&mut self) {
        let core = &mut *self.timing.core;
        if core.untimed_instructions > 0 {
            core.pass_untimed();
        }
        self.process.set_now_ns(core.now_ns().max(self.process.now_ns()));
        core.learn_pages(self.process, &mut self.timing.pages, &self.options.spec);
        if let Some(work) = self.process.take_memory_work() {
            core.pages_worked(work, &self.options.spec);
        }
    }

    /// Code has changed; so may the program have.
    #[cold]
    pub(crate) fn forget_blocks(&mut self) {
        self.stop_all_spinning();
        self.catch_up_all();
        for core in self.timing.parked.iter_mut().flatten().chain([&mut self.timing.core]) {
            core.forget_blocks(self.process);
        }
    }

    // ---- what is counted ----------------------------------------------------------------------

    /// The number of the thread in place in the record.
    fn thread_number(&self) -> u32 {
        self.process.thread().tid - fxscope_linux::process::PID
    }

    /// Counts are those of the thread in place from now on.
    fn come(&mut self) {
        let thread = (!self.timing.core.untimed).then(|| self.thread_number());
        if self.timing.core.thread == thread {
            return;
        }
        self.catch_up_all();
        // It may have been on another core before.
        for index in 0..self.timing.parked.len() {
            if self.timing.parked[index].as_ref().is_some_and(|core| core.thread == thread) {
                let before = self.timing.parked[index].as_mut().and_then(|core| core.count_for(None));
                self.credit(index, before);
            }
        }
        let before = self.timing.core.count_for(thread);
        self.credit(self.timing.here, before);
        if let Some(thread) = thread {
            let leader = self.process.pid() - fxscope_linux::process::PID;
            let created_ns = self.process.thread().created_ns();
            self.regions.runs(thread, leader, created_ns, self.timing.core.now_ns());
        }
        // Registers that control the processor are the thread's.
        self.timing.core.read_controls(self.process);
    }

    fn credit(&mut self, index: usize, counted: Option<(u32, Signals)>) {
        let Some((thread, signals)) = counted else { return };
        let cpu = self.cpu_of(index);
        region::add(&mut self.timing.totals, thread, &Counted { cpu, signals });
    }

    fn cpu_of(&self, index: usize) -> u32 {
        self.process.cpus().nth(index).map_or(0, |state| state.place.cpu)
    }

    /// The program may have marked a region, at the instruction at `last` or by the call that it has just made.
    #[inline(never)]
    fn marked(&mut self, last: u64) {
        let Some((edge, name)) = self.timing.core.markers.met(last, self.process) else { return };
        let (thread, first) = (self.thread_number(), self.process.thread().tid == self.process.pid());
        let now = Snapshot { totals: self.totals(), ns: self.timing.core.now_ns() };
        match edge {
            Edge::Begin => self.regions.begin(thread, first, name.unwrap_or_default(), now),
            Edge::End => self.regions.end(thread, name.as_deref(), &now),
        }
    }

    /// All counters as they stand, cores that sleep having slept up to now.
    fn totals(&mut self) -> Totals {
        let now = self.timing.now();
        let mut totals = self.timing.totals.clone();
        for index in 0..self.timing.parked.len() {
            let here = index == self.timing.here;
            let sleeps = self.timing.clocks[index] == NEVER;
            let core = if here { Some(&mut self.timing.core) } else { self.timing.parked[index].as_mut() };
            let Some(core) = core else { continue };
            if sleeps && !here {
                core.sleep_until(now);
            }
            if let Some(thread) = core.thread {
                let signals = core.counted_by(now);
                let cpu = self.cpu_of(index);
                region::add(&mut totals, thread, &Counted { cpu, signals });
            }
        }
        totals
    }

    /// No core stands before `now` any more: intervals that end by then are over.
    #[inline(always)]
    fn reach(&mut self, now: Cycle) {
        if now >= self.timing.intervals.due() {
            self.end_intervals(now);
        }
    }

    #[cold]
    fn end_intervals(&mut self, now: Cycle) {
        let (first, last) = (self.timing.intervals.due(), self.timing.intervals.last_end(now));
        self.end_interval(first);
        if first < last {
            // Whoever has slept has done so since the first of them, or before.
            self.end_interval(last);
        }
    }

    fn end_interval(&mut self, end: Cycle) {
        let totals = self.counted_by(end);
        let counted = match &self.options.interval_region {
            None => region::sum(&totals),
            Some(name) => self.regions.so_far(name, &totals),
        };
        self.timing.intervals.take(end, &counted);
    }

    /// What all threads have counted, those that sleep or wait in loops up to `now`.
    fn counted_by(&mut self, now: Cycle) -> Totals {
        let mut totals = self.timing.totals.clone();
        for index in 0..self.timing.parked.len() {
            let clock = self.timing.clocks[index];
            let Some(core) = self.timing.core_at(index) else { continue };
            if !matches!(core.spin, Spin::Spins(_)) {
                core.sleep_until(now.min(clock));
            }
            if let Some(thread) = core.thread {
                let signals = core.counted_by(now);
                let cpu = self.cpu_of(index);
                region::add(&mut totals, thread, &Counted { cpu, signals });
            }
        }
        totals
    }

    /// The run is over: everything in flight ends, and all cores with it. Returns all counters.
    pub(crate) fn finish(&mut self) -> Totals {
        self.stop_all_spinning();
        self.catch_up_all();
        let now = self.timing.now();
        let t = &mut *self.timing;
        t.core.pipeline.settle();
        for (core, clock) in t.parked.iter_mut().zip(t.clocks.iter()) {
            let Some(core) = core else { continue };
            core.pipeline.take_over(&mut t.core.pipeline, false);
            core.pipeline.settle();
            t.core.pipeline.take_over(&mut core.pipeline, false);
            if clock == NEVER {
                core.sleep_until(now);
            }
            core.pipeline.finish();
        }
        t.core.pipeline.finish();
        self.totals()
    }
}
