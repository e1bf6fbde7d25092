//! `fxscope compare`: what runs differ in.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fxscope::lab;
use fxscope::record::{self, Run};
use fxscope::report::compare::{Comparison, report};
use fxscope::report::render::{comparison, html, terminal};

use super::output::Target;
use super::{Failure, Outcome, style};

/// Compare runs: ratios of every metric and event, what differs most first, and cycle accounting side by side.
///
/// The runs of a file that were made alike are repetitions: their means are compared, and a difference of up to two
/// standard errors is marked as noise. Different runs of one file are compared with each other.
#[derive(clap::Args)]
pub struct Args {
    /// Record files; the first is what the others are compared with.
    #[arg(required = true, value_name = "FILE.fxr")]
    files: Vec<PathBuf>,
    /// The region to compare; given once for each file, the region of each. Without it whole runs are compared, and
    /// measurements of a single region by that.
    #[arg(long)]
    region: Vec<String>,
    /// Output format. CSV and JSON have all metrics and events, the others those that differ most.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Write to this file, which is replaced as a whole, or to standard output (-).
    #[arg(short, value_name = "FILE|-", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Terminal,
    Html,
    Csv,
    Json,
}

/// Compares the runs.
pub(super) fn compare_files(args: &Args) -> Outcome {
    let target = Target::check(&args.output)?;
    let files: Vec<(String, Vec<Run>)> =
        args.files.iter().map(|path| Ok((label(path), record::load(path)?))).collect::<Result<_, Failure>>()?;
    if let Some(path) = args.files.iter().zip(&files).find(|(_, (_, runs))| runs.is_empty()).map(|(path, _)| path) {
        return Err(format!("{}: holds no run; add one with fxscope run -o FILE.fxr", path.display()).into());
    }
    target.write_bytes(&rendered(args, &lab::compare(&files, &args.region)?))?;
    Ok(ExitCode::SUCCESS)
}

/// A file's name without folder and suffix.
fn label(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn rendered(args: &Args, found: &Comparison) -> Vec<u8> {
    match args.format {
        Format::Terminal => {
            let mut style = style(&std::io::stdout());
            style.colour &= args.output.as_os_str() == "-";
            terminal::render(&report(found).documents(), style).into_bytes()
        }
        Format::Html => html::render(&[report(found)]).into_bytes(),
        Format::Csv => comparison::csv(found),
        Format::Json => format!("{:#}\n", comparison::json(found)).into_bytes(),
    }
}
