//! `fxscope annotate`: where the cycles were spent, by function and instruction.

use std::ffi::OsString;
use std::path::PathBuf;

use fxscope::FunctionSelection;
use fxscope::lab::Runner;
use fxscope::lab::recorded::{run_of, with_machine};
use fxscope::record::Part;
use fxscope::report::annotate::{document, json};
use fxscope::report::render::html;

use crate::options::ScenarioArgs;
use crate::terminal::{Answer, Console, Form, Outcome, say};

/// Options that only apply to a program that is run now.
const FOR_PROGRAMS: [&str; 14] = [
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
    "sample",
    "error",
    "confidence",
];

/// Show where the cycles were spent: by function, then by instruction, with micro-operations and source lines.
///
/// Annotates a run from a record file, or runs a program (after --) without keeping a record. The cycles of an
/// instruction are those between the preceding commit and its own; they add up to the cycles of the run. Instructions
/// are read from the program's file, source lines from its debug information (-g).
///
/// The annotation is written to standard output, after the program's own output. Exit status: 0 if the annotation was
/// made, however the program ended; otherwise as for `fxscope run`.
#[derive(clap::Args)]
#[command(
    override_usage = "fxscope annotate [OPTIONS] FILE.fxr\n       fxscope annotate [OPTIONS] -- PROGRAM [ARGS]..."
)]
pub struct Args {
    /// Record file, written by `fxscope run -o`.
    #[arg(value_name = "FILE.fxr", required_unless_present = "command", conflicts_with_all = FOR_PROGRAMS)]
    file: Option<PathBuf>,
    /// Run of the file, counted from 1; default: the last.
    #[arg(long, value_name = "N", requires = "file", value_parser = clap::value_parser!(u32).range(1..))]
    run: Option<u32>,
    /// The program's file, if it has moved since the run.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Show the instructions of this function; may be repeated.
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,
    /// Show the instructions of this many functions, starting with the one that took most cycles.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "function")]
    top: usize,
    #[command(flatten)]
    form: Form,
    /// Time and annotate only the executions of this region. For a record, time it when it is made: `fxscope run --region NAME -o FILE.fxr`.
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    region: Option<String>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(last = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Annotates a run.
pub(super) fn annotate(args: &Args) -> Outcome {
    let outputs = args.form.check()?;
    let (run, spec) = match &args.file {
        Some(path) => with_machine(run_of(path, args.run)?.1, args.scenario.machine.as_deref())?,
        None => {
            let prepared = args.scenario.scenario_of(&args.command, args.region.as_deref())?.prepare()?;
            let spec = prepared.spec().as_ref().clone();
            let stdio = outputs.program_streams()?;
            let run = Runner::new(None, &Console::catching_signals(false)?).run(prepared, stdio)?;
            (run, spec)
        }
    };
    let warnings = [run.part.as_ref().and_then(Part::warning), run.finish.failure()];
    warnings.iter().flatten().for_each(|warning| say(warning));
    let wanted = match args.function.as_slice() {
        [] => FunctionSelection::Hottest(args.top),
        names => FunctionSelection::Named(names.to_vec()),
    };
    let annotation = fxscope::annotate(&run, args.program.as_deref(), &spec, &wanted)?;
    // A file that the user names must be usable; one found automatically may be missing.
    if args.program.is_some() && annotation.code.is_none() {
        return Err(annotation.notes.concat().into());
    }
    outputs.write(&Answer {
        text: &[document(&run, &annotation)],
        html: &|| html::annotation(&run, &annotation),
        json: &|| json(&run, &annotation),
    })
}
