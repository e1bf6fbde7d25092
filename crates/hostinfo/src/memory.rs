//! Page sizes that a Linux host offers, and those that a process got.
//!
//! [`read`] reads files of `/sys` and `/proc`. Everything else parses texts, so that other hosts can be examined as
//! well. What a kernel does not report is absent; what cannot be parsed is skipped with a note.

mod findings;
mod numa;
pub mod read;
mod segments;
mod smaps;
mod system;

pub use findings::{about_host, about_process};
pub use numa::{NumaMap, parse_numa_maps};
pub use segments::{Segment, SegmentUse};
pub use smaps::{Mapping, parse_smaps};
pub use system::{Files, Host, MultiSize, Node, Pool, Thp};

use std::path::Path;

use serde::Serialize;

/// What is known about a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Process {
    /// Process ID.
    pub pid: u32,
    /// Process name.
    pub name: String,
    /// The file that it executes.
    pub program: Option<String>,
    /// Whether the process may use transparent huge pages (`prctl(PR_SET_THP_DISABLE)` forbids them).
    pub thp_enabled: Option<bool>,
    /// Memory by segment.
    pub segments: Vec<SegmentUse>,
    /// Mappings, by ascending address.
    pub mappings: Vec<Mapping>,
    /// What could not be read or parsed.
    pub notes: Vec<String>,
}

/// Contents of the kernel's files about a process.
#[derive(Clone, Debug, Default)]
pub struct ProcessTexts {
    /// `smaps`.
    pub smaps: String,
    /// `numa_maps`, if it can be read.
    pub numa_maps: Option<String>,
    /// `status`.
    pub status: String,
    /// Target of the link `exe`.
    pub exe: Option<String>,
}

impl Process {
    /// Parses the texts about a process.
    #[must_use]
    pub fn parse(pid: u32, texts: &ProcessTexts) -> Process {
        let mut notes = Notes::default();
        let mut mappings = parse_smaps(&texts.smaps, &mut notes);
        match &texts.numa_maps {
            Some(text) => numa::join(&mut mappings, &parse_numa_maps(text, &mut notes)),
            None => notes.add("numa_maps cannot be read: the nodes of pages are unknown".to_owned()),
        }
        let deleted = |path: &str| path.trim_end_matches(" (deleted)").to_owned();
        let program = texts.exe.as_deref().map(deleted);
        let segments = segments::sum(&mut mappings, program.as_deref());
        let status = |key: &str| {
            let value = texts.status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            value.map(|value| value.trim().to_owned())
        };
        Process {
            pid,
            name: status("Name").unwrap_or_default(),
            program,
            thp_enabled: status("THP_enabled").map(|value| value != "0"),
            segments,
            mappings,
            notes: notes.into_lines(),
        }
    }
}

/// Maximum number of notes kept for one kind of text.
const MAX_NOTES: usize = 10;

/// What was skipped, and why.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    lines: Vec<String>,
    more: usize,
}

impl Notes {
    /// Adds a note.
    pub fn add(&mut self, note: String) {
        if self.lines.len() < MAX_NOTES { self.lines.push(note) } else { self.more += 1 }
    }

    /// Returns the notes; only the first, if there are many.
    #[must_use]
    pub fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("{} more of this kind", self.more));
        }
        self.lines
    }
}

/// Returns the beginning of a text that cannot be parsed, safe to quote.
fn quoted(text: &str) -> String {
    let mut short: String = fxscope_host::text::printable(text).chars().take(40).collect();
    if text.chars().nth(40).is_some() {
        short.push('…');
    }
    short
}

/// Returns the memory that new programs can have without swapping, bytes: `MemAvailable` of `/proc/meminfo` below `root`
/// (`proc_meminfo(5)`). `None` if the kernel does not say.
#[must_use]
pub fn available(root: &Path) -> Option<u64> {
    const KIB: u64 = 1024;
    let text = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(KIB)
}

/// Formats a number of bytes in the largest fitting binary unit, such as 64 KiB or 3.1 GiB.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let Some((unit, name)) = UNITS.into_iter().find(|(unit, _)| bytes >= *unit) else { return format!("{bytes} B") };
    if bytes.is_multiple_of(unit) {
        format!("{} {name}", bytes / unit)
    } else {
        format!("{:.1} {name}", bytes as f64 / unit as f64)
    }
}
