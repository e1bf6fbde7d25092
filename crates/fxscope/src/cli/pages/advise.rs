//! `fxscope pages advise`: the best page sizes for a program.

use std::ffi::OsString;
use std::path::PathBuf;

use fxscope::lab::pages;
use fxscope::lab::pages::advise::least_gain;
use fxscope::machine::settings::bytes;

use crate::options::{ScenarioArgs, recorded};
use crate::terminal::{Console, Form, Outcome};

/// Find the page sizes with which a program runs fastest, and how to set them.
///
/// The program runs once as under `fxscope run` with the same options, while the TLB misses of every assignment of page
/// sizes to its segments are counted from that one stream of accesses. The best assignments are then simulated in
/// separate runs, whose output is discarded, so it must be possible to run the program again. It has standard input
/// only if that is a file, which every run reads from the start.
///
/// Exit status: 0 with advice, including the advice to change nothing; otherwise as for `fxscope run`.
#[derive(clap::Args)]
#[command(
    override_usage = "fxscope pages advise [OPTIONS] -- PROGRAM [ARGS]...\n       fxscope pages advise [OPTIONS] FILE.fxr"
)]
pub struct Args {
    /// Record file, written by `fxscope run -o`: the program that it names runs again, with the recorded settings and
    /// variables. Options that records do not keep, such as --cpus and --membind, can be given again.
    #[arg(value_name = "FILE.fxr", required_unless_present = "command", conflicts_with = "command")]
    file: Option<PathBuf>,
    /// Run of the file, counted from 1; default: the last.
    #[arg(long, value_name = "N", requires = "file", value_parser = clap::value_parser!(u32).range(1..))]
    run: Option<u32>,
    /// Page sizes to try, in addition to those that the program starts with; default: the normal and the large pages of
    /// the machine's system.
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = bytes)]
    sizes: Vec<u64>,
    /// Number of best assignments to simulate.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    simulate: u32,
    /// Smallest gain, percent of the time, for which a change is advised.
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = least_gain)]
    least: f64,
    /// Look at the second half of the run only, in which programs do what they repeat: pages that only the start touches do not
    /// matter. The program runs once more before, functionally, to count its instructions.
    #[arg(long, conflicts_with = "region")]
    steady: bool,
    #[command(flatten)]
    form: Form,
    /// Do not show which run is simulated.
    #[arg(long, short)]
    quiet: bool,
    /// Look only at the executions of this region.
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(last = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Finds the best page sizes and prints the advice.
pub(super) fn advise(args: &Args) -> Outcome {
    let outputs = args.form.check()?;
    let (file, region) = ((args.file.as_deref(), args.run), args.region.as_deref());
    let scenario = recorded::scenario(&args.scenario, file, &args.command, region, "pages advise")?;
    let options = pages::advise::Options {
        sizes: args.sizes.clone(),
        simulate: args.simulate as usize,
        least_gain: args.least,
        steady: args.steady,
    };
    let stdio = outputs.program_streams()?;
    let advice = pages::advise(&scenario, &options, stdio, &Console::catching_signals(args.quiet)?)?;
    outputs.write_document(&advice.document(), &[], &|| advice.json())
}
