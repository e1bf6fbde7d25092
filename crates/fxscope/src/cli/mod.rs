//! The command line: one file for each command.

mod advise;
mod annotate;
mod calibrate;
mod collect;
mod compare;
mod completions;
mod events;
mod export;
mod guide;
mod import;
mod jitter;
mod latency;
mod machine;
mod man;
mod pages;
mod reference;
mod report;
mod resume;
mod run;
mod schema;
mod sweep;
mod validate;
mod work;

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use fxscope::host::text::{printable, printable_lines};

use crate::terminal::{Colour, interrupt, report_own_errors, say, set_colour, status};

/// A performance laboratory for A64FX-class processors: runs AArch64+SVE Linux programs on a cycle-level
/// model of the machine, counts what the machine's own PMU would count, and shows where the cycles went.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 120, after_long_help = status::help())]
pub(crate) struct Cli {
    /// When output has colours: on terminals that have them unless NO_COLOR is set, always, or never.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Colour::Auto)]
    color: Colour,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Resume(resume::Args),
    Work(work::Args),
    Report(report::Args),
    Compare(compare::Args),
    Advise(advise::Args),
    Sweep(sweep::Args),
    Export(export::Args),
    Annotate(annotate::Args),
    Import(import::Args),
    Collect(collect::Args),
    Validate(validate::Args),
    Guide(guide::Args),
    #[command(subcommand)]
    Calibrate(calibrate::Command),
    #[command(subcommand)]
    Machine(machine::Command),
    Events(events::Args),
    #[command(subcommand)]
    Pages(pages::Command),
    #[command(subcommand)]
    Latency(latency::Command),
    #[command(subcommand)]
    Jitter(jitter::Command),
    Reference(reference::Args),
    Schema(schema::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Runs the command line.
pub fn main() -> ExitCode {
    report_own_errors();
    interrupt::survive_file_size_limit();
    let Cli { color, command } = parsed();
    set_colour(color);
    let outcome = match command {
        Command::Run(args) => run::run(&args),
        Command::Resume(args) => resume::resume(&args),
        Command::Work(args) => work::work(&args),
        Command::Report(args) => report::report(&args),
        Command::Compare(args) => compare::compare_files(&args),
        Command::Advise(args) => advise::advise(&args),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Export(args) => export::export(&args),
        Command::Import(args) => import::import(&args),
        Command::Collect(args) => collect::collect(&args),
        Command::Annotate(args) => annotate::annotate(&args),
        Command::Validate(args) => validate::validate(&args),
        Command::Guide(args) => guide::guide(&args),
        Command::Calibrate(command) => calibrate::calibrate(&command),
        Command::Machine(command) => machine::machine(&command),
        Command::Events(args) => events::events(&args),
        Command::Pages(command) => pages::pages(&command),
        Command::Latency(command) => latency::latency(&command),
        Command::Jitter(command) => jitter::jitter(&command),
        Command::Reference(args) => reference::reference(&args),
        Command::Schema(args) => schema::schema(&args),
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => man::man(&args),
    };
    outcome.unwrap_or_else(|failure| {
        say(&failure.message);
        ExitCode::from(failure.status)
    })
}

/// Parses the command line. Messages about a wrong one quote it, so they are made safe to display.
fn parsed() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        let is_plain = |word: OsString| matches!(printable(&word.to_string_lossy()), Cow::Borrowed(_));
        if std::env::args_os().all(is_plain) {
            error.exit();
        }
        let _ = std::io::stderr().write_all(printable_lines(&error.to_string()).as_bytes());
        std::process::exit(error.exit_code())
    })
}
