//! `fxscope pages risks`: accesses with a false mask to pages that do not exist.

use std::ffi::OsString;
use std::process::ExitCode;

use fxscope::lab::pages;
use fxscope::record::Finish;
use fxscope::report::render::html;

use super::super::console::Console;
use super::super::form::{Answer, Form};
use super::super::scenario::ScenarioArgs;
use super::super::{Outcome, say};

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
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Looks for risks in a run.
pub(super) fn risks(args: &Args) -> Outcome {
    let outputs = args.form.check()?;
    args.scenario.refuse_sampling("pages risks")?;
    let scenario = args.scenario.scenario(&args.command)?;
    let stdio = outputs.program_streams()?;
    let found = pages::risks(&scenario, stdio, &Console::catching_signals(false)?)?;
    if let Finish::Failed(message) | Finish::NoProgress(message) = &found.run.finish {
        say(&format!("the program cannot continue: {message}"));
    }
    let document = found.document();
    outputs.write(&Answer {
        html: &|| html::experiment(&document, &[]),
        json: &|| found.json(),
        text: std::slice::from_ref(&document),
    })?;
    Ok(ExitCode::SUCCESS)
}
