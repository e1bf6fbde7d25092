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

use crate::join::{self, Pass};
use crate::{Machine, Problem, Source};

/// Reads the files of a measurement: any of its passes, once or several times.
///
/// # Errors
/// What is wrong, and in which file and line: no files of fapp, numbers that cannot be, files of different programs.
pub fn read(sources: &[Source<'_>], machine: &Machine, command: &[String]) -> Result<Vec<Run>, Problem> {
    let passes = sources.par_iter().map(|source| file::parse(source.name, source.bytes, machine));
    join(passes.collect(), machine, command)
}

/// Does what [`read`] does with files of these names, but fetches the contents of each, by its place, when its turn comes, and
/// keeps them no longer: counts take less room than the text that they stand in.
///
/// # Errors
/// As [`read`] has them, and why the contents of a file cannot be had.
pub fn read_in_turn(
    names: &[String],
    contents: impl Fn(usize) -> Result<Vec<u8>, String> + Sync,
    machine: &Machine,
    command: &[String],
) -> Result<Vec<Run>, Problem> {
    let pass = |(place, name)| {
        let bytes = contents(place).map_err(|what| Problem::of(name, None, what))?;
        file::parse(name, &bytes, machine)
    };
    join(names.par_iter().map(String::as_str).enumerate().map(pass).collect(), machine, command)
}

/// The runs of passes. Of several files that are wrong, the first is told.
fn join(passes: Vec<Result<Pass<'_>, Problem>>, machine: &Machine, command: &[String]) -> Result<Vec<Run>, Problem> {
    join::runs("fapp", passes.into_iter().collect::<Result<_, _>>()?, machine, command)
}
