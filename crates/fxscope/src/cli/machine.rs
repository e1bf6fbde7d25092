//! `fxscope machine`: the machines, and whether a description is sound.

use std::fmt::Write as _;
use std::process::ExitCode;

use fxscope::machine;

use super::{Outcome, print};

/// Look at machines and check descriptions of them.
#[derive(clap::Subcommand)]
pub enum Command {
    /// List the machines that come with fxscope.
    List,
    /// Show a machine with every key, its meaning and its source.
    Show {
        /// A name, or the path of a machine's folder or file.
        #[arg(default_value = "a64fx")]
        machine: String,
    },
    /// Check a machine's description.
    Check {
        /// The path of a machine's folder or file, or a name.
        #[arg(default_value = "a64fx")]
        machine: String,
    },
}

/// Does what is asked for on standard output.
pub(super) fn machine(command: &Command) -> Outcome {
    let text = match command {
        Command::List => machine::list().iter().fold(String::new(), |mut text, (name, title)| {
            let _ = writeln!(text, "{name:<12} {title}");
            text
        }),
        Command::Show { machine: name } => machine::show(&machine::load(name, &[])?),
        Command::Check { machine: name } => {
            let spec = machine::load(name, &[])?;
            fxscope::check_rows(&spec)?;
            let known = machine::evidence_summary(&spec);
            let known: Vec<_> =
                known.iter().map(|(how, keys)| format!("{keys} {}", format!("{how:?}").to_lowercase())).collect();
            let (events, groups) = (spec.pmu.events.iter().count(), spec.pmu.groups.iter().count());
            format!("{name}: sound; values: {}; events: {events}, groups of them: {groups}\n", known.join(", "))
        }
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
