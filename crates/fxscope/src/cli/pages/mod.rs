//! `fxscope pages`: page sizes, one file per command.

mod advise;
mod check;
mod experiment;
mod host;
mod risks;

use crate::terminal::Outcome;

/// Inspect page sizes and their effect.
#[derive(clap::Subcommand)]
pub enum Command {
    Advise(advise::Args),
    Check(check::Args),
    Experiment(experiment::Args),
    Host(host::Args),
    Risks(risks::Args),
}

/// Runs the subcommand.
pub(super) fn pages(command: &Command) -> Outcome {
    match command {
        Command::Advise(args) => advise::advise(args),
        Command::Check(args) => check::check(args),
        Command::Experiment(args) => experiment::experiment(args),
        Command::Host(args) => host::host(args),
        Command::Risks(args) => risks::risks(args),
    }
}
