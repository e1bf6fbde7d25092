//! `fxscope latency check`: predictions compared with simulations of slower memory.

use std::ffi::OsString;
use std::path::PathBuf;

use fxscope::interval_ns;
use fxscope::lab::Cache;
use fxscope::lab::latency::{CheckOptions, Subject, check_one, check_set, check_tasks, make_check_task, plan};

use crate::options::{BatchArgs, PlanSyntax, PredictArgs, ScenarioArgs, TaskArgs};
use crate::terminal::{Console, Failure, Form, Outcome, status};

/// Check predictions against full simulation: run a program with normal and with slower memory, and predict the latter
/// from the former.
///
/// Runs use all of the host's cores; their output is discarded, and they have no input. Their counts are cached until
/// program, options or fxscope change, so an interrupted set resumes where it stopped. Exit status: 0 if everything
/// could be simulated, 1 if a program of a set could not.
#[derive(clap::Args)]
#[command(
    override_usage = "fxscope latency check [OPTIONS] -- PROGRAM [ARGS]...\n       fxscope latency check [OPTIONS] --plan PLAN.toml"
)]
pub struct Args {
    /// Check the programs of this file; may be repeated. docs/latency-lab.md describes the format.
    #[arg(long, value_name = "PLAN.toml", required_unless_present = "command", conflicts_with = "command")]
    plan: Vec<PathBuf>,
    /// Fit the coefficients of method 5 to the programs that the files mark for it, and show them beside those in use.
    /// Changes nothing.
    #[arg(long, requires = "plan")]
    fit: bool,
    #[command(flatten)]
    predict: PredictArgs,
    /// Length of intervals.
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = interval_ns)]
    interval: u64,
    #[command(flatten)]
    batch: BatchArgs,
    #[command(flatten)]
    tasks: TaskArgs,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(last = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Simulates, predicts and compares.
pub(super) fn check(args: &Args) -> Outcome {
    let outputs = args.form.check()?;
    let folder = args.batch.cache("latency");
    let cache = Cache::of_this_program(folder.as_deref())?;
    let options = CheckOptions { jobs: args.batch.jobs(), cache, fit: args.fit };
    let console = Console::new(false);
    let subjects = match &args.plan[..] {
        [] => vec![subject(args)?],
        paths => plan::read(paths, &args.predict.options(), &PlanSyntax)?,
    };
    let list = || check_tasks(&subjects, &options);
    let make = |result: &str| make_check_task(&subjects, &options, result, &console);
    if let Some(done) = args.tasks.done(&options.cache, &args.form, list, make)? {
        return Ok(done);
    }
    let checked = match (&args.plan[..], &subjects[..]) {
        ([], [subject]) => check_one(subject, &options, &console)?,
        (paths, subjects) => check_set(paths, subjects, &options, &console)?,
    };
    outputs.write_document(&checked.document, &checked.plots, &|| checked.json.clone())?;
    Ok(status::of_check(checked.failed.is_empty()))
}

/// Returns the program that is named.
fn subject(args: &Args) -> Result<Subject, Failure> {
    let scenario = args.scenario.scenario(&args.command)?;
    scenario.refuse_sampling("latency check")?;
    let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    Ok(Subject {
        name: words.join(" "),
        fit: false,
        scenario,
        options: args.predict.options(),
        interval_ns: args.interval,
        refuses: None,
    })
}
