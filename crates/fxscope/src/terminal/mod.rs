//! How the program talks to its terminal and writes its results: messages, progress, signals, destinations, exit statuses.

mod console;
mod failure;
mod form;
pub(crate) mod interrupt;
pub(crate) mod output;
mod progress;
pub(crate) mod status;
mod style;

use std::io::Write as _;
use std::process::ExitCode;

use fxscope::host::text::printable_lines;
use fxscope::report::document::Document;
use fxscope::report::render::terminal;

pub(crate) use console::Console;
pub(crate) use failure::{Failure, Outcome, report_own_errors, unless_stopped};
pub(crate) use form::{Answer, Form, OutputArgs, SheetForm};
pub(crate) use output::Target;
pub(crate) use style::{Colour, set_colour, style};

/// Writes a message of fxscope itself to standard error. Control characters are made visible, since messages quote
/// files. Errors are ignored: there is no other place to report them.
pub(crate) fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "fxscope: {}", printable_lines(message));
}

/// Writes a result to standard output.
pub(crate) fn print(text: impl AsRef<str>) -> Outcome {
    let mut out = std::io::stdout().lock();
    told(out.write_all(text.as_ref().as_bytes()).and_then(|()| out.flush()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes documents to standard output, as it can show them.
pub(crate) fn show(documents: &[Document]) -> Outcome {
    print(terminal::render(documents, style(&std::io::stdout())))
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
