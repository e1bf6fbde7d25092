//! `fxscope guide`: the experiments of the tuning guide and of studies.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fxscope::lab::guide::{
    Chapter, Experiment, Guide, Outcome as Found, Settings, answer, commands, documents, items_markdown, list, run,
    site,
};
use fxscope::lab::{Programs, Runner};
use fxscope::report::render::terminal;
use fxscope::validate::unpack_programs;

use crate::options::BatchArgs;
use crate::terminal::{Console, Failure, Outcome, Target, print, say, show, status, style, unless_stopped};

/// Rerun the experiments of Fujitsu's tuning guide and of published studies: the source's tables, published and simulated.
///
/// Without names, list the experiments. The programs, the published figures and the experiments are part of fxscope.
/// Counts of runs are cached as those of `fxscope validate`. Exit status: 1 if a run failed.
#[derive(clap::Args)]
pub struct Args {
    /// Experiments, such as prefetch.l1-distance, or chapters.
    #[arg(value_name = "NAME", conflicts_with_all = ["all", "items", "programs"])]
    names: Vec<String>,
    /// Run all experiments.
    #[arg(long, conflicts_with_all = ["items", "programs"])]
    all: bool,
    /// Print the commands that make the runs, and run nothing.
    #[arg(long, visible_alias = "dry-run", conflicts_with_all = ["format", "output", "items", "programs"])]
    commands: bool,
    /// Print what the sources state, item by item, with the experiments that cover it, as Markdown.
    #[arg(long, conflicts_with = "programs")]
    items: bool,
    /// Write the programs of all experiments to this folder.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Write to this file, which is replaced atomically, or to standard output (-). Pages of several experiments are
    /// written to this folder, with an index.
    #[arg(short, long, value_name = "FILE|FOLDER|-", default_value = "-", hide_default_value = true)]
    output: PathBuf,
    #[command(flatten)]
    batch: BatchArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Terminal,
    /// All figures, for programs.
    Json,
    /// Pages with charts.
    Html,
}

/// An experiment with its chapter.
type Chosen<'a> = (&'a Chapter, &'a Experiment);

/// Where results go.
enum Place {
    One(Target),
    /// A folder for several pages.
    Folder(PathBuf),
}

/// Lists experiments, or runs some.
pub(super) fn guide(args: &Args) -> Outcome {
    if let Some(folder) = &args.programs {
        let number = unpack_programs(folder)?;
        say(&format!("{number} programs are in {}", folder.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let guide = Guide::built_in()?;
    if args.items {
        return print(items_markdown(&guide)?);
    }
    if args.names.is_empty() && !args.all {
        return show(&list(&guide));
    }
    let chosen = guide.choose(&args.names)?;
    if args.commands {
        let texts = chosen.iter().map(|(_, experiment)| commands(&guide, experiment)).collect::<Result<Vec<_>, _>>()?;
        return print(texts.join("\n"));
    }
    let place = place(args, &chosen)?;
    written(args, &outcomes(args, &guide, &chosen)?, place)
}

/// Opens the destination before any work is done.
fn place(args: &Args, chosen: &[Chosen<'_>]) -> Result<Place, Failure> {
    if args.format != Format::Html || chosen.len() == 1 {
        return Ok(Place::One(Target::check(&args.output)?));
    }
    let folder = &args.output;
    if folder == Path::new("-") {
        return Err("pages of several experiments need a folder; name it with -o FOLDER".into());
    }
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: cannot be created ({e})", folder.display()))?;
    Ok(Place::Folder(folder.clone()))
}

/// Runs the experiments, with a bar that shows how many runs are done.
fn outcomes<'a>(args: &Args, guide: &'a Guide, chosen: &[Chosen<'a>]) -> Result<Vec<Found<'a>>, Failure> {
    let programs = Programs::new(None)?;
    // Runs of measured rows are those of the other command.
    let cache = args.batch.cache("validate");
    let settings = Settings::of_this_program(&programs, cache.as_deref(), args.batch.jobs())?;
    let console = Console::catching_signals(false)?;
    let found = run(guide, chosen, &settings, Runner::new(args.batch.jobs(), &console));
    unless_stopped(found, "the experiments; finished runs are kept")
}

/// Writes the outcomes in the format asked for; says which runs failed.
fn written(args: &Args, outcomes: &[Found<'_>], place: Place) -> Outcome {
    match place {
        Place::Folder(folder) => {
            for (name, page) in site(outcomes) {
                Target::check(&folder.join(name))?.write_bytes(page.as_bytes())?;
            }
            say(&format!("{} has the pages; begin with index.html", folder.display()));
        }
        Place::One(target) => match (args.format, outcomes) {
            (Format::Html, [outcome, ..]) => target.write_bytes(outcome.page(Vec::new()).as_bytes())?,
            (Format::Json, _) => target.write(&answer(outcomes))?,
            _ => target.write_bytes(terminal::render(&documents(outcomes), text_style(args)).as_bytes())?,
        },
    }
    for outcome in outcomes {
        outcome.left_out.iter().for_each(|why| say(&format!("{} is left out: {why}", outcome.experiment.id)));
    }
    let failures: Vec<String> = outcomes.iter().flat_map(Found::failures).collect();
    failures.iter().for_each(|failure| say(failure));
    Ok(status::of_check(failures.is_empty()))
}

/// Returns how text is shown: as the terminal can, or plain for a file.
fn text_style(args: &Args) -> terminal::Style {
    let plain = terminal::Style { unicode: true, colour: false, width: terminal::USUAL, cuts: false };
    if args.output == Path::new("-") { style(&std::io::stdout()) } else { plain }
}
