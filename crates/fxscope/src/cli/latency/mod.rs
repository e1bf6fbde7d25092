//! `fxscope latency`: the effect of slower memory on a program, one file per command.

mod advise;
mod check;
mod collect;
mod methods;
mod predict;

use crate::terminal::Outcome;

/// Predict how a program slows down when main memory does.
#[derive(clap::Subcommand)]
pub enum Command {
    Predict(Box<predict::Args>),
    Advise(Box<advise::Args>),
    Check(Box<check::Args>),
    Collect(collect::Args),
    Methods(methods::Args),
}

/// Runs the subcommand.
pub(super) fn latency(command: &Command) -> Outcome {
    match command {
        Command::Predict(args) => predict::predict(args),
        Command::Advise(args) => advise::advise(args),
        Command::Check(args) => check::check(args),
        Command::Collect(args) => collect::collect(args),
        Command::Methods(args) => methods::methods(args),
    }
}
