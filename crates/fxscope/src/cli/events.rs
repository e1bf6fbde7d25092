//! `fxscope events`: the events of a machine's PMU.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use fxscope::pmu::{Events, Scope, of_run, unknown_events};
use fxscope::record;

use super::{Failure, Outcome, print};

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
    let events = events_of(&args.machine)?;
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

/// Returns the events of a machine, or of the machine of a record's last run.
fn events_of(machine: &str) -> Result<Events, Failure> {
    let path = Path::new(machine);
    if path.extension().is_none_or(|suffix| suffix != record::SUFFIX) {
        return Ok(fxscope::machine::load(machine, &[])?.pmu.events);
    }
    let runs = record::load(path)?;
    let run = runs.last().ok_or_else(|| format!("{machine}: the record holds no run"))?;
    match unknown_events(run) {
        Some(why) => Err(format!("{machine}: {why}").into()),
        None => Ok(of_run(run).events.clone()),
    }
}
