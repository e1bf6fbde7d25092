//! What a Linux host offers of page sizes, and what one of its processes got.
//!
//! [`read`] fetches the texts of `/sys` and `/proc`; all else are functions over texts, so that those of other hosts can be
//! looked at as well. What a kernel does not have is absent, what is not understood is skipped and noted.

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

use serde::Serialize;

/// What is known of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The file it executes.
    pub program: Option<String>,
    /// Whether transparent huge pages are allowed to it (`prctl(PR_SET_THP_DISABLE)` forbids them).
    pub thp_enabled: Option<bool>,
    /// Its memory, summed by segment.
    pub segments: Vec<SegmentUse>,
    /// Its mappings, lowest address first.
    pub mappings: Vec<Mapping>,
    /// What was not understood or could not be read.
    pub notes: Vec<String>,
}

/// The texts of a process, as the kernel wrote them.
#[derive(Clone, Debug, Default)]
pub struct ProcessTexts {
    /// `smaps`.
    pub smaps: String,
    /// `numa_maps`, where there is one that can be read.
    pub numa_maps: Option<String>,
    /// `status`.
    pub status: String,
    /// Where the link `exe` leads.
    pub exe: Option<String>,
}

impl Process {
    /// Understands a process's texts.
    #[must_use]
    pub fn parse(pid: u32, texts: &ProcessTexts) -> Process {
        let mut notes = Notes::default();
        let mut mappings = parse_smaps(&texts.smaps, &mut notes);
        match &texts.numa_maps {
            Some(text) => numa::join(&mut mappings, &parse_numa_maps(text, &mut notes)),
            None => notes.add("numa_maps cannot be read: on which nodes pages lie is not known".to_owned()),
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

/// Most notes that are kept of one kind of text.
const MOST_NOTES: usize = 10;

/// What was skipped, and why.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    lines: Vec<String>,
    more: usize,
}

impl Notes {
    /// Adds a note.
    pub fn add(&mut self, note: String) {
        if self.lines.len() < MOST_NOTES { self.lines.push(note) } else { self.more += 1 }
    }

    /// The notes; of many the first.
    #[must_use]
    pub fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("{} more of this kind", self.more));
        }
        self.lines
    }
}

/// The beginning of a text that is not understood, fit to be quoted.
fn quoted(text: &str) -> String {
    let mut short: String = fxscope_host::text::printable(text).chars().take(40).collect();
    if text.chars().nth(40).is_some() {
        short.push('…');
    }
    short
}

/// A number of bytes in the largest binary unit of which there is one at least, such as 64 KiB or 3.1 GiB.
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
