//! `fxscope pages check`: predictions of the time with other pages, compared with simulations.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::lab::Cache;
use fxscope::lab::pages::{check as checks, plan};
use fxscope::report::render::html;

use super::super::Outcome;
use super::super::batch::BatchArgs;
use super::super::console::Console;
use super::super::form::{Answer, Form};
use super::super::latency::PlanSyntax;

/// Check the predictions of `pages advise` against full simulation, for the programs of a file.
///
/// Each program runs as `pages advise` runs it. Its time is predicted with the pages that the large-page library's
/// variables give, and with large pages for each group of segments alone; then it is simulated with each of them.
/// Results are cached by program until it, its options or fxscope change. Exit status: 0 if all programs could be
/// simulated, 1 if one could not.
#[derive(clap::Args)]
pub struct Args {
    /// Check the programs of this file; may be repeated. docs/pages-advise.md describes the format.
    #[arg(long, value_name = "PLAN.toml", required = true)]
    plan: Vec<PathBuf>,
    #[command(flatten)]
    batch: BatchArgs,
    #[command(flatten)]
    form: Form,
}

/// Predicts, simulates and compares.
pub(super) fn check(args: &Args) -> Outcome {
    let outputs = args.form.check()?;
    let subjects = plan::read(&args.plan, &PlanSyntax("pages check"))?;
    let cache = Cache::of_this_program(args.batch.cache("pages").as_deref())?;
    let options = checks::CheckOptions { jobs: args.batch.jobs(), cache };
    let checked = checks::check(&args.plan, &subjects, &options, &Console::new(false))?;
    outputs.write(&Answer {
        text: std::slice::from_ref(&checked.document),
        html: &|| html::experiment(&checked.document, &[]),
        json: &|| checked.json.clone(),
    })?;
    Ok(if checked.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
