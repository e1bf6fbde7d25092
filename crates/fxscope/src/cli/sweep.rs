//! `fxscope sweep`: many runs with settings that a plan varies.

use std::path::PathBuf;

use fxscope::lab::Runner;
use fxscope::lab::sweep::{self, Place, Plan};
use fxscope::report::render::json;

use crate::options::OwnTables;
use crate::terminal::{Console, Outcome, print, say, show, status, unless_stopped};

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

/// What an interrupted sweep means.
const STOPPED: &str = "the sweep; finished runs are kept, and the same command continues";

/// Makes the runs, writes the results and prints what they say.
pub(super) fn sweep(args: &Args) -> Outcome {
    args.own.add()?;
    let plan = Plan::read(&args.plan)?;
    let place = Place::of(&args.plan, args.output.as_deref())?;
    if args.dry_run {
        let wanted = sweep::wanted(&plan, &place)?;
        return print(match args.format {
            Format::Terminal => wanted.iter().map(|run| run.words.shown() + "\n").collect(),
            Format::Json => json::text(&sweep::wanted_json(&wanted)),
        });
    }
    let console = Console::catching_signals(args.quiet)?;
    if let Some(record) = &args.only {
        return only(record, args, &plan, &place, Runner::new(Some(1), &console));
    }
    let (jobs, fewer) = sweep::jobs(&plan, args.jobs.map(usize::from));
    fewer.iter().for_each(|why| say(why));
    let runner = Runner::new(Some(jobs), &console);
    let study = unless_stopped(sweep::sweep(plan, &place, args.retry, runner), STOPPED)?;
    let files = study.write(&place)?;
    show(&[study.sheet().document()])?;
    if !args.quiet {
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        say(&format!("all values: {}", names.join(", ")));
    }
    Ok(status::of_check(study.made.iter().all(|made| made.outcome.is_ok())))
}

/// Makes one run.
fn only(record: &str, args: &Args, plan: &Plan, place: &Place, runner: Runner<'_>) -> Outcome {
    let elsewhere = std::path::absolute(args.recorded_in.as_ref().unwrap_or(&place.plan))
        .map_err(|e| format!("--recorded-in: {e}; name the plan's folder"))?;
    let made = unless_stopped(sweep::sweep_one(plan, place, record, &elsewhere, runner), STOPPED)?;
    made.as_ref().err().iter().for_each(|why| say(why));
    Ok(status::of_check(made.is_ok()))
}
