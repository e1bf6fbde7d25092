//! How far the model is from measured results of the real machine, kernel by kernel.
//!
//! `bench/silicon.csv` lists them: which published row, which kernel rebuilds it, and how much work its measured
//! region does. Nothing here passes or fails.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{kernel, root};

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
pub struct Row {
    /// Row of the reference data.
    pub row: String,
    what: String,
    /// Kernel.
    pub program: String,
    /// Its options, separated by blanks.
    pub options: String,
    /// Values set in the machine's description, separated by blanks.
    pub settings: String,
    /// The measured result, in the row's unit.
    pub measured: f64,
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

/// All rows.
///
/// # Errors
/// When the list cannot be read.
pub fn rows() -> Result<Vec<Row>, String> {
    let file = root().join("bench/silicon.csv");
    let wrong = |e: csv::Error| format!("{}: {e}", file.display());
    csv::Reader::from_path(&file).map_err(wrong)?.deserialize().collect::<Result<_, _>>().map_err(wrong)
}

/// Runs all kernels and prints the table.
///
/// # Errors
/// When the list cannot be read or a kernel cannot be run.
pub fn run(args: &Args) -> Result<(), String> {
    let fxscope = root().join(&args.fxscope);
    println!("{:<16} {:<44} {:>9} {:>9} {:<7} {:>7}  see", "row", "what", "measured", "simulated", "", "error");
    for row in rows()? {
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
    let counts = kernel::count(fxscope, &row.program, &row.options, &row.settings)?;
    match row.unit {
        Unit::Gflops | Unit::GigabytesPerSecond => row.rate(counts.seconds),
        Unit::Cycles => Ok(counts.cycles / row.work()?),
    }
}

impl Row {
    /// The work of the measured region.
    ///
    /// # Errors
    /// When it is not a product of numbers.
    pub fn work(&self) -> Result<f64, String> {
        product(&self.work)
    }
    /// Work a second, in thousand millions.
    ///
    /// # Errors
    /// See [`Row::work`].
    pub fn rate(&self, seconds: f64) -> Result<f64, String> {
        Ok(self.work()? / seconds / 1e9)
    }
    /// How long the region took on the machine, when a rate was measured.
    ///
    /// # Errors
    /// See [`Row::work`].
    pub fn measured_seconds(&self) -> Result<f64, String> {
        Ok(self.work()? / self.measured / 1e9)
    }
}

/// The value of `2*2048*500`.
fn product(text: &str) -> Result<f64, String> {
    text.split('*').map(|factor| factor.trim().parse::<f64>().map_err(|e| format!("work '{text}': {e}"))).product()
}
