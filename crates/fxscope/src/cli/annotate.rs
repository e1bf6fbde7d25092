//! `fxscope annotate`: where the cycles went, by function and instruction.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fxscope::Wanted;
use fxscope::lab::Runner;
use fxscope::machine::Spec;
use fxscope::record::{Finish, Run};
use fxscope::report::annotate::{document, json};
use fxscope::report::render::terminal;

use super::console::Console;
use super::output::{Target, program_streams};
use super::recorded::run_of;
use super::scenario::ScenarioArgs;
use super::{Failure, Outcome, print, say, style};

/// Arguments that only mean something for a program that is run now.
const FOR_PROGRAMS: [&str; 11] = [
    "command",
    "follow",
    "set",
    "vector_bits",
    "environment",
    "sysroot",
    "allow",
    "sandbox",
    "memory",
    "clock",
    "max_instructions",
];

/// Show where the cycles went: by function, then by instruction, with micro-operations and source lines.
///
/// Annotates a run from a record file, or runs a program (after --) and keeps no record. Cycles are those between an
/// instruction's commit and the commit before it; they add up to the run's. The instructions are read from the
/// program's file, source lines from its debug information (-g).
///
/// The annotation goes to standard output, behind what the program wrote. Exit status: 0 when it could be made,
/// however the program ended; otherwise as for `fxscope run`.
#[derive(clap::Args)]
#[command(
    override_usage = "fxscope annotate [OPTIONS] FILE.fxr\n       fxscope annotate [OPTIONS] -- PROGRAM [ARGS]..."
)]
pub struct Args {
    /// Record file, as `fxscope run -o` writes it.
    #[arg(value_name = "FILE.fxr", required_unless_present = "command", conflicts_with_all = FOR_PROGRAMS)]
    file: Option<PathBuf>,
    /// Which run of the file, counted from 1; without it, the last.
    #[arg(long, value_name = "N", requires = "file", value_parser = clap::value_parser!(u32).range(1..))]
    run: Option<u32>,
    /// The program's file, when it is not where it was when it ran.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Show the instructions of this function; may be repeated.
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,
    /// Show the instructions of this many functions, from the one with most cycles on.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "function")]
    top: usize,
    /// Write the annotation as JSON to a file, or to standard output (-), instead.
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(last = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Annotates a run.
pub(super) fn annotate(args: &Args) -> Outcome {
    let json_target = args.json.as_deref().map(Target::check).transpose()?;
    let (run, spec) = match &args.file {
        Some(path) => recorded(args, path)?,
        None => {
            let prepared = args.scenario.scenario(&args.command)?.prepare()?;
            let spec = prepared.spec().as_ref().clone();
            let stdio = program_streams(json_target.as_ref())?;
            let run = Runner::new(None, &Console::catching_signals(false)?).run(prepared, stdio)?;
            (run, spec)
        }
    };
    if let Finish::Failed(message) = &run.finish {
        say(&format!("the program cannot go on: {message}"));
    }
    let wanted = match args.function.as_slice() {
        [] => Wanted::Hottest(args.top),
        names => Wanted::Named(names.to_vec()),
    };
    let annotation = fxscope::annotate(&run, args.program.as_deref(), &spec, &wanted)?;
    // A file that the user names must be usable.
    if args.program.is_some() && annotation.code.is_none() {
        return Err(annotation.notes.concat().into());
    }
    match json_target {
        Some(target) => target.write(&json(&run, &annotation))?,
        None => print(terminal::render(&[document(&run, &annotation)], style(&std::io::stdout())))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A run from a record file, and the machine it ran on.
fn recorded(args: &Args, path: &Path) -> Result<(Run, Spec), Failure> {
    let (_, run) = run_of(path, args.run)?;
    let machine = args.scenario.machine.as_deref();
    let hint = if machine.is_some() { "" } else { "; --machine PATH names its description" };
    let spec = fxscope::spec_of(&run, machine).map_err(|e| format!("the machine of the run: {e}{hint}"))?;
    Ok((run, spec))
}
