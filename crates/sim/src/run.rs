//! One run of one program.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use fxscope_aarch64::{Engine, Interpreter, StaticBlock};
use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};
use fxscope_linux::guest::{FUNCTIONAL_NS, PID};
use fxscope_linux::pages::PageUse;
use fxscope_linux::perf::PmuEvent;
use fxscope_linux::{
    BarrierPlatform, Cache, CacheKind, Code, CpuPlace, End, Guest, MemoryNode, Platform, TerminalWatch, Tick,
};
use fxscope_machine::Spec;
use fxscope_memory::NEVER;
use fxscope_sampling::{Plan, Precision};

use crate::accounts;
use crate::calls::Calls as FunctionCalls;
use crate::hotspots::HotSpot;
use crate::intervals::Interval;
use crate::jobs::Merged;
use crate::mpi::{Calls, Follower, OpenCall, Recorder};
use crate::observer::{BlockObserver, Observed};
use crate::pages::page_sizes;
use crate::parallel::HostThreads;
use crate::part::{Following, Part, PartPlan, PartSummary, Phase};
use crate::progress::{NoProgress, ProgressWatch};
use crate::region::{self, Counted, Counts, Region, Regions, Snapshot, Totals, Unpaired};
use crate::sampling::{SampleSummary, Sampling};
use crate::sectors;
use crate::stacks::CallStacks;
use crate::timing::{Driver, Timing};
use crate::trace::{Trace, Window};

/// Default quantum: cycles that a core may run ahead of the next lowest clock. Long enough that switching cores costs
/// little; synchronising operations are in simulated-time order whatever it is.
pub const QUANTUM: Cycle = 100;

/// What a run models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Results and instruction counts only; each instruction takes one nanosecond.
    Functional,
    /// The full model.
    Timing,
}

/// Which processes are timed and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Follow {
    /// All, together.
    All,
    /// The first one. The others are not timed: their instructions take as long as in functional mode.
    First,
}

/// How spin loops are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpinLoops {
    /// Identical iterations are skipped and counted together.
    Fast,
    /// Each iteration is simulated.
    Exact,
}

/// How to run.
pub struct Options {
    /// The machine.
    pub spec: Arc<Spec>,
    /// What to model.
    pub mode: Mode,
    /// Stop after this many instructions, at the end of a block.
    pub max_instructions: Option<u64>,
    /// Cycles that a core may run ahead of the next lowest clock ([`QUANTUM`]).
    pub quantum: Cycle,
    /// Host threads that simulate CMGs in parallel in timing mode; `None`: one simulates all cores.
    pub host_threads: Option<HostThreads>,
    /// Which processes take part in timing mode.
    pub follow: Follow,
    /// How spin loops are simulated in timing mode.
    pub spin: SpinLoops,
    /// Count by intervals of this many ns, too, in timing mode.
    pub interval_ns: Option<u64>,
    /// Sample the call stacks of threads at intervals of this many ns, in timing mode.
    pub stack_ns: Option<u64>,
    /// Count by intervals in the region of this name only.
    pub interval_region: Option<String>,
    /// In timing mode, time windows of the run only, and estimate its counts from them.
    pub sample: Option<Plan>,
    /// How accurately a plan with `auto` is to find the time.
    pub precision: Precision,
    /// In timing mode, the part of the run that is timed, or sampled; `None`: all of it.
    pub part: Option<PartPlan>,
    /// End the run when nothing has changed for this many ns of simulated time ([`NoProgress`]); `None`: never.
    pub no_progress_ns: Option<u64>,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Instructions so far.
    pub instructions: u64,
    /// Those of them that were counted without being executed: skipped iterations of spin loops.
    pub skipped: u64,
    /// Simulated cycles.
    pub cycles: Cycle,
    /// Simulated time, ns.
    pub now_ns: u64,
}

/// The answer of a run's watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Continue.
    Continue,
    /// Stop now. The part that was simulated is reported.
    Stop,
}

/// Why a run ended.
#[derive(Clone, Debug)]
pub enum Finish {
    /// The program ended.
    Ended(End),
    /// The instruction limit was reached, or the end of the part after which the run was to stop ([`PartPlan::stops`]).
    Limit,
    /// The watcher stopped it.
    Stopped,
    /// Nothing that its threads do can change anything.
    NoProgress(NoProgress),
}

/// The outcome of a run.
pub struct Outcome {
    /// Why it ended.
    pub finish: Finish,
    /// Simulated time, ns.
    pub now_ns: u64,
    /// Regions, the whole run first.
    pub regions: Vec<Region>,
    /// Intervals of time in order, if they were requested.
    pub intervals: Vec<Interval>,
    /// Call stacks, if they were requested.
    pub stacks: CallStacks,
    /// Calls of functions (timing mode).
    pub calls: FunctionCalls,
    /// Calls of MPI. In functional mode, their times are those of the instructions of their process.
    pub mpi: Calls,
    /// The calls of MPI in which threads were at the end, by the thread's number in the record.
    pub open_calls: BTreeMap<u32, OpenCall>,
    /// Unpaired region markers.
    pub unpaired: Vec<Unpaired>,
    /// Instructions by file and place with their cycles (timing mode).
    pub hot: Vec<HotSpot>,
    /// Paths of the files that code was mapped from, as programs see them, the program first (timing mode).
    pub files: Vec<Vec<u8>>,
    /// The pages that the program had, by segment, size and node.
    pub pages: Vec<PageUse>,
    /// Instructions that were timed in parallel epochs ([`Options::host_threads`]).
    pub parallel_instructions: u64,
    /// Timing classes without a row in the machine's description, with their number of static instructions.
    pub unknown_classes: Vec<(String, usize)>,
    /// How the run was sampled, if it was.
    pub sample: Option<SampleSummary>,
    /// Which part of the run was timed, if not all of it.
    pub part: Option<PartSummary>,
}

/// A program on a modelled machine. Its code is executed by an engine of type `E`.
pub struct Simulation<E: Engine = Interpreter> {
    pub(crate) guest: Guest,
    pub(crate) code: Code<E>,
    pub(crate) options: Options,
    pub(crate) timing: Option<Timing>,
    pub(crate) sampling: Option<Sampling>,
    pub(crate) part: Option<Part>,
    pub(crate) regions: Regions,
    /// In functional runs, the number of instructions at which the limit is checked and the watcher is called; 0: to be set.
    pub(crate) slice_end: u64,
    pub(crate) progress: ProgressWatch,
    /// The calls of MPI of a functional run.
    pub(crate) mpi: Follower,
}

/// Returns the machine as Linux presents it to a program.
#[must_use]
pub fn platform(spec: &Spec, memory_bytes: u64) -> Platform {
    let (id, t) = (&spec.identity, &spec.topology);
    let assistants = t.assistant_cmgs.iter().zip(0..);
    let assistants = assistants.map(|(&cmg, cpu)| CpuPlace { cpu, node: t.first_node + cmg as u32 }).collect();
    let cpus = (0..t.cmgs * t.cores_per_cmg)
        .map(|i| CpuPlace { cpu: t.first_core + i, node: t.first_node + i / t.cores_per_cmg })
        .collect();
    let tiers = spec.memory_tiers.tiers().into_iter().zip(t.first_node + t.cmgs..);
    let tiers =
        tiers.map(|(tier, node)| MemoryNode { node, bytes: tier.bytes, distance: tier.distance as u32 }).collect();
    Platform {
        vector_bytes: spec.clock.vector_bits as usize / 8,
        cpus,
        assistants,
        tiers,
        node_distances: t.node_distances.map(|distance| distance as u32),
        caches: caches(spec),
        core_hz: spec.clock.core_hz,
        counter_hz: id.counter_hz,
        id: fxscope_aarch64::cpu::IdRegisters {
            midr: id.midr,
            mpidr: 0x8000_0000,
            ctr: id.ctr,
            dczid: id.dczid,
            isar0: id.isar0,
            isar1: id.isar1,
            pfr0: id.pfr0,
            zfr0: id.zfr0,
            reserved: 0,
        },
        hpc: sectors::registers(spec),
        barrier: Some(BarrierPlatform {
            blades: spec.hardware_barrier.blades,
            cores: spec.hardware_barrier.cores,
            latency_ns: spec.hardware_barrier.latency * 1_000_000_000 / spec.clock.core_hz,
        }),
        pmu: accounts::pmu_events(spec).map(|(number, event)| PmuEvent { number, name: event.name.clone() }).collect(),
        hwcap: id.hwcap,
        hwcap2: id.hwcap2,
        page_bytes: fxscope_guestmem::PAGE,
        huge_page_bytes: vec![spec.pages.large],
        page_sizes: page_sizes(spec, &[]),
        memory_bytes,
    }
}

/// Returns the caches that Linux describes to a program: their sizes do not depend on sectors.
fn caches(spec: &Spec) -> Vec<Cache> {
    let cache = |level, kind, cache: &fxscope_machine::spec::Cache| Cache {
        level,
        kind,
        bytes: cache.bytes,
        ways: cache.ways,
        kept_ways: 0,
        line_bytes: cache.line_bytes,
        shared_by_node: false,
    };
    vec![
        cache(1, CacheKind::Data, &spec.l1d),
        cache(1, CacheKind::Instruction, &spec.l1i),
        Cache { kept_ways: spec.l2.reserved_ways, shared_by_node: true, ..cache(2, CacheKind::Unified, &spec.l2) },
    ]
}

impl<E: Engine> Simulation<E> {
    /// Prepares a run of `guest`.
    #[must_use]
    pub fn new(guest: Guest, options: Options) -> Simulation<E> {
        let mut guest = guest;
        let is_timed = options.mode == Mode::Timing;
        let mut part = options.part.as_ref().filter(|_| is_timed).map(Part::new);
        let phase = part.as_ref().map(Part::phase);
        let mut timing = (is_timed && phase != Some(Phase::Skipped)).then(|| Timing::new(&mut guest, &options));
        let progress = ProgressWatch::new(options.no_progress_ns);
        let is_outside = phase.is_some_and(|phase| phase != Phase::Timed);
        let recorder = if is_outside { Recorder::outside() } else { Recorder::default() };
        let (mut code, mut mpi) = (Code::of(&guest), Follower::default());
        match &mut timing {
            Some(timing) => {
                timing.mpi = recorder;
                if phase == Some(Phase::Timed) {
                    timing.intervals.begin_at(0, 0);
                    timing.stacks.begin_at(0);
                }
            }
            None => {
                mpi = Follower::restored(recorder);
                mpi.begins(&guest, &mut code);
                part.iter_mut().for_each(|part| part.learn(&guest, &mut code));
            }
        }
        let sampling = options.sample.as_ref().filter(|_| is_timed);
        let sampling = sampling.map(|plan| Sampling::new(plan, options.precision, options.spec.topology.cores_per_cmg));
        let regions = if part.is_some() { Regions::of_part() } else { Regions::default() };
        Simulation { code, guest, options, timing, sampling, part, regions, slice_end: 0, progress, mpi }
    }

    /// Has this engine execute the code of the first process, and engines like it that of others. Nothing may have run.
    pub fn use_engine(&mut self, engine: E) {
        self.code.use_engine(engine);
    }

    /// Assigns data to cache sectors by address. Without timing it has no effect.
    pub fn assign_sectors(&mut self, data: Vec<(Range<u64>, u8)>) {
        match (&mut self.timing, &mut self.part) {
            (Some(timing), _) => timing.assign_sectors(data),
            (None, Some(part)) => part.assign_sectors(data),
            (None, None) => {}
        }
    }

    /// Returns the guest.
    #[must_use]
    pub fn guest(&self) -> &Guest {
        &self.guest
    }

    /// Returns the guest, to be set up before it runs.
    pub fn guest_mut(&mut self) -> &mut Guest {
        &mut self.guest
    }

    /// Reports to `watch` what programs do at the host's terminal.
    pub fn watch_terminal(&mut self, watch: TerminalWatch) {
        self.guest.watch_terminal(watch);
    }

    /// Runs to the end. `watch` is called from time to time and may stop the run.
    pub fn run(&mut self, watch: &mut dyn FnMut(Progress) -> Control) -> Outcome {
        self.run_with(watch, &mut ())
    }

    /// The same, with a trace of `window`, which functional mode never reaches.
    pub fn run_traced(&mut self, watch: &mut dyn FnMut(Progress) -> Control, window: &mut Window<'_>) -> Outcome {
        self.run_with::<dyn Trace>(watch, window)
    }

    /// The same, with `observer` called for each timed block.
    pub fn run_observed(
        &mut self,
        watch: &mut dyn FnMut(Progress) -> Control,
        observer: &mut dyn BlockObserver,
    ) -> Outcome {
        self.run_with::<dyn Trace>(watch, &mut Observed(observer))
    }

    fn run_with<T: Trace + ?Sized>(&mut self, watch: &mut dyn FnMut(Progress) -> Control, trace: &mut T) -> Outcome {
        let finish = self.advance_with(watch, trace);
        self.conclude(finish)
    }

    /// Runs to the end, or until `watch` stops it. It can be called again.
    pub fn advance(&mut self, watch: &mut dyn FnMut(Progress) -> Control) -> Finish {
        self.advance_with(watch, &mut ())
    }

    /// Runs as [`Simulation::advance`] does, but pauses once `instructions` instructions are executed: at the end of a block
    /// or, in functional mode, of a step of the clock. Returns `None` when it has paused. A run that continues from there does
    /// what it would have done without the pause.
    pub fn advance_to(&mut self, instructions: u64, watch: &mut dyn FnMut(Progress) -> Control) -> Option<Finish> {
        self.advance_up_to(instructions, watch, &mut ())
    }

    fn advance_with<T: Trace + ?Sized>(&mut self, watch: &mut dyn FnMut(Progress) -> Control, trace: &mut T) -> Finish {
        self.advance_up_to(u64::MAX, watch, trace).unwrap_or(Finish::Stopped)
    }

    fn advance_up_to<T: Trace + ?Sized>(
        &mut self,
        instructions: u64,
        watch: &mut dyn FnMut(Progress) -> Control,
        trace: &mut T,
    ) -> Option<Finish> {
        loop {
            let finish = if self.is_modelled() {
                self.run_modelled(instructions, watch, trace)
            } else {
                self.run_functional(instructions, watch)
            };
            if finish.is_some() || !self.phase_is_over() {
                return finish;
            }
            let finish = self.switch_phase();
            if finish.is_some() {
                return finish;
            }
        }
    }

    /// Times or follows blocks. `None`: the run has paused, or the phase is over.
    fn run_modelled<T: Trace + ?Sized>(
        &mut self,
        pause_at: u64,
        watch: &mut dyn FnMut(Progress) -> Control,
        trace: &mut T,
    ) -> Option<Finish> {
        if self.is_followed() {
            return self.driver(pause_at)?.run::<dyn Trace>(watch, &mut Following(trace));
        }
        let mut sampling = self.sampling.take();
        let finish = self.driver(pause_at).and_then(|mut driver| match &mut sampling {
            None => driver.run(watch, trace),
            Some(sampling) => driver.run::<dyn Trace>(watch, sampling),
        });
        self.sampling = sampling;
        finish
    }

    /// Returns the driver of the run in timing mode, up to `pause_at` instructions.
    pub(crate) fn driver(&mut self, pause_at: u64) -> Option<Driver<'_, E>> {
        let timing = self.timing.as_mut()?;
        let part = self.part.as_mut();
        let (end, end_ns) = part.as_ref().map_or((u64::MAX, u64::MAX), |part| (part.end_instructions(), part.end_ns()));
        let pause_at_cycle = if end_ns == u64::MAX { NEVER } else { timing.machine.core().cycle_at(end_ns) };
        Some(Driver {
            guest: &mut self.guest,
            code: &mut self.code,
            options: &self.options,
            regions: &mut self.regions,
            timing,
            progress: &mut self.progress,
            part,
            pause_at: pause_at.min(end),
            pause_at_cycle,
        })
    }

    /// Ends the run, which is over for the reason `finish`. Returns its outcome.
    pub fn conclude(&mut self, finish: Finish) -> Outcome {
        self.conclude_with(finish, None)
    }

    /// The same; if it was timed in intervals, `merged` has their counts.
    pub(crate) fn conclude_with(&mut self, finish: Finish, merged: Option<&Merged>) -> Outcome {
        let (totals, now_ns) = match (merged, &mut self.timing) {
            (Some(merged), Some(timing)) => (merged.totals(), timing.take_counts_of(merged)),
            _ => (self.final_totals(), self.guest.now_ns()),
        };
        let in_region = self.options.interval_region.as_ref().map(|name| self.regions.so_far(name, &totals));
        let counted = in_region.unwrap_or_else(|| region::sum(&totals));
        let intervals = self.timing.as_mut().map_or_else(Vec::new, |timing| timing.intervals(now_ns, &counted));
        let stacks = self.timing.as_mut().map_or_else(CallStacks::default, Timing::stacks);
        let calls = self.timing.as_mut().map_or_else(FunctionCalls::default, Timing::calls);
        // Behind a part that was timed, calls are followed as in functional mode.
        let open_calls = match &self.timing {
            Some(timing) if self.is_modelled() => timing.mpi.open_calls(),
            _ => self.mpi.open_calls(),
        };
        let mpi = match &mut self.timing {
            Some(timing) => std::mem::take(&mut timing.mpi).finish(|_| now_ns),
            None => std::mem::take(&mut self.mpi).finish(&self.guest),
        };
        let is_timed = self.part.as_ref().is_none_or(|part| part.phase() == Phase::Timed);
        let timing = self.timing.as_ref();
        let mut unpaired = self.regions.unpaired();
        if self.is_behind_part() {
            // What is left behind the part is not known.
            unpaired.retain(|unpaired| !matches!(unpaired, Unpaired::NeverLeft(_)));
        }
        let mut regions = std::mem::take(&mut self.regions).finish(&Snapshot { totals, ns: now_ns });
        // How much of it is in a part is not known.
        let whole = timing.filter(|_| self.part.is_none());
        let spun = whole.map_or(0, |timing| timing.spun);
        let elapsed = whole.map(|timing| timing.machine.core().cycle_at(now_ns));
        let sample = self.sampling.as_mut().map(|sampling| {
            sampling.finish();
            let followed = timing.map_or_else(Signals::default, |timing| timing.machine.followed());
            sampling.complete(&mut regions, followed, spun, elapsed)
        });
        Outcome {
            finish,
            mpi,
            open_calls,
            now_ns,
            unpaired,
            regions,
            sample,
            intervals,
            stacks,
            calls,
            part: self.part.as_mut().map(|part| part.summary(self.guest.instructions())),
            hot: timing.map_or_else(Vec::new, |timing| match merged {
                Some(merged) => timing.hot_spots_of(merged),
                None => timing.hot_spots(self.sampling.as_ref(), is_timed),
            }),
            files: timing.map_or_else(Vec::new, Timing::files),
            pages: self.guest.page_use(),
            parallel_instructions: timing.map_or(0, |timing| timing.parallel_instructions),
            unknown_classes: timing.map_or_else(Vec::new, Timing::unknown_classes),
        }
    }

    /// Ends what is in flight. Returns the counters of all threads.
    fn final_totals(&mut self) -> Totals {
        let mut totals = if self.is_modelled() {
            self.driver(u64::MAX).map_or_else(Totals::new, |mut driver| driver.finish())
        } else if let Some(part) = &self.part {
            part.counted(Totals::new())
        } else {
            self.nominal_totals()
        };
        // Even if nothing was timed, the program has had a thread.
        let cpu = self.guest.cpu_number();
        totals.entry(0).or_insert_with(|| Counted { cpu, counts: Counts::default() });
        totals
    }

    fn run_functional(&mut self, pause_at: u64, watch: &mut dyn FnMut(Progress) -> Control) -> Option<Finish> {
        const SLICE: u64 = 1 << 22;
        loop {
            if self.slice_end == 0 {
                let done = self.guest.instructions();
                let left = self.options.max_instructions.map_or(SLICE, |max| SLICE.min(max.saturating_sub(done)));
                self.slice_end = done + left;
            }
            while self.guest.end().is_none() && self.guest.instructions() < self.slice_end {
                if self.guest.instructions() >= pause_at || self.phase_is_over() {
                    return None;
                }
                match self.run_tick() {
                    Tick::Over => {}
                    Tick::Waiting => break,
                    Tick::Symbols => {
                        self.mpi.learn(&self.guest, &mut self.code);
                        self.part.iter_mut().for_each(|part| part.learn(&self.guest, &mut self.code));
                    }
                    Tick::Stopped => {
                        if let Some(part) = &mut self.part {
                            part.stopped(&mut self.guest, &mut self.code, &mut self.regions);
                        }
                        self.mpi.arrives(&mut self.guest, &mut self.code);
                    }
                }
                if let Some(found) = self.look_for_progress() {
                    return Some(Finish::NoProgress(found));
                }
            }
            self.slice_end = 0;
            if let Some(end) = self.guest.end() {
                return Some(Finish::Ended(end.clone()));
            }
            let now_ns = self.guest.now_ns();
            let (instructions, skipped) = (self.guest.instructions(), self.guest.skipped_instructions());
            let progress = Progress { instructions, skipped, cycles: 0, now_ns };
            if self.options.max_instructions.is_some_and(|max| progress.instructions >= max) {
                return Some(Finish::Limit);
            }
            if watch(progress) == Control::Stop {
                return Some(Finish::Stopped);
            }
        }
    }

    /// Runs for a step of the clock of functional mode.
    fn run_tick(&mut self) -> Tick {
        let Simulation { guest, code, progress, slice_end, part, .. } = self;
        let stop = part.as_ref().map_or(*slice_end, |part| part.end_instructions().min(*slice_end));
        if progress.is_open() {
            let mut observer = |guest: &Guest, block: &StaticBlock, executed| progress.ran(guest, block, executed);
            guest.run_tick_observed(code, stop, Some(&mut observer))
        } else {
            guest.run_tick(code, stop)
        }
    }

    fn look_for_progress(&mut self) -> Option<NoProgress> {
        let now_ns = self.guest.now_ns();
        let due = self.progress.is_open() || now_ns >= self.progress.due_ns();
        if due { self.progress.look(&mut self.guest, now_ns, &[]) } else { None }
    }

    /// Returns the counts of functional mode: the instructions of each process, and the cycles of the clock that all share, which
    /// instructions of every process advance.
    fn nominal_totals(&self) -> Totals {
        let (ns, core_hz) = (self.guest.instructions() * FUNCTIONAL_NS, self.options.spec.clock.core_hz);
        let cycles = (u128::from(ns) * u128::from(core_hz) / 1_000_000_000) as u64;
        let counted = |(pid, instructions): (u32, u64)| {
            let mut signals = Signals::default();
            signals.set(Signal::InstRetired, instructions);
            signals.set(Signal::CpuCycles, cycles);
            (pid - PID, Counted { cpu: self.guest.cpu_number(), counts: Counts { signals, ..Counts::default() } })
        };
        self.guest.instructions_by_process().into_iter().filter(|&(pid, n)| n > 0 || pid == PID).map(counted).collect()
    }
}
