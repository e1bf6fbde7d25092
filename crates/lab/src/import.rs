//! Measurements of other tools, as runs.

use std::path::{Path, PathBuf};

use fxscope_import::{Machine, Options, Source, fapp, likwid, papi, perf};
use fxscope_record::Run;

use crate::Error;
use crate::collect::{Recorded, recorded_text};

/// Largest file of a tool, bytes.
const MOST_BYTES: u64 = 4 << 30;

/// A tool that writes measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Fujitsu's profiler.
    Fapp,
    /// `perf stat`.
    Perf,
    /// PAPI's high-level interface.
    Papi,
    /// likwid-perfctr and likwid-mpirun.
    Likwid,
}

impl Tool {
    /// The tools by name, each with what is read of it.
    pub const NAMED: &[(&str, Tool, &str)] = &[
        (
            "fapp",
            Tool::Fapp,
            "CSV files pa1…pa17 of Fujitsu's profiler, written by fapppx -A -Icpupa -tcsv; any of them",
        ),
        ("perf", Tool::Perf, "perf stat: its text, -x separated values, -j JSON, recordings of perf stat record"),
        ("papi", Tool::Papi, "PAPI's high-level interface: papi_hl_output/rank_*.json"),
        (
            "likwid",
            Tool::Likwid,
            "likwid-perfctr and likwid-mpirun: CSV and tables, with marked regions or without; JSON without; counts by time (-t)",
        ),
    ];
}

/// What is imported.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The tool that wrote the files.
    pub tool: Tool,
    /// Files, or folders of them.
    pub files: Vec<PathBuf>,
    /// The program that was measured, if the files do not name it.
    pub program: Option<String>,
    /// Accept estimates of multiplexed events.
    pub scaled: bool,
    /// Refuse values that cannot be taken as they are.
    pub strict: bool,
    /// The perf program that reads recordings of perf.
    pub perf: PathBuf,
}

/// Reads the runs that a tool measured on a machine. Files with different events are passes of one measurement; files with the same
/// events are repeated measurements.
///
/// # Errors
/// If a file or folder cannot be read, or is not what the tool writes.
pub fn runs(measured: &Measured, machine: &Machine) -> Result<Vec<Run>, Error> {
    let mut paths = Vec::new();
    for path in &measured.files {
        list(path, &mut paths)?;
    }
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let command = match (&measured.program, measured.files.first()) {
        (Some(text), _) => text.split(' ').map(str::to_owned).collect(),
        (None, Some(first)) if measured.tool == Tool::Fapp => vec![name(first)],
        (None, _) => Vec::new(),
    };
    let options = Options { command, scaled: measured.scaled, strict: measured.strict };
    let contents = |place: usize| fxscope_host::read(&paths[place], MOST_BYTES).map_err(|e| e.why.to_string());
    let all = || {
        (0..paths.len()).map(|i| contents(i).map_err(|e| format!("{}: {e}", names[i]))).collect::<Result<Vec<_>, _>>()
    };
    let texts = || -> Result<Vec<Vec<u8>>, Error> {
        let text = |(path, bytes): (&PathBuf, _)| recorded_text(&measured.perf, path, bytes, Recorded::Counts);
        paths.iter().zip(all()?).map(text).collect()
    };
    let read = match measured.tool {
        // Read one by one: these files have hundreds of megabytes, the others are small.
        Tool::Fapp => fapp::read_in_turn(&names, contents, machine, &options),
        Tool::Perf => perf::read(&sources(&names, &texts()?), machine, &options),
        Tool::Papi => papi::read(&sources(&names, &all()?), machine, &options),
        Tool::Likwid => likwid::read(&sources(&names, &all()?), machine, &options),
    };
    read.map_err(|why| Error::Request(why.to_string()))
}

fn sources<'a>(names: &'a [String], contents: &'a [Vec<u8>]) -> Vec<Source<'a>> {
    names.iter().zip(contents).map(|(name, bytes)| Source { name, bytes }).collect()
}

/// Returns the name of a program whose measurement is in this file or folder.
fn name(path: &Path) -> String {
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Lists the file, or the files of a folder in the order of their names.
fn list(path: &Path, paths: &mut Vec<PathBuf>) -> Result<(), Error> {
    if !path.is_dir() {
        paths.push(path.to_owned());
        return Ok(());
    }
    let unreadable = |error: std::io::Error| format!("{}: cannot be read ({error}); check the path", path.display());
    let entries: Result<Vec<_>, _> = std::fs::read_dir(path).map_err(unreadable)?.collect();
    let mut files: Vec<_> = entries.map_err(unreadable)?.into_iter().map(|entry| entry.path()).collect();
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
