//! `fxscope jitter program`: the calls of MPI of a recorded run, as text.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::lab::jitter::Recorded;

use crate::terminal::{Outcome, Target, say};

/// Write the program of a recorded run's ranks as text: the computation before each call of MPI, and what the call waits for.
///
/// The text can be edited, and is for `fxscope jitter simulate --program`. Each line is a call: its rank, the computation
/// before it, the call (send, ssend, recv, a collective, or end), bytes, the partner's rank, and the time in the call apart
/// from waiting. A receive that completes in a later wait is where it completes. docs/jitter-scale.md describes the format.
#[derive(clap::Args)]
pub struct Args {
    /// The record, or a program, which is checked.
    #[arg(value_name = "RUN.fxr|PROGRAM.csv")]
    file: PathBuf,
    /// The run of the file, counted from 1; default: the last one.
    #[arg(long, value_name = "N")]
    run: Option<u32>,
    /// Write to this file, which is replaced atomically, or to standard output (-).
    #[arg(short, long, value_name = "PROGRAM.csv|-", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

/// Writes the program.
pub(super) fn write(args: &Args) -> Outcome {
    let target = Target::check(&args.output)?;
    let recorded = Recorded::of_file(&args.file, args.run)?;
    target.write_bytes(recorded.program.text().as_bytes())?;
    recorded.notes.iter().for_each(|note| say(note));
    Ok(ExitCode::SUCCESS)
}
