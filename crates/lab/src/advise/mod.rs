//! What to change: the verdict on a run, and the remedies that the simulator can apply without changing the program, each simulated.

mod show;
mod trials;

use std::sync::Arc;

use fxscope_linux::Stdio;
use fxscope_machine::Spec;
use fxscope_pmu::{Evaluation, Sampled};
use fxscope_record::{ALL, Finish, Run};
use fxscope_report::verdict::{Verdict, verdict};
use fxscope_session::Scenario;

use crate::{Capture, Error, Progress, Runner};
use trials::{TRIALS, Trial};

/// What was found about a program.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The run as the scenario says.
    pub run: Run,
    /// The region that times and the verdict are of.
    pub region: String,
    /// The verdict on it.
    pub verdict: Verdict,
    /// Its time, seconds.
    pub seconds: f64,
    /// What was tried, the largest gain first; what could not run comes last.
    pub tried: Vec<Tried>,
}

/// A remedy that was simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// What it changes.
    pub name: &'static str,
    /// How to do the same on a machine.
    pub how: &'static str,
    /// The rules of the verdict that suggest it.
    pub rules: Vec<String>,
    /// The share of the time that they explain: what it gains at most.
    pub predicted: f64,
    /// What came out, or why nothing did.
    pub outcome: Result<Outcome, String>,
}

/// The time of a simulated remedy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The region's time, seconds.
    pub seconds: f64,
    /// The share of the time that it gains; negative if it is slower.
    pub gain: f64,
    /// Whether the gain is within the error of the estimates of sampled runs.
    pub is_noise: bool,
}

/// A time with half of the width of its interval.
#[derive(Clone, Copy)]
struct Time {
    seconds: f64,
    half_width: f64,
}

/// Runs the program of `scenario` as it says, and once for each remedy that fits the verdict on `region` (the whole run if it is `None`).
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
    let region = region.unwrap_or(ALL);
    let runner = Runner::new(jobs, progress);
    let spec = Arc::new(scenario.spec()?);
    let run = runner.run(scenario.prepare()?, stdio)?;
    ended(&run)?;
    let before = time(&run, region)?;
    let found = run.region(region).ok_or_else(|| format!("the program marked no region '{region}'"))?;
    let judged = verdict(&run, found, &Evaluation::new(&run, found), fxscope_session::hottest);
    let verdict = judged.ok_or("the run has no verdict: advice needs simulated time (--mode timing)")?;
    let suggested: Vec<(Tried, Scenario)> =
        TRIALS.iter().filter_map(|trial| suggested(trial, &verdict, scenario, &spec)).collect();
    let simulated = runner.batch(
        &suggested,
        |(tried, _)| tried.name.to_owned(),
        |(tried, scenario)| Tried { outcome: outcome(&runner, scenario, region, before), ..tried.clone() },
    )?;
    Ok(Advice { region: region.to_owned(), seconds: before.seconds, tried: ranked(simulated), run, verdict })
}

/// A trial that the verdict suggests and that changes something, not yet simulated.
fn suggested(trial: &Trial, verdict: &Verdict, scenario: &Scenario, spec: &Spec) -> Option<(Tried, Scenario)> {
    let applying: Vec<_> = verdict.limits.iter().filter(|limit| trial.rules.contains(&limit.rule.as_str())).collect();
    if applying.is_empty() {
        return None;
    }
    let changed = (trial.change)(scenario, spec)?;
    let predicted = applying.iter().map(|limit| limit.share).sum::<f64>().min(1.0);
    let rules = applying.iter().map(|limit| limit.rule.clone()).collect();
    let outcome = Err(String::new());
    Some((Tried { name: trial.name, how: trial.how, rules, predicted, outcome }, changed))
}

fn outcome(runner: &Runner, scenario: &Scenario, region: &str, before: Time) -> Result<Outcome, String> {
    let run = runner.run_captured(scenario, Capture::Error).map_err(|e| e.to_string())?.run;
    ended(&run).map_err(|e| e.to_string())?;
    let after = time(&run, region).map_err(|e| e.to_string())?;
    let gain = 1.0 - after.seconds / before.seconds;
    let is_noise = (after.seconds - before.seconds).abs() < before.half_width + after.half_width;
    Ok(Outcome { seconds: after.seconds, gain, is_noise })
}

/// The largest gain first.
fn ranked(mut tried: Vec<Tried>) -> Vec<Tried> {
    let gain = |tried: &Tried| tried.outcome.as_ref().map_or(f64::NEG_INFINITY, |outcome| outcome.gain);
    tried.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    tried
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

fn time(run: &Run, region: &str) -> Result<Time, Error> {
    let found = run.region(region).ok_or_else(|| format!("the program marked no region '{region}'"))?;
    let seconds = Evaluation::new(run, found).total().get("seconds").filter(|seconds| *seconds > 0.0);
    let half_width = Sampled::of(run, found).and_then(|sampled| sampled.of_metric("seconds")).unwrap_or(0.0);
    Ok(Time { seconds: seconds.ok_or_else(|| format!("region '{region}' took no time"))?, half_width })
}
