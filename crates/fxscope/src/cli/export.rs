//! `fxscope export`: a run in the formats of other tools' viewers.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::lab::recorded::{run_of, with_loops};
use fxscope::report::export::{self, Format};

use crate::options::choice::described_choice;
use crate::terminal::{Outcome, OutputArgs};

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
    #[arg(long, alias = "to", value_name = "FORMAT", value_parser = described_choice(Format::NAMED))]
    format: Format,
    /// Run of the file, counted from 1; default: the last.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    run: Option<u32>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Exports a run.
pub(super) fn export(args: &Args) -> Outcome {
    let target = args.output.check()?;
    let (_, run) = run_of(&args.file, args.run)?;
    target.write_bytes(&export::export(&with_loops(run), args.format)?)?;
    Ok(ExitCode::SUCCESS)
}
