//! `fxscope import`: measurements of other tools, as a record.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fxscope::host::text::printable;
use fxscope::lab::collect::machine_in_mode;
use fxscope::lab::import::{self, Measured, Tool};
use fxscope::record::{self, Run};

use crate::options::choice::{described_choice, power_modes};
use crate::terminal::{Outcome, print, show};

/// Make a record from the measurements of another tool.
///
/// The record can be reported, compared and exported like that of a simulated run. Nothing is guessed: missing counts
/// stay missing, notes name values that were lost and events that the machine does not know, and a report names the
/// events that it lacks.
#[derive(clap::Args)]
pub struct Args {
    /// The tool that wrote the files.
    #[arg(value_parser = described_choice(Tool::NAMED))]
    format: Tool,
    /// Files, or folders of them. Files with different events are passes of one measurement; files with the same events
    /// are repeated measurements, and become separate runs.
    #[arg(required = true, value_name = "FILE|FOLDER")]
    files: Vec<PathBuf>,
    /// Add the runs to this record file, which is created if needed.
    #[arg(short, long, value_name = "FILE.fxr")]
    output: PathBuf,
    /// Machine that was measured: a name shown by `fxscope machine list`, the path of a machine's folder, or a
    /// processor listed by `fxscope latency methods`.
    #[arg(short, long, default_value = "a64fx")]
    machine: String,
    /// Program that was measured, where the files do not name it.
    #[arg(long, value_name = "TEXT")]
    program: Option<String>,
    /// Accept counts of multiplexed events, which are estimates.
    #[arg(long)]
    scaled: bool,
    /// Refuse files with values that cannot be taken as they are, such as <not counted>, instead of noting them.
    #[arg(long)]
    strict: bool,
    /// Mode of power that the machine had, for power and energy from counts.
    #[arg(long, value_name = "MODE", value_parser = power_modes())]
    power_mode: Option<String>,
    /// perf program that reads recordings of perf stat record.
    #[arg(long, value_name = "PATH", default_value = "perf")]
    perf: PathBuf,
}

/// Most regions that are shown at once; runs with more only say how many they have.
const SHOWN_REGIONS: usize = 100;

/// Imports, and shows the runs.
pub(super) fn import(args: &Args) -> Outcome {
    record::Target::check(&args.output)?;
    let machine = machine_in_mode(&args.machine, args.power_mode.as_deref())?;
    let measured = Measured {
        tool: args.format,
        files: args.files.clone(),
        program: args.program.clone(),
        scaled: args.scaled,
        strict: args.strict,
        perf: args.perf.clone(),
    };
    keep(&import::runs(&measured, &machine)?, &args.output)
}

/// Adds runs to a record file, and shows them.
pub(super) fn keep(runs: &[Run], output: &Path) -> Outcome {
    record::append_all(output, runs)?;
    for run in runs {
        if run.regions.len() > SHOWN_REGIONS {
            let regions = run.regions.len();
            let output = output.display().to_string();
            print(format!("{}: {regions} regions; fxscope report shows them\n", printable(&output)))?;
        } else {
            show(&fxscope::report::summary(run))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
