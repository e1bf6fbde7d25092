//! Imports `perf stat` output as text, separated values (`-x`) or JSON (`-j`): of a whole program, by CPU (`-A`), by
//! thread (`--per-thread`) or by control group (`--for-each-cgroup`, a region for each), repeated (`-r`, means), or by
//! interval (`-I`; totals and a series).
//!
//! Each file is a pass. Files with the same events are repeated measurements, and become separate runs.

mod fields;
mod json;
mod pass;
mod separated;
mod text;

use std::borrow::Cow;

use fxscope_record::Run;

use crate::number::Marks;
use crate::rows::{self, Who};
use crate::{FileError, Machine, Options, Source};

/// Message for counts by core, die, socket or node.
const NOT_BY_CPU: &str =
    "counts by core, die, socket or node cannot be read, since their CPUs are unknown: measure by CPU with -A";
/// perf's words instead of a count.
const NOT_COUNTED: &str = "<not counted>";
const NOT_SUPPORTED: &str = "<not supported>";

/// One count, as written.
struct Line<'a> {
    /// Line number in the file, from 1.
    number: usize,
    /// End of its interval, seconds, for counts by interval.
    interval: Option<Cow<'a, str>>,
    /// Whether it is a sum over all intervals (`--summary`).
    summary: bool,
    who: Who,
    /// The control group that was counted, if there are several.
    cgroup: &'a str,
    value: &'a str,
    /// perf's unit; empty for events.
    unit: &'a str,
    event: String,
    /// Share of the time that the event was counted, percent.
    counted: Option<Cow<'a, str>>,
}

impl Line<'_> {
    /// Returns the share of the time that the event was counted, percent.
    fn percent(&self, marks: Marks) -> Option<f64> {
        marks.real(self.counted.as_deref()?).ok()
    }

    /// Returns whether it was counted all the time.
    fn is_exact(&self, marks: Marks) -> bool {
        self.percent(marks).is_none_or(|percent| percent >= 99.995)
    }

    /// Returns whether there was nothing to count: a thread that did not run, or a program in one of several intervals.
    fn is_idle(&self, marks: Marks) -> bool {
        let part = self.interval.is_some() || matches!(self.who, Who::Thread { .. });
        part && self.value == NOT_COUNTED && self.is_exact(marks)
    }

    /// Returns why there is no count.
    fn absence(&self) -> Option<&'static str> {
        match self.value {
            NOT_COUNTED => Some("was not counted: it never got a counter, or the program did not run there"),
            NOT_SUPPORTED => Some("is not supported by this system's counters: omit it"),
            _ => None,
        }
    }
}

/// The contents of a file.
#[derive(Default)]
struct Contents<'a> {
    lines: Vec<Line<'a>>,
    /// The command line, if known.
    command: Option<String>,
    /// Elapsed seconds.
    seconds: Option<&'a str>,
    /// Further numbers of perf, which show what its marks mean.
    others: Vec<&'a str>,
}

impl Contents<'_> {
    /// What point and comma mean in the file.
    fn marks(&self) -> Marks {
        let of_lines =
            self.lines.iter().flat_map(|line| [Some(line.value), line.counted.as_deref(), line.interval.as_deref()]);
        Marks::of(of_lines.chain([self.seconds]).flatten().chain(self.others.iter().copied()))
    }
}

/// Reads output of `perf stat`.
///
/// # Errors
/// Errors with file and line: not output of perf, scaled or invalid counts, files of different programs or threads;
/// with [`Options::strict`] also values that cannot be taken as they are.
pub fn read(sources: &[Source<'_>], machine: &Machine, options: &Options) -> Result<Vec<Run>, FileError> {
    let mut passes = Vec::new();
    for source in sources {
        let text = source.text()?;
        let mut pass = pass::of(source, contents(source, &text.text)?, machine, options)?;
        pass.notes.extend(text.note());
        passes.push((*source, pass));
    }
    rows::runs("perf", passes, machine, &options.command)
}

/// Parses a file in any of perf's formats.
fn contents<'a>(source: &Source<'_>, text: &'a str) -> Result<Contents<'a>, FileError> {
    if json::is(text) {
        json::read(source, text)
    } else if text::is(text) {
        text::read(source, text)
    } else {
        separated::read(source, text)
    }
}

/// Parses perf's words for CPU or thread: `CPU3`, `name-1234`.
fn who(word: &str) -> Option<Who> {
    if let Some(cpu) = word.strip_prefix("CPU") {
        return cpu.parse().ok().map(Who::Cpu);
    }
    let (_, thread) = word.rsplit_once('-')?;
    Some(Who::Thread { process: 0, thread: thread.parse().ok()? })
}

/// Returns whether a word is perf's name of a part of the computer: `S0`, `S0-D0`, `S0-D0-C3`, `S0-D0-L3-ID0`, `N1`.
fn is_part(word: &str) -> bool {
    let mut parts = word.split('-');
    let numbered = |part: &str| {
        let name = part.trim_end_matches(|c: char| c.is_ascii_digit());
        name.len() < part.len() && matches!(name, "S" | "D" | "C" | "N" | "L" | "ID" | "CLS")
    };
    parts.next().is_some_and(|part| part.starts_with(['S', 'N']) && numbered(part)) && parts.all(numbered)
}
