//! `fxscope pages`: page sizes, one file for each thing to do.

mod host;
mod risks;

use super::Outcome;

/// Look into page sizes and what they do.
#[derive(clap::Subcommand)]
pub enum Command {
    Host(host::Args),
    Risks(risks::Args),
}

/// Does what is asked for.
pub(super) fn pages(command: &Command) -> Outcome {
    match command {
        Command::Host(args) => host::host(args),
        Command::Risks(args) => risks::risks(args),
    }
}
