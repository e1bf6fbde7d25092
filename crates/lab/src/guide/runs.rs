//! Makes the runs of experiments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fxscope_validate::{Libraries, Results, Run, Simulator, judge};

use super::data::Figure;
use super::outcome::tables;
use super::{Chapter, Experiment, Guide, Outcome, laboratory};
use crate::{Cache, Error, Programs, Runner, validate};

/// Where runs are made, and what is kept of them.
pub struct Settings<'a> {
    /// The `fxscope` executable, which makes the runs of tables, each in a process of its own.
    pub simulator: PathBuf,
    /// The programs.
    pub programs: &'a Programs,
    /// Counts of runs; `fxscope validate` uses the same.
    pub cache: Cache,
    /// Runs at a time; `None`: as many as the host has cores.
    pub jobs: Option<usize>,
    /// The folder of the sources, for experiments whose program is built there.
    pub sources: PathBuf,
}

impl<'a> Settings<'a> {
    /// Returns settings with this process's own executable and a cache in a folder, if there is one; sources are in the working folder.
    ///
    /// # Errors
    /// If the executable cannot be read, or the folder cannot be made.
    pub fn of_this_program(
        programs: &'a Programs,
        cache: Option<&Path>,
        jobs: Option<usize>,
    ) -> Result<Settings<'a>, Error> {
        let simulator = std::env::current_exe().map_err(|e| format!("cannot find the executable of fxscope: {e}"))?;
        let cache = Cache::new(cache, &simulator)?;
        Ok(Settings { simulator, programs, cache, jobs, sources: ".".into() })
    }
}

/// Runs experiments: all tables' runs, then the laboratories one by one. A run or a laboratory that fails is part of the outcome, as is
/// an experiment whose program is not there.
///
/// # Errors
/// [`Error::Stopped`], and if the host cannot start threads.
pub fn run<'a>(
    guide: &'a Guide,
    chosen: &[(&'a Chapter, &'a Experiment)],
    settings: &Settings<'_>,
    runner: Runner<'_>,
) -> Result<Vec<Outcome<'a>>, Error> {
    let results = results(guide, chosen, settings, runner)?;
    let judged = judge(&guide.suite, &results);
    let rows = judged.iter().map(|outcome| (outcome.row.row.as_str(), outcome)).collect();
    let mut outcomes = Vec::new();
    for &(chapter, experiment) in chosen {
        let sheet = |what| laboratory::sheet(what, settings, runner.progress());
        let laboratory = experiment.laboratory.as_ref().map(sheet);
        if runner.progress().stop_requested() {
            return Err(Error::Stopped);
        }
        let left_out = experiment.needs.as_ref().and_then(|needs| needs.find(&settings.sources).err());
        let tables = if left_out.is_some() { Vec::new() } else { tables(guide, experiment, &results, &rows)? };
        let laboratory = laboratory.map(|sheet| sheet.map_err(|e| e.to_string()));
        outcomes.push(Outcome { chapter, experiment, tables, laboratory, left_out });
    }
    Ok(outcomes)
}

/// Makes the runs of all tables: those of the programs that fxscope contains in one batch, then those of each experiment with a program of
/// its own.
fn results(
    guide: &Guide,
    chosen: &[(&Chapter, &Experiment)],
    settings: &Settings<'_>,
    runner: Runner<'_>,
) -> Result<Results, Error> {
    let make = |chosen: &[(&Chapter, &Experiment)], libraries: Option<Libraries>| {
        let runs = needed(guide, chosen)?;
        let (program, kernels) = (settings.simulator.clone(), settings.programs.folder().to_owned());
        let simulator = Simulator { program, kernels, libraries };
        validate::make(runs.values().collect(), &simulator, &settings.cache, runner)
    };
    let (apart, contained): (Vec<_>, Vec<_>) = chosen.iter().partition(|(_, experiment)| experiment.needs.is_some());
    let mut results = make(&contained, None)?;
    for one in apart {
        let libraries = one.1.needs.as_ref().and_then(|needs| needs.find(&settings.sources).ok());
        if let Some(libraries) = libraries {
            results.extend(make(&[one], Some(libraries))?);
        }
    }
    Ok(results)
}

/// Returns the runs of all tables, by name, each once.
pub(super) fn needed(guide: &Guide, chosen: &[(&Chapter, &Experiment)]) -> Result<BTreeMap<String, Run>, Error> {
    let mut runs = BTreeMap::new();
    for (_, experiment) in chosen {
        for run in runs_of(guide, experiment)? {
            runs.insert(run.run.clone(), run);
        }
    }
    Ok(runs)
}

/// Returns the runs of an experiment's tables, in their order, each once.
pub(super) fn runs_of(guide: &Guide, experiment: &Experiment) -> Result<Vec<Run>, Error> {
    let mut runs: Vec<Run> = Vec::new();
    for table in &experiment.tables {
        for key in 0..table.keys.len() {
            for column in &table.columns {
                let of_cell: Vec<Run> = match guide.figure(table, column, key)? {
                    Figure::Row(row) => row.runs().filter_map(|name| guide.suite.runs.get(name).cloned()).collect(),
                    Figure::Own(run, _) => vec![run],
                    Figure::Stated(_) | Figure::None => Vec::new(),
                };
                for run in of_cell {
                    if runs.iter().all(|known| known.run != run.run) {
                        runs.push(run);
                    }
                }
            }
        }
    }
    Ok(runs)
}
