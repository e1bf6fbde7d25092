//! `fxscope jitter fit`: a noise model fitted to a trace.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::lab::jitter;

use crate::terminal::{Outcome, Target, show};

/// Fit a noise model to a trace: periodic and random sources, the lengths of their detours, and whether these strike
/// cores together.
///
/// The model is a text file for `fxscope jitter simulate --model FILE`. `gaps off` and `lengths off` are the largest
/// differences between the distributions of the trace and of the model (Kolmogorov-Smirnov, from 0 to 1); for periodic
/// sources, the share of the periods without a detour.
#[derive(clap::Args)]
pub struct Args {
    /// The trace.
    #[arg(value_name = "TRACE.fxn")]
    trace: PathBuf,
    /// Write the model to this file, which is replaced atomically, or to standard output (-).
    #[arg(short, long, value_name = "MODEL.toml|-")]
    output: PathBuf,
}

/// Fits, writes the model, and shows how well it fits.
pub(super) fn fit(args: &Args) -> Outcome {
    let to_file = args.output.as_os_str() != "-";
    let target = Target::check(&args.output)?;
    let fitted = jitter::fit(&args.trace)?;
    target.write_bytes(fitted.model_text().as_bytes())?;
    if !to_file {
        return Ok(ExitCode::SUCCESS);
    }
    show(&[fitted.sheet(&args.output.display().to_string()).document()])
}
