//! `fxscope advise`: what limits a program, and which remedies help.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::lab::advise;
use fxscope::report::render::terminal;

use super::console::Console;
use super::output::{Target, program_streams};
use super::scenario::ScenarioArgs;
use super::{Outcome, print, style};

/// Say what limits a program, and simulate what may help.
///
/// The program runs once as under `fxscope run` with the same options. For each cause in its verdict, the remedies that need no change of
/// the program are simulated: page sizes, when and where pages are allocated, hardware prefetch. Predicted is what a cause explains of the
/// time, which is the most that its remedy gains. The output of these runs is discarded, so it must be possible to run the program again.
///
/// Exit status: 0 with advice, including the advice to change nothing; otherwise as for `fxscope run`.
#[derive(clap::Args)]
pub struct Args {
    /// Judge this region, which the program marks, and time only its executions.
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Runs to make at the same time; default: as many as the host has cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Write all results as JSON to this file, which is replaced atomically, or to standard output (-) instead of text.
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Do not show which run is simulated.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Finds what limits the program, tries remedies and prints what they gain.
pub(super) fn advise(args: &Args) -> Outcome {
    let target = args.json.as_deref().map(Target::check).transpose()?;
    let scenario = args.scenario.scenario_of(&args.command, args.region.as_deref())?;
    let stdio = program_streams(target.as_ref())?;
    let console = Console::catching_signals(args.quiet)?;
    let jobs = args.jobs.map(|jobs| jobs as usize);
    let advice = advise::advise(&scenario, args.region.as_deref(), stdio, jobs, &console)?;
    let instead = matches!(target, Some(Target::StandardOutput));
    if let Some(target) = target {
        target.write(&advice.json())?;
    }
    if !instead {
        print(terminal::render(&[advice.document()], style(&std::io::stdout())))?;
    }
    Ok(ExitCode::SUCCESS)
}
