//! Combines the passes of a measured program into runs, for all formats.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use fxscope_pmu::{CALLS, CLOCKS, Groups, TICKS};
use fxscope_record::{Counts, Intervals, Names, Region, Run, Thread};

use crate::events::meaning as event_meaning;
use crate::{FileError, Machine};

/// The counts of a region in one pass.
pub(crate) struct PassRegion {
    /// Name of the region.
    pub name: String,
    /// Number of times it was entered, if known.
    pub calls: u64,
    /// Its threads by process and number, as indices into [`Pass::threads`].
    pub threads: Vec<usize>,
    /// A row for each of them with a number for each of [`Pass::names`]; [`Counts::ABSENT`] for missing counts.
    pub values: Vec<u64>,
}

/// What identifies a thread across passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub process: u32,
    /// The tool's number of the thread.
    pub thread: u64,
    /// Its CMG or CPU, if the tool reports a fixed one.
    pub place: Option<u32>,
}

/// The counts of one execution of a program.
pub(crate) struct Pass<'a> {
    /// The file they are from.
    pub file: &'a str,
    /// The command line, if known.
    pub command: Option<String>,
    /// Constants given in the file, by name.
    pub constants: Vec<(&'static str, f64)>,
    /// Names of the counts.
    pub names: Arc<Names>,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Identities of the threads in other passes.
    pub identities: Vec<Identity>,
    /// CMGs of the threads, if the file gives them.
    pub cmgs: Vec<Option<u32>>,
    /// Regions of the program.
    pub regions: Vec<PassRegion>,
    /// Counts of all threads by time interval, if the file has them: a series for each region.
    pub intervals: Vec<Intervals>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

impl Pass<'_> {
    /// The events that were counted.
    fn events(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter(|name| ![TICKS, CALLS].contains(name))
    }

    fn problem(&self, what: String) -> FileError {
        FileError::of(self.file, None, what)
    }

    fn has_events_of(&self, other: &Pass) -> bool {
        self.events().eq(other.events())
    }
}

/// Returns the runs in the files of a format: files with different events are passes of one run, files with the same
/// events belong to separate runs.
///
/// # Errors
/// If files are not of the same program, input and machine, or passes were not measured equally often.
pub(crate) fn runs(
    format: &str,
    passes: Vec<Pass>,
    machine: &Machine,
    command: &[String],
) -> Result<Vec<Run>, FileError> {
    same_program(&passes)?;
    let mut repeats: Vec<Vec<Pass>> = Vec::new();
    for pass in passes {
        match repeats.iter_mut().find(|run| run.iter().all(|other| !other.has_events_of(&pass))) {
            Some(run) => run.push(pass),
            None => repeats.push(vec![pass]),
        }
    }
    complete(&repeats)?;
    repeats.into_iter().map(|passes| run(format, passes, machine, command)).collect()
}

/// Checks that all files with a command have the same.
fn same_program(passes: &[Pass]) -> Result<(), FileError> {
    let mut known = passes.iter().filter_map(|pass| Some((pass, pass.command.as_ref()?)));
    let Some((first, command)) = known.next() else { return Ok(()) };
    match known.find(|(_, other)| *other != command) {
        None => Ok(()),
        Some((pass, other)) => Err(pass.problem(format!(
            "is of '{other}', but {} is of '{command}': import runs of one program together",
            first.file
        ))),
    }
}

/// Checks that repeated measurements are complete: the first run has the most passes.
fn complete(repeats: &[Vec<Pass>]) -> Result<(), FileError> {
    let Some(run) = repeats.iter().find(|run| run.len() < repeats[0].len()) else { return Ok(()) };
    let same = repeats[0].iter().find(|pass| pass.has_events_of(&run[0])).unwrap_or(&repeats[0][0]);
    let what =
        "but not all passes were measured equally often: give one of the two, or equally many files of each pass";
    Err(run[0].problem(format!("has the same events as {}, {what}", same.file)))
}

/// Makes a run from passes. Those that counted a complete event group come first, by its number.
fn run(format: &str, mut passes: Vec<Pass>, machine: &Machine, command: &[String]) -> Result<Run, FileError> {
    let groups = &machine.pmu.groups;
    passes.sort_by_key(|pass| group_of(pass, groups).unwrap_or(u8::MAX));
    passes.iter().try_for_each(|pass| check_same(&passes[0], pass))?;
    same_regions(&passes)?;
    let names = passes.iter().map(|pass| match group_of(pass, groups) {
        Some(group) => format!("pa{group}"),
        None => stem(pass.file),
    });
    let files = passes.iter().map(|pass| pass.file.to_owned()).collect();
    let mut command = command.to_vec();
    if let (true, Some(known)) = (command.is_empty(), &passes[0].command) {
        command = known.split(' ').map(str::to_owned).collect();
    }
    let mut run = machine.run(format, command, files, names.collect());
    run.constants.extend(passes[0].constants.iter().map(|(name, value)| ((*name).to_owned(), *value)));
    if let Some(first_core) = first_core(&passes[0], machine)? {
        run.constants.insert("first_core".to_owned(), first_core);
    }
    run.notes = notes(&passes);
    run.notes.extend(unknown_events(&passes, machine));
    run.notes.extend(unmeasured(&passes, machine));
    run.notes.extend(power_mode(&passes, machine));
    let series = |(pass, p): (usize, &mut Pass)| {
        std::mem::take(&mut p.intervals).into_iter().map(move |series| Intervals { pass, ..series }).collect::<Vec<_>>()
    };
    run.intervals = passes.iter_mut().enumerate().flat_map(series).collect();
    run.regions = regions(passes)?;
    Ok(run)
}

/// The event group that a pass counted, if it counted exactly one.
fn group_of(pass: &Pass, groups: &Groups) -> Option<u8> {
    let events: BTreeSet<&str> = pass.names.iter().filter(|name| !CLOCKS.contains(name)).collect();
    groups
        .iter()
        .find(|group| group.events.iter().map(String::as_str).collect::<BTreeSet<_>>() == events)
        .map(|g| g.number)
}

/// A file's name without folder and extension.
fn stem(file: &str) -> String {
    let name = std::path::Path::new(file).file_stem();
    name.map_or_else(|| file.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Refuses two passes of different programs or inputs.
fn check_same(first: &Pass, pass: &Pass) -> Result<(), FileError> {
    let error = |what: String| Err(pass.problem(what));
    for (name, value) in &first.constants {
        if let Some((_, other)) = pass.constants.iter().find(|c| c.0 == *name).filter(|c| c.1 != *value) {
            return error(format!("{name} is {other}, in {} {value}: they are of different machines", first.file));
        }
    }
    if first.identities != pass.identities {
        let what = "has counted other threads, or threads on other CPUs or CMGs, than";
        return error(format!("{what} {}: measure all passes alike", first.file));
    }
    Ok(())
}

/// Refuses files with different regions. Within a file, a region may have been entered in some of the passes only.
fn same_regions(passes: &[Pass]) -> Result<(), FileError> {
    let of_file = |file: &str| -> BTreeSet<&str> {
        let same = passes.iter().filter(|pass| pass.file == file);
        same.flat_map(|pass| pass.regions.iter().map(|region| region.name.as_str())).collect()
    };
    let Some(first) = passes.first() else { return Ok(()) };
    let there = of_file(first.file);
    let mut checked = vec![first.file];
    for pass in passes {
        if checked.contains(&pass.file) {
            continue;
        }
        checked.push(pass.file);
        let here = of_file(pass.file);
        if let Some(&name) = here.symmetric_difference(&there).next() {
            let (with, without) = if here.contains(name) { (pass, first) } else { (first, pass) };
            return Err(pass.problem(format!(
                "the region '{name}' is in {} only, not in {}: they are of different programs",
                with.file, without.file
            )));
        }
    }
    Ok(())
}

/// The number of the machine's first core for which its cores are in the CMGs given in the file.
fn first_core(pass: &Pass, machine: &Machine) -> Result<Option<f64>, FileError> {
    let (Some(&documented), Some(&each)) = (machine.constants.get("first_core"), machine.constants.get("cmg_cores"))
    else {
        return Ok(None);
    };
    if pass.cmgs.iter().all(Option::is_none) {
        return Ok(None);
    }
    let fits = |first: f64| {
        pass.threads.iter().zip(&pass.cmgs).all(|(thread, cmg)| {
            cmg.is_none_or(|cmg| ((f64::from(thread.cpu) - first) / each).floor() == f64::from(cmg))
        })
    };
    // Systems without assistant cores number cores from 0.
    match [documented, 0.0].into_iter().find(|&first| fits(first)) {
        Some(first) => Ok(Some(first)),
        None => {
            let what =
                format!("its cores are not in the CMGs that {} has them in; name the right machine", machine.name);
            Err(pass.problem(what))
        }
    }
}

/// Notes of all passes, without duplicates.
fn notes(passes: &[Pass]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in passes.iter().flat_map(|pass| &pass.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let calls: Vec<HashMap<&str, u64>> =
        passes.iter().map(|pass| pass.regions.iter().map(|r| (r.name.as_str(), r.calls)).collect()).collect();
    for name in region_names(passes) {
        let known: Vec<u64> = calls.iter().filter_map(|calls| calls.get(name.as_str()).copied()).collect();
        if known.len() < passes.len() {
            let (entered, all) = (known.len(), passes.len());
            notes.push(format!(
                "The region {name} was entered in {entered} of {all} passes; its other counts are missing."
            ));
        } else if known.iter().any(|&calls| calls != known[0]) {
            notes.push(format!("The region {name} was not entered equally often in all passes."));
        }
    }
    notes
}

/// Returns a note that names the events that the machine does not know.
fn unknown_events(passes: &[Pass], machine: &Machine) -> Option<String> {
    let events = &machine.pmu.events;
    // Without a table of events, all keep the tool's names.
    events.iter().next()?;
    let names: BTreeSet<&str> = passes.iter().flat_map(Pass::events).collect();
    let named = |name: &&str| match event_meaning(events, name) {
        Some(meaning) => format!("{name} ({meaning})"),
        None => (*name).to_owned(),
    };
    let unknown: Vec<String> = names.iter().filter(|name| events.named(name).is_none()).map(named).collect();
    let (list, machine) = (unknown.join(", "), &machine.name);
    (!unknown.is_empty())
        .then(|| format!("Events unknown to {machine}, kept with their names and used by no metric: {list}."))
}

/// Returns a note on how to measure all events of the report, if no group of them was measured.
fn unmeasured(passes: &[Pass], machine: &Machine) -> Option<String> {
    let groups = &machine.pmu.groups;
    let number = groups.iter().count();
    let any = passes.iter().any(|pass| group_of(pass, groups).is_some());
    (number > 0 && !any).then(|| {
        format!(
            "The report needs {number} groups of events, of which these files have none complete: `fxscope collect -o FILE.fxr -- \
             PROGRAM` measures them on the machine."
        )
    })
}

/// Returns a note on the mode of power that watts and joules assume, if energy was counted.
fn power_mode(passes: &[Pass], machine: &Machine) -> Option<String> {
    let is_energy = |name: &str| machine.pmu.events.named(name).is_some_and(|event| event.energy);
    let counted = passes.iter().flat_map(Pass::events).any(is_energy);
    let mode = machine.power_mode.as_ref().filter(|_| counted)?;
    Some(format!("Power and energy assume the power mode {mode} of {} (--power-mode).", machine.name))
}

/// The names of all regions, in the order of the passes.
fn region_names(passes: &[Pass]) -> Vec<String> {
    let mut known = HashSet::new();
    let all = passes.iter().flat_map(|pass| &pass.regions).map(|region| &region.name);
    all.filter(|name| known.insert(name.as_str())).cloned().collect()
}

fn regions(passes: Vec<Pass>) -> Result<Vec<Region>, FileError> {
    let names = region_names(&passes);
    let places: HashMap<String, usize> = names.iter().cloned().enumerate().map(|(i, name)| (name, i)).collect();
    let mut regions: Vec<Region> = names.into_iter().map(|name| Region { name, ..Region::default() }).collect();
    for pass in &passes {
        for part in &pass.regions {
            let region = &mut regions[places[&part.name]];
            let threads: Vec<Thread> = part.threads.iter().map(|&i| pass.threads[i]).collect();
            let who = |t: &Thread| (t.process, t.thread);
            if region.threads.is_empty() {
                (region.calls, region.threads) = (part.calls, threads);
            } else if !threads.iter().map(who).eq(region.threads.iter().map(who)) {
                let what = format!("region '{}' has other threads than in the previous files", region.name);
                return Err(FileError::of(pass.file, None, what));
            }
        }
    }
    for pass in passes {
        let mut of_pass: HashMap<String, Vec<u64>> =
            pass.regions.into_iter().map(|part| (part.name, part.values)).collect();
        for region in &mut regions {
            let threads = region.threads.len();
            let values = of_pass.remove(&region.name);
            let values = values.unwrap_or_else(|| vec![Counts::ABSENT; threads * pass.names.len()]);
            let counts = Counts::from_values(Arc::clone(&pass.names), threads, values);
            region.passes.push(counts.expect("a row for each thread"));
        }
    }
    Ok(regions)
}
