//! `fxscope report`: what records hold.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::record::{self, ALL};
use fxscope::report::render::{json, terminal};
use fxscope::report::{side_by_side, summary};

use super::{Outcome, print, style};

/// Show the runs in record files: one as a summary, several side by side.
#[derive(clap::Args)]
pub struct Args {
    /// Record files.
    #[arg(required = true, value_name = "FILE.fxr")]
    files: Vec<PathBuf>,
    /// Look at this region only; without it, several runs are compared as a whole.
    #[arg(long)]
    region: Option<String>,
    /// Output format. JSON is a list of runs.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Terminal,
    Json,
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
        Format::Terminal => {
            let documents = match (runs.as_slice(), &args.region) {
                ([run], None) => summary(run),
                (runs, region) => vec![side_by_side(runs, region.as_deref().unwrap_or(ALL))?],
            };
            terminal::render(&documents, style(&std::io::stdout()))
        }
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
