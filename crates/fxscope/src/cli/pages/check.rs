//! `fxscope pages check`: predictions of the time with other pages, compared with simulations.

use std::path::PathBuf;

use fxscope::lab::Cache;
use fxscope::lab::pages::{check as checks, plan};

use crate::options::{BatchArgs, PlanSyntax};
use crate::terminal::{Console, Form, Outcome, status};

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
    let subjects = plan::read(&args.plan, &PlanSyntax)?;
    let cache = Cache::of_this_program(args.batch.cache("pages").as_deref())?;
    let options = checks::CheckOptions { jobs: args.batch.jobs(), cache };
    let checked = checks::check(&args.plan, &subjects, &options, &Console::new(false))?;
    outputs.write_document(&checked.document, &[], &|| checked.json.clone())?;
    Ok(status::of_check(checked.failed.is_empty()))
}
