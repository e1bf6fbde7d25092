//! Tasks of the project: `cargo run -p xtask -- TASK`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{calibrate, counts, coverage, latency, release, sampling, speed, tidy};

#[derive(Parser)]
#[command(about = "Tasks of the project")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check dependency directions, references in documents, file lengths, and phrases to avoid.
    Tidy {
        /// Lower the baseline of phrases to the current number in each folder.
        #[arg(long)]
        lower: bool,
    },
    /// Store the counts of a fixed list of runs, or compare them with those stored before a change.
    Counts(counts::Args),
    /// Write the tables of instructions in `docs`.
    Coverage(coverage::Args),
    /// Fit an undocumented number to measured rows; prints the fit and changes nothing.
    Calibrate(calibrate::Args),
    /// Print the latency of dependent loads by working-set size, for three page sizes.
    Latency(latency::Args),
    /// Build the fastest fxscope, with profile-guided optimisation. Takes twice as long as a release build.
    Release,
    /// Compare sampled runs with runs that time everything: errors, and how much faster they are.
    Sampling(sampling::Args),
    /// Measure the simulator's speed, with the ratio to a fixed loop timed in the same run.
    Speed(speed::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Tidy { lower: true } => tidy::prose::lower(),
        Task::Tidy { lower: false } => tidy::check(),
        Task::Counts(args) => counts::run(&args),
        Task::Coverage(args) => coverage::run(&args),
        Task::Calibrate(args) => calibrate::run(&args),
        Task::Latency(args) => latency::run(&args),
        Task::Release => release::run(),
        Task::Sampling(args) => sampling::run(&args),
        Task::Speed(args) => speed::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
