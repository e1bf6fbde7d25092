//! `fxscope pages risks`: accesses with a false mask to pages that do not exist.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::lab::pages;
use fxscope::record::Finish;
use fxscope::report::render::terminal;

use super::super::console::Console;
use super::super::output::{Target, program_streams};
use super::super::scenario::ScenarioArgs;
use super::super::{Outcome, print, say, style};

/// Find instructions that address non-existent pages with a false mask: memory that was never mapped, or pages that
/// were never touched.
///
/// Runs the program once, in timing mode. Inactive elements access nothing; but a machine that translates their
/// addresses anyway walks the tables in vain each time, and no page size helps. Source lines are read from the
/// program's debug information (-g). The report is written to standard output, after the program's own output. Exit
/// status: 0 if the report was made, whatever was found and however the program ended; otherwise as for `fxscope run`.
#[derive(clap::Args)]
#[command(override_usage = "fxscope pages risks [OPTIONS] -- PROGRAM [ARGS]...")]
pub struct Args {
    /// Write the results as JSON to this file, which is replaced atomically, or to standard output (-) instead of text.
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Looks for risks in a run.
pub(super) fn risks(args: &Args) -> Outcome {
    let target = args.json.as_deref().map(Target::check).transpose()?;
    args.scenario.refuse_sampling("pages risks")?;
    let scenario = args.scenario.scenario(&args.command)?;
    let stdio = program_streams(target.as_ref())?;
    let found = pages::risks(&scenario, stdio, &Console::catching_signals(false)?)?;
    if let Finish::Failed(message) | Finish::NoProgress(message) = &found.run.finish {
        say(&format!("the program cannot continue: {message}"));
    }
    let instead = matches!(target, Some(Target::StandardOutput));
    if let Some(target) = target {
        target.write(&found.json())?;
    }
    if !instead {
        print(terminal::render(&[found.document()], style(&std::io::stdout())))?;
    }
    Ok(ExitCode::SUCCESS)
}
