//! Imports output of `likwid-perfctr` and `likwid-mpirun` versions 4 and 5: CSV (`-o FILE.csv`, `-O`) and tables, with and
//! without marked regions; JSON (`-o FILE.json`) without regions, whose names the JSON lacks; and counts by time (`-t`).
//!
//! Each event group is a pass. Counts are by hardware thread, so the threads' CPUs are known.

mod json;
mod rows;
mod table;
mod timeline;

use fxscope_record::Run;

use crate::losses::Losses;
use crate::rows::{self as all_rows, Pass};
use crate::{FileError, Machine, Options, Source};

/// The row with the time, in tables of counts or of metrics.
const RUNTIME: &str = "Runtime (RDTSC) [s]";

/// Reads output of LIKWID.
///
/// # Errors
/// Errors with file and line: not output of LIKWID, invalid counts, groups that do not belong together; with
/// [`Options::strict`] also values that are missing.
pub fn read(sources: &[Source<'_>], machine: &Machine, options: &Options) -> Result<Vec<Run>, FileError> {
    let mut passes = Vec::new();
    for source in sources {
        let text = source.text()?;
        let mut losses = Losses::new(options.strict);
        let mut groups = groups(source, &text.text, machine, &mut losses)?;
        groups.retain(|pass| !pass.regions.is_empty());
        let Some(first) = groups.first_mut() else {
            let what = "is not output of LIKWID: CSV (-o FILE.csv, -O) has lines that begin with TABLE".to_owned();
            return Err(source.problem(None, what));
        };
        first.notes.extend(losses.notes().chain(text.note()));
        passes.extend(groups.into_iter().map(|pass| (*source, pass)));
    }
    all_rows::runs("likwid", passes, machine, &options.command)
}

/// Reads a file: a pass for each group.
fn groups(source: &Source<'_>, text: &str, machine: &Machine, losses: &mut Losses) -> Result<Vec<Pass>, FileError> {
    if text.trim_start().starts_with('{') {
        json::read(source, text, machine, losses)
    } else if timeline::is(text) {
        timeline::read(source, text, machine, losses)
    } else {
        table::read(source, text, machine, losses)
    }
}
