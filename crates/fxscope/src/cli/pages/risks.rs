//! `fxscope pages risks`: accesses under a false mask to pages that are not there.

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

/// Find instructions that name pages under a false mask which are not there: memory that was never mapped, or of which
/// no page was ever taken.
///
/// Runs the program once, in timing mode. Elements that are not active touch nothing; but a machine that looks up their
/// pages all the same finds none, each time, and no page size helps. Source lines are read from the program's debug
/// information (-g). The report goes to standard output, behind what the program wrote. Exit status: 0 when it could be
/// made, whatever was found and however the program ended; otherwise as for `fxscope run`.
#[derive(clap::Args)]
#[command(override_usage = "fxscope pages risks [OPTIONS] -- PROGRAM [ARGS]...")]
pub struct Args {
    /// Write what was found as JSON to this file, which is replaced as a whole, or to standard output (-) in place of
    /// the text.
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
    let scenario = args.scenario.scenario(&args.command)?;
    let stdio = program_streams(target.as_ref())?;
    let found = pages::risks(&scenario, stdio, &Console::catching_signals(false)?)?;
    if let Finish::Failed(message) = &found.run.finish {
        say(&format!("the program cannot go on: {message}"));
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
