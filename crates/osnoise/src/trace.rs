//! Traces of detours and their file format.
//!
//! A file begins with [`MAGIC`] and the format's version, a byte. Blocks follow, each with its kind, its packed and its
//! unpacked length, a checksum and DEFLATE-packed bytes, so that a measurement that is cut off loses the last block at
//! most. The first block is the [`Header`] and the last one the [`Summary`], both as JSON; between them are blocks with the
//! names of causes and blocks with detours, each of one core, as differences in variable-length integers. Neither writing
//! nor reading holds more than a block.

mod bytes;
mod read;
mod write;

pub use read::{Error, Item, Reader};
pub use write::Writer;

use std::io::Read as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What a trace file begins with.
pub const MAGIC: [u8; 7] = *b"fxnoise";
/// The version of the format that is written.
pub const VERSION: u8 = 1;

/// Whether a file is a trace, or is meant to be one: by how it begins, or by its name's end.
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
    /// When it began, ns from the trace's begin.
    pub start: u64,
    /// How long it took, ns.
    pub length: u64,
    /// What it was: the number of a cause of the trace; [`UNKNOWN`] for none that is known.
    pub cause: u32,
}

impl Detour {
    /// When it was over, ns.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }
}

/// The number of the cause that all traces have: none is known.
pub const UNKNOWN: u32 = 0;

/// What a core does in a detour.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cause {
    /// Its kind.
    pub kind: Kind,
    /// Its name as the system tells it; empty where there is none.
    pub name: String,
}

/// Kinds of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Not known.
    Unknown,
    /// A non-maskable interrupt.
    Nmi,
    /// An interrupt.
    Interrupt,
    /// A soft interrupt.
    SoftInterrupt,
    /// A thread of the kernel.
    KernelThread,
    /// A thread of a program.
    Task,
    /// The core was idle though the measuring thread could run: the kernel's limit for real-time threads, or the processor
    /// time of a control group, was used up.
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

    /// Its name for people.
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
    /// The cause of detours about which nothing is known.
    #[must_use]
    pub fn unknown() -> Cause {
        Cause { kind: Kind::Unknown, name: String::new() }
    }

    /// A cause of a kind.
    #[must_use]
    pub fn new(kind: Kind, name: impl Into<String>) -> Cause {
        Cause { kind, name: name.into() }
    }

    /// Its kind and name for people.
    #[must_use]
    pub fn label(&self) -> String {
        if self.name.is_empty() { self.kind.name().to_owned() } else { format!("{} {}", self.kind.name(), self.name) }
    }
}

/// How detours were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// A loop that reads the clock; a gap between two reads is a detour.
    Spin,
    /// Fixed work quantum: pieces of equal work; what one takes beyond the fastest is a detour.
    Fwq,
    /// Fixed time quantum: work done in intervals of equal time; what is missing of the full work is a detour.
    Ftq,
    /// Blocks of a matrix multiplication on all cores, joined by barriers.
    Dgemm,
    /// Barriers of all cores, one after another.
    Barrier,
    /// Another program's trace.
    Imported,
}

impl Method {
    /// Its name for people.
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
    /// The host's name.
    pub host: String,
    /// The kernel's name and version.
    pub kernel: String,
    /// The processor.
    pub processor: String,
    /// Whether the host is a virtual machine, where that is known.
    pub virtual_machine: Option<bool>,
    /// How detours were found; for imported traces which program found them.
    pub method: Method,
    /// The program that measured, with its version or file format.
    pub program: String,
    /// The clock that was read, and how its rate is known.
    pub clock: String,
    /// Ticks of that clock each second; 0 where it is not known.
    pub clock_hz: f64,
    /// The quantum, ns: a piece of work at its fastest, or an interval; 0 for methods without one.
    pub quantum: u64,
    /// Shortest detour that is kept, ns.
    pub threshold: u64,
    /// How long the measurement was to take, ns; 0 where it is not known.
    pub wanted: u64,
    /// `CLOCK_MONOTONIC` at the trace's begin, ns; 0 where it is not known.
    pub monotonic_start: u64,
    /// Seconds since 1970 at the trace's begin; 0 where it is not known.
    pub unix_start: u64,
    /// Real-time priority of the measuring threads, if they had one.
    pub priority: Option<u8>,
    /// What the measurement costs, where it was measured.
    pub overhead: Option<Overhead>,
    /// The cores, with what was known of each before.
    pub cores: Vec<CoreHeader>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Header {
    /// Whether a cause is no noise of the host but comes from measuring it: the measurement's own work, and the kernel's limit
    /// of real-time threads, which other programs do not meet.
    #[must_use]
    pub fn comes_from_measuring(&self, cause: &Cause) -> bool {
        cause.kind == Kind::Own || cause.kind == Kind::Throttling && self.priority.is_some()
    }
}

/// A core before the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoreHeader {
    /// Its number.
    pub core: u32,
    /// The fastest iteration of the measuring loop in its calibration, ns: of the spin loop a round, with a fixed time
    /// quantum a piece of work. 0 where it is not known.
    pub minimum: f64,
}

/// What the measurement itself costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// One read of the clock, ns.
    pub read: f64,
    /// Keeping one detour, ns.
    pub record: f64,
    /// What reading the clock and keeping books take of a quantum, as a fraction; of methods without a quantum none.
    pub share: Option<f64>,
}

/// What is known after the last detour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How long the trace is, ns.
    pub duration: u64,
    /// What each core did.
    pub cores: Vec<CoreSummary>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A core over the whole measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreSummary {
    /// Its number.
    pub core: u32,
    /// Iterations of the measuring loop.
    pub iterations: u64,
    /// The fastest one, ns, as in [`CoreHeader`].
    pub minimum: f64,
    /// All together, ns.
    pub total: f64,
    /// Of this, the wait for other cores at barriers, ns.
    pub waiting: f64,
    /// The longest detour, ns, of imported traces without single detours; 0 for others.
    #[serde(default)]
    pub longest: u64,
    /// Detours that were found and could not be kept.
    pub dropped: u64,
    /// How often the clock went back.
    pub backward: u64,
    /// Iterations by their time: in bin i those from 2^(i/4) to 2^((i+1)/4) ns, without the empty bins at the end.
    pub histogram: Vec<u64>,
    /// What the system counted on this core meanwhile.
    pub counted: Vec<Counted>,
}

/// Something that the system counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// What it is.
    pub cause: Cause,
    /// How often it happened; for times, how many ns.
    pub amount: u64,
    /// Whether the amount is a time.
    pub time: bool,
}

/// Bins for each doubling in histograms of times.
pub const BINS_PER_OCTAVE: u32 = 4;

/// The bin of a time in ns: the largest i with 2^(i/4) ≤ time, 0 for less than a nanosecond.
#[must_use]
pub fn bin(time: u64) -> usize {
    let Some(octave) = time.checked_ilog2() else { return 0 };
    // Where the quarters of an octave begin, in 1/65536 of its beginning: 2^(1/4), 2^(2/4), 2^(3/4), rounded up.
    const QUARTERS: [u64; 3] = [77_936, 92_682, 110_218];
    let mantissa = if octave >= 16 { time >> (octave - 16) } else { time << (16 - octave) };
    let quarter = QUARTERS.iter().filter(|&&begin| mantissa >= begin).count();
    octave as usize * BINS_PER_OCTAVE as usize + quarter
}

/// Where a bin begins, ns.
#[must_use]
pub fn bin_begin(bin: usize) -> f64 {
    f64::exp2(bin as f64 / f64::from(BINS_PER_OCTAVE))
}
