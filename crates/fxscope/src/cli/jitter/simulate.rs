//! `fxscope jitter simulate`: phases under noise at several sizes.

use fxscope::lab::jitter;

use super::super::Outcome;
use super::form::Form;
use super::setup::Options;

/// Simulate a program of phases under noise, on one node up to a whole machine.
///
/// Each core works for the grain, then all cores synchronise; a detour delays its core, and with it all that wait for
/// it. Efficiency is the share of the time that is useful work, `phase loss` the time that noise adds to a phase,
/// `expected` the same by order statistics where they apply. docs/jitter-scale.md has examples and their run times.
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
