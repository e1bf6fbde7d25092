//! Options of every command that runs a program, as a scenario.

use std::ffi::OsString;
use std::path::PathBuf;

use fxscope::linux::ClockSource;
use fxscope::linux::hwpfctl::Settings;
use fxscope::machine::settings::{bytes, pair};
use fxscope::record::Run;
use fxscope::sampling::{Plan, Precision};
use fxscope::{
    AccessOption, Follow, NoProgressLimit, PageOption, PartOptions, PlaceOption, Placement, Point, QUANTUM, RunOptions,
    Scenario, SectorOption, SpinLoops, ThpOption, TierOption, TieringOption, Warming, variable,
};

use super::choice::{CLOCKS, FOLLOW, SPIN, choice, power_modes};
use crate::terminal::{Failure, say};

/// The machine, and the resources of the program.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ScenarioArgs {
    /// Machine: a name shown by `fxscope machine list`, or the path of a machine's folder [default: a64fx].
    #[arg(short, long)]
    pub(crate) machine: Option<String>,
    /// Set a value of the machine's description, such as tlb.l1_entries=32.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Vector length in bits: short for --set clock.vector_bits=N.
    #[arg(long, value_name = "N", value_parser = ["128", "256", "512"])]
    vector_bits: Option<String>,
    /// Mode of power: normal, boost (higher clock and voltage), eco (one floating-point pipe, less power) or both; short for
    /// --set power.mode=MODE (docs/power.md).
    #[arg(long, value_name = "MODE", value_parser = power_modes())]
    power_mode: Option<String>,
    /// CPUs for the program, such as 12-23 or 12,24,36: one thread on each; further threads share them in time slices.
    /// The program sees them as its affinity and cannot leave them. Default: all CPUs of the machine.
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Page sizes of the program's segments, such as bss=2MiB,heap=64KiB, or all=64KiB; short for --set pages.bss=2MiB.
    /// They override the variables of the large-page library (XOS_MMM_L_…). mmap@CALL=SIZE applies to the mappings of
    /// single calls, named as FUNCTION, FUNCTION+OFFSET, FILE:LINE (with debug information) or 0xADDRESS; mmap@CALL=thp
    /// gives them transparent huge pages.
    #[arg(long, value_name = "SEGMENT=SIZE", value_delimiter = ',', value_parser = PageOption::parse)]
    pages: Vec<PageOption>,
    /// Transparent huge pages, as Linux has them: always, madvise or never; settings of sizes, such as 2MiB=always (always, inherit,
    /// madvise, never); and khugepaged, which then collapses pages, unless with khugepaged=off: scan_sleep, alloc_sleep (times),
    /// pages_to_scan, max_ptes_none, max_ptes_shared (docs/pages.md).
    #[arg(long, value_name = "WHEN,SIZE=WHEN,KEY=VALUE…", value_parser = ThpOption::parse)]
    thp: Option<ThpOption>,
    /// Add a memory tier: a memory node without cores, such as CXL memory, with this latency from load to use and this bandwidth in each
    /// direction, for example cxl:250ns,32GB/s. read=RATE and write=RATE limit one direction, total=RATE both together; size=SIZE is
    /// its memory (docs/memory-tiers.md).
    #[arg(long, value_name = "NAME:LATENCY,BANDWIDTH", value_parser = TierOption::parse)]
    memory_tier: Vec<TierOption>,
    /// Allocate the program's memory on these nodes only, as numactl --membind does: 4, 4,5, 4-5, +0, !4, all, or names of tiers.
    #[arg(long, value_name = "NODES", conflicts_with = "interleave")]
    membind: Option<String>,
    /// Interleave the program's pages over these nodes, as numactl --interleave does. Nodes may have weights: 4=3,cxl=1 puts three pages
    /// on node 4, one on tier cxl, and so on.
    #[arg(long, value_name = "NODES")]
    interleave: Option<String>,
    /// Put the pages of data on one node, such as table=cxl: a variable of the program (NAME, NAME+OFFSET:BYTES or 0xADDRESS:BYTES), or
    /// the heap blocks that a call allocates (malloc@CALL, named as for --pages mmap@CALL), or the mappings that it makes (mmap@CALL). A
    /// page goes there if the data fill more than half of it.
    #[arg(long, value_name = "DATA=NODE", value_delimiter = ',', value_parser = PlaceOption::parse)]
    place: Vec<PlaceOption>,
    /// Memory on nodes with cores for pages that no policy places, for each process: pages that it touches first when that is full go to
    /// the memory tiers.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    fast_memory: Option<u64>,
    /// Promote pages that are hot from memory tiers to nodes with cores, and demote others when those are full, as Linux does with
    /// kernel.numa_balancing=2. KEY=VALUE,… changes what Linux sets by default: delay, period (time before and between scans),
    /// scan (most memory of one), threshold (time from a scan to an access below which a page is hot), rate (most promotion),
    /// window, adjust, ample (docs/memory-tiers.md).
    #[arg(long, value_name = "KEY=VALUE,…", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(value_parser = TieringOption::parse)]
    tiering: Option<TieringOption>,
    /// Sector cache: ways of sector 1, and the data in it, such as L2=10,assign=b. L1=N and L2=N give sector 0 the
    /// remaining ways; L1=N0:N1:N2:N3 and L2=N0:N1 set each sector. assign=NAME, NAME+OFFSET:BYTES or 0xADDRESS:BYTES
    /// put data of the program into sector 1 (assign2=… into sector 2), whatever its pointers say; assign=malloc@CALL the heap blocks
    /// that a call allocates, named as for --pages mmap@CALL.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = SectorOption::parse)]
    sector: Vec<SectorOption>,
    /// Start the program as this many MPI ranks, with the launcher of its MPI in the sysroot. Up to as many ranks as CMGs get a
    /// CMG each, more ranks share its cores evenly; OMP_NUM_THREADS is the number of a rank's cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: Option<u32>,
    /// Set a variable of the program's environment.
    #[arg(short, value_name = "VAR=VALUE", value_parser = variable)]
    environment: Vec<(OsString, OsString)>,
    /// Folder of the program's interpreter and libraries: absolute paths are looked up there first. Default: the folder
    /// of the AArch64 cross compilers, if there is one.
    #[arg(long, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    /// Hardware prefetch, as set by hwpfctl on the machine: its options as one argument, such as "--distL1 4 --distL2
    /// 20"; the others are --disableL1, --disableL2, --weakL1, --weakL2, --default, --verbose.
    #[arg(long, value_name = "OPTIONS", value_parser = Settings::parse, allow_hyphen_values = true)]
    hwpf: Option<Settings>,
    /// Give the program more access to the host: write=DIR, read=DIR (with --sandbox), or net.
    #[arg(long, value_name = "WHAT", value_parser = AccessOption::parse)]
    allow: Vec<AccessOption>,
    /// Give the program no access to the host except its standard streams and what --allow gives.
    #[arg(long)]
    sandbox: bool,
    /// Memory the program may use, such as 512MiB; allocations beyond fail with ENOMEM. Default: all of the machine's.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<u64>,
    /// Processes that are timed and counted: all together, or only the first; the others then run as in functional
    /// mode.
    #[arg(long, default_value = "all", value_parser = choice(FOLLOW))]
    follow: Follow,
    /// The program's clocks: simulated time, the same on every run, or the host's.
    #[arg(long, default_value = "simulated", value_parser = choice(CLOCKS))]
    clock: ClockSource,
    /// Cycles that a core may be simulated ahead of the one that is furthest behind. Synchronisation between threads
    /// happens in the order of simulated time with any number; small numbers cost speed.
    #[arg(long, value_name = "CYCLES", default_value_t = QUANTUM, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    quantum: u64,
    /// Host threads that simulate the cores; each takes whole CMGs. Runs with several threads are repeatable, too, but
    /// differ a little from those with one: plain accesses of different CMGs may be seen up to 2 us earlier or later,
    /// and their requests arrive in another order (docs/threads.md).
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    host_threads: u8,
    /// Spin-waiting threads: identical iterations are counted together, or each is simulated, as always with
    /// --max-instructions or the host's clock.
    #[arg(long, default_value = "fast", value_parser = choice(SPIN))]
    spin: SpinLoops,
    /// End the run with status 124 when its threads only look, again and again, at what nobody changes, for this long in simulated
    /// time, such as ranks of MPI that all wait for a message: 500ms, 2s, or never. Default: 1s in functional mode, 100ms in
    /// timing mode.
    #[arg(long, value_name = "TIME", value_parser = NoProgressLimit::parse)]
    no_progress: Option<NoProgressLimit>,
    /// Time windows of the program only, and estimate its counts and time from them, with intervals: minutes instead of hours
    /// for programs that run long. PLAN is auto, or parameters such as window=5000,period=50000 (docs/sampling.md).
    #[arg(long, value_name = "PLAN", num_args = 0..=1, default_missing_value = "auto")]
    sample: Option<Plan>,
    /// How accurately time must be known in a sampled run: with --sample auto, windows become fewer once half of the width of its
    /// interval is smaller. Default: 2%.
    #[arg(long, value_name = "PERCENT", requires = "sample", value_parser = Precision::parse_error)]
    error: Option<f64>,
    /// The probability with which intervals of a sampled run have the true value. Default: 95%.
    #[arg(long, value_name = "PERCENT", requires = "sample", value_parser = Precision::parse_confidence)]
    confidence: Option<f64>,
    /// Time only what comes after this point of the run: instructions=5G, time=2ms of simulated time, function=NAME#3, the third call of
    /// a function, or region=NAME#3, the third execution of a region (docs/parts.md). What comes before runs without the model.
    #[arg(long, value_name = "POINT")]
    from: Option<Point>,
    /// Time only what comes before this point, written as for --from: of a function or region, the end of a call. With + in front of its
    /// number (instructions=+1G, function=NAME#+10), it counts from where the part begins. The program then runs on without the model.
    #[arg(long, value_name = "POINT")]
    until: Option<Point>,
    /// How many instructions before the part keep caches, TLBs and branch predictors up to date: a number, such as 20M, all or none.
    /// Default: 50M before instructions= and time=, otherwise all.
    #[arg(long, value_name = "N|all|none")]
    warm: Option<Warming>,
    /// End the run at --until.
    #[arg(long, requires = "until")]
    stop: bool,
    /// Stop after this many instructions; the last basic block is completed.
    #[arg(long, value_name = "N")]
    max_instructions: Option<u64>,
}

impl ScenarioArgs {
    /// Returns the scenario that runs `command`. `hwpfctl` and its options at the front are settings, as on the
    /// machine.
    pub(crate) fn scenario(&self, command: &[OsString]) -> Result<Scenario, Failure> {
        self.scenario_of(command, None)
    }

    /// Returns the same scenario, of which only the executions of a region are timed if one is named.
    pub(crate) fn scenario_of(&self, command: &[OsString], region: Option<&str>) -> Result<Scenario, Failure> {
        let (command, prefetch) = match Settings::taken_off(command)? {
            Some((command, settings)) => (command, Some(settings)),
            None => (command.to_vec(), self.hwpf.clone()),
        };
        let (program, arguments) = command.split_first().ok_or("no program given")?;
        self.applied_to(Scenario::new(program).with_arguments(arguments), prefetch, region)
    }

    /// Returns the scenario that repeats a recorded run; options that are given override the record. Of a region only the executions are
    /// timed if one is named.
    pub(crate) fn repeating(&self, run: &Run, region: Option<&str>) -> Result<Scenario, Failure> {
        self.applied_to(Scenario::repeating(run), self.hwpf.clone(), region)
    }

    /// Returns `scenario` with all options applied.
    fn applied_to(
        &self,
        mut scenario: Scenario,
        prefetch: Option<Settings>,
        region: Option<&str>,
    ) -> Result<Scenario, Failure> {
        prefetch.iter().flat_map(Settings::told).for_each(|told| say(&told));
        if let Some(machine) = &self.machine {
            scenario.machine.clone_from(machine);
        }
        scenario.ranks = self.ranks;
        scenario.settings.extend(self.settings());
        scenario.variables.extend(self.environment.iter().cloned());
        scenario.inherit_environment = true;
        scenario.placement = self.placement();
        scenario.sectors.clone_from(&self.sector);
        scenario.access.sandbox = self.sandbox;
        self.allow.iter().cloned().for_each(|more| scenario.access.allow(more));
        scenario.memory = self.memory;
        scenario.options = self.run_options(prefetch, region)?;
        Ok(scenario)
    }

    /// Returns the settings of the machine.
    fn settings(&self) -> Vec<(String, String)> {
        let short =
            |key: &str, value: &Option<String>| value.iter().map(|value| (key.to_owned(), value.clone())).collect();
        let thp = self.thp.as_ref().map_or(&[][..], ThpOption::settings);
        let tiering = self.tiering.as_ref().map_or(&[][..], TieringOption::settings);
        let vector_bits: Vec<_> = short("clock.vector_bits", &self.vector_bits);
        let power_mode: Vec<_> = short("power.mode", &self.power_mode);
        [&self.set[..], &vector_bits, thp, tiering, &power_mode].concat()
    }

    /// Returns where the program and its memory are.
    fn placement(&self) -> Placement {
        Placement {
            cpus: self.cpus.clone(),
            pages: self.pages.clone(),
            tiers: self.memory_tier.clone(),
            membind: self.membind.clone(),
            interleave: self.interleave.clone(),
            places: self.place.clone(),
            fast_memory: self.fast_memory,
        }
    }

    /// Returns how the program is simulated.
    fn run_options(&self, prefetch: Option<Settings>, region: Option<&str>) -> Result<RunOptions, Failure> {
        let usual = Precision::default();
        let part = PartOptions {
            region: region.map(str::to_owned),
            from: self.from.clone(),
            until: self.until.clone(),
            warming: self.warm,
            stops: self.stop,
        };
        Ok(RunOptions {
            follow: self.follow,
            clock: self.clock,
            quantum: self.quantum,
            host_threads: self.host_threads.into(),
            spin: self.spin,
            max_instructions: self.max_instructions,
            sample: self.sample.clone(),
            precision: Precision {
                error: self.error.unwrap_or(usual.error),
                confidence: self.confidence.unwrap_or(usual.confidence),
            },
            part: part.plan()?,
            no_progress: self.no_progress.unwrap_or_default(),
            stream_detect: prefetch.map_or(0, |settings| settings.stream_detect.into()),
            sysroot: self.sysroot.clone(),
            ..RunOptions::default()
        })
    }
}
