//! `fxscope jitter import`: traces of other programs.

use std::path::PathBuf;

use fxscope::lab::jitter;
use fxscope::osnoise::import::{Format, ticks_per_second};

use crate::options::choice::described_choice;
use crate::terminal::output::regular;
use crate::terminal::{Outcome, show};

/// Make a trace from the measurements of another program, and show it.
#[derive(clap::Args)]
pub struct Args {
    /// The program that wrote the files.
    #[arg(value_parser = described_choice(Format::NAMED))]
    format: Format,
    /// Files; several files are those of several cores.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Ticks per second, for files that have times in ticks (fwq, pairs of ftq).
    #[arg(long, value_name = "HZ", default_value_t = 1e9, value_parser = ticks_per_second)]
    hz: f64,
    /// perf program that reads recordings of perf record (tracer).
    #[arg(long, value_name = "PATH", default_value = "perf")]
    perf: PathBuf,
    /// The trace to write, a file that is replaced atomically.
    #[arg(short, long, value_name = "FILE.fxn")]
    output: PathBuf,
}

/// Reads the files, writes the trace, and shows it.
pub(super) fn import(args: &Args) -> Outcome {
    let output = regular(&args.output, " for the trace")?;
    let view = jitter::import(args.format, &args.files, args.hz, &args.perf, &output)?;
    show(&[jitter::trace_sheet(&view, &args.output.display().to_string()).document()])
}
