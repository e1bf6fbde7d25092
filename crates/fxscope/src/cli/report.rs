//! `fxscope report`: the contents of records.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::lab::recorded::{one_by_one, runs_of_files};
use fxscope::record::Run;
use fxscope::report::render::{csv, html, json, numpy, terminal, xlsx};
use fxscope::report::{self, Level, Options, Shown, calls, documents, loops, reports};

use crate::options::OwnTables;
use crate::options::choice::described_choice;
use crate::terminal::{Failure, Outcome, OutputArgs, Target};

/// Show the runs in record files.
///
/// Without --level and --by, the terminal shows a summary of one run, or several runs side by side. With either of
/// them, and in all other formats, the tables of Fujitsu's CPU performance analysis report are shown for every run and
/// region, as far as the record has the events that they need.
#[derive(clap::Args)]
pub struct Args {
    /// Record files.
    #[arg(required = true, value_name = "FILE.fxr")]
    files: Vec<PathBuf>,
    /// Show this region only; default: all regions, or whole runs if several runs are shown side by side.
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Run of the files, counted from 1; give it once per file to choose a run for each. Default: all runs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    run: Vec<u32>,
    /// Name of a file's runs in column heads and titles; give it once per file, in their order. Default: the program's name.
    #[arg(long, value_name = "NAME")]
    label: Vec<String>,
    /// Level of detail: what 1, 5, 11 or 17 runs under Fujitsu's profiler measure. Default: detailed.
    #[arg(long, value_name = "LEVEL", value_parser = described_choice(Level::NAMED))]
    level: Option<Level>,
    /// Smallest unit that has rows of its own; larger units have rows, too. Default: process on the terminal, thread
    /// elsewhere.
    #[arg(long, value_enum, value_name = "PART")]
    by: Option<By>,
    /// What the terminal shows: the report; the pages of each run (segment, page size, node, number, memory lost to
    /// rounding); the traffic between CMGs by region; the loops, hottest first; functions with the time of those
    /// that they call, and who calls whom; data objects (`run --data`); or the power of each CMG and, over time, of the
    /// chip (`run --interval`). With --format csv, loops and functions are one per line.
    #[arg(long, value_enum, default_value_t = Section::Summary, conflicts_with_all = ["level", "by"])]
    section: Section,
    #[command(flatten)]
    own: OwnTables,
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Terminal)]
    format: Format,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Terminal,
    /// A self-contained page with charts.
    Html,
    /// A page that prints on one A3 sheet for each region, in the order of Fujitsu's CPU performance analysis report.
    Sheet,
    /// A workbook with charts.
    Xlsx,
    /// One line per value.
    Csv,
    /// A list of runs with all their data.
    Json,
    /// Arrays of NumPy (.npz): metrics and events as columns, with a row for each region and part of --by.
    Numpy,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Section {
    Summary,
    Pages,
    Traffic,
    Loops,
    Calls,
    Data,
    Power,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Thread,
    Cmg,
    /// The ranks of a program with MPI are processes, too.
    #[value(alias = "rank")]
    Process,
}

/// Shows the runs.
pub(super) fn report(args: &Args) -> Outcome {
    args.own.add()?;
    let has_csv = matches!(args.section, Section::Loops | Section::Calls) && args.format == Format::Csv;
    if args.section != Section::Summary && args.format != Format::Terminal && !has_csv {
        return Err("--section applies to the terminal only; the other formats show everything in the record".into());
    }
    let target = args.output.check()?;
    let binary = match args.format {
        Format::Xlsx => Some("a workbook cannot be written to a terminal; name a file with -o FILE.xlsx"),
        Format::Numpy => Some("arrays of NumPy cannot be written to a terminal; name a file with -o FILE.npz"),
        _ => None,
    };
    if let Some(message) = binary.filter(|_| args.output.is_standard() && std::io::stdout().is_terminal()) {
        return Err(message.into());
    }
    let files = runs_of_files(&args.files, &args.run, &args.label, |_| String::new())?;
    let (runs, labels) = one_by_one(files);
    if runs.is_empty() {
        return Err("no run in the files; add one with fxscope run -o FILE.fxr".into());
    }
    write(args, &runs, &labels, target)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the runs in the format asked for.
fn write(args: &Args, runs: &[Run], labels: &[String], target: Target) -> Result<(), Failure> {
    let options = options(args);
    let reports = || reports(runs, labels, &options);
    match args.format {
        Format::Json => {
            report::check(runs, &options)?;
            target.write_with(|out| json::write(out, runs, labels, &options))
        }
        Format::Numpy => target.write_bytes(&numpy::render(runs, &options)?),
        Format::Html => target.write_bytes(html::render(&reports()?).as_bytes()),
        Format::Sheet => target.write_bytes(html::sheet(&reports()?).as_bytes()),
        Format::Xlsx => target.write_bytes(&xlsx::render(&reports()?)?),
        Format::Csv if args.section == Section::Calls => target.write_bytes(&calls::to_csv(runs)),
        Format::Csv if args.section == Section::Loops => target.write_bytes(&loops::to_csv(runs)),
        Format::Csv => target.write_bytes(&csv::render(&reports()?)),
        Format::Terminal => {
            let documents = documents(runs, labels, shown(args), &options)?;
            target.write_bytes(terminal::render(&documents, args.output.style()).as_bytes())
        }
    }
}

/// Returns what the terminal shows.
fn shown(args: &Args) -> Shown {
    match args.section {
        Section::Summary if args.level.is_some() || args.by.is_some() => Shown::Tables,
        Section::Summary => Shown::Summary,
        Section::Pages => Shown::Pages,
        Section::Traffic => Shown::Traffic,
        Section::Loops => Shown::Loops,
        Section::Calls => Shown::Calls,
        Section::Data => Shown::Data,
        Section::Power => Shown::Power,
    }
}

/// Returns the options of a report.
fn options(args: &Args) -> Options {
    Options {
        level: args.level.unwrap_or_default(),
        by: match (args.by, args.format) {
            (Some(By::Process), _) | (None, Format::Terminal) => report::By::Process,
            (Some(By::Cmg), _) => report::By::Cmg,
            (Some(By::Thread) | None, _) => report::By::Thread,
        },
        region: args.region.clone(),
        hottest: fxscope::hottest,
    }
}
