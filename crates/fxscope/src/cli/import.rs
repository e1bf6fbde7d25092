//! `fxscope import`: measurements of other tools, as a record.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fxscope::host::text::printable;
use fxscope::import::{Machine, Options, Source, fapp, likwid, papi, perf};
use fxscope::lab::collect::{Recorded, machine_in_mode, recorded_text};
use fxscope::record::{self, Run};
use fxscope::report::render::terminal;

use super::scenario::power_modes;
use super::{Failure, Outcome, print, style};

/// Make a record from the measurements of another tool.
///
/// The record can be reported, compared and exported like that of a simulated run. Nothing is guessed: missing counts
/// stay missing, notes name values that were lost and events that the machine does not know, and a report names the
/// events that it lacks.
#[derive(clap::Args)]
pub struct Args {
    /// The tool that wrote the files.
    #[arg(value_enum)]
    format: Format,
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

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// CSV files pa1…pa17 of Fujitsu's profiler, written by fapppx -A -Icpupa -tcsv; any of them.
    Fapp,
    /// perf stat: its text, -x separated values, -j JSON, recordings of perf stat record.
    Perf,
    /// PAPI's high-level interface: papi_hl_output/rank_*.json.
    Papi,
    /// likwid-perfctr and likwid-mpirun: CSV and tables, with marked regions or without; JSON without; counts by time (-t).
    Likwid,
}

/// Most regions that are shown at once; runs with more only say how many they have.
const SHOWN_REGIONS: usize = 100;

/// Imports, and shows the runs.
pub(super) fn import(args: &Args) -> Outcome {
    record::Target::check(&args.output)?;
    let machine = machine_in_mode(&args.machine, args.power_mode.as_deref())?;
    let mut paths = Vec::new();
    for path in &args.files {
        list(path, &mut paths)?;
    }
    keep(&runs(args, &paths, &machine)?, &args.output)?;
    Ok(ExitCode::SUCCESS)
}

/// Largest file of a tool, bytes.
const MOST_BYTES: u64 = 4 << 30;

/// Reads the runs of files in this format.
fn runs(args: &Args, paths: &[PathBuf], machine: &Machine) -> Result<Vec<Run>, Failure> {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let command = match &args.program {
        Some(text) => text.split(' ').map(str::to_owned).collect(),
        None if args.format == Format::Fapp => vec![name(&args.files[0])],
        None => Vec::new(),
    };
    let options = Options { command, scaled: args.scaled, strict: args.strict };
    let contents = |place: usize| fxscope::host::read(&paths[place], MOST_BYTES).map_err(|e| e.why.to_string());
    let all = || {
        (0..paths.len()).map(|i| contents(i).map_err(|e| format!("{}: {e}", names[i]))).collect::<Result<Vec<_>, _>>()
    };
    let texts = || -> Result<Vec<Vec<u8>>, Failure> {
        let text = |(path, bytes): (&PathBuf, _)| Ok(recorded_text(&args.perf, path, bytes, Recorded::Counts)?);
        paths.iter().zip(all()?).map(text).collect()
    };
    Ok(match args.format {
        // Read one by one: these files have hundreds of megabytes, the others are small.
        Format::Fapp => fapp::read_in_turn(&names, contents, machine, &options)?,
        Format::Perf => perf::read(&sources(&names, &texts()?), machine, &options)?,
        Format::Papi => papi::read(&sources(&names, &all()?), machine, &options)?,
        Format::Likwid => likwid::read(&sources(&names, &all()?), machine, &options)?,
    })
}

/// Returns the name of a program whose measurement is in this file or folder.
fn name(path: &Path) -> String {
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Adds runs to a record file, and shows them.
pub(super) fn keep(runs: &[Run], output: &Path) -> Result<(), Failure> {
    record::append_all(output, runs)?;
    for run in runs {
        if run.regions.len() > SHOWN_REGIONS {
            let regions = run.regions.len();
            let output = output.display().to_string();
            print(format!("{}: {regions} regions; fxscope report shows them\n", printable(&output)))?;
        } else {
            print(terminal::render(&fxscope::report::summary(run), style(&std::io::stdout())))?;
        }
    }
    Ok(())
}

/// Lists the file, or the files of a folder in the order of their names.
fn list(path: &Path, paths: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if !path.is_dir() {
        paths.push(path.to_owned());
        return Ok(());
    }
    let entries: Result<Vec<_>, _> = std::fs::read_dir(path).map_err(|e| unreadable(path, &e))?.collect();
    let mut files: Vec<_> = entries.map_err(|e| unreadable(path, &e))?.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| path.is_file());
    if files.is_empty() {
        return Err(
            format!("{}: no files in this folder; give the folder that the tool wrote to", path.display()).into()
        );
    }
    files.sort();
    paths.extend(files);
    Ok(())
}

fn sources<'a>(names: &'a [String], contents: &'a [Vec<u8>]) -> Vec<Source<'a>> {
    names.iter().zip(contents).map(|(name, bytes)| Source { name, bytes }).collect()
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("{}: cannot be read ({error}); check the path", path.display())
}
