//! `fxscope sweep`: many runs with settings that a plan varies.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fxscope::lab::sweep::{self, Place, Plan};
use fxscope::lab::{self, Runner};
use fxscope::machine::settings::integer;
use fxscope::report::render::{json, terminal};

use super::console::Console;
use super::own::OwnTables;
use super::status::FOUND;
use super::{Failure, Outcome, interrupt, print, say, style};

/// Make the runs of a plan: a program with arguments, variables, options and machine keys that vary.
///
/// The folder of results keeps the record of each run (records/), all values by run and region (results.csv, and the table `result` of
/// results.sqlite), and a page (index.html). Runs that are there already are not made again, unless the plan, the program, its
/// libraries, its inputs or fxscope have changed: an interrupted sweep continues, and a plan may grow.
///
/// Exit status: 0 if all runs have counts, 1 if some failed.
#[derive(clap::Args)]
pub struct Args {
    /// The plan; docs/sweep.md has the format.
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,
    /// Folder of the results, created if missing; default: the plan's name without .toml.
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Runs at a time; default: all of the host's cores. Fewer, if the plan limits the memory of runs and more do not fit.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Make runs again that failed before.
    #[arg(long)]
    retry: bool,
    /// Print the command line of each run and make none.
    #[arg(long)]
    dry_run: bool,
    /// What --dry-run prints: a line for each run, or a list with the factors, the record, and whether it is kept already.
    #[arg(long, value_name = "FORMAT", requires = "dry_run", value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Make only the run with this record, as --dry-run --format json lists it, and write nothing but the record.
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["dry_run", "retry", "jobs"])]
    only: Option<String>,
    /// The plan's folder on the host that keeps the records, for the paths in them; default: the plan's folder here.
    #[arg(long, value_name = "FOLDER", requires = "only")]
    recorded_in: Option<PathBuf>,
    #[command(flatten)]
    own: OwnTables,
    /// Do not show progress.
    #[arg(long, short)]
    quiet: bool,
}

/// What a dry run prints.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Terminal,
    Json,
}

/// Makes the runs, writes the results and prints what they say.
pub(super) fn sweep(args: &Args) -> Outcome {
    args.own.add()?;
    let plan = Plan::read(&args.plan)?;
    let place = place(args)?;
    if args.dry_run {
        let wanted = sweep::wanted(&plan, &place)?;
        print(match args.format {
            Format::Terminal => wanted.iter().map(|run| run.words.shown() + "\n").collect(),
            Format::Json => json::text(&sweep::wanted_json(&wanted)),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let console = Console::catching_signals(args.quiet)?;
    if let Some(record) = &args.only {
        return only(record, args, &plan, &place, Runner::new(Some(1), &console));
    }
    let runner = Runner::new(Some(jobs(args, &plan)), &console);
    let study = sweep::sweep(plan, &place, args.retry, runner).map_err(stopped)?;
    let files = study.write(&place)?;
    print(terminal::render(&[study.sheet().document()], style(&std::io::stdout())))?;
    if !args.quiet {
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        say(&format!("all values: {}", names.join(", ")));
    }
    let has_failed = study.made.iter().any(|made| made.outcome.is_err());
    Ok(if has_failed { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}

/// Makes one run.
fn only(record: &str, args: &Args, plan: &Plan, place: &Place, runner: Runner<'_>) -> Outcome {
    let elsewhere = std::path::absolute(args.recorded_in.as_ref().unwrap_or(&place.plan))
        .map_err(|e| format!("--recorded-in: {e}; name the plan's folder"))?;
    Ok(match sweep::sweep_one(plan, place, record, &elsewhere, runner).map_err(stopped)? {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&why);
            ExitCode::from(FOUND)
        }
    })
}

/// Says that a signal ended the sweep, if one did.
fn stopped(error: lab::Error) -> Failure {
    match error {
        lab::Error::Stopped => Failure {
            status: interrupt::status(),
            message: format!(
                "{} ended the sweep; finished runs are kept, and the same command continues",
                interrupt::name()
            ),
        },
        error => error.into(),
    }
}

/// Returns where the sweep is made and kept.
fn place(args: &Args) -> Result<Place, Failure> {
    let simulator = std::env::current_exe().map_err(|e| format!("cannot find the executable of fxscope: {e}"))?;
    let results = match &args.output {
        Some(folder) => folder.clone(),
        None if args.plan.extension().is_some() => args.plan.with_extension(""),
        None => return Err(format!("{}: name the folder of the results with --output", args.plan.display()).into()),
    };
    Ok(Place { simulator, plan: Plan::folder(&args.plan), results })
}

/// Returns how many runs are made at a time.
fn jobs(args: &Args, plan: &Plan) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = args.jobs.map_or_else(cores, usize::from);
    let free = fxscope::hostinfo::memory::available(Path::new("/"));
    let Some((each, free)) = plan.memory().and_then(|text| integer(&text)).zip(free) else { return wanted };
    let jobs = sweep::jobs_within(wanted, each, free);
    if jobs < wanted {
        say(&format!(
            "{jobs} runs at a time: no more fit the host's free memory if each takes what the plan allows it"
        ));
    }
    jobs
}
