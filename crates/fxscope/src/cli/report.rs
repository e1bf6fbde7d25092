//! `fxscope report`: what records hold.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::record::{self, ALL, Run};
use fxscope::report::document::{Document, Report};
use fxscope::report::render::{csv, html, json, terminal, xlsx};
use fxscope::report::{self, Options, pages, side_by_side, summary};

use super::output::Target;
use super::{Failure, Outcome, style};

/// Show the runs in record files.
///
/// Without --by the terminal shows a summary of one run, or several runs side by side. With it, and in all other formats,
/// the tables of the report are shown for every run and region, as far as the record has the events that they need.
#[derive(clap::Args)]
pub struct Args {
    /// Record files.
    #[arg(required = true, value_name = "FILE.fxr")]
    files: Vec<PathBuf>,
    /// Look at this region only; without it, a report shows all regions, and several runs are compared as a whole.
    #[arg(long)]
    region: Option<String>,
    /// The smallest parts that have rows of their own; what they are parts of has rows, too. In files each
    /// thread if not given.
    #[arg(long, value_enum, value_name = "PART")]
    by: Option<By>,
    /// What to show: the report, or the pages of each run (segment, page size, node, how many, what rounding loses).
    #[arg(long, value_enum, default_value_t = Section::Summary, conflicts_with_all = ["region", "by"])]
    section: Section,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Write to this file, which is replaced as a whole, or to standard output (-).
    #[arg(short, value_name = "FILE|-", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Terminal,
    /// A page with charts that needs nothing but a browser.
    Html,
    /// A workbook with charts.
    Xlsx,
    /// A line for each value.
    Csv,
    /// A list of runs with all that is known about them.
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Section {
    Summary,
    Pages,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Thread,
    Cmg,
    Process,
}

/// Shows the runs.
pub(super) fn report(args: &Args) -> Outcome {
    let target = Target::check(&args.output)?;
    if args.format == Format::Xlsx && args.output.as_os_str() == "-" && std::io::stdout().is_terminal() {
        return Err("a workbook is nothing for a terminal; give it a file with -o FILE.xlsx".into());
    }
    let mut runs = Vec::new();
    for path in &args.files {
        runs.extend(record::load(path)?);
    }
    if runs.is_empty() {
        return Err("the files hold no run; add one with fxscope run -o FILE.fxr".into());
    }
    target.write_bytes(&rendered(args, &runs)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The runs in the format asked for.
fn rendered(args: &Args, runs: &[Run]) -> Result<Vec<u8>, Failure> {
    Ok(match args.format {
        Format::Json => format!("{:#}\n", runs.iter().map(json::run).collect::<serde_json::Value>()).into_bytes(),
        Format::Html => html::render(&reports(args, runs)?).into_bytes(),
        Format::Xlsx => xlsx::render(&reports(args, runs)?)?,
        Format::Csv => csv::render(&reports(args, runs)?),
        Format::Terminal => {
            let mut style = style(&std::io::stdout());
            style.colour &= args.output.as_os_str() == "-";
            terminal::render(&documents(args, runs)?, style).into_bytes()
        }
    })
}

/// The documents that show the runs on a terminal.
fn documents(args: &Args, runs: &[Run]) -> Result<Vec<Document>, Failure> {
    if args.by.is_some() {
        return Ok(reports(args, runs)?.into_iter().flat_map(Report::documents).collect());
    }
    Ok(match (args.section, runs, &args.region) {
        (Section::Pages, runs, _) => {
            let documents: Vec<_> = runs.iter().filter_map(pages).collect();
            if documents.is_empty() {
                return Err("the files know no pages; add a run with fxscope run -o FILE.fxr".into());
            }
            documents
        }
        (Section::Summary, [run], None) => summary(run),
        (Section::Summary, runs, region) => vec![side_by_side(runs, region.as_deref().unwrap_or(ALL))?],
    })
}

/// All that is asked for about the runs.
fn reports(args: &Args, runs: &[Run]) -> Result<Vec<Report>, Failure> {
    let options = Options {
        by: match args.by {
            Some(By::Process) => report::By::Process,
            Some(By::Cmg) => report::By::Cmg,
            Some(By::Thread) | None => report::By::Thread,
        },
        region: args.region.clone(),
    };
    Ok(runs.iter().map(|run| report::report(run, &options)).collect::<Result<_, _>>()?)
}
