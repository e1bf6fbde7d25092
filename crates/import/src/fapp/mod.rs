//! The CSV files that `fapppx -A -Icpupa -tcsv` writes from what `fapp -C -Hevent=paN` has measured.
//!
//! | Tag | Fields |
//! |---|---|
//! | `FAPP-info` | a name and its value: CSV version, timer clock frequency, vector length |
//! | `FAPP-core` | spawn, process, thread, node, CMG, core |
//! | `LABEL-FAPP-cpupa` | the headings of the lines below; events by their codes, `-` for none |
//! | `FAPP-cpupa` | level, spawn, process, thread, region's name and number, calls, CNTVCT, PMCCNTR, counts |
//!
//! Which pass a file is of is known by its events, never by its name. Lines of other tags and levels say nothing about
//! counters of threads.

mod file;

use fxscope_record::Run;
use rayon::prelude::*;

use crate::{Machine, Problem, Source, join};

/// Reads the files of a measurement: any of its passes, once or several times.
///
/// # Errors
/// What is wrong, and in which file and line: no files of fapp, numbers that cannot be, files of different programs.
pub fn read(sources: &[Source<'_>], machine: &Machine, command: &[String]) -> Result<Vec<Run>, Problem> {
    let passes: Vec<_> = sources.par_iter().map(|source| file::parse(source, machine)).collect();
    // Of several files that are wrong, the first is told.
    join::runs("fapp", passes.into_iter().collect::<Result<_, _>>()?, machine, command)
}
