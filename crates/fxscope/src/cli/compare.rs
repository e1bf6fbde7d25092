//! `fxscope compare`: differences between runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fxscope::lab;
use fxscope::record::{self, Run};
use fxscope::report::compare::{Comparison, report};
use fxscope::report::render::{comparison, html, terminal};

use super::output::Target;
use super::{Failure, Outcome, style};

/// Compare runs: ratios of all metrics and events, largest differences first, and cycle accounting side by side.
///
/// Runs of one file with the same settings are repetitions: their means are compared, and a difference of up to two
/// standard errors is marked as noise. Runs of one file with different settings are compared with each other.
#[derive(clap::Args)]
pub struct Args {
    /// Record files; the others are compared with the first.
    #[arg(required = true, value_name = "FILE.fxr")]
    files: Vec<PathBuf>,
    /// Region to compare; give it once per file to choose a region for each. Default: whole runs, or the only region of
    /// measurements that have no more.
    #[arg(long)]
    region: Vec<String>,
    /// Output format. CSV and JSON have all metrics and events, the others only the largest differences.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Write to this file, which is replaced atomically, or to standard output (-).
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
        return Err(format!("{}: has no runs; add one with fxscope run -o FILE.fxr", path.display()).into());
    }
    target.write_bytes(&rendered(args, &lab::compare(&files, &args.region)?))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a file's name without folder and suffix.
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
