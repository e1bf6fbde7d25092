//! What to change: the verdict on a run and its regions, and the remedies (`data/remedies.toml`) that need no change of the program, each
//! simulated, and the best ones together.

mod apply;
mod combine;
mod judged;
mod power;
mod reused;
mod show;
mod trials;
mod values;

use std::sync::Arc;

use fxscope_linux::Stdio;
use fxscope_record::{Finish, Run};
use fxscope_session::Scenario;

use crate::{Capture, Error, Progress, Runner};
use judged::time;
pub use judged::{Judged, Time};
use trials::Trial;

/// Smallest gain, as a share of the time, for which a change is advised.
const LEAST: f64 = 0.01;
/// Host time of a run, seconds, from which on sampling is suggested.
const LONG: f64 = 1.0;

/// What was found about a program.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The run as the scenario says.
    pub run: Run,
    /// What was judged: the whole run, or the region asked for, and then the regions that take much of the time, the longest first.
    pub regions: Vec<Judged>,
    /// What was tried, the largest gain of the first region first; what could not run comes last.
    pub tried: Vec<Tried>,
}

/// A remedy that was simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// What it changes.
    pub name: String,
    /// What it is a choice of; empty for several remedies together.
    pub kind: String,
    /// How to do the same on a machine.
    pub machine: String,
    /// The options of `fxscope run` that apply it, option and argument in turn.
    pub options: Vec<String>,
    /// It gives time for energy or energy for time: it is shown beside the others and not ranked with them.
    pub trade_off: bool,
    /// Why it was tried, for each of the regions.
    pub causes: Vec<Cause>,
    /// What came out for each of the regions (`None` if the run has no such region), or why nothing did.
    pub outcome: Result<Vec<Option<Outcome>>, String>,
}

/// Why a remedy may help a region.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cause {
    /// The rules of the verdict that suggest it; empty if none does.
    pub rules: Vec<String>,
    /// The share of run time that a full cure of all that they find is expected to gain, however that is done: what the remedy gains is
    /// simulated.
    pub predicted: f64,
}

/// The time of a region with a remedy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Seconds.
    pub seconds: f64,
    /// The share of run time that it gains; negative if it is slower.
    pub gain: f64,
    /// Whether the gain is within the error of the estimates of sampled runs.
    pub is_noise: bool,
    /// Energy of the chip, J; `None` if the machine's events do not tell.
    pub energy: Option<f64>,
}

impl Tried {
    /// Returns what came out for a region, by its place; `None` if nothing did.
    #[must_use]
    pub fn of_region(&self, place: usize) -> Option<Outcome> {
        self.outcome.as_ref().ok().and_then(|all| all.get(place).copied().flatten())
    }

    /// Returns the gain for a region, if there is one that counts. Trade-offs have none.
    #[must_use]
    pub fn gain(&self, place: usize) -> Option<f64> {
        let counts = |outcome: &Outcome| outcome.gain >= LEAST && !outcome.is_noise && !self.trade_off;
        self.of_region(place).filter(counts).map(|outcome| outcome.gain)
    }
}

impl Advice {
    /// Returns the remedy with the largest gain for a region, by its place; `None` if none gains enough. Of equal gains, the first one.
    #[must_use]
    pub fn best(&self, place: usize) -> Option<&Tried> {
        let gains = self.tried.iter().filter_map(|tried| Some((tried, tried.gain(place)?)));
        gains.reduce(|best, other| if other.1 > best.1 { other } else { best }).map(|(tried, _)| tried)
    }
}

/// Runs the program of `scenario` as it says, and once for each remedy that fits the verdict on `region`; if it is `None`, on the whole run
/// and on the regions that take much of its time.
///
/// The output of the further runs is discarded, so it must be possible to run the program again. `stdio` are the standard streams of the
/// first run; `None`: those of this process.
///
/// # Errors
/// If the program cannot run or does not end, or has no such region.
pub fn advise(
    scenario: &Scenario,
    region: Option<&str>,
    stdio: Option<Stdio>,
    jobs: Option<usize>,
    progress: &dyn Progress,
) -> Result<Advice, Error> {
    let runner = Runner::new(jobs, progress);
    let spec = Arc::new(scenario.spec()?);
    let run = runner.run(scenario.prepare()?, stdio)?;
    ended(&run)?;
    let regions = judged::regions(&run, region)?;
    let found = trials::Found { scenario, spec: &spec, run: &run, regions: &regions };
    let trials = trials::suggested(&found, &runner)?;
    suggest_sampling(&found, trials.len(), progress);
    let mut tried = ranked(simulated(&found, &runner, trials)?);
    if let Some(together) = combine::best_of_kinds(&found, &tried)? {
        tried = ranked(simulated(&found, &runner, vec![together])?.into_iter().chain(tried).collect());
    }
    Ok(Advice { regions, tried, run })
}

/// Simulates trials.
fn simulated(found: &trials::Found<'_>, runner: &Runner, trials: Vec<Trial>) -> Result<Vec<Tried>, Error> {
    runner.batch(
        &trials,
        |trial| trial.tried.name.clone(),
        |trial| Tried { outcome: outcomes(found, runner, &trial.scenario), ..trial.tried.clone() },
    )
}

/// The times of all regions in a run of a changed scenario.
fn outcomes(found: &trials::Found<'_>, runner: &Runner, scenario: &Scenario) -> Result<Vec<Option<Outcome>>, String> {
    let run = runner.run_captured(scenario, Capture::Error).map_err(|e| e.to_string())?.run;
    ended(&run).map_err(|e| e.to_string())?;
    if run.finish != found.run.finish {
        let status = run.finish.exit_code().unwrap_or_default();
        return Err(format!("the program ends with status {status}, which it does not without this change"));
    }
    Ok(found.regions.iter().map(|region| Some(outcome(region.time, time(&run, &region.name).ok()?))).collect())
}

fn outcome(before: Time, after: Time) -> Outcome {
    let is_noise = (after.seconds - before.seconds).abs() < before.half_width + after.half_width;
    Outcome { seconds: after.seconds, gain: 1.0 - after.seconds / before.seconds, is_noise, energy: after.energy }
}

/// The largest gain of the first region first.
fn ranked(mut tried: Vec<Tried>) -> Vec<Tried> {
    let gain = |tried: &Tried| tried.of_region(0).map_or(f64::NEG_INFINITY, |outcome| outcome.gain);
    tried.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    tried
}

/// Says that sampling makes runs shorter if they are long.
fn suggest_sampling(found: &trials::Found<'_>, trials: usize, progress: &dyn Progress) {
    let seconds = found.run.host.wall_seconds;
    if seconds > LONG && found.scenario.options.sample.is_none() && trials > 0 {
        progress.message(&format!(
            "{trials} more runs of about {seconds:.0} s each; --sample makes long runs shorter by estimating their time"
        ));
    }
}

/// Times of programs that did not end by themselves cannot be compared.
fn ended(run: &Run) -> Result<(), Error> {
    let is_over = run.part.as_ref().is_some_and(|part| part.ended);
    match &run.finish {
        Finish::Exited(_) => Ok(()),
        Finish::Limit if is_over => Ok(()),
        Finish::Stopped => Err(Error::Stopped),
        finish => {
            let message = "the program did not end by itself: there is no time to compare".to_owned();
            Err(Error::Ended { finish: finish.clone(), message })
        }
    }
}
