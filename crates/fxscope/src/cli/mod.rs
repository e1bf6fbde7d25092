//! The command line: one file for each command.

mod advise;
mod annotate;
mod batch;
mod calibrate;
mod checkpoint;
mod collect;
mod compare;
mod completions;
mod console;
#[cfg(test)]
mod documents;
mod events;
mod export;
mod form;
mod guide;
mod hwpf;
mod import;
mod interrupt;
mod jitter;
mod konata;
mod latency;
mod machine;
mod man;
mod output;
mod own;
mod pages;
mod progress;
mod recorded;
mod reference;
mod report;
mod resume;
mod run;
mod scenario;
mod schema;
mod spool;
mod status;
mod sweep;
mod validate;

use std::any::Any;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::{Parser, Subcommand};
use fxscope::host::text::{printable, printable_lines};
use fxscope::lab;
use fxscope::linux::StartError;
use fxscope::record::Finish;
use fxscope::report::render::terminal::{self, Style};
use status::{CANNOT_RUN, FAILED, NOT_FOUND};
use terminal_size::terminal_size_of;

/// A performance laboratory for A64FX-class processors: runs AArch64+SVE Linux programs on a cycle-level
/// model of the machine, counts what the machine's own PMU would count, and shows where the cycles went.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 120, after_long_help = status::help())]
pub(super) struct Cli {
    /// When output has colours: on terminals that have them unless NO_COLOR is set, always, or never.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Colour::Auto)]
    color: Colour,
    #[command(subcommand)]
    command: Command,
}

/// When output has colours.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Colour {
    Auto,
    Always,
    Never,
}

/// What the option says, for all that is printed.
static COLOUR: OnceLock<Colour> = OnceLock::new();

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Resume(resume::Args),
    Work(spool::Args),
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

/// Result of a command: the exit status, or one message.
type Outcome = Result<ExitCode, Failure>;

/// A message that says what is wrong and what to do, and the exit status for it.
struct Failure {
    status: u8,
    message: String,
}

impl<E: std::fmt::Display + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure { status: status_of(&error), message: error.to_string() }
    }
}

/// Returns the exit status for an error.
fn status_of(error: &dyn Any) -> u8 {
    if let Some(error) = error.downcast_ref::<fxscope::Error>() {
        return start_status(error);
    }
    match error.downcast_ref::<lab::Error>() {
        Some(lab::Error::Scenario(error)) => start_status(error),
        Some(lab::Error::Stopped | lab::Error::Ended { finish: Finish::Stopped, .. }) => interrupt::status(),
        // Statuses have eight bits.
        Some(lab::Error::Ended { finish, .. }) => finish.exit_code().map_or(FAILED, |code| code as u8),
        Some(lab::Error::Request(_) | lab::Error::Host(_)) | None => FAILED,
    }
}

/// Returns the exit status for a program that cannot start, as in shells.
fn start_status(error: &fxscope::Error) -> u8 {
    match error {
        fxscope::Error::Start(StartError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => NOT_FOUND,
        fxscope::Error::Start(StartError::Read { .. } | StartError::Elf { .. } | StartError::Interpreter { .. }) => {
            CANNOT_RUN
        }
        _ => FAILED,
    }
}

/// Where fxscope itself is wrong, whatever thread finds it, says so, and ends with the status of its failures.
fn report_own_errors() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        default(panic);
        say("this is an error of fxscope, not of your program: please report it with the command and the lines above");
        std::process::exit(FAILED.into())
    }));
}

/// Runs the command line.
pub fn main() -> ExitCode {
    report_own_errors();
    interrupt::survive_file_size_limit();
    let Cli { color, command } = parsed();
    let _ = COLOUR.set(color);
    let outcome = match command {
        Command::Run(args) => run::run(&args),
        Command::Resume(args) => resume::resume(&args),
        Command::Work(args) => spool::work(&args),
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

/// Writes a message of fxscope itself to standard error. Control characters are made visible, since messages quote
/// files. Errors are ignored: there is no other place to report them.
fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "fxscope: {}", printable_lines(message));
}

/// Returns what a stream can display.
fn style(stream: &(impl IsTerminal + AsFd)) -> Style {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable).unwrap_or_default().to_uppercase();
    let dumb = variable("TERM").is_none_or(|term| term == "dumb");
    let colour = match COLOUR.get() {
        Some(Colour::Always) => true,
        Some(Colour::Never) => false,
        Some(Colour::Auto) | None => stream.is_terminal() && !dumb && variable("NO_COLOR").is_none(),
    };
    let known = width(stream);
    Style {
        unicode: locale.contains("UTF-8") || locale.contains("UTF8"),
        colour,
        width: known.map_or(terminal::USUAL, |width| width.clamp(terminal::NARROWEST, terminal::WIDEST)),
        cuts: known.is_some(),
    }
}

/// Returns the width that a stream has: `COLUMNS`, or that of a terminal; `None` for files and pipes.
fn width(stream: &impl AsFd) -> Option<usize> {
    let given = variable("COLUMNS").and_then(|columns| columns.parse().ok());
    given.or_else(|| terminal_size_of(stream).map(|(width, _)| usize::from(width.0)))
}

/// Returns an environment variable that is not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Writes a result to standard output.
fn print(text: impl AsRef<str>) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    told(out.write_all(text.as_ref().as_bytes()).and_then(|()| out.flush()))
}

/// Turns the result of writing to standard output into an error, except if the reader has closed the pipe.
fn told(written: std::io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {e}").into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{FAILED, report_own_errors};

    /// Set in the process that goes wrong.
    const WRONG: &str = "FXSCOPE_TEST_OF_OWN_ERRORS";

    #[test]
    fn an_error_of_fxscope_itself_ends_it_with_its_status_and_a_message_from_any_thread() {
        if std::env::var_os(WRONG).is_some() {
            report_own_errors();
            let _ = std::thread::spawn(|| panic!("wrong itself")).join();
            std::process::exit(0);
        }
        let name = std::thread::current().name().expect("libtest names its threads").to_owned();
        let this = std::env::current_exe().expect("the test knows its program");
        let wrong =
            Command::new(this).args(["--exact", &name, "--nocapture"]).env(WRONG, "1").output().expect("it starts");
        let said = String::from_utf8_lossy(&wrong.stderr);
        assert_eq!(wrong.status.code(), Some(FAILED.into()), "{said}");
        assert!(said.contains("wrong itself") && said.contains("\nfxscope: this is an error of fxscope"), "{said}");
    }
}
