//! `fxscope guide`: the experiments of the tuning guide and of studies.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fxscope::lab::guide::{Chapter, Experiment, Guide, Settings, Summary, commands, items_markdown, list, run, site};
use fxscope::lab::{self, Cache, Programs, Runner};
use fxscope::report::document::Document;
use fxscope::report::render::terminal;
use fxscope::validate::unpack_programs;
use serde_json::json;

use super::batch::BatchArgs;
use super::console::Console;
use super::interrupt;
use super::output::Target;
use super::status::FOUND;
use super::{Failure, Outcome, print, say, style};

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
        print(items_markdown(&guide)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.names.is_empty() && !args.all {
        print(terminal::render(&list(&guide), style(&std::io::stdout())))?;
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = guide.choose(&args.names)?;
    if args.commands {
        let texts = chosen.iter().map(|(_, experiment)| commands(&guide, experiment)).collect::<Result<Vec<_>, _>>()?;
        print(texts.join("\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let place = place(args, &chosen)?;
    show(args, &outcomes(args, &guide, &chosen)?, place)
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
fn outcomes<'a>(args: &Args, guide: &'a Guide, chosen: &[Chosen<'a>]) -> Result<Vec<lab::guide::Outcome<'a>>, Failure> {
    let simulator = std::env::current_exe().map_err(|e| format!("cannot find the executable of fxscope: {e}"))?;
    // Runs of measured rows are those of the other command.
    let folder = args.batch.cache("validate");
    let cache = Cache::new(folder.as_deref(), &simulator)?;
    let programs = Programs::new(None)?;
    let settings = Settings { simulator, programs: &programs, cache, jobs: args.batch.jobs(), sources: ".".into() };
    let console = Console::catching_signals(false)?;
    match run(guide, chosen, &settings, Runner::new(args.batch.jobs(), &console)) {
        Err(lab::Error::Stopped) => {
            let message = format!("{} ended the experiments; finished runs are kept", interrupt::name());
            Err(Failure { status: interrupt::status(), message })
        }
        outcomes => Ok(outcomes?),
    }
}

/// Writes the outcomes in the format asked for; says which runs failed.
fn show(args: &Args, outcomes: &[lab::guide::Outcome<'_>], place: Place) -> Outcome {
    match place {
        Place::Folder(folder) => {
            for (name, page) in site(outcomes) {
                Target::check(&folder.join(name))?.write_bytes(page.as_bytes())?;
            }
            say(&format!("{} has the pages; begin with index.html", folder.display()));
        }
        Place::One(target) => match (args.format, outcomes) {
            (Format::Html, [outcome, ..]) => target.write_bytes(outcome.page(Vec::new()).as_bytes())?,
            (Format::Json, _) => target.write(&json!({
                "experiments": outcomes.iter().map(lab::guide::Outcome::json).collect::<Vec<_>>(),
                "errors": Summary::of(outcomes).json(),
            }))?,
            _ => target.write_bytes(text(args, outcomes).as_bytes())?,
        },
    }
    for outcome in outcomes {
        outcome.left_out.iter().for_each(|why| say(&format!("{} is left out: {why}", outcome.experiment.id)));
    }
    let failures: Vec<String> = outcomes.iter().flat_map(lab::guide::Outcome::failures).collect();
    failures.iter().for_each(|failure| say(failure));
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}

/// Returns the outcomes as text: for the terminal, or plain for a file.
fn text(args: &Args, outcomes: &[lab::guide::Outcome<'_>]) -> String {
    let plain = terminal::Style { unicode: true, colour: false, width: terminal::USUAL, cuts: false };
    let style = if args.output == Path::new("-") { style(&std::io::stdout()) } else { plain };
    let mut documents: Vec<Document> = outcomes.iter().map(lab::guide::Outcome::lines).collect();
    if outcomes.len() > 1 {
        documents.push(Document::of("All experiments", vec![Summary::of(outcomes).section()]));
    }
    terminal::render(&documents, style)
}
