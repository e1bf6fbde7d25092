//! Imports `perf stat` output as text, separated values (`-x`) or JSON (`-j`): of a whole program, by CPU (`-A`) or by
//! thread (`--per-thread`), repeated (`-r`, means), or by interval (`-I`; totals and a series).
//!
//! Each file is a pass. Files with the same events are repeated measurements, and become separate runs.

mod intervals;
mod json;
mod separated;
mod text;

use std::collections::HashMap;

use fxscope_record::{ALL, Run};

use crate::rows::{self, Pass, Who};
use crate::{FileError, Machine, Source, event_name};
use intervals::Series;

/// Options of the import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The program and its arguments, if known; perf's text output contains them.
    pub command: Vec<String>,
    /// Accept counts of events that were multiplexed, as scaled by perf.
    pub scaled: bool,
}

/// Message for counts by core, die, socket or node.
const NOT_BY_CPU: &str =
    "counts by core, die, socket or node cannot be read, since their CPUs are unknown: measure by CPU with -A";

/// One count.
struct Line<'a> {
    /// Line number in the file, from 1.
    number: usize,
    /// End of its interval, seconds, for counts by interval.
    interval: Option<f64>,
    who: Who,
    /// The value as written.
    value: &'a str,
    /// perf's unit; empty for events.
    unit: &'a str,
    event: &'a str,
    /// Share of the time that the event was counted, percent.
    counted: Option<f64>,
}

impl Line<'_> {
    /// Returns whether it was counted all the time.
    fn is_exact(&self) -> bool {
        self.counted.is_none_or(|percent| percent >= 99.995)
    }

    /// Returns whether there was nothing to count: a thread that did not run, or a program in one of several intervals.
    fn is_idle(&self) -> bool {
        let part = self.interval.is_some() || matches!(self.who, Who::Thread { .. });
        part && self.value == "<not counted>" && self.is_exact()
    }

    /// Returns why there is no count.
    fn absence(&self) -> Option<String> {
        let why = match self.value {
            "<not counted>" => "was not counted: it never got a counter, or the program did not run there",
            "<not supported>" => "is not supported by this system's counters: omit it",
            _ => return None,
        };
        Some(format!("{} {why}", self.event))
    }
}

/// The contents of a file.
#[derive(Default)]
struct Contents<'a> {
    lines: Vec<Line<'a>>,
    /// The command line, if known.
    command: Option<String>,
    /// Elapsed seconds.
    seconds: Option<f64>,
}

/// Reads output of `perf stat`.
///
/// # Errors
/// Errors with file and line: not output of perf, missing, scaled or invalid counts, files of different programs or
/// threads.
pub fn read(sources: &[Source<'_>], machine: &Machine, options: &Options) -> Result<Vec<Run>, FileError> {
    let mut passes = Vec::new();
    for source in sources {
        passes.push((*source, pass(source, machine, options)?));
    }
    rows::runs("perf", passes, machine, &options.command)
}

/// Reads one file.
fn pass(source: &Source<'_>, machine: &Machine, options: &Options) -> Result<Pass, FileError> {
    let contents = contents(source)?;
    let mut pass = Pass { command: contents.command, ..Pass::default() };
    let mut seconds = contents.seconds.or_else(|| contents.lines.last()?.interval);
    let mut seen = Seen::default();
    let mut series = Series::default();
    let rows = pass.region(ALL);
    for line in &contents.lines {
        let problem = |what: String| source.problem(Some(line.number), what);
        if line.is_idle() {
            series.add(line, &event_name(&machine.pmu.events, line.event), None).map_err(problem)?;
            continue;
        }
        if let Some(why) = line.absence() {
            return Err(problem(why));
        }
        // Times and software events are not processor events.
        if line.event == "duration_time" {
            if line.interval.is_none() {
                seconds = number(line.value).map(|ns| ns as f64 * 1e-9);
            }
            continue;
        }
        if !line.unit.is_empty() {
            continue;
        }
        let count = count(line, options).map_err(problem)?;
        let name = event_name(&machine.pmu.events, line.event);
        if seen.is_new(line, &name).map_err(problem)? {
            series.add(line, &name, Some(count)).map_err(problem)?;
            rows.add(&line.who, name, count).map_err(problem)?;
        }
    }
    if let Some(seconds) = seconds {
        rows.set_seconds(None, seconds, machine);
    }
    let note = match rows.counts.keys().next() {
        None => return Err(source.problem(None, "has no counts of perf stat".to_owned())),
        Some(Who::Program) => Some("perf counted all threads of the program together"),
        Some(Who::Thread { .. }) => Some("perf did not report the CPUs of threads"),
        Some(Who::Cpu(_)) => None,
    };
    let estimates = options.scaled.then_some("counts may be estimates: events were multiplexed (--scaled)");
    pass.intervals = series.finish(source, machine)?;
    pass.notes.extend(note.into_iter().chain(estimates).map(str::to_owned).chain(seen.twice));
    Ok(pass)
}

/// Parses a file in any of perf's formats.
fn contents<'a>(source: &Source<'a>) -> Result<Contents<'a>, FileError> {
    let text = source.text()?;
    if json::is(text) {
        json::read(source, text)
    } else if text::is(text) {
        text::read(source, text)
    } else {
        separated::read(source, text)
    }
}

/// The events in the lines so far.
#[derive(Default)]
struct Seen<'a> {
    /// For each thread and event: the name in its last line, and the interval.
    counted: HashMap<(Who, String), (&'a str, Option<f64>)>,
    /// Note about the first event that was counted several times at once.
    twice: Option<String>,
}

impl<'a> Seen<'a> {
    /// Returns whether the count of a line, of the event `name`, is new. Fails if that is ambiguous.
    fn is_new(&mut self, line: &Line<'a>, name: &str) -> Result<bool, String> {
        match self.counted.insert((line.who.clone(), name.to_owned()), (line.event, line.interval)) {
            Some((other, _)) if other != line.event => {
                let what = "are the same event of the machine, whose counts would be summed: omit one of them";
                Err(format!("{other} and {} {what}", line.event))
            }
            Some((_, before)) if before == line.interval => {
                let what = "was counted several times at once; the first count is taken";
                self.twice.get_or_insert_with(|| format!("{name} {what}"));
                Ok(false)
            }
            _ => Ok(true),
        }
    }
}

/// The count of a line. Fails if it is invalid.
fn count(line: &Line, options: &Options) -> Result<u64, String> {
    let Some(count) = number(line.value) else {
        return Err(format!("'{}' is not a count of {}", line.value, line.event));
    };
    if !line.is_exact() && !options.scaled {
        return Err(format!(
            "{} had a counter for {} % of the time only, so that its count is an estimate: count fewer events at a \
             time, or take the estimate with --scaled",
            line.event,
            line.counted.unwrap_or_default()
        ));
    }
    Ok(count)
}

/// Parses an integer as perf writes it: with thousands separators, or with a zero fraction.
fn number(text: &str) -> Option<u64> {
    let whole = text.strip_suffix(".000000").unwrap_or(text);
    let digits: String = whole.chars().filter(|c| !matches!(c, ',' | '.' | '\'' | '\u{a0}' | '\u{202f}')).collect();
    digits.parse().ok()
}

/// Parses perf's words for CPU or thread: `CPU3`, `name-1234`.
fn who(word: &str) -> Option<Who> {
    if let Some(cpu) = word.strip_prefix("CPU") {
        return cpu.parse().ok().map(Who::Cpu);
    }
    let (_, thread) = word.rsplit_once('-')?;
    Some(Who::Thread { process: 0, thread: thread.parse().ok()? })
}

/// Returns whether a word is perf's name of a part of the computer: `S0`, `S0-D0`, `S0-D0-C3`, `N1`.
fn is_part(word: &str) -> bool {
    let mut parts = word.split('-');
    let numbered = |part: &str| part.strip_prefix(['S', 'D', 'C', 'N']).is_some_and(|n| n.parse::<u32>().is_ok());
    parts.next().is_some_and(|part| part.starts_with(['S', 'N']) && numbered(part)) && parts.all(numbered)
}
