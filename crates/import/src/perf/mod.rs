//! `perf stat`: its text, its lines of separated values (`-x`), its JSON (`-j`); each of a whole program, by CPU (`-A`) or by
//! thread (`--per-thread`), repeated (`-r`, means) or by interval (`-I`, sums).
//!
//! A file is a pass. Files that counted the same events are repeated measurements, and become runs of their own.

mod json;
mod separated;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use fxscope_record::{ALL, Counts, Names, Region, Run, Thread};

use crate::{Machine, Problem, Source, event_name};

/// How to read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The program and its arguments, where they are known; perf's text tells them.
    pub command: Vec<String>,
    /// Take counts of events that had a counter for a part of the time only, as perf has scaled them.
    pub scaled: bool,
}

/// Whose count a line has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    /// All of the program.
    Program,
    Cpu(u32),
    /// By its number in the system.
    Thread(u64),
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

/// The counts of a file.
struct Pass {
    counts: BTreeMap<Who, BTreeMap<String, u64>>,
    command: Option<String>,
}

/// Time that passes, in ticks of the machine's timer, which the processor's own counter has in other measurements.
const TIME: &str = "CNTVCT";

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
    same_program(&passes)?;
    let mut repeats: Vec<Vec<(Source<'_>, Pass)>> = Vec::new();
    for (source, pass) in passes {
        let has = |run: &[(Source<'_>, Pass)]| run.iter().any(|(_, other)| names(other) == names(&pass));
        match repeats.iter_mut().find(|run| !has(run)) {
            Some(run) => run.push((source, pass)),
            None => repeats.push(vec![(source, pass)]),
        }
    }
    repeats.iter().map(|passes| run(passes, machine, options)).collect()
}

fn names(pass: &Pass) -> Vec<&String> {
    let mut names: Vec<_> = pass.counts.values().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    names
}

/// All files that tell a command tell the same.
fn same_program(passes: &[(Source<'_>, Pass)]) -> Result<(), Problem> {
    let mut told = passes.iter().filter_map(|(source, pass)| Some((source, pass.command.as_ref()?)));
    let Some((first, command)) = told.next() else { return Ok(()) };
    match told.find(|(_, other)| *other != command) {
        None => Ok(()),
        Some((source, other)) => Err(source.problem(
            None,
            format!("is of '{other}', but {} is of '{command}': import runs of one program together", first.name),
        )),
    }
}

/// One measured run of files with different events.
fn run(passes: &[(Source<'_>, Pass)], machine: &Machine, options: &Options) -> Result<Run, Problem> {
    let sources: Vec<Source<'_>> = passes.iter().map(|(source, _)| *source).collect();
    let (first, whole) = &passes[0];
    let who: Vec<&Who> = whole.counts.keys().collect();
    for (source, pass) in passes {
        if !pass.counts.keys().eq(who.iter().copied()) {
            let what = format!("counts other CPUs or threads than {}: measure all passes alike", first.name);
            return Err(source.problem(None, what));
        }
    }
    let mut command = options.command.clone();
    if let (true, Some(told)) = (command.is_empty(), &whole.command) {
        command = told.split(' ').map(str::to_owned).collect();
    }
    let passes_named = sources.iter().map(|source| source.name.to_owned()).collect();
    let mut run = machine.run("perf", command, &sources, passes_named);
    let threads = who.iter().enumerate().map(|(i, who)| thread(i, who)).collect();
    let tables = passes.iter().map(|(_, pass)| table(pass)).collect();
    run.regions.push(Region { name: ALL.to_owned(), calls: 1, threads, passes: tables });
    match who[..] {
        [Who::Program] => run.notes.push("perf counted all threads of the program together".to_owned()),
        [Who::Thread(_), ..] => run.notes.push("perf did not tell the CPUs that threads ran on".to_owned()),
        _ => {}
    }
    if options.scaled {
        run.notes.push("counts may be estimates: events took turns on the counters (--scaled)".to_owned());
    }
    Ok(run)
}

fn thread(place: usize, who: &Who) -> Thread {
    let cpu = if let Who::Cpu(cpu) = who { *cpu } else { 0 };
    Thread { thread: u32::try_from(place).unwrap_or(u32::MAX), cpu, ..Thread::default() }
}

fn table(pass: &Pass) -> Counts {
    let names: Arc<Names> = Arc::new(pass.counts.values().flat_map(|row| row.keys().cloned()).collect());
    let mut counts = Counts::new(Arc::clone(&names), pass.counts.len());
    for (thread, row) in pass.counts.values().enumerate() {
        for (name, &count) in row {
            counts.set(thread, names.index(name).expect("collected above"), count);
        }
    }
    counts
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
    let mut pass = Pass { counts: BTreeMap::new(), command: contents.command };
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
        let row = pass.counts.entry(line.who.clone()).or_default();
        let sum = row.entry(event_name(&machine.events, line.event)).or_insert(0);
        let Some(total) = sum.checked_add(count).filter(|&total| total < u64::MAX) else {
            return problem(format!("{} is more than a counter holds", line.event));
        };
        *sum = total;
    }
    if pass.counts.is_empty() {
        return Err(source.problem(None, "has no counts of perf stat".to_owned()));
    }
    if let (Some(seconds), Some(&timer_hz)) = (seconds, machine.constants.get("timer_hz")) {
        let ticks = (seconds * timer_hz).round() as u64;
        for row in pass.counts.values_mut() {
            row.insert(TIME.to_owned(), ticks);
        }
    }
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
    thread.parse().ok().map(Who::Thread)
}
