//! `fxscope export`: a run in the formats of other tools' viewers.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::report::export::{self, Format};

use super::Outcome;
use super::output::Target;
use super::recorded::{run_of, with_loops};

/// Write a run in the format of another tool's viewer.
///
/// If the run has call stacks (`fxscope run --stacks`), profiles are made of them, thread by thread. Otherwise they have each function
/// with its loops and the cycles of all threads. docs/exports.md says which viewer opens what.
#[derive(clap::Args)]
pub struct Args {
    /// Record file, written by `fxscope run -o`.
    #[arg(value_name = "FILE.fxr")]
    file: PathBuf,
    /// The format.
    #[arg(long, alias = "to", value_enum, value_name = "FORMAT")]
    format: Viewer,
    /// Run of the file, counted from 1; default: the last.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    run: Option<u32>,
    /// Write to this file, which is replaced atomically, or to standard output (-).
    #[arg(short, long, value_name = "FILE|-", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Viewer {
    /// speedscope, <https://www.speedscope.app>.
    Speedscope,
    /// The Firefox Profiler, <https://profiler.firefox.com>.
    Firefox,
    /// Perfetto, <https://ui.perfetto.dev>, and Chrome's tracing: a time line of threads, calls of MPI and intervals.
    Perfetto,
    /// pprof, compressed with gzip.
    Pprof,
    /// A line for each call stack, for flame graphs.
    Folded,
}

impl Viewer {
    fn format(self) -> Format {
        match self {
            Viewer::Speedscope => Format::Speedscope,
            Viewer::Firefox => Format::Firefox,
            Viewer::Perfetto => Format::Perfetto,
            Viewer::Pprof => Format::Pprof,
            Viewer::Folded => Format::Folded,
        }
    }
}

/// Exports a run.
pub(super) fn export(args: &Args) -> Outcome {
    let target = Target::check(&args.output)?;
    let (_, run) = run_of(&args.file, args.run)?;
    target.write_bytes(&export::export(&with_loops(run), args.format.format())?)?;
    Ok(ExitCode::SUCCESS)
}
