//! `fxscope calibrate`: numbers of the model from measurements of a real machine.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::DEFAULT_MACHINE;
use fxscope::lab::Cache;
use fxscope::lab::calibrate::{self, FitOptions, Measurements};
use fxscope::report::sheet::Sheet;

use crate::options::BatchArgs;
use crate::terminal::{Console, Failure, Outcome, SheetForm, Target, show, unless_stopped};

/// Measure an A64FX, and fit numbers of the model to what was measured.
#[derive(clap::Subcommand)]
pub enum Command {
    Collect(CollectArgs),
    Fit(FitArgs),
    List(ListArgs),
}

/// Measure this A64FX: small loops that isolate one number each. Writes one file, for `fxscope calibrate fit`.
///
/// The computer should be idle, with a fixed clock. It takes a few seconds. Events are counted where the system allows it
/// (/proc/sys/kernel/perf_event_paranoid at most 2); times are measured in any case. The measuring program is a static
/// executable without dependencies: --program writes it to a file, to be copied to a machine without fxscope.
#[derive(clap::Args)]
pub struct CollectArgs {
    /// The file of measurements; it is written as a whole, or not at all.
    #[arg(short = 'o', long = "output", alias = "out", value_name = "FILE", default_value = "a64fx.json")]
    out: PathBuf,
    /// Measure nothing; write the measuring program to this file. `./FILE out=a64fx.json` then measures the machine on
    /// which it runs.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "repeat", "only"])]
    program: Option<PathBuf>,
    /// Measure each loop this many times.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=64))]
    repeat: u32,
    /// Measure only these benchmarks (fxscope calibrate list).
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
}

/// Fit numbers of a machine's model to measurements: run the same loops in the simulator, and search each number with which
/// their time is the measured one.
///
/// Proposes a value for each key whose measured time differs, with the spread of the measurements and the remaining error.
/// Keys without a measurement stay as they are, with the reason. Changes nothing; -o writes a machine file, which `fxscope
/// run --machine` takes. Simulated loops are cached, so an interrupted fit continues where it stopped.
#[derive(clap::Args)]
pub struct FitArgs {
    /// The file of measurements.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the proposed numbers to this file, a machine that extends the one that is fitted.
    #[arg(short = 'o', long = "output", alias = "out", value_name = "KEYS.toml")]
    out: Option<PathBuf>,
    /// The machine: a name shown by `fxscope machine list`, or the path of a machine's folder or file.
    #[arg(short, long, default_value = DEFAULT_MACHINE)]
    machine: String,
    /// Fit only these keys (fxscope calibrate list).
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    only: Vec<String>,
    /// Leave out the comparison of benchmarks to which nothing is fitted.
    #[arg(long)]
    keys_only: bool,
    /// Fit even if the measured processor is of another kind than the machine's.
    #[arg(long)]
    any_processor: bool,
    #[command(flatten)]
    batch: BatchArgs,
    /// Write all figures as JSON to this file, or to standard output (-) instead of the tables.
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// List the benchmarks with what they isolate, and the keys that are fitted to them, in the order of the fits.
#[derive(clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    form: SheetForm,
}

/// Runs the command.
pub(super) fn calibrate(command: &Command) -> Outcome {
    match command {
        Command::Collect(args) => collect(args),
        Command::Fit(args) => fit(args),
        Command::List(args) => list(args),
    }
}

/// What an interrupted calibration means.
const STOPPED: &str = "the calibration; nothing is written";

fn collect(args: &CollectArgs) -> Outcome {
    if let Some(file) = &args.program {
        calibrate::write_program(file)?;
        return Ok(ExitCode::SUCCESS);
    }
    let console = Console::catching_signals(false)?;
    unless_stopped(calibrate::collect(&args.out, args.repeat, &args.only, &console), STOPPED)?;
    Ok(ExitCode::SUCCESS)
}

fn fit(args: &FitArgs) -> Outcome {
    let [out, json] = [&args.out, &args.json].map(|path| path.as_deref().map(Target::check).transpose());
    let (out, json) = (out?, json?);
    let measured = Measurements::read(&args.file)?;
    let folder = args.batch.cache("calibrate");
    let options = FitOptions {
        machine: args.machine.clone(),
        only: args.only.clone(),
        any_processor: args.any_processor,
        keys_only: args.keys_only,
        jobs: args.batch.jobs(),
        cache: Cache::of_this_program(folder.as_deref())?,
    };
    let fitting = unless_stopped(calibrate::fit(&measured, &options, &Console::catching_signals(false)?), STOPPED)?;
    show_sheet(&calibrate::sheet(&fitting), json)?;
    if let Some(target) = out {
        target.write_bytes(calibrate::machine_file(&fitting, &args.file).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(args: &ListArgs) -> Outcome {
    let outputs = args.form.check()?;
    outputs.write(&calibrate::benchmarks_sheet())
}

/// Shows a sheet as tables, or writes it as JSON to standard output instead; to a file, it does both.
fn show_sheet(sheet: &Sheet, json: Option<Target>) -> Result<(), Failure> {
    let instead = matches!(json, Some(Target::StandardOutput));
    if let Some(target) = json {
        target.write(&sheet.json())?;
    }
    if !instead {
        show(&[sheet.document()])?;
    }
    Ok(())
}
