//! Options of every command that runs a program, as a scenario.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use fxscope::linux::ClockSource;
use fxscope::linux::hwpfctl::Settings;
use fxscope::machine::spec::PowerMode;
use fxscope::record::Run;
use fxscope::sampling::{Plan, Precision};
use fxscope::{
    Follow, Mode, NoProgressLimit, PageOption, PartPlan, PlaceOption, Point, QUANTUM, RunOptions, Scenario,
    SectorOption, Selection, SpinLoops, TierOption, Warming, tiering_settings,
};

use super::{Failure, hwpf};

/// Names of option values.
pub(super) const MODES: &[(&str, Mode)] = &[("timing", Mode::Timing), ("functional", Mode::Functional)];
const FOLLOW: &[(&str, Follow)] = &[("all", Follow::All), ("first", Follow::First)];
const CLOCKS: &[(&str, ClockSource)] = &[("simulated", ClockSource::Simulated), ("host", ClockSource::Host)];
const SPIN: &[(&str, SpinLoops)] = &[("fast", SpinLoops::Fast), ("exact", SpinLoops::Exact)];

/// The machine, and the resources of the program.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ScenarioArgs {
    /// Machine: a name shown by `fxscope machine list`, or the path of a machine's folder [default: a64fx].
    #[arg(short, long)]
    pub(super) machine: Option<String>,
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
    #[arg(long, value_name = "SIZE", value_parser = size)]
    fast_memory: Option<u64>,
    /// Promote pages that are hot from memory tiers to nodes with cores, and demote others when those are full, as Linux does with
    /// kernel.numa_balancing=2. KEY=VALUE,… changes what Linux sets by default: delay, period (time before and between scans),
    /// scan (most memory of one), threshold (time from a scan to an access below which a page is hot), rate (most promotion),
    /// window, adjust, ample (docs/memory-tiers.md).
    #[arg(long, value_name = "KEY=VALUE,…", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(value_parser = tiering)]
    tiering: Option<Tiering>,
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
    #[arg(long, value_name = "OPTIONS", value_parser = hwpf::options, allow_hyphen_values = true)]
    hwpf: Option<Settings>,
    /// Give the program more access to the host: write=DIR, read=DIR (with --sandbox), or net.
    #[arg(long, value_name = "WHAT", value_parser = Allow::parse)]
    allow: Vec<Allow>,
    /// Give the program no access to the host except its standard streams and what --allow gives.
    #[arg(long)]
    sandbox: bool,
    /// Memory the program may use, such as 512MiB; allocations beyond fail with ENOMEM. Default: all of the machine's.
    #[arg(long, value_name = "SIZE", value_parser = size)]
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
    #[arg(long, value_name = "TIME", value_parser = no_progress)]
    no_progress: Option<NoProgressLimit>,
    /// Time windows of the program only, and estimate its counts and time from them, with intervals: minutes instead of hours
    /// for programs that run long. PLAN is auto, or parameters such as window=5000,period=50000 (docs/sampling.md).
    #[arg(long, value_name = "PLAN", num_args = 0..=1, default_missing_value = "auto")]
    sample: Option<Plan>,
    /// How accurately time must be known in a sampled run: with --sample auto, windows become fewer once half of the width of its
    /// interval is smaller. Default: 2%.
    #[arg(long, value_name = "PERCENT", requires = "sample", value_parser = error)]
    error: Option<f64>,
    /// The probability with which intervals of a sampled run have the true value. Default: 95%.
    #[arg(long, value_name = "PERCENT", requires = "sample", value_parser = confidence)]
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
    pub(super) fn scenario(&self, command: &[OsString]) -> Result<Scenario, Failure> {
        self.scenario_of(command, None)
    }

    /// Returns the same scenario, of which only the executions of a region are timed if one is named.
    pub(super) fn scenario_of(&self, command: &[OsString], region: Option<&str>) -> Result<Scenario, Failure> {
        let (command, prefetch) = match hwpf::taken_off(command)? {
            Some((command, settings)) => (command, Some(settings)),
            None => (command.to_vec(), self.hwpf.clone()),
        };
        let (program, arguments) = command.split_first().ok_or("no program given")?;
        let mut scenario = self.applied_to(Scenario::new(program).with_arguments(arguments), prefetch);
        self.time_region(&mut scenario, region)?;
        Ok(scenario)
    }

    /// Times only the executions of a region if one is named.
    pub(super) fn time_region(&self, scenario: &mut Scenario, region: Option<&str>) -> Result<(), Failure> {
        let Some(name) = region else { return self.check_warming(scenario) };
        if self.from.is_some() || self.until.is_some() {
            return Err("--region: it says what is timed, as --from and --until do; leave one or the other out"
                .to_owned()
                .into());
        }
        scenario.options.part = Some(PartPlan {
            warming: self.warm.unwrap_or_default(),
            ..PartPlan::new(Selection::Region(name.to_owned()))
        });
        Ok(())
    }

    /// Refuses warming if everything is timed.
    fn check_warming(&self, scenario: &Scenario) -> Result<(), Failure> {
        if self.warm.is_some() && scenario.options.part.is_none() {
            return Err("--warm: everything is timed; say from where on with --from, or which region with --region"
                .to_owned()
                .into());
        }
        Ok(())
    }

    /// Returns the part that is timed, if not everything.
    fn part(&self) -> Option<PartPlan> {
        let (from, until) = (self.from.clone(), self.until.clone());
        if from.is_none() && until.is_none() {
            return None;
        }
        let selection = Selection::Between { from, until };
        Some(PartPlan { selection, warming: self.warm.unwrap_or_default(), stops: self.stop })
    }

    /// Refuses sampling for a command that needs each of a program's accesses, or compares runs that hardly differ.
    pub(super) fn refuse_sampling(&self, command: &str) -> Result<(), Failure> {
        match self.sample {
            Some(_) => Err(format!(
                "--sample: fxscope {command} needs the whole program timed; leave it out, or choose a smaller problem"
            )
            .into()),
            None => Ok(()),
        }
    }

    fn precision(&self) -> Precision {
        let usual = Precision::default();
        let (error, confidence) = (self.error.unwrap_or(usual.error), self.confidence.unwrap_or(usual.confidence));
        Precision { error, confidence }
    }

    /// Returns the scenario that repeats a recorded run; options that are given override the record.
    pub(super) fn repeating(&self, run: &Run) -> Scenario {
        self.applied_to(Scenario::repeating(run), self.hwpf.clone())
    }

    /// Returns `scenario` with all options applied.
    fn applied_to(&self, mut scenario: Scenario, prefetch: Option<Settings>) -> Scenario {
        prefetch.iter().for_each(hwpf::tell);
        if let Some(machine) = &self.machine {
            scenario.machine.clone_from(machine);
        }
        scenario.ranks = self.ranks;
        scenario.settings.extend(self.set.iter().cloned());
        scenario.settings.extend(self.vector_bits.iter().map(|bits| ("clock.vector_bits".to_owned(), bits.clone())));
        scenario.settings.extend(self.tiering.iter().flat_map(|tiering| tiering.0.iter().cloned()));
        scenario.settings.extend(self.power_mode.iter().map(|mode| ("power.mode".to_owned(), mode.clone())));
        scenario.variables.extend(self.environment.iter().cloned());
        scenario.inherit_environment = true;
        scenario.placement.cpus.clone_from(&self.cpus);
        scenario.placement.pages.clone_from(&self.pages);
        scenario.placement.tiers.clone_from(&self.memory_tier);
        scenario.placement.membind.clone_from(&self.membind);
        scenario.placement.interleave.clone_from(&self.interleave);
        scenario.placement.places.clone_from(&self.place);
        scenario.placement.fast_memory = self.fast_memory;
        scenario.sectors.clone_from(&self.sector);
        scenario.access.sandbox = self.sandbox;
        for allow in &self.allow {
            match allow {
                Allow::Read(folder) => scenario.access.read.push(folder.clone()),
                Allow::Write(folder) => scenario.access.write.push(folder.clone()),
                Allow::Network => scenario.access.network = true,
            }
        }
        scenario.memory = self.memory;
        scenario.options = RunOptions {
            follow: self.follow,
            clock: self.clock,
            quantum: self.quantum,
            host_threads: self.host_threads.into(),
            spin: self.spin,
            max_instructions: self.max_instructions,
            sample: self.sample.clone(),
            precision: self.precision(),
            part: self.part(),
            no_progress: self.no_progress.unwrap_or_default(),
            stream_detect: prefetch.map_or(0, |settings| settings.stream_detect.into()),
            sysroot: self.sysroot.clone(),
            ..RunOptions::default()
        };
        scenario
    }
}

/// The settings that `--tiering` stands for.
#[derive(Clone, Debug)]
struct Tiering(Vec<(String, String)>);

/// Parses the value of `--tiering`.
fn tiering(text: &str) -> Result<Tiering, String> {
    tiering_settings(text).map(Tiering)
}

/// Returns a parser for names in `values`.
pub(super) fn choice<T: Copy + Send + Sync>(values: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    let value = |name: String| values.iter().find(|(known, _)| *known == name).map(|&(_, value)| value);
    PossibleValuesParser::new(values.iter().map(|(name, _)| *name)).try_map(move |name| value(name).ok_or("unknown"))
}

/// Returns a parser for names in `values` that have a line of help each.
pub(super) fn described_choice<T: Copy + Send + Sync>(
    values: &'static [(&'static str, T, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let value = |name: String| values.iter().find(|(known, ..)| *known == name).map(|&(_, value, _)| value);
    let shown = values.iter().map(|(name, _, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(shown).try_map(move |name| value(name).ok_or("unknown"))
}

/// Returns a parser for names of modes of power.
pub(super) fn power_modes() -> PossibleValuesParser {
    PossibleValuesParser::new(PowerMode::ALL.iter().map(|mode| mode.name()))
}

/// An access that `--allow` gives.
#[derive(Clone, Debug)]
enum Allow {
    Read(PathBuf),
    Write(PathBuf),
    Network,
}

impl Allow {
    fn parse(text: &str) -> Result<Allow, String> {
        match text.split_once('=') {
            Some(("read", folder)) if !folder.is_empty() => Ok(Allow::Read(folder.into())),
            Some(("write", folder)) if !folder.is_empty() => Ok(Allow::Write(folder.into())),
            None if text == "net" => Ok(Allow::Network),
            _ => Err("write it as read=DIR, write=DIR or net".to_owned()),
        }
    }
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn variable(text: &str) -> Result<(OsString, OsString), String> {
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write it as VAR=VALUE")?;
    Ok((name.into(), value.into()))
}

/// Parses a number of bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    fxscope::machine::settings::integer(text)
        .ok_or_else(|| "write it as a number of bytes, or as 512MiB or 8GiB".to_owned())
}

/// Parses a relative error in percent.
fn error(text: &str) -> Result<f64, String> {
    percent(text, 0.01, 99.0)
}

/// Parses a confidence in percent.
fn confidence(text: &str) -> Result<f64, String> {
    percent(text, 50.0, 99.99)
}

/// Parses a number in percent between two bounds; returns the fraction.
fn percent(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let wrong = || format!("write it in percent, from {least}% to {most}%");
    let number: f64 = text.strip_suffix('%').and_then(|number| number.trim().parse().ok()).ok_or_else(wrong)?;
    if (least..=most).contains(&number) { Ok(number / 100.0) } else { Err(wrong()) }
}

/// Parses the limit of a run without progress.
fn no_progress(text: &str) -> Result<NoProgressLimit, String> {
    match text {
        "never" => Ok(NoProgressLimit::Never),
        _ => interval_ns(text).map(NoProgressLimit::After).map_err(|why| format!("{why}, or never")),
    }
}

/// Parses a length of simulated time, ns: from a microsecond to an hour.
pub(super) fn interval_ns(text: &str) -> Result<u64, String> {
    let wrong = || "write it as a number and a unit: 100us, 0.5ms, 2s".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let ns_per_unit = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(wrong()),
    };
    let ns = (number.parse::<f64>().map_err(|_| wrong())? * ns_per_unit).round();
    if (1e3..=3.6e12).contains(&ns) {
        Ok(ns as u64)
    } else {
        Err("an interval takes between 1us and 3600s of simulated time".to_owned())
    }
}
