//! `fxscope pages risks`: accesses with a false mask to pages that do not exist.

use std::ffi::OsString;

use fxscope::lab::pages;

use crate::options::ScenarioArgs;
use crate::terminal::{Console, Form, Outcome, say};

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
    let scenario = args.scenario.scenario(&args.command)?;
    let stdio = outputs.program_streams()?;
    let found = pages::risks(&scenario, stdio, &Console::catching_signals(false)?)?;
    found.run.finish.failure().iter().for_each(|failure| say(failure));
    outputs.write_document(&found.document(), &[], &|| found.json())
}
