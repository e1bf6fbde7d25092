//! `fxscope jitter compare`: what can be done against noise, side by side.

use fxscope::jitter::measures::Options as Settings;
use fxscope::lab::jitter;

use super::super::{Failure, Outcome};
use super::form::Form;
use super::setup::Options;

/// Compare what can be done against noise: a core or hardware threads for the system, lighter daemons, noise aligned in time,
/// a larger grain, fewer collectives.
///
/// Efficiency is the share of the time that is work of all cores, so that a core that is set aside counts as lost.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    options: Options,
    /// Lighter daemons: by what factor their rate changes.
    #[arg(long, value_name = "FACTOR", default_value_t = 0.5)]
    daemon_rate: f64,
    /// Lighter daemons: by what factor their length changes.
    #[arg(long, value_name = "FACTOR", default_value_t = 0.5)]
    daemon_length: f64,
    /// Hardware threads: what share of its length a detour there costs the core.
    #[arg(long, value_name = "SHARE", default_value_t = 0.3)]
    sibling_cost: f64,
    /// Larger grain: how many times the work.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=1000))]
    larger_grain: u64,
    /// Fewer collectives: how many phases have one among them.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=1000))]
    collective_every: u64,
    #[command(flatten)]
    form: Form,
}

/// Simulates all measures at all sizes.
pub(super) fn compare(args: &Args) -> Outcome {
    let target = args.form.target()?;
    let settings = settings(args)?;
    args.form.write(&jitter::compare(&args.options.asked(), &settings)?, target)
}

fn settings(args: &Args) -> Result<Settings, Failure> {
    let shares = [
        ("--daemon-rate", args.daemon_rate),
        ("--daemon-length", args.daemon_length),
        ("--sibling-cost", args.sibling_cost),
    ];
    if let Some((option, value)) = shares.into_iter().find(|(_, value)| !(*value > 0.0 && *value <= 1.0)) {
        return Err(format!("{option} {value}: above 0 and at most 1 is possible").into());
    }
    Ok(Settings {
        rate: args.daemon_rate,
        length: args.daemon_length,
        sibling: args.sibling_cost,
        grain: args.larger_grain,
        collectives: args.collective_every,
    })
}
