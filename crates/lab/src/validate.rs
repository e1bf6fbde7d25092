//! Runs of the model for measured rows. [`fxscope_validate`] has the rows and judges them.

use std::cmp::Reverse;

use fxscope_validate::{Counts, Results, Run, Simulator, Suite};

use crate::{Cache, Error, Runner};

/// Makes the runs that a suite's rows need, long ones first, unless they are in the cache. A run that fails is part of the
/// results.
///
/// # Errors
/// [`Error::Stopped`], and if the host cannot start threads.
pub fn execute(suite: &Suite, simulator: &Simulator, cache: &Cache, runner: Runner<'_>) -> Result<Results, Error> {
    make(suite.needed(), simulator, cache, runner)
}

/// Makes runs, as [`execute`] those of a suite.
///
/// # Errors
/// As [`execute`].
pub(crate) fn make(
    mut runs: Vec<&Run>,
    simulator: &Simulator,
    cache: &Cache,
    runner: Runner<'_>,
) -> Result<Results, Error> {
    runs.sort_by_key(|run| Reverse(run.suite));
    let stopped = || runner.progress().stop_requested();
    let counts = |run: &&Run| {
        let key = || simulator.key(run).map_err(Error::Request);
        let made: Result<Counts, Error> = cache.get_or(key, || simulator.counts(run, &stopped).map_err(Error::Request));
        (run.run.clone(), made.map_err(|e| e.to_string()))
    };
    Ok(runner.batch(&runs, |run| run.run.clone(), counts)?.into_iter().collect())
}
