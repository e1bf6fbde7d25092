//! `fxscope compare`: differences between runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fxscope::lab;
use fxscope::record::{self, Run};
use fxscope::report::compare::{Comparison, Per, report};
use fxscope::report::render::{comparison, html, terminal};

use super::output::Target;
use super::{Failure, Outcome, style};

/// Compare runs: which is faster, where the difference comes from, and all metrics and events, largest differences first.
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
    /// Give times and counts per thousand instructions, per thousand floating-point operations, per call of the region, or divided by a
    /// number for each file, such as its elements: for runs of different sizes.
    #[arg(long, value_name = "instruction|flop|call|N,N…")]
    per: Option<Per>,
    /// Output format. CSV and JSON have all metrics and events, the others only the largest differences.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Exit with status 1 and one line that says why if another run takes longer than the first by more than this, and by more than noise.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_above: Option<f64>,
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
    let found = lab::compare(&files, &args.region, args.per.as_ref())?;
    let slower = args.fail_above.map(|limit| found.slower(limit)).transpose()?.flatten();
    target.write_bytes(&rendered(args, &found))?;
    let Some(slower) = slower else { return Ok(ExitCode::SUCCESS) };
    eprintln!("fxscope compare: {slower} (--fail-above)");
    Ok(ExitCode::FAILURE)
}

/// Reads a percentage, such as `2%` or `0.5`, as a fraction.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number.map(|number| number / 100.0).ok_or_else(|| "give a percentage that is not negative, such as 2%".to_owned())
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
