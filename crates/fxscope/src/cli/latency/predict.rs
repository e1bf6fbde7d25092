//! `fxscope latency predict`: slowdowns from the counts of one run.

use std::ffi::OsString;
use std::path::PathBuf;

use fxscope::interval_ns;
use fxscope::lab::latency::{Case, nanoseconds, simulated};
use fxscope::lab::recorded::run_of;

use crate::options::{PredictArgs, ScenarioArgs};
use crate::terminal::{Console, Form, Outcome};

/// Predict how much longer a program takes with slower memory, by every method that its counts allow.
///
/// The counts come from a record, simulated (`fxscope run -o`) or measured (`fxscope latency collect`, `fxscope
/// import`), or from a run that is simulated now. `fxscope latency methods` lists the methods and the events they need.
#[derive(clap::Args)]
#[command(
    override_usage = "fxscope latency predict [OPTIONS] FILE.fxr\n       fxscope latency predict [OPTIONS] -- PROGRAM [ARGS]..."
)]
pub struct Args {
    /// Record file.
    #[arg(value_name = "FILE.fxr", required_unless_present = "command", conflicts_with = "command")]
    file: Option<PathBuf>,
    /// Run of the file, counted from 1; default: the last.
    #[arg(long, value_name = "N", requires = "file", value_parser = clap::value_parser!(u32).range(1..))]
    run: Option<u32>,
    #[command(flatten)]
    predict: PredictArgs,
    /// Memory latency of the run, nanoseconds. Default: that of the machine's description.
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    base_ns: Option<f64>,
    /// Another run of the program with somewhat slower memory, such as that of another node (numactl --membind, fxscope
    /// run --membind). Method 6 scales the difference between both runs. The last run of this file is used.
    #[arg(long, value_name = "FILE.fxr", requires = "second_ns")]
    second: Option<PathBuf>,
    /// Memory latency of the second run, nanoseconds.
    #[arg(long, value_name = "NS", value_parser = nanoseconds, requires = "second")]
    second_ns: Option<f64>,
    /// Length of intervals, for a run that is simulated now.
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = interval_ns)]
    interval: u64,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(last = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Predicts, and shows.
pub(super) fn predict(args: &Args) -> Outcome {
    let outputs = args.form.check()?;
    let options = args.predict.options();
    let run = match &args.file {
        Some(path) => run_of(path, args.run)?.1,
        None => {
            let scenario = args.scenario.scenario(&args.command)?;
            let (stdio, console) = (outputs.program_streams()?, Console::catching_signals(false)?);
            simulated(scenario, args.interval, options.region.as_deref(), stdio, &console)?
        }
    };
    let mut case = Case::of(&run, &options, args.base_ns, None)?;
    if let (Some(path), Some(ns)) = (&args.second, args.second_ns) {
        case = case.with_second(&run_of(path, None)?.1, &options, ns)?;
    }
    let forecast = case.predict(&options);
    outputs.write_document(&forecast.document(), &forecast.plots(), &|| forecast.json())
}
