//! What limits a program: runs it, prints the answer, keeps the record.
//!
//! It needs the crates of a run alone, neither the laboratories nor the command line, so `make demo` builds it first.
//!
//! `cargo run --release -p fxscope-session --example answer -- triad.fxr kernels/prebuilt/triad-l1.elf passes=1000`

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use fxscope_record::Target;
use fxscope_report::render::terminal::{self, Style, USUAL};
use fxscope_session::{Control, DEFAULT_MACHINE, Request, Session};

/// Runs a program on the modelled machine and says what limits it.
#[derive(Parser)]
struct Arguments {
    /// Where the record of the run goes, for `fxscope report` and others.
    record: PathBuf,
    /// The program (AArch64 Linux).
    program: PathBuf,
    /// Its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// A text for any terminal.
const PLAIN: Style = Style { unicode: false, colour: false, width: USUAL, cuts: false };

fn main() -> ExitCode {
    match answer(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("answer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn answer(Arguments { record, program, arguments }: Arguments) -> Result<(), Box<dyn Error>> {
    let record = Target::check(&record)?;
    let machine = Arc::new(fxscope_machine::load(DEFAULT_MACHINE, &[])?);
    let request = Request { arguments, ..Request::new(machine, program) };
    let run = Session::contained(request, |session| session.run(&mut |_| Control::Continue))?;
    print!("{}", terminal::render(&fxscope_report::summary_with(&run, fxscope_session::hottest), PLAIN));
    record.append(std::slice::from_ref(&run))?;
    run.finish.failure().map_or(Ok(()), |failure| Err(failure.into()))
}
