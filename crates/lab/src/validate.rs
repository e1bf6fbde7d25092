//! Runs of the model for measured rows. [`fxscope_validate`] has the rows and judges them.

use std::cmp::Reverse;

use fxscope_validate::{Counts, Results, Run, Simulator, Suite};

use crate::tasks::{Task, unknown};
use crate::{Cache, Error, Runner};

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
