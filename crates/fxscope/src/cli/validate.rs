//! `fxscope validate`: the model compared with measured results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fxscope::lab::{self, Cache, Programs, Runner};
use fxscope::report::render::html;
use fxscope::report::validation;
use fxscope::validate::{self, Libraries, Outcome as RowOutcome, Simulator, Suite};

use super::batch::{BatchArgs, TaskArgs};
use super::console::Console;
use super::form::{Answer, Form};
use super::interrupt;
use super::output::Target;
use super::status::FOUND;
use super::{Failure, Outcome};

/// Compare the model with measured results: run the program of every row and compare its counts with the measured ones.
///
/// Counts of a run are cached until its program, its options or fxscope change, so an interrupted suite resumes where
/// it stopped. The exit status is 1 if a row's error exceeds the one in its file by more than a point, if a row cannot
/// be simulated, or if a row no longer needs the gap that it names.
#[derive(clap::Args)]
pub struct Args {
    /// What to run: quick, full, a family (the name of a CSV file of the folder) or a single row.
    #[arg(default_value = "quick")]
    suite: String,
    /// Folder of the rows, such as the sources' validation; the programs are in kernels/prebuilt beside it. Default: the
    /// rows and programs that fxscope contains.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Folder that programs/libraries.sh has prepared, for rows of real libraries, which are left out if it does not
    /// exist; default: target/libraries beside the rows' folder, or here.
    #[arg(long, value_name = "FOLDER")]
    libraries: Option<PathBuf>,
    #[command(flatten)]
    batch: BatchArgs,
    #[command(flatten)]
    tasks: TaskArgs,
    /// Write the current errors into the files of --folder as the expected ones.
    #[arg(long, requires = "folder")]
    accept: bool,
    #[command(flatten)]
    form: Form,
    /// Write Markdown tables to this file.
    #[arg(long, value_name = "FILE|-")]
    markdown: Option<PathBuf>,
}

/// Runs a suite and shows the errors of the model.
pub(super) fn validate(args: &Args) -> Outcome {
    let (mut outputs, markdown) = (args.form.check()?, args.markdown.as_deref().map(Target::check).transpose()?);
    let all = match &args.folder {
        Some(folder) => Suite::read(folder).map_err(|e| format!("{e}{}", hint(folder)))?,
        None => Suite::built_in()?,
    };
    let mut suite = all.clone().choose(&args.suite)?;
    let libraries = libraries(args, &mut suite);
    let model = Model::of(args, libraries)?;
    let console = Console::catching_signals(false)?;
    let runner = Runner::new(args.batch.jobs(), &console);
    let list = || lab::validate::tasks(&suite, &model.simulator, &model.cache);
    let make = |result: &str| lab::validate::make_task(&suite, &model.simulator, &model.cache, result, runner);
    if let Some(done) = args.tasks.done(&model.cache, &args.form, list, make)? {
        return Ok(done);
    }
    let results = model.run(&suite, runner)?;
    let outcomes = validate::judge(&suite, &results);

    if let Some(target) = markdown {
        if matches!(target, Target::StandardOutput) {
            outputs = outputs.without_text();
        }
        target.write_bytes(validation::markdown(&outcomes).as_bytes())?;
    }
    outputs.write(&Answer {
        text: &[validation::document(&outcomes)],
        html: &|| html::validation(&args.suite, &outcomes),
        json: &|| validation::json(&args.suite, &outcomes),
    })?;
    if let Some(folder) = args.folder.as_ref().filter(|_| args.accept) {
        let changed = validate::accept(&all, &outcomes)?;
        super::say(&format!("the errors of {changed} rows of {} have changed", folder.display()));
    }
    Ok(if outcomes.iter().all(|o| is_fine(o, args.accept)) { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}

/// Returns the libraries. Without them, leaves out the rows that need them, and says so.
fn libraries(args: &Args, suite: &mut Suite) -> Option<Libraries> {
    let folder = args.libraries.clone().unwrap_or_else(|| beside(args).join("target/libraries"));
    let libraries = Libraries::find(&folder);
    let left_out = if libraries.is_none() { suite.leave_out_libraries() } else { 0 };
    if left_out > 0 {
        super::say(&format!(
            "{left_out} rows of real libraries are left out: {} does not have them; programs/libraries.sh fetches them",
            folder.display()
        ));
    }
    libraries
}

/// Returns the folder that has the rows' folder; the working folder if there is none.
fn beside(args: &Args) -> &Path {
    args.folder.as_deref().and_then(Path::parent).unwrap_or(Path::new(""))
}

/// Returns whether a row passes; errors that were just accepted do.
fn is_fine(outcome: &RowOutcome, accepted: bool) -> bool {
    let verdict = outcome.judgement.as_ref().map(|j| j.verdict);
    verdict.is_ok_and(|v| v.is_expected() || accepted && v == validate::Verdict::Worse)
}

/// Returns what to do if the folder does not exist.
fn hint(folder: &Path) -> &'static str {
    if folder.exists() { "" } else { "; name the folder of the rows with --folder, or none for those of fxscope" }
}

/// What makes runs, and where their counts are kept.
struct Model {
    simulator: Simulator,
    cache: Cache,
    /// The programs, which last as long.
    _programs: Programs,
}

impl Model {
    fn of(args: &Args, libraries: Option<Libraries>) -> Result<Model, Failure> {
        let program = std::env::current_exe().map_err(|e| format!("cannot find the executable of fxscope: {e}"))?;
        let cache = Cache::new(args.batch.cache("validate").as_deref(), &program)?;
        let given = args.folder.as_ref().map(|_| beside(args).join("kernels/prebuilt"));
        let programs = Programs::new(given.as_deref())?;
        let simulator = Simulator { program, kernels: programs.folder().to_owned(), libraries };
        Ok(Model { simulator, cache, _programs: programs })
    }

    /// Runs a suite.
    fn run(&self, suite: &Suite, runner: Runner<'_>) -> Result<validate::Results, Failure> {
        match lab::validate::execute(suite, &self.simulator, &self.cache, runner) {
            Err(lab::Error::Stopped) => {
                let message = format!("{} ended the validation; finished runs are kept", interrupt::name());
                Err(Failure { status: interrupt::status(), message })
            }
            results => Ok(results?),
        }
    }
}
