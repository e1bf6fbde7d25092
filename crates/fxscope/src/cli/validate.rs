//! `fxscope validate`: the model compared with measured results.

use std::path::PathBuf;

use fxscope::lab::Runner;
use fxscope::lab::validate::{Model, execute, libraries, make_task, passes, rows, tasks};
use fxscope::report::render::html;
use fxscope::report::validation;
use fxscope::validate::{accept, judge};

use crate::options::{BatchArgs, TaskArgs};
use crate::terminal::{Answer, Console, Form, Outcome, Target, say, status, unless_stopped};

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
    let folder = args.folder.as_deref();
    let all = rows(folder)?;
    let mut suite = all.clone().choose(&args.suite)?;
    let console = Console::catching_signals(false)?;
    let libraries = libraries(args.libraries.as_deref(), folder, &mut suite, &console);
    let model = Model::of_this_program(folder, libraries, args.batch.cache("validate").as_deref())?;
    let runner = Runner::new(args.batch.jobs(), &console);
    let list = || tasks(&suite, &model.simulator, &model.cache);
    let make = |result: &str| make_task(&suite, &model.simulator, &model.cache, result, runner);
    if let Some(done) = args.tasks.done(&model.cache, &args.form, list, make)? {
        return Ok(done);
    }
    let results = execute(&suite, &model.simulator, &model.cache, runner);
    let results = unless_stopped(results, "the validation; finished runs are kept")?;
    let outcomes = judge(&suite, &results);

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
        let changed = accept(&all, &outcomes)?;
        say(&format!("the errors of {changed} rows of {} have changed", folder.display()));
    }
    Ok(status::of_check(outcomes.iter().all(|outcome| passes(outcome, args.accept))))
}
