//! `perf stat`: its text, its lines of separated values (`-x`), its JSON (`-j`); each of a whole program, by CPU (`-A`) or by
//! thread (`--per-thread`), repeated (`-r`, means) or by interval (`-I`, sums).
//!
//! A file is a pass. Files that counted the same events are repeated measurements, and become runs of their own.

mod json;
mod separated;
mod text;

use fxscope_record::{ALL, Run};

use crate::rows::{self, Pass, Who};
use crate::{Machine, Problem, Source, event_name};

/// How to read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The program and its arguments, where they are known; perf's text tells them.
    pub command: Vec<String>,
    /// Take counts of events that had a counter for a part of the time only, as perf has scaled them.
    pub scaled: bool,
}

/// One count.
struct Line<'a> {
    /// Line in the file, from 1.
    number: usize,
    who: Who,
    /// As it stands.
    value: &'a str,
    /// perf's unit, empty for events.
    unit: &'a str,
    event: &'a str,
    /// How much of the time the event had a counter, percent.
    counted: Option<f64>,
}

/// What a file says.
#[derive(Default)]
struct Contents<'a> {
    lines: Vec<Line<'a>>,
    /// The command line, where it is told.
    command: Option<String>,
    /// Seconds that went by.
    seconds: Option<f64>,
}

/// Reads what `perf stat` wrote.
///
/// # Errors
/// What is wrong, and in which file and line: no output of perf, counts that are missing, scaled or make no sense, files of
/// different programs or threads.
pub fn read(sources: &[Source<'_>], machine: &Machine, options: &Options) -> Result<Vec<Run>, Problem> {
    let mut passes = Vec::new();
    for source in sources {
        passes.push((*source, pass(source, machine, options)?));
    }
    rows::runs("perf", passes, machine, &options.command)
}

/// Reads one file.
fn pass(source: &Source<'_>, machine: &Machine, options: &Options) -> Result<Pass, Problem> {
    let text = source.text()?;
    let contents = if json::is(text) {
        json::read(source, text)?
    } else if text::is(text) {
        text::read(text)
    } else {
        separated::read(source, text)?
    };
    let mut pass = Pass { command: contents.command, ..Pass::default() };
    let rows = pass.region(ALL);
    let mut seconds = contents.seconds;
    for line in &contents.lines {
        let problem = |what: String| Err(source.problem(Some(line.number), what));
        let absent = match line.value {
            "<not counted>" => Some("was not counted: no time was left for it, or the program did not run there"),
            "<not supported>" => Some("is not supported by this system's counters: leave it out"),
            _ => None,
        };
        if let Some(why) = absent {
            return problem(format!("{} {why}", line.event));
        }
        // Times, and what other kernel subsystems count, are no events of the processor.
        if line.event == "duration_time" {
            seconds = Some(number(line.value).map_or(0.0, |ns| ns as f64 * 1e-9) + seconds.unwrap_or(0.0));
            continue;
        }
        if !line.unit.is_empty() {
            continue;
        }
        let Some(count) = number(line.value) else {
            return problem(format!("'{}' is no count of {}", line.value, line.event));
        };
        if line.counted.is_some_and(|percent| percent < 99.995) && !options.scaled {
            return problem(format!(
                "{} had a counter for {} % of the time only, so that its count is an estimate: count fewer events at a \
                 time, or take the estimate with --scaled",
                line.event,
                line.counted.unwrap_or_default()
            ));
        }
        if let Err(what) = rows.add(&line.who, event_name(&machine.events, line.event), count) {
            return problem(what);
        }
    }
    if let Some(seconds) = seconds {
        rows.set_seconds(None, seconds, machine);
    }
    let note = match rows.counts.keys().next() {
        None => return Err(source.problem(None, "has no counts of perf stat".to_owned())),
        Some(Who::Program) => Some("perf counted all threads of the program together"),
        Some(Who::Thread { .. }) => Some("perf did not tell the CPUs that threads ran on"),
        Some(Who::Cpu(_)) => None,
    };
    let estimates = options.scaled.then_some("counts may be estimates: events took turns on the counters (--scaled)");
    pass.notes.extend(note.into_iter().chain(estimates).map(str::to_owned));
    Ok(pass)
}

/// A whole number as perf writes it: with separators of thousands, or as a fraction of nothing.
fn number(text: &str) -> Option<u64> {
    let whole = text.strip_suffix(".000000").unwrap_or(text);
    let digits: String = whole.chars().filter(|c| !matches!(c, ',' | '.' | '\'' | '\u{a0}' | '\u{202f}')).collect();
    digits.parse().ok()
}

/// Whose line it is by perf's words: `CPU3`, `name-1234`.
fn who(word: &str) -> Option<Who> {
    if let Some(cpu) = word.strip_prefix("CPU") {
        return cpu.parse().ok().map(Who::Cpu);
    }
    let (_, thread) = word.rsplit_once('-')?;
    Some(Who::Thread { process: 0, thread: thread.parse().ok()? })
}
