//! Traces of detours and their file format.
//!
//! A file begins with [`MAGIC`] and a byte with the format's version. Blocks follow, each with its kind, packed length,
//! unpacked length, checksum and DEFLATE-packed bytes, so that an interrupted measurement loses at most the last block.
//! The first block is the [`Header`] and the last one the [`Summary`], both in JSON. Between them are blocks with names
//! of causes, and blocks with detours of one core each, as differences in variable-length integers. Neither writing nor
//! reading holds more than one block in memory.

mod bytes;
mod read;
mod write;

pub use read::{Error, Item, Reader};
pub use write::Writer;

use std::io::Read as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// First bytes of a trace file.
pub const MAGIC: [u8; 7] = *b"fxnoise";
/// Format version that is written.
pub const VERSION: u8 = 1;

/// Returns whether a file is, or is meant to be, a trace: from its first bytes or its extension.
#[must_use]
pub fn is_trace(path: &Path) -> bool {
    let begin = || -> std::io::Result<_> {
        let mut begin = [0; MAGIC.len()];
        fxscope_host::open(path, u64::MAX)?.read_exact(&mut begin).map(|()| begin)
    };
    path.extension().is_some_and(|end| end == "fxn") || begin().is_ok_and(|begin| begin == MAGIC)
}

/// A stretch of time that a core spent on something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Detour {
    /// Start, ns since the start of the trace.
    pub start: u64,
    /// Length, ns.
    pub length: u64,
    /// Index of its cause in the trace, or [`UNKNOWN`].
    pub cause: u32,
}

impl Detour {
    /// Returns the end, ns.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }
}

/// Index of the unknown cause, which all traces have.
pub const UNKNOWN: u32 = 0;

/// What a core does during a detour.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cause {
    /// Kind.
    pub kind: Kind,
    /// Name that the system reports; empty if there is none.
    pub name: String,
}

/// Kinds of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Unknown.
    Unknown,
    /// A non-maskable interrupt.
    Nmi,
    /// An interrupt.
    Interrupt,
    /// A soft interrupt.
    SoftInterrupt,
    /// A kernel thread.
    KernelThread,
    /// A thread of a program.
    Task,
    /// The core was idle although the measuring thread could run: the kernel's real-time limit, or a control group's
    /// CPU quota, was exhausted.
    Throttling,
    /// The hypervisor ran something else.
    Hypervisor,
    /// Hardware or firmware, such as a system management interrupt.
    Hardware,
    /// The measurement itself.
    Own,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 10] = [
        Kind::Unknown,
        Kind::Nmi,
        Kind::Interrupt,
        Kind::SoftInterrupt,
        Kind::KernelThread,
        Kind::Task,
        Kind::Throttling,
        Kind::Hypervisor,
        Kind::Hardware,
        Kind::Own,
    ];

    /// Returns the display name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Unknown => "unknown",
            Kind::Nmi => "NMI",
            Kind::Interrupt => "interrupt",
            Kind::SoftInterrupt => "softirq",
            Kind::KernelThread => "kernel thread",
            Kind::Task => "task",
            Kind::Throttling => "throttling",
            Kind::Hypervisor => "hypervisor",
            Kind::Hardware => "hardware or firmware",
            Kind::Own => "the measurement",
        }
    }
}

impl Cause {
    /// Returns the unknown cause.
    #[must_use]
    pub fn unknown() -> Cause {
        Cause { kind: Kind::Unknown, name: String::new() }
    }

    /// Creates a cause of a kind.
    #[must_use]
    pub fn new(kind: Kind, name: impl Into<String>) -> Cause {
        Cause { kind, name: name.into() }
    }

    /// Returns the kind and name for display.
    #[must_use]
    pub fn label(&self) -> String {
        if self.name.is_empty() { self.kind.name().to_owned() } else { format!("{} {}", self.kind.name(), self.name) }
    }
}

/// How detours are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// A loop that reads the clock; a gap between two reads is a detour.
    Spin,
    /// Fixed work quantum: pieces of equal work; the time of a piece beyond the fastest is a detour.
    Fwq,
    /// Fixed time quantum: work done in intervals of equal length; work missing from an interval is a detour.
    Ftq,
    /// Blocks of a matrix multiplication on all cores, with barriers in between.
    Dgemm,
    /// Consecutive barriers of all cores.
    Barrier,
    /// Imported from another program.
    Imported,
}

impl Method {
    /// The loops that measure, by the names of options, each with what it does.
    pub const LOOPS: &[(&str, Method, &str)] = &[
        ("fwq", Method::Fwq, "Fixed work quantum: the same work over and over"),
        ("ftq", Method::Ftq, "Fixed time quantum: work done in equal intervals"),
        ("dgemm", Method::Dgemm, "Blocks of a matrix multiplication on all cores, then a barrier"),
        ("barrier", Method::Barrier, "Barriers of all cores, one after another"),
        ("spin", Method::Spin, "Reads the clock repeatedly: finds the shortest detours"),
    ];

    /// Returns the display name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Method::Spin => "spin",
            Method::Fwq => "fixed work quantum",
            Method::Ftq => "fixed time quantum",
            Method::Dgemm => "dgemm blocks",
            Method::Barrier => "barriers",
            Method::Imported => "imported",
        }
    }
}

/// What is known before the first detour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Host name.
    pub host: String,
    /// Kernel name and version.
    pub kernel: String,
    /// Processor.
    pub processor: String,
    /// Whether the host is a virtual machine, if known.
    pub virtual_machine: Option<bool>,
    /// How detours were found.
    pub method: Method,
    /// The program that measured, with its version or file format.
    pub program: String,
    /// The clock that was read, and how its rate is known.
    pub clock: String,
    /// Ticks of that clock per second; 0 if unknown.
    pub clock_hz: f64,
    /// The quantum, ns: the fastest piece of work, or an interval; 0 for methods without a quantum.
    pub quantum: u64,
    /// Shortest detour recorded, ns.
    pub threshold: u64,
    /// Requested duration, ns; 0 if unknown.
    pub wanted: u64,
    /// `CLOCK_MONOTONIC` at the start of the trace, ns; 0 if unknown.
    pub monotonic_start: u64,
    /// Start of the trace in seconds since 1970; 0 if unknown.
    pub unix_start: u64,
    /// Real-time priority of the measuring threads, if they had one.
    pub priority: Option<u8>,
    /// Cost of the measurement, if it was measured.
    pub overhead: Option<Overhead>,
    /// The measured cores.
    pub cores: Vec<CoreHeader>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

impl Header {
    /// Returns whether a cause is not noise of the host but a consequence of measuring it: the measurement's own work,
    /// or the kernel's real-time limit, which does not apply to other programs.
    #[must_use]
    pub fn comes_from_measuring(&self, cause: &Cause) -> bool {
        cause.kind == Kind::Own || cause.kind == Kind::Throttling && self.priority.is_some()
    }
}

/// A core before the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoreHeader {
    /// Core number.
    pub core: u32,
    /// The fastest iteration of the measuring loop during calibration, ns: an iteration of the spin loop, or a piece of
    /// work with a fixed time quantum. 0 if unknown.
    pub minimum: f64,
}

/// Cost of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Reading the clock, ns.
    pub read: f64,
    /// Recording a detour, ns.
    pub record: f64,
    /// Share of a quantum spent on reading the clock and bookkeeping; `None` for methods without a quantum.
    pub share: Option<f64>,
}

/// What is known after the last detour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Duration of the trace, ns.
    pub duration: u64,
    /// The measured cores.
    pub cores: Vec<CoreSummary>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// A core over the whole measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreSummary {
    /// Core number.
    pub core: u32,
    /// Iterations of the measuring loop.
    pub iterations: u64,
    /// The fastest iteration, ns, as in [`CoreHeader`].
    pub minimum: f64,
    /// Total time of all iterations, ns.
    pub total: f64,
    /// Part of it spent waiting for other cores at barriers, ns.
    pub waiting: f64,
    /// The longest detour, ns, in imported traces without individual detours; otherwise 0.
    #[serde(default)]
    pub longest: u64,
    /// Detours that were found but could not be recorded.
    pub dropped: u64,
    /// How often the clock went back.
    pub backward: u64,
    /// Iterations by time: bin i has those from 2^(i/4) to 2^((i+1)/4) ns. Empty bins at the end are omitted.
    pub histogram: Vec<u64>,
    /// What the kernel counted on this core during the measurement.
    pub counted: Vec<Counted>,
}

/// A count of the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// What was counted.
    pub cause: Cause,
    /// Number of occurrences, or time in ns.
    pub amount: u64,
    /// Whether the amount is a time.
    pub time: bool,
}

/// Bins per octave in histograms of times.
pub const BINS_PER_OCTAVE: u32 = 4;

/// Returns the bin of a time in ns: the largest i with 2^(i/4) ≤ time; 0 below a nanosecond.
#[must_use]
pub fn bin(time: u64) -> usize {
    let Some(octave) = time.checked_ilog2() else { return 0 };
    // Starts of the quarters of an octave, in 1/65536 of its start: 2^(1/4), 2^(2/4), 2^(3/4), rounded up.
    const QUARTERS: [u64; 3] = [77_936, 92_682, 110_218];
    let mantissa = if octave >= 16 { time >> (octave - 16) } else { time << (16 - octave) };
    let quarter = QUARTERS.iter().filter(|&&begin| mantissa >= begin).count();
    octave as usize * BINS_PER_OCTAVE as usize + quarter
}

/// Returns the start of a bin, ns.
#[must_use]
pub fn bin_begin(bin: usize) -> f64 {
    f64::exp2(bin as f64 / f64::from(BINS_PER_OCTAVE))
}
