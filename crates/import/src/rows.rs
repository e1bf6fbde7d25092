//! Counts by name for each thread, as most tools write them, and how files of them become runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use fxscope_pmu::{CALLS, TICKS};
use fxscope_record::{Counts, Names, Region, Run, Thread};

use crate::{Machine, Problem, Source};

/// Whose counts these are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Who {
    /// All of the program.
    Program,
    /// What ran on a CPU.
    Cpu(u32),
    /// A thread that is known by a number only.
    Thread { process: u32, thread: u64 },
}

/// The counts of one region by thread and event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    pub(crate) name: String,
    pub(crate) calls: u64,
    pub(crate) counts: BTreeMap<Who, BTreeMap<String, u64>>,
}

impl Rows {
    /// Adds to a count. `Err`: more than a counter holds.
    pub(crate) fn add(&mut self, who: &Who, event: String, count: u64) -> Result<(), String> {
        let row = self.counts.entry(who.clone()).or_default();
        let sum = row.get(&event).copied().unwrap_or(0).checked_add(count).filter(|&sum| sum < u64::MAX);
        row.insert(event.clone(), sum.ok_or_else(|| format!("{event} is more than a counter holds"))?);
        Ok(())
    }

    /// The time that a thread was in the region, or all of them.
    pub(crate) fn set_seconds(&mut self, who: Option<&Who>, seconds: f64, machine: &Machine) {
        let Some(timer_hz) = machine.constants.get("timer_hz") else { return };
        let ticks = (seconds * timer_hz).round() as u64;
        for (whose, row) in &mut self.counts {
            if who.is_none_or(|who| who == whose) {
                row.insert(TICKS.to_owned(), ticks);
            }
        }
    }
}

/// What one file has counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pass {
    pub(crate) regions: Vec<Rows>,
    /// The command line, where it is told.
    pub(crate) command: Option<String>,
    pub(crate) notes: Vec<String>,
}

impl Pass {
    /// The region called `name`, which may be new.
    pub(crate) fn region(&mut self, name: &str) -> &mut Rows {
        let known = self.regions.iter().position(|region| region.name == name).unwrap_or_else(|| {
            self.regions.push(Rows { name: name.to_owned(), calls: 1, ..Rows::default() });
            self.regions.len() - 1
        });
        &mut self.regions[known]
    }

    /// What tells one pass from another: the events that it has counted.
    pub(crate) fn events(&self) -> Vec<&String> {
        let rows = self.regions.iter().flat_map(|region| region.counts.values());
        let mut names: Vec<_> =
            rows.flat_map(BTreeMap::keys).filter(|name| ![TICKS, CALLS].contains(&&***name)).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// A file and what it has counted.
pub(crate) type Read<'a> = (Source<'a>, Pass);

/// The runs that files of a format make: those with different events are passes of one run, those with the same events
/// runs of their own.
pub(crate) fn runs(
    format: &str,
    passes: Vec<Read<'_>>,
    machine: &Machine,
    command: &[String],
) -> Result<Vec<Run>, Problem> {
    same_program(&passes)?;
    let mut repeats: Vec<Vec<Read<'_>>> = Vec::new();
    for (source, pass) in passes {
        let has = |run: &[Read<'_>]| run.iter().any(|(_, other)| other.events() == pass.events());
        match repeats.iter_mut().find(|run| !has(run)) {
            Some(run) => run.push((source, pass)),
            None => repeats.push(vec![(source, pass)]),
        }
    }
    repeats.iter().map(|passes| run(format, passes, machine, command)).collect()
}

/// All files that tell a command tell the same.
fn same_program(passes: &[Read<'_>]) -> Result<(), Problem> {
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
fn run(format: &str, passes: &[Read<'_>], machine: &Machine, command: &[String]) -> Result<Run, Problem> {
    let sources: Vec<Source<'_>> = passes.iter().map(|(source, _)| *source).collect();
    let (first, whole) = &passes[0];
    for (source, pass) in &passes[1..] {
        alike(source, pass, first, whole)?;
    }
    let mut command = command.to_vec();
    if let (true, Some(told)) = (command.is_empty(), &whole.command) {
        command = told.split(' ').map(str::to_owned).collect();
    }
    let names = sources.iter().map(|source| source.name.to_owned()).collect();
    let mut run = machine.run(format, command, &sources, names);
    for rows in &whole.regions {
        let of_all = passes.iter().filter_map(|(_, pass)| pass.regions.iter().find(|r| r.name == rows.name));
        run.regions.push(region(rows, of_all));
    }
    for note in passes.iter().flat_map(|(_, pass)| &pass.notes) {
        if !run.notes.contains(note) {
            run.notes.push(note.clone());
        }
    }
    Ok(run)
}

/// A pass has the regions and threads of the first one.
fn alike(source: &Source<'_>, pass: &Pass, first: &Source<'_>, whole: &Pass) -> Result<(), Problem> {
    let problem = |what: String| Err(source.problem(None, what));
    let lacks = |a: &Pass, b: &Pass| a.regions.iter().find(|r| b.regions.iter().all(|o| o.name != r.name)).cloned();
    if let Some(region) = lacks(whole, pass) {
        return problem(format!(
            "has no region '{}', which {} has: import runs of one program",
            region.name, first.name
        ));
    }
    if let Some(region) = lacks(pass, whole) {
        return problem(format!(
            "has the region '{}', which {} has not: import runs of one program",
            region.name, first.name
        ));
    }
    for region in &whole.regions {
        let other = pass.regions.iter().find(|r| r.name == region.name);
        if other.is_some_and(|other| !other.counts.keys().eq(region.counts.keys())) {
            let what = "counts other CPUs or threads than";
            return problem(format!("{what} {} in '{}': measure all passes alike", first.name, region.name));
        }
    }
    Ok(())
}

/// A region of all its passes.
fn region<'a>(first: &Rows, passes: impl Iterator<Item = &'a Rows>) -> Region {
    let threads = first.counts.keys().enumerate().map(|(place, who)| thread(place, who)).collect();
    Region { name: first.name.clone(), calls: first.calls, threads, passes: passes.map(table).collect() }
}

fn thread(place: usize, who: &Who) -> Thread {
    let thread = u32::try_from(place).unwrap_or(u32::MAX);
    match *who {
        Who::Program => Thread { thread, ..Thread::default() },
        Who::Cpu(cpu) => Thread { thread, cpu, ..Thread::default() },
        Who::Thread { process, .. } => Thread { process, thread, ..Thread::default() },
    }
}

fn table(rows: &Rows) -> Counts {
    let names: Arc<Names> = Arc::new(rows.counts.values().flat_map(|row| row.keys().cloned()).collect());
    let mut counts = Counts::new(Arc::clone(&names), rows.counts.len());
    for (thread, row) in rows.counts.values().enumerate() {
        for (name, &count) in row {
            counts.set(thread, names.index(name).expect("collected above"), count);
        }
    }
    counts
}
