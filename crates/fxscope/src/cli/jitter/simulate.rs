//! `fxscope jitter simulate`: phases under noise at several sizes.

use fxscope::lab::jitter;

use super::super::Outcome;
use super::form::Form;
use super::setup::Options;

/// Simulate a program of phases under noise, on one node up to a whole machine.
///
/// Each core works for the grain, then the cores meet; a detour holds up its core, and with it all that wait. Efficiency is the
/// share of the time that is work, `phase loss` what noise adds to a phase, `expected` the same by order statistics where they
/// hold. docs/jitter-scale.md has examples and what they cost.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    form: Form,
}

/// Simulates all sizes.
pub(super) fn simulate(args: &Args) -> Outcome {
    let target = args.form.target()?;
    args.form.write(&jitter::simulate(&args.options.asked())?, target)
}
