//! Runs of the model for measured rows. [`fxscope_validate`] has the rows and judges them.

use std::cmp::Reverse;
use std::path::Path;

use fxscope_validate::{Counts, Libraries, Outcome, Results, Run, Simulator, Suite, Verdict};

use crate::tasks::{Task, unknown};
use crate::{Cache, Error, Programs, Progress, Runner};

/// What makes the runs of rows, and where their counts are kept.
pub struct Model {
    /// What makes runs.
    pub simulator: Simulator,
    /// What has their counts.
    pub cache: Cache,
    /// The programs, which last as long.
    _programs: Programs,
}

impl Model {
    /// Returns this process's own executable with the programs beside the rows in `folder`, or those that fxscope contains, and a cache in
    /// another folder, if there is one.
    ///
    /// # Errors
    /// If a folder cannot be made or the executable cannot be read.
    pub fn of_this_program(
        folder: Option<&Path>,
        libraries: Option<Libraries>,
        cache: Option<&Path>,
    ) -> Result<Model, Error> {
        let program = std::env::current_exe().map_err(|e| format!("cannot find the executable of fxscope: {e}"))?;
        let cache = Cache::new(cache, &program)?;
        let given = folder.map(|_| beside(folder).join("kernels/prebuilt"));
        let programs = Programs::new(given.as_deref())?;
        let simulator = Simulator { program, kernels: programs.folder().to_owned(), libraries };
        Ok(Model { simulator, cache, _programs: programs })
    }
}

/// Returns the rows of a folder, or those that fxscope contains.
///
/// # Errors
/// If they cannot be read.
pub fn rows(folder: Option<&Path>) -> Result<Suite, Error> {
    let Some(folder) = folder else { return Ok(Suite::built_in()?) };
    let hint = || match folder.exists() {
        true => "",
        false => "; name the folder of the rows with --folder, or none for those of fxscope",
    };
    Suite::read(folder).map_err(|e| format!("{e}{}", hint()).into())
}

/// Returns the libraries of a folder, or of the usual one for rows in `rows`. Without them, leaves the rows of a suite that need them out,
/// and says so to `progress`.
pub fn libraries(
    folder: Option<&Path>,
    rows: Option<&Path>,
    suite: &mut Suite,
    progress: &dyn Progress,
) -> Option<Libraries> {
    let folder = folder.map_or_else(|| beside(rows).join("target/libraries"), Path::to_owned);
    let libraries = Libraries::find(&folder);
    let left_out = if libraries.is_none() { suite.leave_out_libraries() } else { 0 };
    if left_out > 0 {
        progress.message(&format!(
            "{left_out} rows of real libraries are left out: {} does not have them; programs/libraries.sh fetches them",
            folder.display()
        ));
    }
    libraries
}

/// Returns the folder that has the rows' folder; the working folder if there is none.
fn beside(rows: Option<&Path>) -> &Path {
    rows.and_then(Path::parent).unwrap_or(Path::new(""))
}

/// Returns whether a row passes; errors that were just accepted do.
#[must_use]
pub fn passes(outcome: &Outcome<'_>, accepted: bool) -> bool {
    let verdict = outcome.judgement.as_ref().map(|judgement| judgement.verdict);
    verdict.is_ok_and(|verdict| verdict.is_expected() || accepted && verdict == Verdict::Worse)
}

/// Makes the runs that a suite's rows need, long ones first, unless they are in the cache. A run that fails is part of the
/// results.
///
/// # Errors
/// [`Error::Stopped`], and if the host cannot start threads.
pub fn execute(suite: &Suite, simulator: &Simulator, cache: &Cache, runner: Runner<'_>) -> Result<Results, Error> {
    make(suite.needed(), simulator, cache, runner)
}

/// Returns the runs that a suite's rows need, long ones first. Those whose program cannot be read are not among them: they fail in
/// [`execute`].
#[must_use]
pub fn tasks(suite: &Suite, simulator: &Simulator, cache: &Cache) -> Vec<Task> {
    let task = |run: &Run| Some(Task::of(run.run.clone(), &simulator.key(run).ok()?, cache));
    longest_first(suite.needed()).into_iter().filter_map(task).collect()
}

/// Makes the run of a suite with this result ([`tasks`]) and caches it. Returns why it failed, if so.
///
/// # Errors
/// If there is no such run.
pub fn make_task(
    suite: &Suite,
    simulator: &Simulator,
    cache: &Cache,
    result: &str,
    runner: Runner<'_>,
) -> Result<Option<String>, Error> {
    let has_it = |run: &&Run| simulator.key(run).is_ok_and(|key| cache.result(&key).0 == result);
    let run = suite.needed().into_iter().find(has_it).ok_or_else(|| unknown(result))?;
    Ok(counts(run, simulator, cache, runner).err().map(|why| why.to_string()))
}

/// Makes runs, as [`execute`] those of a suite.
///
/// # Errors
/// As [`execute`].
pub(crate) fn make(
    runs: Vec<&Run>,
    simulator: &Simulator,
    cache: &Cache,
    runner: Runner<'_>,
) -> Result<Results, Error> {
    let made = |run: &&Run| (run.run.clone(), counts(run, simulator, cache, runner).map_err(|e| e.to_string()));
    Ok(runner.batch(&longest_first(runs), |run| run.run.clone(), made)?.into_iter().collect())
}

fn longest_first(mut runs: Vec<&Run>) -> Vec<&Run> {
    runs.sort_by_key(|run| Reverse(run.suite));
    runs
}

/// Returns what a run counts, from the cache or from the run.
fn counts(run: &Run, simulator: &Simulator, cache: &Cache, runner: Runner<'_>) -> Result<Counts, Error> {
    let stopped = || runner.progress().stop_requested();
    let key = || simulator.key(run).map_err(Error::Request);
    cache.get_or(key, || simulator.counts(run, &stopped).map_err(Error::Request))
}
