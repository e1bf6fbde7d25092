//! `fxscope jitter`: what the operating system takes from programs, one file for each thing to do.

mod compare;
mod fit;
mod form;
mod import;
mod linpack;
mod measure;
mod models;
mod setup;
mod simulate;

use super::Outcome;

/// Look into what the operating system takes from programs.
#[derive(clap::Subcommand)]
pub enum Command {
    Measure(Box<measure::Args>),
    Import(import::Args),
    /// List noise models and networks that come with the program.
    Profiles,
    Show(models::Args),
    Fit(fit::Args),
    Simulate(simulate::Args),
    Compare(compare::Args),
    Linpack(linpack::Args),
}

/// Does what is asked for.
pub(super) fn jitter(command: &Command) -> Outcome {
    match command {
        Command::Measure(args) => measure::measure(args),
        Command::Import(args) => import::import(args),
        Command::Fit(args) => fit::fit(args),
        Command::Profiles => models::profiles(),
        Command::Show(args) => models::show(args),
        Command::Simulate(args) => simulate::simulate(args),
        Command::Compare(args) => compare::compare(args),
        Command::Linpack(args) => linpack::linpack(args),
    }
}
