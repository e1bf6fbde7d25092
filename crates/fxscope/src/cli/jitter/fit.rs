//! `fxscope jitter fit`: a noise model of a trace.

use std::path::PathBuf;

use fxscope::lab::jitter;

use super::super::Outcome;
use super::super::output::Target;
use super::form::show;

/// Fit a noise model to a trace: what is periodic, what comes at random, how long it is, whether it strikes cores together.
///
/// The model is a text file that `fxscope jitter simulate --model FILE` reads. `gaps off` and `lengths off` are the largest
/// differences between the trace's distribution and the model's (Kolmogorov-Smirnov, from 0 to 1); of periodic sources the share of
/// the periods in which no detour was found.
#[derive(clap::Args)]
pub struct Args {
    /// The trace.
    #[arg(value_name = "TRACE.fxn")]
    trace: PathBuf,
    /// The model, which is replaced as a whole, or standard output (-).
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
        return Ok(std::process::ExitCode::SUCCESS);
    }
    show(&fitted.sheet(&args.output.display().to_string()))
}
