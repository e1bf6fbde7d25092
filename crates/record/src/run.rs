//! Description of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::counts::{Names, Region};
use crate::part::Part;
use crate::profile::Profile;
use crate::sample::Sample;

/// How much of the machine was modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Everything: counts and cycles have the meaning of the machine's PMU.
    #[default]
    Timing,
    /// Results and instruction counts only; cycles are nominal, one nanosecond per instruction.
    Functional,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The program exited with this status, 0–255.
    Exited(i32),
    /// A signal ended the program.
    Killed {
        /// Signal number.
        signal: i32,
        /// Which signal, and where.
        message: String,
    },
    /// The instruction limit was reached.
    Limit,
    /// The user stopped it.
    Stopped,
    /// It could not continue, for this reason.
    Failed(String),
    /// Its threads ran, but nothing that they did could change anything; the message says what each did.
    NoProgress(String),
    /// A measurement that does not report it.
    Unknown,
}

impl Finish {
    /// Returns the program's exit status as a shell would report it; `None` if it had not ended.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Finish::Exited(code) => Some(*code),
            Finish::Killed { signal, .. } => Some(128 + signal),
            Finish::Limit | Finish::Stopped | Finish::Failed(_) | Finish::NoProgress(_) | Finish::Unknown => None,
        }
    }

    /// Returns a message about a program that could not continue; `None` for other ends.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        match self {
            Finish::Failed(message) | Finish::NoProgress(message) => {
                Some(format!("the program cannot continue: {message}"))
            }
            Finish::Exited(_) | Finish::Killed { .. } | Finish::Limit | Finish::Stopped | Finish::Unknown => None,
        }
    }
}

/// The computer that ran the simulation. Only this part of a [`Run`] differs from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Host {
    /// Processors.
    pub cpus: u32,
    /// Elapsed time, seconds.
    pub wall_seconds: f64,
    /// Instructions executed per microsecond of that time.
    pub mips: f64,
    /// Instructions per microsecond that were counted without being executed: skipped iterations of spin loops.
    pub skipped_mips: f64,
    /// Peak memory use, bytes.
    pub peak_rss_bytes: u64,
    /// Part of it that held the program's memory, bytes.
    pub guest_bytes: u64,
}

/// Where the counts come from.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Origin {
    /// The model.
    #[default]
    Simulated,
    /// A measurement imported from another tool's files.
    Imported {
        /// The tool's format.
        format: String,
        /// The files, as given.
        files: Vec<String>,
    },
}

/// A file that code was mapped from.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CodeFile {
    /// Path on the host.
    pub path: String,
    /// [`crate::digest`] of its contents; empty if it could not be read.
    pub digest: String,
}

/// Costs of one instruction.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct HotSpot {
    /// Its file, as an index into [`Run::files`]; `None` for code that is not from a known file.
    pub file: Option<u32>,
    /// Offset in that file, or its address without a file. Unique in a run together with the file.
    pub place: u64,
    /// Address in the first process that executed it.
    pub address: u64,
    /// Its function; empty if unknown.
    pub function: String,
    /// Offset from the start of the function, bytes.
    pub offset: u64,
    /// Number of executions.
    pub executions: u64,
    /// Total cycles between the previous commit and its own.
    pub cycles: u64,
    /// Total cycles from the issue of its first flow to its commit.
    pub in_flight: u64,
    /// Cycles without commit that were charged to it, for each cause in [`Run::stalls`].
    pub stalls: Vec<u64>,
    /// Cycles that it occupied each of [`Run::pipes`].
    pub pipes: Vec<u64>,
    /// Its counts of [`Profile::events`].
    pub events: Vec<u64>,
}

/// Pages of one size that a run had for a segment on a memory node: the maximum at any time, over all its processes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pages {
    /// Segment: text, data, bss, heap, stack, thread_stack, mmap, shared or file.
    pub segment: String,
    /// Page size, bytes.
    pub page_bytes: u64,
    /// Memory node, in the machine's numbering.
    pub node: u32,
    /// Number of pages.
    pub pages: u64,
    /// Bytes in them that the program has mapped.
    pub bytes: u64,
}

impl Pages {
    /// Bytes lost to internal fragmentation.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.pages.saturating_mul(self.page_bytes).saturating_sub(self.bytes)
    }
}

/// A process of a run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Process {
    /// Its number, as in [`crate::Thread::process`]: the rank of a parallel program; other processes have the numbers behind.
    pub number: u32,
    /// Its rank in `MPI_COMM_WORLD`, if it has one.
    pub rank: Option<u32>,
    /// Path of its program.
    pub program: String,
}

/// The calls of one function of MPI by the threads of a process.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MpiFunction {
    /// The process.
    pub process: u32,
    /// Name of the function in C.
    pub name: String,
    /// What it is for: send, receive, wait, collective, one-sided or other.
    pub kind: String,
    /// Number of calls.
    pub calls: u64,
    /// Their time, ns.
    pub ns: u64,
    /// Bytes that the callers sent or contributed, or had room for when receiving, as far as known.
    pub bytes: u64,
}

/// A call of MPI.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MpiCall {
    /// The process.
    pub process: u32,
    /// The thread, by its number in the process.
    pub thread: u32,
    /// The function, as an index into [`Parallel::functions`].
    pub function: u32,
    /// Bytes, as far as known; see [`MpiFunction::bytes`].
    pub bytes: Option<u64>,
    /// The rank in `MPI_COMM_WORLD` sent to or received from; `None`: none, any, or it is not known.
    pub partner: Option<u32>,
    /// When it began, ns since the start of the run.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// The processes of a simulated run, and their calls of MPI.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Parallel {
    /// Processes with counts, by ascending number.
    pub processes: Vec<Process>,
    /// Functions of MPI, by ascending process and name.
    pub functions: Vec<MpiFunction>,
    /// Calls in the order in which they ended.
    pub calls: Vec<MpiCall>,
    /// Further calls, which are counted in `functions` only.
    pub dropped_calls: u64,
}

/// Counts of all threads in one time interval.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    /// End, ns since the start of the run, or of the part of it that was timed; it starts at the end of the previous interval.
    pub end_ns: u64,
    /// A count for each of [`Intervals::names`].
    pub counts: Vec<u64>,
}

/// Counts in consecutive time intervals.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Intervals {
    /// The pass, as an index into [`Run::passes`].
    pub pass: usize,
    /// The region counted; [`crate::ALL`] for the whole run.
    pub region: String,
    /// Names of the counts. CMG-wide events count once per CMG.
    pub names: Names,
    /// The intervals in order, covering the whole run. Their lengths may differ.
    pub rows: Vec<Interval>,
}

/// The parts of a machine's description that a record keeps, so that it can be read without the machine.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Description {
    /// The machine's folder or file; `None` for a built-in machine.
    pub path: Option<String>,
    /// Its events as text of a `pmu.csv`, including inherited ones.
    pub pmu_csv: String,
    /// Its event groups, which are counted together, as text of a `groups.csv`.
    pub groups_csv: String,
}

/// A run of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Name and version of the tool that made it.
    pub tool: String,
    /// The program and its arguments, as given.
    pub command: Vec<String>,
    /// Environment variables given to the program that affect its speed, in order.
    pub environment: Vec<(String, String)>,
    /// Name of the machine.
    pub machine: String,
    /// Settings that differ from the machine's description, key and value, in order.
    pub settings: Vec<(String, String)>,
    /// Digest of the machine's description with all settings applied; equal digests mean equal machines.
    pub machine_hash: String,
    /// The machine's events; `None` in records of older versions. Shared by the runs of a file.
    pub description: Option<Arc<Description>>,
    /// The machine's constants that metrics and predictions use, by name. All are finite.
    pub constants: BTreeMap<String, f64>,
    /// How much was modelled.
    pub mode: Mode,
    /// Why it ended.
    pub finish: Finish,
    /// The host.
    pub host: Host,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// What ended abnormally in a run of several processes, and where, in the order in which it happened.
    pub failures: Vec<String>,
    /// Where the counts come from.
    pub origin: Origin,
    /// Names of the passes. A simulated run counts everything in one pass; a processor has few counters, so a
    /// measurement repeats the program with different events.
    pub passes: Vec<String>,
    /// Regions, starting with the whole run.
    pub regions: Vec<Region>,
    /// How the run was sampled, if its counts are estimates.
    pub sample: Option<Sample>,
    /// The part of the run that was timed and counted; `None`: all of it.
    pub part: Option<Part>,
    /// Counts by time interval, for each pass that has them.
    pub intervals: Vec<Intervals>,
    /// Processes, and their calls of MPI.
    pub parallel: Parallel,
    /// Pages, by ascending segment, size and node.
    pub pages: Vec<Pages>,
    /// Files that code was mapped from, starting with the program's own.
    pub files: Vec<CodeFile>,
    /// Stall causes recorded for each instruction; empty if not recorded.
    pub stalls: Vec<String>,
    /// Pipes whose use is recorded for each instruction; empty if not recorded.
    pub pipes: Vec<String>,
    /// Executed instructions, by ascending file and place.
    pub hot_spots: Vec<HotSpot>,
    /// What else is known of the code.
    pub profile: Profile,
}

impl Run {
    /// Returns the region called `name`.
    #[must_use]
    pub fn region(&self, name: &str) -> Option<&Region> {
        self.regions.iter().find(|r| r.name == name)
    }

    /// Returns the program that the run is about: that of its ranks, or the one given; empty if unknown.
    #[must_use]
    pub fn subject(&self) -> &str {
        let rank = self.parallel.processes.iter().find(|process| process.rank.is_some());
        rank.map_or(self.program(), |process| &process.program)
    }

    /// Returns the program as given; empty if unknown.
    #[must_use]
    pub fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }
}
