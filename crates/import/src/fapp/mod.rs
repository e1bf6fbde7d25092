//! Imports the CSV files that `fapppx -A -Icpupa -tcsv` writes from measurements with `fapp -C -Hevent=paN`.
//!
//! | Tag | Fields |
//! |---|---|
//! | `FAPP-info` | a name and its value: CSV version, timer clock frequency, vector length |
//! | `FAPP-core` | spawn, process, thread, node, CMG, core |
//! | `LABEL-FAPP-cpupa` | the headings of the lines below; events by their codes, `-` for none |
//! | `FAPP-cpupa` | level, spawn, process, thread, region's name and number, calls, CNTVCT, PMCCNTR, counts |
//!
//! Files that a spreadsheet has saved are read, too: other separators, padding, exponents, another encoding of names.
//!
//! A file's pass is identified by its events, never by its name. Lines with other tags and levels do not contain thread
//! counters.

mod file;

use fxscope_record::Run;
use rayon::prelude::*;

use crate::join::{self, Pass};
use crate::{FileError, Machine, Options, Source};

/// Reads the files of a measurement: any passes, once or several times.
///
/// # Errors
/// Errors with file and line: not output of fapp, implausible numbers, files of different programs.
pub fn read(sources: &[Source<'_>], machine: &Machine, options: &Options) -> Result<Vec<Run>, FileError> {
    let passes = sources.par_iter().map(|source| file::parse(source.name, source.bytes, machine, options));
    join(passes.collect(), machine, &options.command)
}

/// Like [`read`], but fetches the contents of each file, by index, one after the other and drops them early, since
/// counts take less memory than their text.
///
/// # Errors
/// As for [`read`], and errors of fetching a file.
pub fn read_in_turn(
    names: &[String],
    contents: impl Fn(usize) -> Result<Vec<u8>, String> + Sync,
    machine: &Machine,
    options: &Options,
) -> Result<Vec<Run>, FileError> {
    let pass = |(place, name)| {
        let bytes = contents(place).map_err(|what| FileError::of(name, None, what))?;
        file::parse(name, &bytes, machine, options)
    };
    join(names.par_iter().map(String::as_str).enumerate().map(pass).collect(), machine, &options.command)
}

/// Combines passes into runs. Of several errors, the first is returned.
fn join(
    passes: Vec<Result<Pass<'_>, FileError>>,
    machine: &Machine,
    command: &[String],
) -> Result<Vec<Run>, FileError> {
    join::runs("fapp", passes.into_iter().collect::<Result<_, _>>()?, machine, command)
}
