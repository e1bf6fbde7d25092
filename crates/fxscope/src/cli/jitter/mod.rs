//! `fxscope jitter`: operating-system noise, one file per command.

mod compare;
mod fit;
mod import;
mod linpack;
mod measure;
mod models;
mod program;
mod simulate;

use crate::terminal::Outcome;

/// Measure, model and simulate operating-system noise.
#[derive(clap::Subcommand)]
pub enum Command {
    Measure(Box<measure::Args>),
    Import(import::Args),
    /// List the built-in noise models and networks.
    Profiles,
    Show(models::Args),
    Fit(fit::Args),
    Simulate(Box<simulate::Args>),
    Program(program::Args),
    Compare(compare::Args),
    Linpack(linpack::Args),
}

/// Runs the subcommand.
pub(super) fn jitter(command: &Command) -> Outcome {
    match command {
        Command::Measure(args) => measure::measure(args),
        Command::Import(args) => import::import(args),
        Command::Fit(args) => fit::fit(args),
        Command::Profiles => models::profiles(),
        Command::Show(args) => models::show(args),
        Command::Simulate(args) => simulate::simulate(args),
        Command::Program(args) => program::write(args),
        Command::Compare(args) => compare::compare(args),
        Command::Linpack(args) => linpack::linpack(args),
    }
}
