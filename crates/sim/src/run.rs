//! One run of one program.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use fxscope_aarch64::block::MAX_BLOCK;
use fxscope_base::{Cycle, Signal, Signals};
use fxscope_linux::pages::{MemoryWork, PageUse};
use fxscope_linux::process::{FUNCTIONAL_NS, PID};
use fxscope_linux::{BarrierPlatform, Cache, CacheKind, CpuPlace, End, Platform, Process, Step};
use fxscope_machine::Spec;
use fxscope_memory::PrefetchRegisters;
use fxscope_pipeline::{Pipeline, ResolvedBlock, resolve_block};

use crate::hot::{HotSpot, hot_spots};
use crate::origin::Origins;
use crate::pages::{cycles, page_ranges, page_sizes};
use crate::region::{Region, Regions};
use crate::sectors::{self, SectorWays};
use crate::trace::{Trace, Window};

/// What a run is to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Results and instruction counts only; time is one nanosecond for each instruction.
    Functional,
    /// The full model.
    Timing,
}

/// Which processes are timed and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// All, together.
    All,
    /// The first one. The others run untimed: each instruction of theirs takes as long as in functional mode.
    First,
}

/// How to run.
pub struct Options {
    /// The machine.
    pub spec: Arc<Spec>,
    /// What to model.
    pub mode: Mode,
    /// Stop after this many instructions (a block is not cut short).
    pub max_instructions: Option<u64>,
    /// The core the program runs on, counted from 0 within its CMG.
    pub core: u32,
    /// Which processes take part in timing mode.
    pub follow: Follow,
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Instructions executed.
    pub instructions: u64,
    /// Simulated cycles.
    pub cycles: Cycle,
    /// Simulated time, ns.
    pub now_ns: u64,
}

/// What whoever watches a run wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// Stop now; what has been simulated is reported.
    Stop,
}

/// Why a run is over.
#[derive(Clone, Debug)]
pub enum Finish {
    /// The program ended.
    Ended(End),
    /// The instruction limit was reached.
    Limit,
    /// Whoever watches stopped it.
    Stopped,
}

/// What a run gave.
pub struct Outcome {
    /// Why it is over.
    pub finish: Finish,
    /// Simulated time, ns.
    pub now_ns: u64,
    /// Regions, the whole run first.
    pub regions: Vec<Region>,
    /// Instructions by file and place with their cycles (timing mode).
    pub hot: Vec<HotSpot>,
    /// Paths, as programs see them, of the files that code was mapped from, the program's own first (timing mode).
    pub files: Vec<Vec<u8>>,
    /// The pages that the program had, by segment, size and node.
    pub pages: Vec<PageUse>,
    /// Timing classes the machine has no row for, with the number of static instructions that use each.
    pub unknown_classes: Vec<(&'static str, usize)>,
}

/// Blocks between two looks at the limit and at whoever watches.
const WATCH_BLOCKS: u32 = 1 << 16;
/// Blocks between two updates of the program's clock.
const CLOCK_BLOCKS: u32 = 8;

/// Names of the functions by which programs mark regions.
const REGION_BEGIN: &str = "fxscope_roi_begin";
const REGION_END: &str = "fxscope_roi_end";
/// Longest region name read from the program.
const NAME_BYTES: u64 = 256;

/// A program on a modelled machine.
pub struct Simulation {
    process: Process,
    options: Options,
    core: Option<Core>,
    regions: Regions,
    region_begin: u64,
    region_end: u64,
    unknown: Vec<(&'static str, usize)>,
}

/// The timing side.
struct Core {
    pipeline: Pipeline,
    /// The blocks of the process that runs.
    blocks: Vec<Option<ResolvedBlock>>,
    /// Its number.
    pid: u32,
    /// That process runs untimed.
    untimed: bool,
    /// Instructions of untimed processes whose time has not passed yet.
    untimed_instructions: u64,
    /// The blocks of other processes, by their numbers.
    others: BTreeMap<u32, Vec<Option<ResolvedBlock>>>,
    /// Blocks of code that has changed since.
    retired: Vec<ResolvedBlock>,
    /// Where the code of all blocks is from.
    origins: Origins,
    /// The last block called the kernel, which answers before the next one.
    called_kernel: bool,
    /// Version of the pages that the model knows.
    pages_of: u64,
    /// Denormal operations of the thread that runs, so far.
    denormals: u32,
    /// The ways of sectors that the caches know.
    sector_ways: SectorWays,
    ns_per_cycle_32: u64,
}

/// The machine as Linux shows it to a program.
#[must_use]
pub fn platform(spec: &Spec, memory_bytes: u64) -> Platform {
    let (id, t) = (&spec.identity, &spec.topology);
    let cpus = (0..t.cmgs * t.cores_per_cmg)
        .map(|i| CpuPlace { cpu: t.first_core + i, node: t.first_node + i / t.cores_per_cmg })
        .collect();
    Platform {
        vector_bytes: spec.clock.vector_bits as usize / 8,
        cpus,
        caches: caches(spec),
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
        hwcap: id.hwcap,
        hwcap2: id.hwcap2,
        page_bytes: fxscope_aarch64::memory::PAGE,
        huge_page_bytes: vec![spec.pages.large],
        page_sizes: page_sizes(&spec.pages, &[]),
        memory_bytes,
    }
}

/// The caches that a program finds described: sizes as the machine has them, whatever is kept from programs.
fn caches(spec: &Spec) -> Vec<Cache> {
    let cache = |level, kind, bytes, ways, line_bytes, shared_by_node| Cache {
        level,
        kind,
        bytes,
        ways,
        line_bytes,
        shared_by_node,
    };
    let (d, i, l2) = (&spec.l1d, &spec.l1i, &spec.l2);
    vec![
        cache(1, CacheKind::Data, d.bytes, d.ways, d.line_bytes, false),
        cache(1, CacheKind::Instruction, i.bytes, i.ways, i.line_bytes, false),
        cache(2, CacheKind::Unified, l2.bytes, l2.ways, l2.line_bytes, true),
    ]
}

impl Simulation {
    /// Prepares a run of `process`.
    #[must_use]
    pub fn new(process: Process, options: Options) -> Simulation {
        let [region_begin, region_end] = region_marks(&process);
        let core = (options.mode == Mode::Timing).then(|| Core::new(&process, &options));
        Simulation {
            process,
            options,
            core,
            regions: Regions::default(),
            region_begin,
            region_end,
            unknown: Vec::new(),
        }
    }

    /// The program.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Runs to the end, asking `watch` now and then whether to go on.
    pub fn run(&mut self, watch: &mut dyn FnMut(Progress) -> Control) -> Outcome {
        self.run_with(watch, &mut ())
    }

    /// The same, with a trace of `window`, which functional mode never reaches.
    pub fn run_traced(&mut self, watch: &mut dyn FnMut(Progress) -> Control, window: &mut Window<'_>) -> Outcome {
        self.run_with(watch, window)
    }

    fn run_with(&mut self, watch: &mut dyn FnMut(Progress) -> Control, trace: &mut impl Trace) -> Outcome {
        let finish = match self.options.mode {
            Mode::Functional => self.run_functional(watch),
            Mode::Timing => self.run_timing(watch, trace),
        };
        if let Some(core) = &mut self.core {
            core.pipeline.finish();
        }
        let total = self.counters();
        let regions = std::mem::take(&mut self.regions).finish(&total);
        let hot = self.core.as_ref().map_or_else(Vec::new, |core| hot_spots(core.all_blocks(), &core.origins));
        let files = self.core.as_ref().map_or_else(Vec::new, |core| core.origins.files().to_vec());
        Outcome {
            finish,
            now_ns: self.process.now_ns(),
            regions,
            hot,
            files,
            pages: self.process.page_use(),
            unknown_classes: std::mem::take(&mut self.unknown),
        }
    }

    fn progress(&self) -> Progress {
        Progress {
            instructions: self.process.instructions(),
            cycles: self.core.as_ref().map_or(0, |c| c.pipeline.now()),
            now_ns: self.process.now_ns(),
        }
    }

    /// Whether the run must stop now.
    fn stop(&self, watch: &mut dyn FnMut(Progress) -> Control) -> Option<Finish> {
        let progress = self.progress();
        if self.options.max_instructions.is_some_and(|max| progress.instructions >= max) {
            return Some(Finish::Limit);
        }
        (watch(progress) == Control::Stop).then_some(Finish::Stopped)
    }

    fn run_functional(&mut self, watch: &mut dyn FnMut(Progress) -> Control) -> Finish {
        const SLICE: u64 = 1 << 22;
        loop {
            let done = self.process.instructions();
            let left = self.options.max_instructions.map_or(SLICE, |max| SLICE.min(max.saturating_sub(done)));
            if let Some(end) = self.process.run_functional(left) {
                return Finish::Ended(end.clone());
            }
            if let Some(finish) = self.stop(watch) {
                return finish;
            }
        }
    }

    fn run_timing(&mut self, watch: &mut dyn FnMut(Progress) -> Control, trace: &mut impl Trace) -> Finish {
        // The model knows the pages before the first instruction.
        self.set_clock();
        self.read_controls();
        loop {
            let mut rounds = self.blocks_left().div_ceil(u64::from(CLOCK_BLOCKS));
            while rounds > 0 {
                rounds -= 1;
                let blocks =
                    if rounds == 0 { self.blocks_left().min(u64::from(CLOCK_BLOCKS)) } else { CLOCK_BLOCKS.into() };
                for _ in 0..blocks {
                    match self.process.step() {
                        Step::Ran { block, executed } => self.ran(block.0 as usize, block, executed, trace),
                        Step::Sleep { until_ns } => self.sleep(until_ns),
                        Step::Switched => self.switched(),
                        Step::CodeChanged => self.forget_blocks(),
                        Step::Waiting => rounds = 0,
                        Step::Ended => {
                            return self.process.end().map_or(Finish::Stopped, |end| Finish::Ended(end.clone()));
                        }
                    }
                }
                self.set_clock();
            }
            if let Some(finish) = self.stop(watch) {
                return finish;
            }
        }
    }

    /// How many blocks can run until the limit or whoever watches must be looked at: each has at most [`MAX_BLOCK`]
    /// instructions.
    fn blocks_left(&self) -> u64 {
        let left =
            self.options.max_instructions.map_or(u64::MAX, |max| max.saturating_sub(self.process.instructions()));
        (left / MAX_BLOCK as u64).clamp(1, WATCH_BLOCKS.into())
    }

    /// Another thread goes on, after the kernel has switched to it.
    #[cold]
    fn switched(&mut self) {
        let pid = self.process.thread().pid;
        let core = self.core.as_mut().expect("timing mode has a core");
        if pid != core.pid {
            let next = core.others.remove(&pid).unwrap_or_default();
            core.others.insert(core.pid, std::mem::replace(&mut core.blocks, next));
            core.pid = pid;
            core.untimed = self.options.follow == Follow::First && pid != PID;
            core.pages_of = u64::MAX;
            [self.region_begin, self.region_end] = region_marks(&self.process);
        }
        core.denormals = self.process.cpu().fp.denormals;
        self.in_kernel();
    }

    /// A block ran: its time.
    #[inline(always)]
    fn ran(&mut self, index: usize, id: fxscope_aarch64::BlockId, executed: usize, trace: &mut impl Trace) {
        let core = self.core.as_mut().expect("timing mode has a core");
        if core.untimed {
            core.untimed_instructions += executed as u64;
            return;
        }
        if core.called_kernel {
            self.back_from_kernel();
        }
        let core = self.core.as_mut().expect("timing mode has a core");
        if core.blocks.get(index).is_none_or(Option::is_none) {
            resolve(core, &self.process, id, &self.options.spec, &mut self.unknown);
        }
        let block = core.blocks[index].as_mut().expect("just resolved");
        trace.run(&mut core.pipeline, block, executed, &mut self.process);
        let denormals = self.process.cpu().fp.denormals;
        if denormals != core.denormals {
            core.pipeline.denormals(block, denormals.wrapping_sub(core.denormals));
            core.denormals = denormals;
        }
        block.count(executed);
        if block.controls {
            let enters_kernel = block.enters_kernel;
            self.controlled(enters_kernel);
        }
        let start = self.process.block(id).start;
        if start == self.region_begin || start == self.region_end {
            self.mark(start);
        }
    }

    /// The program may have written a register that controls the processor, or has called the kernel.
    #[cold]
    fn controlled(&mut self, enters_kernel: bool) {
        if enters_kernel {
            self.in_kernel();
        } else {
            self.read_controls();
        }
    }

    /// The core learns what the program that runs has set: whether it wants floating-point exceptions judged, how to
    /// prefetch, and the ways of sectors.
    fn read_controls(&mut self) {
        let core = self.core.as_mut().expect("timing mode has a core");
        let cpu = self.process.cpu();
        core.pipeline.judge_exceptions(cpu.fp.judges_exceptions());
        core.pipeline.memory.set_prefetch_registers(&PrefetchRegisters {
            stream_detect: cpu.hpc.stream_detect(),
            injection_ctrl: std::array::from_fn(|n| cpu.hpc.injection_ctrl(n)),
            injection_distance: std::array::from_fn(|n| cpu.hpc.injection_distance(n)),
        });
        core.sector_ways.learn(&cpu.hpc, &mut core.pipeline.memory);
    }

    /// Gives data sectors of the caches, whatever pointers say. Without timing it has no effect.
    pub fn assign_sectors(&mut self, data: Vec<(Range<u64>, u8)>) {
        if let Some(core) = &mut self.core {
            let sectors = core.pipeline.memory.sectors().clone().with_data(data);
            core.pipeline.memory.assign_sectors(sectors);
        }
    }

    /// The program made a system call, or may have.
    #[cold]
    fn in_kernel(&mut self) {
        let core = self.core.as_mut().expect("timing mode has a core");
        core.called_kernel = true;
        core.pipeline.pause(self.options.spec.assumptions.system_call);
        self.read_controls();
        self.set_clock();
    }

    /// The first block behind a system call ran: what the call has done about pages comes before it.
    #[cold]
    fn back_from_kernel(&mut self) {
        self.core.as_mut().expect("timing mode has a core").called_kernel = false;
        self.set_clock();
    }

    fn sleep(&mut self, until_ns: u64) {
        let core = self.core.as_mut().expect("timing mode has a core");
        let cycles = (u128::from(until_ns) << 32) / u128::from(core.ns_per_cycle_32.max(1));
        core.pipeline.sleep((cycles as u64).saturating_sub(core.pipeline.now()));
        self.process.set_now_ns(until_ns.max(self.process.now_ns()));
    }

    /// The program's clock follows the core's; the model learns of changes to the address space.
    #[inline(always)]
    fn set_clock(&mut self) {
        let core = self.core.as_mut().expect("timing mode has a core");
        if core.untimed_instructions > 0 {
            core.pass_untimed();
        }
        let ns = (u128::from(core.pipeline.now()) * u128::from(core.ns_per_cycle_32)) >> 32;
        let ns = (ns as u64).max(self.process.now_ns());
        self.process.set_now_ns(ns);
        let version = self.process.pages_version();
        if version != core.pages_of {
            core.pages_of = version;
            let pages = page_ranges(&self.process, self.options.spec.topology.first_node);
            core.pipeline.memory.set_pages(core.pid as u16, pages);
        }
        if let Some(work) = self.process.take_memory_work() {
            self.pages_worked(work);
        }
    }

    /// The kernel has taken pages for the program, or taken them back.
    #[cold]
    fn pages_worked(&mut self, work: MemoryWork) {
        let core = self.core.as_mut().expect("timing mode has a core");
        if !core.untimed {
            core.pipeline.pause(cycles(work, &self.options.spec));
        }
    }

    /// Code has changed; so may the program have.
    #[cold]
    fn forget_blocks(&mut self) {
        [self.region_begin, self.region_end] = region_marks(&self.process);
        if let Some(core) = &mut self.core {
            core.retired.extend(core.blocks.drain(..).flatten());
        }
    }

    /// The program called one of the marking functions.
    #[cold]
    fn mark(&mut self, at: u64) {
        let now = self.counters();
        if at == self.region_end {
            self.regions.end(&now);
        } else {
            let name = self.region_name();
            self.regions.begin(name, now);
        }
    }

    /// The text the first argument points to.
    fn region_name(&mut self) -> String {
        let pointer = self.process.cpu().x(0);
        let bytes: Vec<u8> =
            (0..NAME_BYTES).map_while(|i| self.process.read_byte(pointer + i).filter(|&b| b != 0)).collect();
        if bytes.is_empty() { "region".to_string() } else { String::from_utf8_lossy(&bytes).into_owned() }
    }

    /// All counters as they stand.
    fn counters(&self) -> Signals {
        match &self.core {
            Some(core) => core.counters(),
            None => {
                let mut signals = Signals::default();
                let instructions = self.process.instructions();
                signals.set(Signal::InstRetired, instructions);
                signals.set(
                    Signal::CpuCycles,
                    instructions * FUNCTIONAL_NS * self.options.spec.clock.core_hz / 1_000_000_000,
                );
                signals
            }
        }
    }
}

/// The addresses of the functions that mark regions in the program that runs; `u64::MAX` for one it does not have.
fn region_marks(process: &Process) -> [u64; 2] {
    [REGION_BEGIN, REGION_END].map(|name| process.running_symbols().address_of(name).unwrap_or(u64::MAX))
}

impl Core {
    /// A core that has not begun to run `process`.
    fn new(process: &Process, options: &Options) -> Core {
        let mut pipeline = Pipeline::new(&options.spec, options.core);
        Core {
            sector_ways: SectorWays::new(&options.spec, &process.cpu().hpc, &mut pipeline.memory),
            pipeline,
            blocks: Vec::new(),
            pid: process.thread().pid,
            untimed: false,
            untimed_instructions: 0,
            others: BTreeMap::new(),
            retired: Vec::new(),
            origins: Origins::new(process),
            called_kernel: false,
            pages_of: u64::MAX,
            denormals: process.cpu().fp.denormals,
            ns_per_cycle_32: (1_000_000_000u64 << 32) / options.spec.clock.core_hz,
        }
    }

    /// The time of untimed instructions passes: for the timed core it is time spent waiting.
    #[cold]
    fn pass_untimed(&mut self) {
        let ns = u128::from(std::mem::take(&mut self.untimed_instructions) * FUNCTIONAL_NS);
        self.pipeline.sleep(((ns << 32) / u128::from(self.ns_per_cycle_32.max(1))) as u64);
    }

    fn all_blocks(&self) -> impl Iterator<Item = &ResolvedBlock> {
        self.retired.iter().chain(self.others.values().chain([&self.blocks]).flatten().flatten())
    }

    /// Counted events, and those that follow from how often each block ran.
    fn counters(&self) -> Signals {
        let mut signals = self.pipeline.counters();
        for block in self.all_blocks() {
            block.add_mix(&mut signals);
        }
        signals
    }
}

#[cold]
fn resolve(
    core: &mut Core,
    process: &Process,
    id: fxscope_aarch64::BlockId,
    spec: &Spec,
    unknown: &mut Vec<(&'static str, usize)>,
) {
    let index = id.0 as usize;
    if core.blocks.len() <= index {
        core.blocks.resize_with(index + 1, || None);
    }
    let block = process.block(id);
    let mut resolved = resolve_block(block.start, &block.infos, spec);
    resolved.origin = core.origins.note(process, block.start, block.infos.len());
    for &i in &resolved.unknown {
        let name = block.infos[i].class.name();
        match unknown.iter_mut().find(|(n, _)| *n == name) {
            Some((_, count)) => *count += 1,
            None => unknown.push((name, 1)),
        }
    }
    core.blocks[index] = Some(resolved);
}
