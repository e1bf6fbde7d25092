//! `fxscope report`: what records hold.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::record::{self, ALL, Run};
use fxscope::report::document::Document;
use fxscope::report::render::{json, terminal};
use fxscope::report::{pages, side_by_side, summary};

use super::{Failure, Outcome, print, style};

/// Show the runs in record files: one as a summary, several side by side.
#[derive(clap::Args)]
pub struct Args {
    /// Record files.
    #[arg(required = true, value_name = "FILE.fxr")]
    files: Vec<PathBuf>,
    /// Look at this region only; without it, several runs are compared as a whole.
    #[arg(long)]
    region: Option<String>,
    /// What to show: the summary, or the pages of each run (segment, page size, node, how many, what rounding loses).
    #[arg(long, value_enum, default_value_t = Section::Summary, conflicts_with = "region")]
    section: Section,
    /// Output format. JSON is a list of runs, with all sections.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Terminal,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Section {
    Summary,
    Pages,
}

/// The documents that show the runs.
fn documents(args: &Args, runs: &[Run]) -> Result<Vec<Document>, Failure> {
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

/// Shows the runs on standard output.
pub(super) fn report(args: &Args) -> Outcome {
    let mut runs = Vec::new();
    for path in &args.files {
        runs.extend(record::load(path)?);
    }
    if runs.is_empty() {
        return Err("the files hold no run; add one with fxscope run -o FILE.fxr".into());
    }
    let text = match args.format {
        Format::Json => format!("{:#}\n", runs.iter().map(json::run).collect::<serde_json::Value>()),
        Format::Terminal => terminal::render(&documents(args, &runs)?, style(&std::io::stdout())),
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
