//! `fxscope latency`: the effect of slower memory on a program, one file per command.

mod advise;
mod check;
mod collect;
mod methods;
mod predict;

use fxscope::lab::latency::{LATENCY_RANGE_NS, PredictOptions};

pub(super) use check::PlanSyntax;

use super::Outcome;

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

/// What to predict, and for which part of a program.
#[derive(Clone, clap::Args)]
struct PredictArgs {
    /// Memory latencies to predict for, nanoseconds from a load to its use. Default: those of the published study: 300,
    /// 500, 750 and 1,000.
    #[arg(long, value_name = "NS", value_delimiter = ',', value_parser = nanoseconds)]
    latencies: Vec<f64>,
    /// Look at this region of the program only.
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Number of cores that worked at a time, where the record does not say.
    #[arg(long, value_name = "N", value_parser = cores)]
    threads: Option<f64>,
}

impl PredictArgs {
    fn options(&self) -> PredictOptions {
        PredictOptions { latencies: self.latencies.clone(), region: self.region.clone(), threads: self.threads }
    }
}

fn nanoseconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| LATENCY_RANGE_NS.contains(number));
    number.ok_or_else(|| "give a number of nanoseconds from 1 to 100000".to_owned())
}

fn cores(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (1.0..=1_000_000.0).contains(number));
    number.ok_or_else(|| "give a number of cores, at least 1".to_owned())
}
