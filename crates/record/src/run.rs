//! What is known about a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::counts::{Names, Region};

/// How much of the machine took part in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Everything: counts and cycles mean what the machine's PMU means by them.
    #[default]
    Timing,
    /// Results and instruction counts only; cycles are a nominal one nanosecond for each instruction.
    Functional,
}

/// Why a run is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The program ended with this status, 0–255.
    Exited(i32),
    /// A signal ended the program.
    Killed {
        /// The signal's number.
        signal: i32,
        /// Which signal, and where.
        message: String,
    },
    /// The instruction limit was reached.
    Limit,
    /// The user stopped it.
    Stopped,
    /// It could not go on, for the reason given.
    Failed(String),
    /// A measurement that does not tell.
    Unknown,
}

impl Finish {
    /// The status that a shell would show for the program, or `None` when it had not ended.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Finish::Exited(code) => Some(*code),
            Finish::Killed { signal, .. } => Some(128 + signal),
            Finish::Limit | Finish::Stopped | Finish::Failed(_) | Finish::Unknown => None,
        }
    }
}

/// The computer that did the work. Differs from run to run; nothing else in a [`Run`] does.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Host {
    /// Its processors.
    pub cpus: u32,
    /// Time the run took there, seconds.
    pub wall_seconds: f64,
    /// Instructions of the program for each microsecond of that time.
    pub mips: f64,
    /// Most memory used there, bytes.
    pub peak_rss_bytes: u64,
    /// Share of it that held the program's own memory, bytes.
    pub guest_bytes: u64,
}

/// Where the counts of a run come from.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Origin {
    /// The model.
    #[default]
    Simulated,
    /// A measurement, as another tool wrote it down.
    Imported {
        /// The tool's format.
        format: String,
        /// The files it was in, as given.
        files: Vec<String>,
    },
}

/// A file that code was mapped from.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CodeFile {
    /// Its path on the host.
    pub path: String,
    /// What [`crate::digest`] says of its contents; empty when it could not be read.
    pub digest: String,
}

/// What one instruction took.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct HotSpot {
    /// The file it is from, by its place in [`Run::files`]; none for code that is from no file, or it is not known.
    pub file: Option<u32>,
    /// Its offset in that file; its address when there is none. With the file, unique in a run.
    pub place: u64,
    /// Its address in the process that executed it first.
    pub address: u64,
    /// The function it belongs to, empty when unknown.
    pub function: String,
    /// Its distance from the function's start, bytes.
    pub offset: u64,
    /// Times it was executed.
    pub executions: u64,
    /// Cycles between its commit and the commit before it, summed up.
    pub cycles: u64,
    /// Cycles from the issue of its first flow to its commit, summed up.
    pub in_flight: u64,
    /// Cycles without commit that were charged to it, for each cause of [`Run::stalls`].
    pub stalls: Vec<u64>,
    /// Cycles in which it took each of [`Run::pipes`].
    pub pipes: Vec<u64>,
}

/// Pages of a segment and size on a memory node that a run had: the most at a time, those of all its processes together.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pages {
    /// What they are for: text, data, bss, heap, stack, thread_stack, mmap, shared or file.
    pub segment: String,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// The node, as the machine numbers it.
    pub node: u32,
    /// Pages.
    pub pages: u64,
    /// Bytes of them that the program has mapped.
    pub bytes: u64,
}

impl Pages {
    /// Bytes of the pages that are lost because only whole pages can be had.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.pages.saturating_mul(self.page_bytes).saturating_sub(self.bytes)
    }
}

/// What was counted in one interval of time, all threads together.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    /// When it ended, ns since the run's beginning; it began where the one before it ended.
    pub end_ns: u64,
    /// A count for each of [`Intervals::names`].
    pub counts: Vec<u64>,
}

/// What was counted in one interval of time after the other.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Intervals {
    /// The pass that counted it, by its place in [`Run::passes`].
    pub pass: usize,
    /// The region in which it was counted; [`crate::ALL`]: everywhere.
    pub region: String,
    /// What was counted. An event that a whole CMG counts has each CMG once.
    pub names: Names,
    /// In the order of time, from the run's beginning to its end. They need not be of one length.
    pub rows: Vec<Interval>,
}

/// What a record keeps of its machine's description, so that it can be read without it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Description {
    /// The machine's folder or file; none for a machine that comes with the program.
    pub path: Option<String>,
    /// Its events, as the text of a `pmu.csv`: those that it inherits included.
    pub pmu_csv: String,
    /// Which of them are counted together, as the text of a `groups.csv`.
    pub groups_csv: String,
}

/// One run of one program.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Name and version of the tool that made it.
    pub tool: String,
    /// The program and its arguments, as given.
    pub command: Vec<String>,
    /// Environment variables given to the program that bear on its speed, in the order given.
    pub environment: Vec<(String, String)>,
    /// The machine's name.
    pub machine: String,
    /// What was set differently from its description, key and value, in the order given.
    pub settings: Vec<(String, String)>,
    /// Digest of the machine's description with all settings applied; equal means equal machine.
    pub machine_hash: String,
    /// What its machine's description says of its events; none in records of older versions. Runs of one file share it.
    pub description: Option<Arc<Description>>,
    /// The machine's constants that metrics and predictions use, by name. All finite.
    pub constants: BTreeMap<String, f64>,
    /// How much was modelled.
    pub mode: Mode,
    /// Why it is over.
    pub finish: Finish,
    /// The host.
    pub host: Host,
    /// What a reader of the counts should know.
    pub notes: Vec<String>,
    /// Where the counts come from.
    pub origin: Origin,
    /// The passes that counts come from, by name. A simulated run counts everything in one; a processor has few counters,
    /// so that a measured run repeats the program, with other events each time.
    pub passes: Vec<String>,
    /// Parts of the run, the whole of it first.
    pub regions: Vec<Region>,
    /// What was counted in intervals of time, for each pass that has such a series.
    pub intervals: Vec<Intervals>,
    /// Pages it had, by ascending segment, size and node.
    pub pages: Vec<Pages>,
    /// Files that code was mapped from, the program's own first.
    pub files: Vec<CodeFile>,
    /// Causes by which cycles without commit are known for each instruction; none when they are not.
    pub stalls: Vec<String>,
    /// Pipes whose use is known for each instruction; none when it is not.
    pub pipes: Vec<String>,
    /// Instructions executed, by ascending file and place.
    pub hot_spots: Vec<HotSpot>,
}

impl Run {
    /// The region called `name`.
    #[must_use]
    pub fn region(&self, name: &str) -> Option<&Region> {
        self.regions.iter().find(|r| r.name == name)
    }

    /// The program as given; empty when unknown.
    #[must_use]
    pub fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }
}
