//! `fxscope compare`: differences between runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fxscope::lab;
use fxscope::record::Run;
use fxscope::report::compare::{Comparison, Per, report};
use fxscope::report::render::{comparison, html, json, terminal};

use super::output::Target;
use super::own::OwnTables;
use super::recorded::{labels, of_file, runs_of};
use super::status::FOUND;
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
    #[arg(long, value_name = "NAME")]
    region: Vec<String>,
    /// Run of the files, counted from 1; give it once per file to choose a run for each. Default: all runs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    run: Vec<u32>,
    /// Name of a file in the results; give it once per file, in their order. Default: the file's name.
    #[arg(long, value_name = "NAME")]
    label: Vec<String>,
    /// Give times and counts per thousand instructions, per thousand floating-point operations, per call of the region, or divided by a
    /// number for each file, such as its elements: for runs of different sizes.
    #[arg(long, value_name = "instruction|flop|call|N,N…")]
    per: Option<Per>,
    #[command(flatten)]
    own: OwnTables,
    /// Output format. CSV and JSON have all metrics and events, the others only the largest differences.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Terminal)]
    format: Format,
    /// Exit with status 1 and one line that says why if another run takes longer than the first by more than this, and by more than noise.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_above: Option<f64>,
    /// Write to this file, which is replaced atomically, or to standard output (-).
    #[arg(short, long, value_name = "FILE|-", default_value = "-", hide_default_value = true)]
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
    args.own.add()?;
    let target = Target::check(&args.output)?;
    let files = loaded(args)?;
    if let Some(path) = args.files.iter().zip(&files).find(|(_, (_, runs))| runs.is_empty()).map(|(path, _)| path) {
        return Err(format!("{}: has no runs; add one with fxscope run -o FILE.fxr", path.display()).into());
    }
    let found = lab::compare(&files, &args.region, args.per.as_ref())?;
    let slower = args.fail_above.map(|limit| found.slower(limit)).transpose()?.flatten();
    target.write_bytes(&rendered(args, &found))?;
    let Some(slower) = slower else { return Ok(ExitCode::SUCCESS) };
    eprintln!("fxscope compare: {slower} (--fail-above)");
    Ok(ExitCode::from(FOUND))
}

/// Returns the label and the runs of each file.
fn loaded(args: &Args) -> Result<Vec<(String, Vec<Run>)>, Failure> {
    let labels = labels(&args.label, &args.files, label)?;
    let runs = |(i, path): (usize, &PathBuf)| {
        let number = of_file("--run", &args.run, i, args.files.len())?;
        runs_of(path, number.copied())
    };
    let runs = args.files.iter().enumerate().map(runs).collect::<Result<Vec<_>, Failure>>()?;
    Ok(labels.into_iter().zip(runs).collect())
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
        Format::Json => json::text(&comparison::json(found)).into_bytes(),
    }
}
