//! One core of a run: its pipeline, and what it knows of the code and the pages of the processes that run there.

use std::collections::BTreeMap;

use fxscope_aarch64::BlockId;
use fxscope_calendar::Cycle;
use fxscope_counts::Signals;
use fxscope_linux::Guest;
use fxscope_linux::guest::{FUNCTIONAL_NS, PID};
use fxscope_linux::pages::MemoryWork;
use fxscope_machine::Spec;
use fxscope_memory::{Chip, PrefetchRegisters};
use fxscope_pipeline::{BoundBlock, Pipeline, bind_block};

use crate::code_map::CodeMap;
use crate::markers::Markers;
use crate::pages::{KnownPages, cycles};
use crate::run::{Follow, Options};
use crate::run_ahead::RunAhead;
use crate::sectors::{self, SectorData, SectorWays};
use crate::spin_skip::Spin;

/// A core that threads run on.
pub(crate) struct Core {
    pub(crate) pipeline: Pipeline,
    /// The blocks of the process that runs.
    pub(crate) blocks: Vec<Option<BoundBlock>>,
    /// Its number.
    pid: u32,
    /// That process runs untimed.
    pub(crate) untimed: bool,
    /// Instructions of untimed processes whose time has not passed yet.
    pub(crate) untimed_instructions: u64,
    /// The blocks of other processes, by their numbers.
    others: BTreeMap<u32, Vec<Option<BoundBlock>>>,
    /// Blocks of code that has changed since.
    retired: Vec<BoundBlock>,
    /// The last block called the kernel, which answers before the next one.
    pub(crate) called_kernel: bool,
    /// Version of the pages that the model knows.
    pages_of: u64,
    /// The ways of sectors that the caches know.
    sector_ways: SectorWays,
    ns_per_cycle_32: u64,
    /// Where regions begin and end in the process that runs.
    pub(crate) markers: Markers,
    /// Whether it waits in a loop.
    pub(crate) spin: Spin,
    /// The thread that runs, or sleeps, here, whose counts these are.
    pub(crate) thread: Option<u32>,
    /// The counters when it came.
    since: Signals,
    /// Blocks that its thread has executed before their time.
    pub(crate) ahead: RunAhead,
}

impl Core {
    /// A core that has not run the current process yet. It reads the program's control registers when its first thread comes.
    pub(crate) fn new(mut pipeline: Pipeline, process: &Guest, options: &Options, data: &SectorData) -> Core {
        pipeline.memory.assign_sectors(sectors::assignment(&options.spec));
        let mut core = Core {
            sector_ways: SectorWays::default(),
            pipeline,
            blocks: Vec::new(),
            pid: process.pid(),
            untimed: options.follow == Follow::First && process.pid() != PID,
            untimed_instructions: 0,
            others: BTreeMap::new(),
            retired: Vec::new(),
            called_kernel: false,
            pages_of: u64::MAX,
            ns_per_cycle_32: (1_000_000_000u64 << 32) / options.spec.clock.core_hz,
            markers: Markers::of(process),
            spin: Spin::default(),
            thread: None,
            since: Signals::default(),
            ahead: RunAhead::default(),
        };
        core.assign_sectors(data);
        core
    }

    /// Gives data sectors of the caches, whatever pointers say.
    pub(crate) fn assign_sectors(&mut self, data: &SectorData) {
        if !data.is_empty() {
            let sectors = self.pipeline.memory.sectors().clone().with_data(data.clone());
            self.pipeline.memory.assign_sectors(sectors);
        }
    }

    /// Simulated time of the last commit, ns.
    pub(crate) fn now_ns(&self) -> u64 {
        ((u128::from(self.pipeline.now()) * u128::from(self.ns_per_cycle_32)) >> 32) as u64
    }

    /// The cycle at a time in ns.
    pub(crate) fn cycle_at(&self, ns: u64) -> Cycle {
        ((u128::from(ns) << 32) / u128::from(self.ns_per_cycle_32.max(1))) as Cycle
    }

    /// The core sleeps until `cycle`.
    pub(crate) fn sleep_until(&mut self, cycle: Cycle) {
        let left = cycle.saturating_sub(self.pipeline.now() + 1);
        if left > 0 {
            self.pipeline.sleep(left);
        }
    }

    /// The thread in place goes on here, perhaps of another process than the last one.
    pub(crate) fn switched(&mut self, process: &Guest, follow: Follow, chip: &mut Chip) {
        let pid = process.pid();
        if pid != self.pid {
            self.catch_up(chip);
            let next = self.others.remove(&pid).unwrap_or_default();
            self.others.insert(self.pid, std::mem::replace(&mut self.blocks, next));
            self.pid = pid;
            self.untimed = follow == Follow::First && pid != PID;
            self.pages_of = u64::MAX;
            self.markers = Markers::of(process);
        }
        if let Spin::Watched(_) = self.spin
            && self.thread != Some(process.thread().tid - PID)
        {
            self.spin = Spin::default();
        }
    }

    /// The core learns what the program that runs has set: whether it wants floating-point exceptions judged, how to
    /// prefetch, and the ways of sectors.
    pub(crate) fn read_controls(&mut self, process: &Guest, chip: &mut Chip) {
        let cpu = process.cpu();
        self.pipeline.judge_exceptions(cpu.fp.judges_exceptions());
        self.pipeline.memory.set_prefetch_registers(&PrefetchRegisters {
            stream_detect: cpu.hpc.stream_detect(),
            injection_ctrl: std::array::from_fn(|n| cpu.hpc.injection_ctrl(n)),
            injection_distance: std::array::from_fn(|n| cpu.hpc.injection_distance(n)),
        });
        self.sector_ways.learn(&cpu.hpc, &mut self.pipeline.memory.with(chip));
    }

    /// The model learns of changes to the address space, of which `known` has the last state that a core has asked for.
    #[inline(always)]
    pub(crate) fn learn_pages(&mut self, process: &Guest, known: &mut KnownPages, spec: &Spec, chip: &mut Chip) {
        let version = process.pages_version();
        if version != self.pages_of {
            self.pages_of = version;
            known.tell(process, spec, &mut self.pipeline.memory.with(chip));
        }
    }

    /// The kernel has taken pages for the program, or taken them back.
    #[cold]
    pub(crate) fn pages_worked(&mut self, work: MemoryWork, spec: &Spec) {
        if !self.untimed {
            self.pipeline.pause(cycles(work, spec));
        }
    }

    /// The time of untimed instructions passes: for the timed core it is time spent waiting.
    #[cold]
    pub(crate) fn pass_untimed(&mut self) {
        let ns = std::mem::take(&mut self.untimed_instructions) * FUNCTIONAL_NS;
        self.pipeline.sleep(self.cycle_at(ns));
    }

    /// The code of process `pid` has changed; so may the program in place have, which is `process`.
    #[cold]
    pub(crate) fn forget_blocks(&mut self, process: &Guest) {
        let pid = process.pid();
        let blocks = if pid == self.pid {
            self.markers = Markers::of(process);
            std::mem::take(&mut self.blocks)
        } else {
            self.others.remove(&pid).unwrap_or_default()
        };
        self.retired.extend(blocks.into_iter().flatten());
    }

    pub(crate) fn all_blocks(&self) -> impl Iterator<Item = &BoundBlock> {
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

    /// What has been counted since the thread here came; if it waits in a loop, up to `now`.
    pub(crate) fn counted_by(&self, now: Cycle) -> Signals {
        let mut counters = self.counters();
        if let Spin::Spins(summary) = &self.spin {
            let periods = now.saturating_sub(self.pipeline.now()) / summary.cycles();
            summary.add_counters(periods.min(summary.left), &mut counters);
        }
        counters.since(&self.since)
    }

    /// Counting begins for another thread, or for none. Returns the one before and its counts.
    pub(crate) fn count_for(&mut self, thread: Option<u32>) -> Option<(u32, Signals)> {
        let now = self.counters();
        let counted = now.since(&self.since);
        self.since = now;
        std::mem::replace(&mut self.thread, thread).map(|before| (before, counted))
    }

    /// Joins a block that has just run for the first time with the machine's recipes.
    #[cold]
    pub(crate) fn resolve(&mut self, process: &Guest, id: BlockId, spec: &Spec, known: &mut Known) {
        let index = id.0 as usize;
        if self.blocks.len() <= index {
            self.blocks.resize_with(index + 1, || None);
        }
        let block = process.block(id);
        let mut resolved = bind_block(block.start, &block.infos, spec);
        let last = block.start + 4 * (block.infos.len() as u64 - 1);
        resolved.marked = self.markers.may_meet(resolved.branch, last);
        resolved.origin = known.code_map.note(process, block.start, block.infos.len());
        for &i in &resolved.unknown {
            let name = block.infos[i].class.name();
            match known.unknown.iter_mut().find(|(n, _)| *n == name) {
                Some((_, count)) => *count += 1,
                None => known.unknown.push((name, 1)),
            }
        }
        self.blocks[index] = Some(resolved);
    }
}

/// What is known of code, whichever core runs it.
pub(crate) struct Known {
    /// Where the code of all blocks is from.
    pub(crate) code_map: CodeMap,
    /// Timing classes without a row, with the number of instructions that have them.
    pub(crate) unknown: Vec<(&'static str, usize)>,
}
