//! `fxscope latency advise`: data that may live in a memory tier.

use std::ffi::OsString;

use fxscope::interval_ns;
use fxscope::lab::Cache;
use fxscope::lab::latency::{self, AdviseOptions, loss};

use crate::options::{BatchArgs, ScenarioArgs};
use crate::terminal::{Console, Outcome, SheetForm, status};

/// Find which of a program's data may live in a slower memory tier, and at which loss of time.
///
/// The program runs once with all data in fast memory (docs/memory-tiers.md). For each variable and for the heap blocks of each call, the
/// loss is predicted if they alone are in the tier, and sets of them are chosen for the losses that are accepted. With --check, the
/// sets are simulated, too, and the largest objects one by one. Output of the program is discarded; it has no input.
///
/// Exit status: 0 with advice, 1 if a simulation of a set failed.
#[derive(clap::Args)]
#[command(
    override_usage = "fxscope latency advise --memory-tier NAME:LATENCY,BANDWIDTH [OPTIONS] -- PROGRAM [ARGS]..."
)]
pub struct Args {
    /// The tier; default: the first of the machine.
    #[arg(long, value_name = "NAME")]
    tier: Option<String>,
    /// Accepted losses of time, percent: a set of data is chosen for each.
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_value = "5%", value_parser = loss)]
    loss: Vec<f64>,
    /// Simulate the sets, and the largest objects one by one.
    #[arg(long)]
    check: bool,
    /// Length of the intervals in which the traffic of data is counted.
    #[arg(long, value_name = "TIME", default_value = "20us", value_parser = interval_ns)]
    interval: u64,
    #[command(flatten)]
    batch: BatchArgs,
    #[command(flatten)]
    form: SheetForm,
    /// Do not show which run is simulated.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(last = true, value_name = "PROGRAM [ARGS]", required = true)]
    command: Vec<OsString>,
}

/// Finds the data and prints the advice.
pub(super) fn advise(args: &Args) -> Outcome {
    let outputs = args.form.check()?;
    let scenario = args.scenario.scenario(&args.command)?;
    let folder = args.batch.cache("latency");
    let options = AdviseOptions {
        tier: args.tier.clone(),
        losses: args.loss.clone(),
        interval_ns: args.interval,
        check: args.check,
        jobs: args.batch.jobs(),
        cache: Cache::of_this_program(folder.as_deref())?,
    };
    let advice = latency::advise(&scenario, &options, &Console::new(args.quiet))?;
    outputs.write(&advice.sheet())?;
    Ok(status::of_check(advice.failed.is_empty()))
}
