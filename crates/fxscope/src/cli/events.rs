//! `fxscope events`: the events of a machine's PMU.

use fxscope::machine::show_events;
use fxscope::pmu::events_of;

use crate::terminal::{Outcome, print};

/// List the events of a machine's PMU: number, scope, name, and what they count in the model.
///
/// Events of a CMG have the same value on all its cores.
#[derive(clap::Args)]
pub struct Args {
    /// Machine: a name shown by `fxscope machine list`, the path of a machine's folder or file, or a record (FILE.fxr),
    /// for the machine of its last run.
    #[arg(default_value = "a64fx", value_name = "MACHINE|FILE.fxr")]
    machine: String,
}

/// Lists the events on standard output.
pub(super) fn events(args: &Args) -> Outcome {
    print(show_events(&events_of(&args.machine)?))
}
