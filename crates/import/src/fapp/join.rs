//! Passes of a measured program, and how they become one run.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fxscope_pmu::{CLOCKS, Groups};
use fxscope_record::{Counts, Names, Region, Run, Thread};

use crate::{Machine, Problem, Source};

/// What one pass has counted in a region.
pub(super) struct PassRegion {
    /// The region's name.
    pub name: String,
    /// Times it was entered, where that is known.
    pub calls: u64,
    /// Its threads in the order of processes and numbers, each by its place in [`Pass::threads`].
    pub threads: Vec<usize>,
    /// A row for each of them, a number for each of [`Pass::names`]; [`Counts::ABSENT`] for what was not counted.
    pub values: Vec<u64>,
}

/// What one run of a program has counted.
pub(super) struct Pass<'a> {
    /// The file it was in.
    pub source: &'a Source<'a>,
    /// Constants that the file tells, by name.
    pub constants: Vec<(&'static str, f64)>,
    /// What it has counted.
    pub names: Arc<Names>,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Numbers of the CMGs of threads, where the file tells them.
    pub cmgs: Vec<Option<u32>>,
    /// The parts of the program.
    pub regions: Vec<PassRegion>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// Makes a run of passes. Those that have counted a group of events as a whole come first, by its number.
///
/// # Errors
/// When the passes are not of the same program and input.
pub(super) fn join(mut passes: Vec<Pass>, machine: &Machine, command: Vec<String>) -> Result<Run, Problem> {
    let groups = Groups::of(&machine.name);
    passes.sort_by_key(|pass| group_of(pass, groups).unwrap_or(u8::MAX));
    for (i, pass) in passes.iter().enumerate() {
        check_same(&passes[0], pass)?;
        if let Some(other) = passes[..i].iter().find(|other| other.names == pass.names) {
            let what = format!("has the same events as {}; give one of the two", other.source.name);
            return Err(pass.source.problem(None, what));
        }
    }
    let names = passes.iter().map(|pass| match group_of(pass, groups) {
        Some(group) => format!("pa{group}"),
        None => stem(pass.source.name),
    });
    let sources: Vec<Source<'_>> = passes.iter().map(|pass| *pass.source).collect();
    let mut run = machine.run("fapp", command, &sources, names.collect());
    run.constants.extend(passes[0].constants.iter().map(|(name, value)| ((*name).to_owned(), *value)));
    if let Some(first_core) = first_core(&passes[0], machine)? {
        run.constants.insert("first_core".to_owned(), first_core);
    }
    run.notes = notes(&passes);
    run.regions = regions(passes)?;
    Ok(run)
}

/// The group of events that a pass has counted, and nothing else.
fn group_of(pass: &Pass, groups: &Groups) -> Option<u8> {
    let events: BTreeSet<&str> = pass.names.iter().filter(|name| !CLOCKS.contains(name)).collect();
    groups
        .iter()
        .find(|group| group.events.iter().map(String::as_str).collect::<BTreeSet<_>>() == events)
        .map(|g| g.number)
}

/// A file's name without folder and ending.
fn stem(file: &str) -> String {
    let name = std::path::Path::new(file).file_stem();
    name.map_or_else(|| file.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Refuses two passes of different programs or inputs.
fn check_same(first: &Pass, pass: &Pass) -> Result<(), Problem> {
    let error = |what: String| Err(pass.source.problem(None, what));
    for (name, value) in &first.constants {
        if let Some((_, other)) = pass.constants.iter().find(|c| c.0 == *name).filter(|c| c.1 != *value) {
            return error(format!(
                "{name} is {other}, in {} {value}: they are of different machines",
                first.source.name
            ));
        }
    }
    let who = |pass: &Pass| -> Vec<(u32, u32, Option<u32>)> {
        pass.threads.iter().zip(&pass.cmgs).map(|(t, cmg)| (t.process, t.thread, *cmg)).collect()
    };
    if who(first) != who(pass) {
        let what = "has other threads, or threads on other CMGs, than";
        return error(format!("{what} {}: they are of different runs; measure again", first.source.name));
    }
    let names = |pass: &Pass| -> BTreeSet<String> { pass.regions.iter().map(|r| r.name.clone()).collect() };
    let (here, there) = (names(pass), names(first));
    if let Some(name) = here.symmetric_difference(&there).next() {
        let (with, without) = if here.contains(name) { (pass, first) } else { (first, pass) };
        return error(format!(
            "the region '{name}' is in {} only, not in {}: they are of different programs",
            with.source.name, without.source.name
        ));
    }
    Ok(())
}

/// The number of the machine's first core, by which its cores are in the CMGs that the file tells.
fn first_core(pass: &Pass, machine: &Machine) -> Result<Option<f64>, Problem> {
    let (Some(&documented), Some(&each)) = (machine.constants.get("first_core"), machine.constants.get("cmg_cores"))
    else {
        return Ok(None);
    };
    let fits = |first: f64| {
        pass.threads.iter().zip(&pass.cmgs).all(|(thread, cmg)| {
            cmg.is_none_or(|cmg| ((f64::from(thread.cpu) - first) / each).floor() == f64::from(cmg))
        })
    };
    // Systems without assistant cores number from 0.
    match [documented, 0.0].into_iter().find(|&first| fits(first)) {
        Some(first) => Ok(Some(first)),
        None => {
            let what =
                format!("its cores are not in the CMGs that {} has them in; name the right machine", machine.name);
            Err(pass.source.problem(None, what))
        }
    }
}

/// What a reader should know of all passes together.
fn notes(passes: &[Pass]) -> Vec<String> {
    let mut notes: Vec<String> = passes.iter().flat_map(|pass| pass.notes.iter().cloned()).collect();
    let calls: Vec<HashMap<&str, u64>> =
        passes.iter().map(|pass| pass.regions.iter().map(|r| (r.name.as_str(), r.calls)).collect()).collect();
    for region in &passes[0].regions {
        if calls.iter().any(|calls| calls[region.name.as_str()] != region.calls) {
            notes.push(format!("The region {} was not entered as often in all passes.", region.name));
        }
    }
    notes
}

fn regions(passes: Vec<Pass>) -> Result<Vec<Region>, Problem> {
    let names: Vec<String> = passes[0].regions.iter().map(|r| r.name.clone()).collect();
    let places: HashMap<String, usize> = names.iter().cloned().enumerate().map(|(i, name)| (name, i)).collect();
    let mut regions: Vec<Region> = names.into_iter().map(|name| Region { name, ..Region::default() }).collect();
    let same = |(a, b): (&Thread, &Thread)| (a.process, a.thread) == (b.process, b.thread);
    for pass in passes {
        for part in pass.regions {
            let region = &mut regions[places[&part.name]];
            let threads: Vec<Thread> = part.threads.iter().map(|&i| pass.threads[i]).collect();
            if region.passes.is_empty() {
                region.calls = part.calls;
                region.threads = threads;
            } else {
                if threads.len() != region.threads.len() || !threads.iter().zip(&region.threads).all(same) {
                    let what = format!("region '{}' has other threads than in the files before it", region.name);
                    return Err(pass.source.problem(None, what));
                }
            }
            let counts = Counts::from_values(Arc::clone(&pass.names), region.threads.len(), part.values);
            region.passes.push(counts.expect("a row for each thread"));
        }
    }
    Ok(regions)
}
