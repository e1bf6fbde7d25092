//! `fxscope validate`: the model against measured results.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fxscope::lab::{self, Cache, Runner};
use fxscope::report::render::{html, terminal};
use fxscope::report::validation;
use fxscope::validate::{self, Outcome as RowOutcome, Simulator, Suite};

use super::console::Console;
use super::interrupt;
use super::output::{Target, default_cache};
use super::{Failure, Outcome, style};

/// Hold the model against measured results: run the program of every row, compare with what the machine took.
///
/// What a run counted is kept and used again until its program, its options or fxscope change; a suite that was
/// interrupted goes on where it was. The exit status is 1 when a row is further off than its file says, by more
/// than a point, cannot be simulated, or no longer needs the gap that it names.
#[derive(clap::Args)]
pub struct Args {
    /// What to run: quick, full, a family (the name of a CSV file of the folder) or a single row.
    #[arg(default_value = "quick")]
    suite: String,
    /// The folder of the rows; programs are in kernels/prebuilt beside it.
    #[arg(long, value_name = "FOLDER", default_value = "validation")]
    folder: PathBuf,
    /// Runs at a time; all of the host's cores without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Where counts of runs are kept; a folder of the user's cache without it.
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_cache")]
    cache: Option<PathBuf>,
    /// Make all runs anew and keep nothing.
    #[arg(long)]
    no_cache: bool,
    /// Write today's errors into the rows' files as those that are expected.
    #[arg(long)]
    accept: bool,
    /// Write all figures as JSON to this file (- for standard output, in place of the tables).
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Write an HTML page to this file.
    #[arg(long, value_name = "FILE|-")]
    html: Option<PathBuf>,
    /// Write Markdown tables to this file.
    #[arg(long, value_name = "FILE|-")]
    markdown: Option<PathBuf>,
}

/// Runs a suite and shows how far off the model is.
pub(super) fn validate(args: &Args) -> Outcome {
    let outputs = [&args.json, &args.html, &args.markdown];
    let [json, html_page, markdown] = outputs.map(|path| path.as_deref().map(Target::check).transpose());
    let (json, html_page, markdown) = (json?, html_page?, markdown?);
    let all = Suite::read(&args.folder).map_err(|e| format!("{e}{}", hint(&args.folder)))?;
    let suite = all.clone().choose(&args.suite)?;
    let results = run(args, &suite)?;
    let outcomes = validate::judge(&suite, &results);

    if let Some(target) = json {
        target.write(&validation::json(&args.suite, &outcomes))?;
    }
    if let Some(target) = html_page {
        target.write_bytes(html::validation(&args.suite, &outcomes).as_bytes())?;
    }
    if let Some(target) = markdown {
        target.write_bytes(validation::markdown(&outcomes).as_bytes())?;
    }
    if !outputs.into_iter().flatten().any(|path| path.as_os_str() == "-") {
        let tables = terminal::render(&[validation::document(&outcomes)], style(&std::io::stdout()));
        super::told(std::io::stdout().lock().write_all(tables.as_bytes()))?;
    }
    if args.accept {
        let changed = validate::accept(&all, &outcomes)?;
        super::say(&format!("{changed} rows of {} have another error now", args.folder.display()));
    }
    Ok(if outcomes.iter().all(|o| is_fine(o, args.accept)) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether a row is as it should be; errors that were just accepted are.
fn is_fine(outcome: &RowOutcome, accepted: bool) -> bool {
    let verdict = outcome.judgement.as_ref().map(|j| j.verdict);
    verdict.is_ok_and(|v| v.is_expected() || accepted && v == validate::Verdict::Worse)
}

/// What to do when the folder is not there.
fn hint(folder: &Path) -> &'static str {
    if folder.exists() { "" } else { "; run it in the folder of fxscope's sources, or name one with --folder" }
}

/// Makes the runs of a suite, with a bar that shows how many are done.
fn run(args: &Args, suite: &Suite) -> Result<validate::Results, Failure> {
    let program = std::env::current_exe().map_err(|e| format!("fxscope does not find its own executable: {e}"))?;
    let folder = if args.no_cache { None } else { args.cache.clone().or_else(|| default_cache("validate")) };
    let cache = Cache::new(folder.as_deref(), &program)?;
    let beside = args.folder.parent().unwrap_or(Path::new(""));
    let simulator = Simulator { program, kernels: beside.join("kernels/prebuilt") };
    let console = Console::catching_signals(false)?;
    let runner = Runner::new(args.jobs.map(usize::from), &console);
    match lab::validate::execute(suite, &simulator, &cache, runner) {
        Err(lab::Error::Stopped) => {
            let message = format!("{} ended the validation; runs that were done are kept", interrupt::name());
            Err(Failure { status: interrupt::status(), message })
        }
        results => Ok(results?),
    }
}
