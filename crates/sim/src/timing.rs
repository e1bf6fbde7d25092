//! Timed run: one core per CPU; the core with the lowest clock runs next.
//!
//! A core runs for a quantum: until its clock is a quantum ahead of the next lowest one. Synchronising operations
//! (atomic and ordered accesses, barriers, events, system calls) execute in simulated-time order: a core that is ahead
//! ends its quantum before one. Other cores see everything else at most a quantum too early, and requests to shared
//! resources contend in their calendars, in whichever order the cores make them.

use fxscope_aarch64::engine::MAX_BLOCK;
use fxscope_aarch64::{BlockId, Engine};
use fxscope_calendar::Cycle;
use fxscope_linux::{Code, Guest, Step};
use fxscope_memory::{Chip, NEVER};
use fxscope_pipeline::{Pipeline, SharedTables};

use crate::calls::Parked;
use crate::clocks::Clocks;
use crate::code_map::CodeMap;
use crate::core::{Core, Known};
use crate::following::FollowedTo;
use crate::intervals::Intervals;
use crate::jobs::Unfit;
use crate::machine::Machine;
use crate::mpi::Recorder;
use crate::pages::{AddressSpaceLocks, KnownPages};
use crate::parallel;
use crate::part::Part;
use crate::progress::ProgressWatch;
use crate::quantum::{EXCLUSIVE_BLOCKS, Quantum, Running};
use crate::region::{Regions, Totals};
use crate::run::{Control, Finish, Options, Progress, SpinLoops};
use crate::sectors::SectorData;
use crate::spin_skip::Spin;
use crate::spin_skip::Spinning;
use crate::stacks::StackSampler;
use crate::tiering::Tiering;
use crate::trace::Trace;

/// Blocks between two checks of the limit and calls of the watcher.
const WATCH_BLOCKS: u64 = 1 << 16;
/// Cycles from an event to the first cycle of a thread that waited for it. They follow from how the simulator counts, not
/// from the machine: one because times are rounded down to cycles, one because a core sleeps until the cycle before.
const EVENT_CYCLES: Cycle = 2;

/// The timing state of a run.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Timing {
    /// The chip and the cores.
    pub(crate) machine: Machine,
    /// When each CPU runs next; [`NEVER`]: it has no ready thread.
    pub(crate) clocks: Clocks,
    /// Spinning cores; their clocks say until when they are known to spin.
    pub(crate) spinning: Vec<Spinning>,
    /// Cycles of the iterations that they were found to repeat.
    pub(crate) spun: Cycle,
    /// The version of the guest's CPU states that `clocks` reflect.
    pub(crate) changes: u64,
    /// Counts of threads from cores on which they no longer run.
    pub(crate) totals: Totals,
    pub(crate) known: Known,
    /// Calls of threads that are on no core.
    pub(crate) calls: Parked,
    /// Calls of MPI.
    pub(crate) mpi: Recorder,
    pub(crate) pages: KnownPages,
    pub(crate) address_spaces: AddressSpaceLocks,
    /// Promotion and demotion of pages, if the system does that.
    pub(crate) tiering: Option<Box<Tiering>>,
    sectors: SectorData,
    pub(crate) intervals: Intervals,
    /// Call stacks.
    pub(crate) stacks: StackSampler,
    /// Up to this time no epoch runs on several host threads.
    pub(crate) alone_until: Cycle,
    /// Cycles without epochs after the next one that does not pay.
    pub(crate) backoff: Cycle,
    /// Instructions that were timed in parallel epochs.
    pub(crate) parallel_instructions: u64,
    /// Blocks until the limit is checked and the watcher is called; 0: to be set.
    pub(crate) blocks: u64,
    /// The quantum in which the run is paused.
    pub(crate) paused: Option<Running>,
}

impl Timing {
    /// Returns the state before a run of `guest`: only the core of its first thread exists.
    pub(crate) fn new(guest: &mut Guest, options: &Options) -> Timing {
        guest.spread();
        let cpus: Vec<u32> = guest.cpus().map(|state| state.place.cpu).collect();
        let active = cpus.iter().position(|&cpu| cpu == guest.cpu_number()).unwrap_or(0);
        let pipeline = Pipeline::new(&options.spec, cpus[active] - options.spec.topology.first_core);
        let sectors = SectorData::new();
        let core = Core::new(pipeline, guest, options, &sectors);
        Timing {
            machine: Machine::new(Chip::new(&options.spec), cpus.len(), active, core),
            clocks: Clocks::new(cpus.len()),
            spinning: Vec::new(),
            spun: 0,
            changes: u64::MAX,
            totals: Totals::new(),
            pages: KnownPages::default(),
            address_spaces: AddressSpaceLocks::default(),
            tiering: Tiering::new(&options.spec),
            known: Known { code_map: CodeMap::new(guest), unknown: Vec::new(), tables: SharedTables::default() },
            calls: Parked::default(),
            mpi: Recorder::default(),
            sectors,
            intervals: Intervals::new(options),
            stacks: StackSampler::new(options),
            alone_until: 0,
            backoff: *parallel::BACKOFF.start(),
            parallel_instructions: 0,
            blocks: 0,
            paused: None,
        }
    }

    /// Assigns data to cache sectors by address.
    pub(crate) fn assign_sectors(&mut self, data: SectorData) {
        self.machine.iter_mut().for_each(|core| core.assign_sectors(&data));
        self.sectors = data;
    }

    /// Returns the clock of the active core.
    pub(crate) fn now(&self) -> Cycle {
        self.machine.now()
    }
}

/// Why the core has stopped running blocks.
enum Stopped {
    /// The quantum is over.
    Over,
    /// Its share of blocks is used up.
    Share,
    /// The phase of the run is over.
    Phase,
    /// The run is over.
    Run(Finish),
}

/// Drives a run.
pub(crate) struct Driver<'a, E: Engine> {
    pub(crate) guest: &'a mut Guest,
    pub(crate) code: &'a mut Code<E>,
    pub(crate) options: &'a Options,
    pub(crate) regions: &'a mut Regions,
    pub(crate) timing: &'a mut Timing,
    pub(crate) progress: &'a mut ProgressWatch,
    /// The part of the run that is timed; `None`: all of it.
    pub(crate) part: Option<&'a mut Part>,
    /// The number of instructions at which the run pauses, and the cycle.
    pub(crate) pause_at: u64,
    pub(crate) pause_at_cycle: Cycle,
}

impl<E: Engine> Driver<'_, E> {
    /// Runs to the end, or until `watch` says to stop. Returns `None` when it has paused: at the end of the first block with
    /// which `pause_at` instructions are executed. A run that continues from there does what it would have done without the
    /// pause.
    pub(crate) fn run<T: Trace + ?Sized>(
        &mut self,
        watch: &mut dyn FnMut(Progress) -> Control,
        trace: &mut T,
    ) -> Option<Finish> {
        let mut blocks = if self.timing.blocks == 0 { self.blocks_left() } else { self.timing.blocks };
        let finish = loop {
            if self.guest.instructions() >= self.pause_at || self.phase_is_over() || self.recording_is_over() {
                break None;
            }
            let finish = match self.timing.paused.take() {
                Some(running) => self.continue_quantum(running, &mut blocks, trace),
                None => self.next_turn(&mut blocks, trace),
            };
            let finish = finish.or_else(|| (blocks == 0).then(|| self.stop(watch)).flatten());
            if finish.is_some() {
                break finish;
            }
            if blocks == 0 {
                blocks = self.blocks_left();
            }
        };
        self.timing.blocks = blocks;
        finish
    }

    /// Runs the core with the lowest clock for a quantum, or all cores for an epoch. `Some`: the run is over.
    fn next_turn<T: Trace + ?Sized>(&mut self, blocks: &mut u64, trace: &mut T) -> Option<Finish> {
        self.follow_cpus();
        let Some(quantum) = self.next_quantum() else { return self.nobody_ready(blocks) };
        let now = self.timing.clocks[quantum.index];
        if now >= self.pause_at_cycle {
            self.part.iter_mut().for_each(|part| part.reached());
            return None;
        }
        self.reach(now);
        if self.progress.is_open() || now >= self.timing.machine.core().cycle_at(self.progress.due_ns()) {
            let finish = self.look_for_progress(now);
            if finish.is_some() {
                return finish;
            }
        }
        if self.spins(quantum.index) {
            self.spun(quantum.index);
            *blocks -= 1;
            return None;
        }
        match self.run_parallel(quantum, blocks, trace) {
            Some(finish) => finish,
            None => {
                self.enter(quantum.index);
                self.run_quantum(quantum, blocks, trace)
            }
        }
    }

    /// Looks whether the run makes progress. `Some`: it does not, and is over.
    #[cold]
    fn look_for_progress(&mut self, now: Cycle) -> Option<Finish> {
        let spinning: Vec<u32> = self.timing.spinning.iter().map(Spinning::thread).collect();
        let now_ns = self.timing.machine.core().ns_at(now);
        self.progress.look(self.guest, now_ns, &spinning).map(Finish::NoProgress)
    }

    /// Returns how many blocks can run until the limit or the watcher must be checked: each has at most [`MAX_BLOCK`] instructions.
    fn blocks_left(&self) -> u64 {
        let left = self.options.max_instructions.map_or(u64::MAX, |max| max.saturating_sub(self.guest.instructions()));
        (left / MAX_BLOCK as u64).clamp(1, WATCH_BLOCKS)
    }

    /// Returns whether the run must stop now.
    fn stop(&self, watch: &mut dyn FnMut(Progress) -> Control) -> Option<Finish> {
        let progress = Progress {
            instructions: self.guest.instructions(),
            skipped: self.guest.skipped_instructions(),
            cycles: self.timing.now(),
            now_ns: self.guest.now_ns(),
        };
        if self.options.max_instructions.is_some_and(|max| progress.instructions >= max) {
            return Some(Finish::Limit);
        }
        (watch(progress) == Control::Stop).then_some(Finish::Stopped)
    }

    /// Removes CPUs without a ready thread from the schedule and adds those that have one now.
    pub(crate) fn follow_cpus(&mut self) {
        if self.guest.cpu_changes() == self.timing.changes {
            return;
        }
        self.review_spinning();
        self.timing.changes = self.guest.cpu_changes();
        let wake = self.options.spec.assumptions.thread_wake;
        for (index, state) in self.guest.cpus().enumerate() {
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

    /// Returns the quantum of the core with the lowest clock.
    pub(crate) fn next_quantum(&self) -> Option<Quantum> {
        let (index, second) = self.timing.clocks.first_two()?;
        let end = second.saturating_add(self.options.quantum).min(self.pause_at_cycle);
        Some(Quantum { index, in_order: second.min(self.pause_at_cycle), end })
    }

    /// Makes CPU number `index` the active one.
    pub(crate) fn enter(&mut self, index: usize) {
        if index != self.timing.machine.active {
            self.is_unfit(Unfit::Moves);
        }
        let (guest, options) = (&*self.guest, self.options);
        let Timing { machine, clocks, sectors, .. } = &mut *self.timing;
        let resumes = clocks[machine.active] != NEVER && !matches!(machine.core().spin, Spin::Spins(_));
        machine.activate(index, resumes, || {
            let place = guest.cpus().nth(index).expect("a CPU of the machine").place;
            let pipeline = Pipeline::new(&options.spec, place.cpu - options.spec.topology.first_core);
            Core::new(pipeline, guest, options, sectors)
        });
        let core = machine.core_mut();
        core.sleep_until(clocks[index]);
        self.guest.enter(index, core.now_ns());
        if let Some(ns) = core.ahead.take_since() {
            self.guest.has_run_since(ns);
        }
        self.guest.hold(false);
        let (core, chip) = machine.running();
        core.switched(self.guest, self.options.follow, chip);
        self.count_current_thread();
        self.set_clock();
    }

    /// Lets time pass until a thread is ready.
    fn nobody_ready(&mut self, blocks: &mut u64) -> Option<Finish> {
        match self.guest.wait() {
            Step::Ended => return Some(self.ended()),
            Step::Sleep { until_ns } => self.guest.wake_due(until_ns),
            _ => {
                self.guest.wake_due(self.guest.now_ns());
                *blocks = 0;
            }
        }
        None
    }

    pub(crate) fn ended(&self) -> Finish {
        self.guest.end().map_or(Finish::Stopped, |end| Finish::Ended(end.clone()))
    }

    /// Runs the active core until its quantum ends, or no block is left. `Some`: the run is over.
    fn run_quantum<T: Trace + ?Sized>(&mut self, quantum: Quantum, blocks: &mut u64, trace: &mut T) -> Option<Finish> {
        let (core, chip) = self.timing.machine.running();
        core.ahead.stuck = false;
        if !core.ahead.is_empty() && !core.catch_up_to(quantum.end, chip) {
            *blocks -= 1;
            self.timing.clocks.set(self.timing.machine.active, self.timing.now());
            return None;
        }
        let running = Running {
            quantum,
            patience: EXCLUSIVE_BLOCKS,
            snoops: self.timing.machine.chip.snoops(),
            watched: matches!(self.timing.machine.core().spin, Spin::Watched(_)),
            others_spin: !self.timing.spinning.is_empty(),
            follows_next: false,
            samples_events: self.samples_events(),
        };
        self.continue_quantum(running, blocks, trace)
    }

    /// Continues a quantum that has begun. It may pause the run.
    fn continue_quantum<T: Trace + ?Sized>(
        &mut self,
        mut running: Running,
        blocks: &mut u64,
        trace: &mut T,
    ) -> Option<Finish> {
        loop {
            let share = self.pause_at.saturating_sub(self.guest.instructions()) / MAX_BLOCK as u64;
            let end = blocks.saturating_sub(share.max(1));
            match self.run_blocks(&mut running, blocks, end, trace) {
                Stopped::Run(finish) => return Some(finish),
                Stopped::Over | Stopped::Phase => break,
                Stopped::Share if *blocks == 0 => break,
                Stopped::Share if self.guest.instructions() < self.pause_at => {}
                Stopped::Share => {
                    self.timing.paused = Some(running);
                    return None;
                }
            }
        }
        if let Some(now) = self.leave_quantum() {
            let core = self.timing.machine.core_mut();
            if trace.may_skip_iterations() && self.options.spin == SpinLoops::Fast && !core.untimed {
                core.spin.quantum_ended(self.guest.cpu(), now, &core.known_loops);
            }
        }
        None
    }

    /// Sets the clock of the active core, whose quantum has ended. Returns its time, unless its thread waits or spins.
    fn leave_quantum(&mut self) -> Option<Cycle> {
        self.set_clock();
        let t = &mut *self.timing;
        let (active, core) = (t.machine.active, t.machine.core());
        if t.clocks[active] == NEVER || matches!(core.spin, Spin::Spins(_)) {
            return None;
        }
        let now = core.pipeline.now();
        t.clocks.set(active, now);
        Some(now)
    }

    /// Ends the quantum in which the run is paused, if there is one.
    pub(crate) fn end_paused_quantum(&mut self) {
        if self.timing.paused.take().is_some() {
            self.leave_quantum();
        }
    }

    /// Runs the active core until its quantum is over or `blocks` has fallen to `end`.
    fn run_blocks<T: Trace + ?Sized>(
        &mut self,
        running: &mut Running,
        blocks: &mut u64,
        end: u64,
        trace: &mut T,
    ) -> Stopped {
        let Running { watched, others_spin, samples_events, .. } = *running;
        let followed = watched || samples_events;
        while *blocks > end {
            if let Some(sampling) = trace.sampling() {
                match self.follow_blocks(running, blocks, end, sampling) {
                    FollowedTo::End => return Stopped::Over,
                    FollowedTo::Pause => break,
                    FollowedTo::Block => {}
                }
            }
            if trace.records() && matches!(self.record_blocks(running, blocks, end), FollowedTo::End) {
                return Stopped::Over;
            }
            if *blocks <= end {
                break;
            }
            *blocks -= 1;
            let (before, mut waits) = (self.timing.now(), false);
            match self.guest.step(self.code) {
                Step::Ran { block, executed } => {
                    if self.progress.is_open() {
                        self.progress.ran(self.guest, self.code.block(block), executed);
                    }
                    let is_over = self.ran(block, executed, watched, trace);
                    let is_brief = trace.sampling().is_some_and(|sampling| sampling.is_between_windows());
                    if followed && self.follow_block(samples_events, block, executed, is_brief) {
                        trace.sampling().into_iter().for_each(|sampling| self.time_spin_loop(sampling));
                        return Stopped::Over;
                    }
                    if is_over {
                        return Stopped::Phase;
                    }
                    waits = trace.sampling().is_some_and(|sampling| sampling.waits()) && self.is_at_known_loop();
                }
                Step::Switched => {
                    self.switched();
                    if samples_events || self.samples_events() {
                        return Stopped::Over;
                    }
                }
                Step::CodeChanged => {
                    self.forget_blocks();
                    trace.sampling().into_iter().for_each(|sampling| sampling.forget_costs(self.guest.pid()));
                }
                Step::Ended => return Stopped::Run(self.ended()),
                Step::Synchronises | Step::Idle | Step::Sleep { .. } | Step::Waiting => return Stopped::Over,
                // Only functional runs have stops.
                Step::Symbols | Step::Stopped => return Stopped::Over,
            }
            self.keep_time(running, *blocks);
            if others_spin && self.guest.memory().has_written() {
                self.watched_written(before);
                return Stopped::Over;
            }
            if self.is_over(running) || waits {
                return Stopped::Over;
            }
        }
        Stopped::Share
    }

    /// Samples a block that ran, and looks whether it is part of a spin loop. Returns whether the quantum is over.
    #[cold]
    fn follow_block(&mut self, samples_events: bool, id: BlockId, executed: usize, is_brief: bool) -> bool {
        let changed = samples_events && self.sample_events(id, executed);
        self.watch_block(id, executed, is_brief) || changed
    }

    /// Returns whether the active core, whose loop waits for another thread, is where iterations of a known loop begin.
    #[cold]
    fn is_at_known_loop(&self) -> bool {
        let core = self.timing.machine.core();
        self.options.spin == SpinLoops::Fast && core.known_loops.begin_at(self.guest.cpu().pc)
    }

    /// Times a block that ran. Returns whether the phase of the run is over.
    #[inline(always)]
    fn ran<T: Trace + ?Sized>(&mut self, id: BlockId, executed: usize, watched: bool, trace: &mut T) -> bool {
        let index = id.0 as usize;
        let core = self.timing.machine.core_mut();
        if core.untimed {
            core.untimed_instructions += executed as u64;
            return false;
        }
        if core.called_kernel {
            self.back_from_kernel();
        }
        let (core, chip) = self.timing.machine.running();
        if core.blocks.get(index).is_none_or(Option::is_none) {
            core.bind(self.guest, id, self.code.block(id), &self.options.spec, &mut self.timing.known);
        }
        let block = core.blocks[index].as_mut().expect("just bound");
        core.calls.enters(block, core.pipeline.now());
        if watched {
            trace.run_watched(&mut core.pipeline, chip, block, executed, self.guest);
        } else {
            trace.run(&mut core.pipeline, chip, block, executed, self.guest);
        }
        if trace.records()
            && let Some(records) = &mut core.records
        {
            records.push(id, executed, self.guest.cpu());
        }
        let subnormals = self.guest.cpu().subnormals();
        if !subnormals.is_empty() {
            core.pipeline.subnormals(block, subnormals);
        }
        block.count(executed);
        core.calls.leaves(block, executed, self.guest.cpu().pc);
        let (start, marked, enters_kernel) = (block.start, block.marked, block.enters_kernel);
        if enters_kernel {
            block.charge_kernel(executed, self.options.spec.assumptions.system_call);
        }
        if block.controls {
            self.controlled(enters_kernel);
        }
        marked && self.marked(start + 4 * (executed.max(1) as u64 - 1))
    }

    /// Ends the run: everything in flight completes. Returns all counters.
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
