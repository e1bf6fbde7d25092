//! `fxscope reference`: commands and options, metrics and forms of answers as Markdown, from their definitions.

use clap::CommandFactory as _;
use fxscope::{lab, pmu, report};

use super::Cli;
use crate::documents;
use crate::terminal::{Outcome, print};

/// Print a part of the reference as Markdown, made from the definitions that fxscope itself uses.
#[derive(clap::Args)]
pub struct Args {
    /// What to describe.
    #[arg(value_enum, default_value_t = Part::Commands)]
    part: Part,
}

/// A part of the reference.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Part {
    /// All commands and their options.
    Commands,
    /// The metrics of reports: name, meaning, unit, formula.
    Metrics,
    /// Members of the answers in JSON: type and meaning.
    Schemas,
}

/// Prints a part on standard output.
pub(super) fn reference(args: &Args) -> Outcome {
    print(match args.part {
        Part::Commands => documents::reference(Cli::command()),
        Part::Metrics => report::reference::metrics(pmu::Metrics::built_in()),
        Part::Schemas => lab::schema::reference(),
    })
}
