//! `fxscope advise`: what limits a program, and which remedies help.

use std::ffi::OsString;
use std::path::PathBuf;

use fxscope::lab::advise;

use crate::options::{OwnTables, ScenarioArgs, recorded};
use crate::terminal::{Console, Form, Outcome};

/// Say what limits a program, and simulate what may help.
///
/// The program runs once as under `fxscope run` with the same options. For each cause in the verdicts on the run and on the regions that take
/// much of its time, the remedies that need no change of the program are simulated: page sizes, when and where pages are allocated, hardware
/// prefetch, sectors of the L2 cache, number of threads and their cores, vector length; then the best of each kind together.
/// Predicted is what a cure of the cause is expected to gain. The output of these runs is discarded, so it must be possible to run the
/// program again.
///
/// Exit status: 0 with advice, including the advice to change nothing; otherwise as for `fxscope run`.
#[derive(clap::Args)]
#[command(override_usage = "fxscope advise [OPTIONS] -- PROGRAM [ARGS]...\n       fxscope advise [OPTIONS] FILE.fxr")]
pub struct Args {
    /// Record file, written by `fxscope run -o`: the program that it names runs again, with the recorded settings and
    /// variables. Options that records do not keep, such as --cpus and --membind, can be given again.
    #[arg(value_name = "FILE.fxr", required_unless_present = "command", conflicts_with = "command")]
    file: Option<PathBuf>,
    /// Run of the file, counted from 1; default: the last.
    #[arg(long, value_name = "N", requires = "file", value_parser = clap::value_parser!(u32).range(1..))]
    run: Option<u32>,
    /// Judge this region, which the program marks, and time only its executions.
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Runs to make at the same time; default: as many as the host has cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    own: OwnTables,
    /// Do not show which run is simulated.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(last = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Finds what limits the program, tries remedies and prints what they gain.
pub(super) fn advise(args: &Args) -> Outcome {
    args.own.add()?;
    let outputs = args.form.check()?;
    let region = args.region.as_deref();
    let file = (args.file.as_deref(), args.run);
    let scenario = recorded::scenario(&args.scenario, file, &args.command, region, "advise")?;
    let stdio = outputs.program_streams()?;
    let console = Console::catching_signals(args.quiet)?;
    let jobs = args.jobs.map(|jobs| jobs as usize);
    let advice = advise::advise(&scenario, region, stdio, jobs, &console)?;
    outputs.write_document(&advice.document(), &[], &|| advice.json())
}
