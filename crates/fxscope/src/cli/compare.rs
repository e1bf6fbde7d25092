//! `fxscope compare`: differences between runs.

use std::path::PathBuf;

use fxscope::lab;
use fxscope::lab::recorded::{runs_of_files, stem};
use fxscope::report::compare::{Comparison, Per, limit, report};
use fxscope::report::render::{comparison, html, json, terminal};

use crate::options::OwnTables;
use crate::terminal::{Outcome, OutputArgs, status};

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
    #[arg(long, value_name = "PERCENT", value_parser = limit)]
    fail_above: Option<f64>,
    #[command(flatten)]
    output: OutputArgs,
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
    let target = args.output.check()?;
    let files = runs_of_files(&args.files, &args.run, &args.label, stem)?;
    if let Some(path) = args.files.iter().zip(&files).find(|(_, (_, runs))| runs.is_empty()).map(|(path, _)| path) {
        return Err(format!("{}: has no runs; add one with fxscope run -o FILE.fxr", path.display()).into());
    }
    let found = lab::compare(&files, &args.region, args.per.as_ref())?;
    let slower = args.fail_above.map(|limit| found.slower(limit)).transpose()?.flatten();
    target.write_bytes(&rendered(args, &found))?;
    slower.iter().for_each(|slower| eprintln!("fxscope compare: {slower} (--fail-above)"));
    Ok(status::of_check(slower.is_none()))
}

fn rendered(args: &Args, found: &Comparison) -> Vec<u8> {
    match args.format {
        Format::Terminal => terminal::render(&report(found).documents(), args.output.style()).into_bytes(),
        Format::Html => html::render(&[report(found)]).into_bytes(),
        Format::Csv => comparison::csv(found),
        Format::Json => json::text(&comparison::json(found)).into_bytes(),
    }
}
