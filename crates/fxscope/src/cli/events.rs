//! `fxscope events`: what a machine's PMU counts.

use std::fmt::Write as _;
use std::process::ExitCode;

use fxscope::pmu::Events;

use super::{Outcome, print};

/// List the events of a machine's PMU: number, name, and whether the model counts it.
#[derive(clap::Args)]
pub struct Args {
    /// The machine.
    #[arg(default_value = "a64fx")]
    machine: String,
}

/// Lists the events on standard output.
pub(super) fn events(args: &Args) -> Outcome {
    let events = Events::of(&args.machine).ok_or_else(|| {
        let known: Vec<_> = Events::machines().collect();
        format!("no events are known for a machine '{}'; there are those of {}", args.machine, known.join(", "))
    })?;
    let mut text = String::from("number  counted  name\n");
    for event in events.iter() {
        let counted = if event.signals.is_empty() { "-" } else { "yes" };
        let number = event.number.map_or_else(|| "-".to_owned(), |n| format!("{n:#06x}"));
        let _ = writeln!(text, "{number:<6}  {counted:<7}  {}", event.name);
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
