//! `fxscope jitter compare`: remedies against noise, side by side.

use fxscope::jitter::remedies::Options;
use fxscope::lab::jitter;

use crate::options::PhaseArgs;
use crate::terminal::{Outcome, SheetForm};

/// Compare remedies against noise: a core or hardware threads set aside for the system, lighter daemons, synchronised
/// noise, a larger grain, fewer collectives.
///
/// Efficiency is the share of the time of all cores that is useful work, so a core set aside for the system counts as
/// lost.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    phase_args: PhaseArgs,
    /// Lighter daemons: factor by which their rate changes.
    #[arg(long, value_name = "FACTOR", default_value_t = 0.5)]
    daemon_rate: f64,
    /// Lighter daemons: factor by which their length changes.
    #[arg(long, value_name = "FACTOR", default_value_t = 0.5)]
    daemon_length: f64,
    /// Hardware threads: share of a detour's length that it still costs the core.
    #[arg(long, value_name = "SHARE", default_value_t = 0.3)]
    sibling_cost: f64,
    /// Larger grain: factor by which the work of a phase grows.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=1000))]
    larger_grain: u64,
    /// Fewer collectives: one for every this many phases.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=1000))]
    collective_every: u64,
    #[command(flatten)]
    form: SheetForm,
}

/// Simulates all remedies at all sizes.
pub(super) fn compare(args: &Args) -> Outcome {
    let outputs = args.form.check()?;
    let remedies = Options {
        rate: args.daemon_rate,
        length: args.daemon_length,
        sibling: args.sibling_cost,
        grain: args.larger_grain,
        collectives: args.collective_every,
    };
    outputs.write(&jitter::compare(&args.phase_args.asked(), &remedies)?)
}
