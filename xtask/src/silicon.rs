//! How far the model is from measured results of the real machine, kernel by kernel.
//!
//! `bench/silicon.csv` lists them: which published row, which kernel rebuilds it, and how much work its measured
//! region does. Nothing here passes or fails.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::root;

/// Options of `xtask silicon`.
#[derive(clap::Args)]
pub struct Args {
    /// Only rows in whose name or program this text occurs.
    #[arg(long, default_value = "")]
    only: String,
    /// The fxscope binary.
    #[arg(long, default_value = "target/release/fxscope")]
    fxscope: PathBuf,
}

/// One line of `bench/silicon.csv`.
#[derive(Deserialize)]
struct Row {
    /// Row of the reference data.
    row: String,
    what: String,
    /// Kernel, its options, and values set in the machine's description, each separated by blanks.
    program: String,
    options: String,
    settings: String,
    measured: f64,
    unit: Unit,
    /// A product: operations of the region (GFLOPS), bytes (GB/s), or what one cost is for (cycles).
    work: String,
    /// The number in DEVIATIONS.md that explains a difference.
    deviation: String,
}

#[derive(Clone, Copy, Deserialize)]
enum Unit {
    #[serde(rename = "GFLOPS")]
    Gflops,
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
    #[serde(rename = "cycles")]
    Cycles,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Gflops => "GFLOPS",
            Unit::GigabytesPerSecond => "GB/s",
            Unit::Cycles => "cycles",
        }
    }
}

/// Runs all kernels and prints the table.
///
/// # Errors
/// When the list cannot be read or a kernel cannot be run.
pub fn run(args: &Args) -> Result<(), String> {
    let fxscope = root().join(&args.fxscope);
    let file = root().join("bench/silicon.csv");
    let mut rows = csv::Reader::from_path(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    println!("{:<16} {:<44} {:>9} {:>9} {:<7} {:>7}  see", "row", "what", "measured", "simulated", "", "error");
    for row in rows.deserialize::<Row>() {
        let row = row.map_err(|e| format!("{}: {e}", file.display()))?;
        if !row.what.contains(&args.only) && !row.program.contains(&args.only) {
            continue;
        }
        let simulated = simulate(&fxscope, &row)?;
        let error = 100.0 * (simulated / row.measured - 1.0);
        println!(
            "{:<16} {:<44} {:>9.2} {:>9.2} {:<7} {error:>+6.1}%  {}",
            row.row,
            row.what,
            row.measured,
            simulated,
            row.unit.name(),
            row.deviation
        );
    }
    Ok(())
}

/// What the model gives for a row, in the row's unit.
fn simulate(fxscope: &Path, row: &Row) -> Result<f64, String> {
    let output = std::env::temp_dir().join(format!("fxscope-silicon-{}.json", std::process::id()));
    let mut command = Command::new(fxscope);
    command.args(["run", "--quiet", "--json"]).arg(&output);
    for setting in row.settings.split_whitespace() {
        command.args(["--set", setting]);
    }
    command.arg("--").arg(root().join(format!("kernels/prebuilt/{}.elf", row.program)));
    command.args(row.options.split_whitespace()).stdout(std::process::Stdio::null());
    let status = command.status().map_err(|e| format!("{}: {e}; build it first", fxscope.display()))?;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}"));
    }
    let text = std::fs::read_to_string(&output).map_err(|e| format!("{}: {e}", output.display()))?;
    std::fs::remove_file(&output).map_err(|e| format!("{}: {e}", output.display()))?;
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let region = json["regions"].as_array().and_then(|regions| regions.last());
    let cycles = region.and_then(|r| r["events"]["CPU_CYCLES"].as_f64()).ok_or("the run has no CPU_CYCLES")?;
    let of_run = |key: &str| json["simulated"][key].as_f64().ok_or(format!("the run has no {key}"));
    let seconds = cycles * of_run("seconds")? / of_run("cycles")?;
    let work = product(&row.work)?;
    Ok(match row.unit {
        Unit::Gflops | Unit::GigabytesPerSecond => work / seconds / 1e9,
        Unit::Cycles => cycles / work,
    })
}

/// The value of `2*2048*500`.
fn product(text: &str) -> Result<f64, String> {
    text.split('*').map(|factor| factor.trim().parse::<f64>().map_err(|e| format!("work '{text}': {e}"))).product()
}
