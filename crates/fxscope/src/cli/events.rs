//! `fxscope events`: what a machine's PMU counts.

use std::fmt::Write as _;
use std::process::ExitCode;

use fxscope::pmu::{Events, Scope};

use super::{Outcome, print};

/// List the events of a machine's PMU: number, whose activity each counts, name, and what of the model it counts.
///
/// Events of a CMG show the same to all its cores.
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
    let width = events.iter().map(|event| event.name.len()).max().unwrap_or(0);
    let mut text = format!("number  of    {:<width$}  counts\n", "name");
    for event in events.iter() {
        let number = event.number.map_or_else(|| "-".to_owned(), |n| format!("{n:#06x}"));
        let scope = match event.scope {
            Scope::Pe => "core",
            Scope::Cmg => "CMG",
        };
        let terms: Vec<String> = event.terms.iter().map(ToString::to_string).collect();
        let counts = match terms.as_slice() {
            [] if event.energy => "modelled: energy".to_owned(),
            [] => format!("not modelled: {}", event.reason),
            [same] if *same == event.name => "modelled".to_owned(),
            terms => format!("modelled: {}", terms.join(" + ").replace("+ -1 * ", "- ")),
        };
        let _ = writeln!(text, "{number:<6}  {scope:<4}  {:<width$}  {counts}", event.name);
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
