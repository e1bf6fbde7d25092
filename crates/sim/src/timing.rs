//! A run with time: every CPU has its core, and the core whose clock is behind goes on.
//!
//! A core runs for a quantum: until its clock is a quantum ahead of the one that is furthest behind. What threads tell each
//! other by (atomic and ordered accesses, barriers, events, system calls) is done in the order of time: a core that is
//! ahead ends its turn in front of it. Everything else of a turn is seen by the others at most a quantum too early, and
//! their requests to what cores share meet in its calendars, whoever makes them first.

use fxscope_aarch64::block::MAX_BLOCK;
use fxscope_calendar::Cycle;
use fxscope_counts::{Signals, Stall};
use fxscope_linux::{Guest, Step};
use fxscope_memory::{Chip, NEVER};
use fxscope_pipeline::Pipeline;

use crate::clocks::Clocks;
use crate::code_map::CodeMap;
use crate::core::{Core, Known};
use crate::hotspots::{HotSpot, hot_spots};
use crate::intervals::{Interval, Intervals};
use crate::machine::Machine;
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
    /// The chip and the cores.
    pub(crate) machine: Machine,
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
    pub(crate) fn new(process: &mut Guest, options: &Options) -> Timing {
        process.spread();
        let cpus: Vec<u32> = process.cpus().map(|state| state.place.cpu).collect();
        let active = cpus.iter().position(|&cpu| cpu == process.cpu_number()).unwrap_or(0);
        let pipeline = Pipeline::new(&options.spec, cpus[active] - options.spec.topology.first_core);
        let sectors = SectorData::new();
        let core = Core::new(pipeline, process, options, &sectors);
        Timing {
            machine: Machine::new(Chip::new(&options.spec), cpus.len(), active, core),
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
        self.machine.iter_mut().for_each(|core| core.assign_sectors(&data));
        self.sectors = data;
    }

    /// The clock of the active core.
    pub(crate) fn now(&self) -> Cycle {
        self.machine.now()
    }

    /// Instructions by file and place, of all cores.
    pub(crate) fn hot_spots(&self) -> Vec<HotSpot> {
        hot_spots(self.machine.iter().flat_map(Core::all_blocks), &self.known.code_map)
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
    pub(crate) process: &'a mut Guest,
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
                    let core = self.timing.machine.get(index);
                    let ready = self.timing.machine.core().cycle_at(ready_ns);
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
        let (process, options) = (&*self.process, self.options);
        let Timing { machine, clocks, sectors, .. } = &mut *self.timing;
        let resumes = clocks[machine.active] != NEVER && !matches!(machine.core().spin, Spin::Spins(_));
        machine.activate(index, resumes, || {
            let place = process.cpus().nth(index).expect("a CPU of the machine").place;
            let pipeline = Pipeline::new(&options.spec, place.cpu - options.spec.topology.first_core);
            Core::new(pipeline, process, options, sectors)
        });
        let core = machine.core_mut();
        core.sleep_until(clocks[index]);
        self.process.enter(index, core.now_ns());
        if let Some(ns) = core.ahead.take_since() {
            self.process.has_run_since(ns);
        }
        self.process.hold(false);
        let (core, chip) = machine.running();
        core.switched(self.process, self.options.follow, chip);
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
        let (core, chip) = self.timing.machine.running();
        core.ahead.stuck = false;
        if !core.ahead.is_empty() && !core.catch_up_to(quantum.end, chip) {
            *blocks -= 1;
            self.timing.clocks.set(self.timing.machine.active, self.timing.now());
            return None;
        }
        let mut patience = EXCLUSIVE_BLOCKS;
        let snoops = self.timing.machine.chip.snoops();
        let watched = matches!(self.timing.machine.core().spin, Spin::Watched(_));
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
                let contends = self.timing.machine.chip.snoops() != snoops;
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
        let (active, core) = (t.machine.active, t.machine.core_mut());
        if t.clocks[active] != NEVER && !matches!(core.spin, Spin::Spins(_)) {
            let now = core.pipeline.now();
            t.clocks.set(active, now);
            if T::FAST && self.options.spin == SpinLoops::Fast && !core.untimed {
                core.spin.quantum_ended(self.process.cpu(), now);
            }
        }
        None
    }

    /// A block ran: its time.
    #[inline(always)]
    fn ran(&mut self, index: usize, id: fxscope_aarch64::BlockId, executed: usize, trace: &mut impl Trace) {
        let core = self.timing.machine.core_mut();
        if core.untimed {
            core.untimed_instructions += executed as u64;
            return;
        }
        if core.called_kernel {
            self.back_from_kernel();
        }
        let (core, chip) = self.timing.machine.running();
        if core.blocks.get(index).is_none_or(Option::is_none) {
            core.resolve(self.process, id, &self.options.spec, &mut self.timing.known);
        }
        let block = core.blocks[index].as_mut().expect("just resolved");
        trace.run(&mut core.pipeline, chip, block, executed, self.process);
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
            let (core, chip) = self.timing.machine.running();
            core.read_controls(self.process, chip);
        }
    }

    /// Another thread goes on, after the kernel has switched to it.
    #[cold]
    pub(crate) fn switched(&mut self) {
        let (core, chip) = self.timing.machine.running();
        core.switched(self.process, self.options.follow, chip);
        self.come();
        self.in_kernel();
    }

    /// The program made a system call, or may have.
    #[cold]
    fn in_kernel(&mut self) {
        let (core, chip) = self.timing.machine.running();
        core.called_kernel = true;
        core.pipeline.pause(self.options.spec.assumptions.system_call);
        core.read_controls(self.process, chip);
        core.markers.learn(self.process);
        self.set_clock();
    }

    /// The first block behind a system call ran: what the call has done about pages comes before it.
    #[cold]
    fn back_from_kernel(&mut self) {
        self.timing.machine.core_mut().called_kernel = false;
        self.set_clock();
        self.review_spinning();
    }

    /// The program's clock follows the core's; the model learns of changes to the address space.
    #[inline(always)]
    fn set_clock(&mut self) {
        let (core, chip) = self.timing.machine.running();
        if core.untimed_instructions > 0 {
            core.pass_untimed();
        }
        self.process.set_now_ns(core.now_ns().max(self.process.now_ns()));
        core.learn_pages(self.process, &mut self.timing.pages, &self.options.spec, chip);
        if let Some(work) = self.process.take_memory_work() {
            core.pages_worked(work, &self.options.spec);
        }
    }

    /// Code has changed; so may the program have.
    #[cold]
    pub(crate) fn forget_blocks(&mut self) {
        self.stop_all_spinning();
        self.catch_up_all();
        for core in self.timing.machine.iter_mut() {
            core.forget_blocks(self.process);
        }
    }

    // ---- what is counted ----------------------------------------------------------------------

    /// The number of the thread in place in the record.
    fn thread_number(&self) -> u32 {
        self.process.thread().tid - fxscope_linux::guest::PID
    }

    /// Counts are those of the thread in place from now on.
    fn come(&mut self) {
        let thread = (!self.timing.machine.core_mut().untimed).then(|| self.thread_number());
        if self.timing.machine.core().thread == thread {
            return;
        }
        self.catch_up_all();
        // It may have been on another core before.
        let active = self.timing.machine.active;
        for index in (0..self.timing.machine.cores.len()).filter(|&index| index != active) {
            let core = self.timing.machine.get_mut(index).filter(|core| core.thread == thread);
            let before = core.and_then(|core| core.count_for(None));
            self.credit(index, before);
        }
        let before = self.timing.machine.core_mut().count_for(thread);
        self.credit(active, before);
        if let Some(thread) = thread {
            let leader = self.process.pid() - fxscope_linux::guest::PID;
            let created_ns = self.process.thread().created_ns();
            self.regions.runs(thread, leader, created_ns, self.timing.machine.core().now_ns());
        }
        // Registers that control the processor are the thread's.
        let (core, chip) = self.timing.machine.running();
        core.read_controls(self.process, chip);
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
        let Some((edge, name)) = self.timing.machine.core().markers.met(last, self.process) else { return };
        let (thread, first) = (self.thread_number(), self.process.thread().tid == self.process.pid());
        let now = Snapshot { totals: self.totals(), ns: self.timing.machine.core().now_ns() };
        match edge {
            Edge::Begin => self.regions.begin(thread, first, name.unwrap_or_default(), now),
            Edge::End => self.regions.end(thread, name.as_deref(), &now),
        }
    }

    /// All counters as they stand, cores that sleep having slept up to now.
    fn totals(&mut self) -> Totals {
        let now = self.timing.now();
        let mut totals = self.timing.totals.clone();
        for index in 0..self.timing.machine.cores.len() {
            let active = index == self.timing.machine.active;
            let sleeps = self.timing.clocks[index] == NEVER;
            let Some(core) = self.timing.machine.get_mut(index) else { continue };
            if sleeps && !active {
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
        for index in 0..self.timing.machine.cores.len() {
            let clock = self.timing.clocks[index];
            let Some(core) = self.timing.machine.get_mut(index) else { continue };
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
        let Timing { machine, clocks, .. } = &mut *self.timing;
        let (core, chip) = machine.running();
        core.pipeline.settle(chip);
        machine.for_others(false, |_| true, |_, core, chip| core.pipeline.settle(chip));
        for (index, clock) in clocks.iter().enumerate().filter(|&(index, _)| index != machine.active) {
            let Some(core) = machine.cores[index].as_deref_mut() else { continue };
            if clock == NEVER {
                core.sleep_until(now);
            }
            core.pipeline.finish();
        }
        machine.core_mut().pipeline.finish();
        self.totals()
    }
}
