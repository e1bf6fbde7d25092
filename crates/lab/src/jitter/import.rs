//! Traces of other programs.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use fxscope_host::{OutputFile, write_error};
use fxscope_osnoise::import::{self, Format, Source};
use fxscope_osnoise::view::View;

use super::trace;
use crate::Error;
use crate::collect::{Recorded, recorded_text};

/// Largest file, bytes.
const MOST_BYTES: u64 = 4 << 30;

/// Makes a trace from the measurements of another program. `hz` is the number of ticks per second, for times in ticks; `perf` the program
/// that reads recordings of perf.
///
/// # Errors
/// If a file cannot be read, or is not in the format, or the trace cannot be written.
pub fn import(format: Format, files: &[PathBuf], hz: f64, perf: &Path, output: &OutputFile) -> Result<View, Error> {
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let contents = files.iter().map(|path| fxscope_host::read(path, MOST_BYTES));
    let mut contents: Vec<Vec<u8>> = contents.collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    if format == Format::Trace {
        let text = |(path, bytes): (&PathBuf, _)| recorded_text(perf, path, bytes, Recorded::Events);
        contents = files.iter().zip(contents).map(text).collect::<Result<_, _>>()?;
    }
    let sources: Vec<Source<'_>> = names.iter().zip(&contents).map(|(name, bytes)| Source { name, bytes }).collect();
    let imported = import::read(format, &sources, hz).map_err(|e| e.to_string())?;
    let written = output.replace(|file| imported.write(BufWriter::new(file)).map(drop));
    written.map_err(|e| format!("{}: {}", output.path().display(), write_error(&e)))?;
    trace::look(output.path())
}
