//! `fxscope latency check`: predictions compared with simulations of slower memory.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser as _;
use fxscope::Scenario;
use fxscope::lab::Cache;
use fxscope::lab::latency::{CheckOptions, Subject, check_one, check_set, check_tasks, make_check_task, plan};
use fxscope::report::render::html;

use super::super::batch::{BatchArgs, TaskArgs};
use super::super::console::Console;
use super::super::form::{Answer, Form};
use super::super::scenario::{ScenarioArgs, interval_ns};
use super::super::status::FOUND;
use super::super::{Failure, Outcome};
use super::PredictArgs;

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

/// The options of a run, without a command.
#[derive(clap::Parser)]
#[command(no_binary_name = true)]
struct RunOptions {
    #[command(flatten)]
    scenario: ScenarioArgs,
}

/// The command, as messages name it.
const CHECK: &str = "latency check";

/// Parses options in plan files as those of `fxscope run`, for the command of this name.
pub struct PlanSyntax(pub &'static str);

impl plan::Syntax for PlanSyntax {
    fn scenario(&self, options: &[&str], command: &[OsString]) -> Result<Scenario, String> {
        let parsed = RunOptions::try_parse_from(options)
            .map_err(|e| e.to_string().lines().next().unwrap_or_default().to_owned())?;
        parsed.scenario.refuse_sampling(self.0).map_err(|failure| failure.message)?;
        parsed.scenario.scenario(command).map_err(|failure| failure.message)
    }

    fn interval_ns(&self, text: &str) -> Result<u64, String> {
        interval_ns(text)
    }
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
        paths => plan::read(paths, &args.predict.options(), &PlanSyntax(CHECK))?,
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
    outputs.write(&Answer {
        text: std::slice::from_ref(&checked.document),
        html: &|| html::experiment(&checked.document, &checked.plots),
        json: &|| checked.json.clone(),
    })?;
    Ok(if checked.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}

/// Returns the program that is named.
fn subject(args: &Args) -> Result<Subject, Failure> {
    args.scenario.refuse_sampling(CHECK)?;
    let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    Ok(Subject {
        name: words.join(" "),
        fit: false,
        scenario: args.scenario.scenario(&args.command)?,
        options: args.predict.options(),
        interval_ns: args.interval,
        refuses: None,
    })
}
