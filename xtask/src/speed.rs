//! The simulator's speed, beside that of a fixed loop timed in the same run.
//!
//! The loop (a chain of dependent integer operations) shows how fast the host was at that moment, so that ratios can be
//! compared between runs and machines. This never fails because of a result.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::root;

/// Options of `xtask speed`.
#[derive(clap::Args)]
pub struct Args {
    /// Number of runs of each program; the best counts, all are recorded.
    #[arg(long, default_value_t = 3)]
    repeat: u32,
    /// Folder for the raw results.
    #[arg(long)]
    out: Option<PathBuf>,
    /// The fxscope binary.
    #[arg(long, default_value = "target/release/fxscope")]
    fxscope: PathBuf,
}

/// A program to run.
struct Case {
    name: &'static str,
    /// Options of `fxscope run`.
    options: &'static [&'static str],
    program: &'static str,
    arguments: &'static [&'static str],
}

const FUNCTIONAL: &[&str] = &["--mode", "functional"];
const ON_DEMAND: &str = "XOS_MMM_L_PAGING_POLICY=demand:demand:demand";
const OWN_CMGS: &[&str] = &["--cpus", "12-59", "-e", ON_DEMAND];
const TWO_HOST_THREADS: &[&str] = &["--cpus", "12-59", "-e", ON_DEMAND, "--host-threads", "2"];

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "functional Triad", options: FUNCTIONAL, program: "triad-l1", arguments: &["n=2048", "passes=80000"] },
    Case { name: "functional integer", options: FUNCTIONAL, program: "sort", arguments: &["n=20000", "passes=30"] },
    Case { name: "timing Triad L1", options: &[], program: "triad-l1", arguments: &["n=2048", "passes=16000"] },
    Case { name: "timing Triad memory", options: &[], program: "triad-mem", arguments: &["n=1048512", "passes=20"] },
    Case { name: "timing DGEMM tile", options: &[], program: "dgemm-tile", arguments: &["5x4", "128", "6000"] },
    Case { name: "timing integer", options: &[], program: "sort", arguments: &["n=20000", "passes=4"] },
    Case { name: "Triad memory, 12 cores", options: &["--cpus", "12-23"], program: "triad-threads", arguments: &["n=1048512", "passes=6", "threads=12"] },
    Case { name: "Triad memory, 48 cores", options: &["--cpus", "12-59"], program: "triad-threads", arguments: &["n=4194048", "passes=2", "threads=48"] },
    Case { name: "48 cores, own memory", options: OWN_CMGS, program: "triad-threads", arguments: &["n=4194048", "passes=16", "threads=48"] },
    Case { name: "… on 2 host threads", options: TWO_HOST_THREADS, program: "triad-threads", arguments: &["n=4194048", "passes=16", "threads=48"] },
];

/// Iterations of the reference loop.
const REFERENCE: u64 = 200_000_000;

/// Times the reference loop, seconds. Each step depends on the one before, and shift, exclusive or and multiplication do not
/// compose, so no compiler merges steps (as it does with a chain of multiply and add).
fn reference_seconds() -> f64 {
    let start = Instant::now();
    let mut x = black_box(1u64);
    for _ in 0..REFERENCE {
        x = (x ^ (x >> 29)).wrapping_mul(6_364_136_223_846_793_005);
    }
    black_box(x);
    start.elapsed().as_secs_f64()
}

/// Runs and prints the table.
///
/// # Errors
/// If a program cannot be run.
pub fn run(args: &Args) -> Result<(), String> {
    let fxscope = root().join(&args.fxscope);
    let mut raw = String::from("case,run,instructions,wall_seconds,mips,peak_rss_bytes,reference_mops\n");
    println!("{:<22} {:>12} {:>9} {:>10} {:>9}", "case", "instructions", "MIPS", "reference", "ratio");
    for case in CASES {
        let name = case.name;
        let mut best: Option<(f64, f64, u64)> = None;
        for repeat in 0..args.repeat {
            let reference = REFERENCE as f64 / reference_seconds() / 1e6;
            let json = fxscope_json(&fxscope, case)?;
            let number = |path: &[&str]| path.iter().fold(&json, |v, k| &v[*k]).as_f64().unwrap_or(0.0);
            let instructions = number(&["simulated", "instructions"]) as u64;
            let mips = number(&["host", "mips"]);
            let (wall, rss) = (number(&["host", "wall_seconds"]), number(&["host", "peak_rss_bytes"]));
            let _ = writeln!(raw, "\"{name}\",{repeat},{instructions},{wall},{mips},{rss},{reference}");
            if best.is_none_or(|(m, ..)| mips > m) {
                best = Some((mips, reference, instructions));
            }
        }
        let (mips, reference, instructions) = best.ok_or("--repeat must be at least 1")?;
        println!("{name:<22} {instructions:>12} {mips:>9.1} {reference:>10.0} {:>9.4}", mips / reference);
    }
    println!("MIPS: million guest instructions per second. Reference: million steps per second of a dependent integer");
    println!("loop in the same run; the ratio compares across hosts and moments.");
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let file = folder.join("speed.csv");
        std::fs::write(&file, raw).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(())
}

fn fxscope_json(fxscope: &std::path::Path, case: &Case) -> Result<serde_json::Value, String> {
    let output = std::env::temp_dir().join(format!("fxscope-speed-{}.json", std::process::id()));
    let program = root().join(format!("kernels/prebuilt/{}.elf", case.program));
    let mut command = Command::new(fxscope);
    command.args(["run", "--quiet"]).args(case.options).arg("--json").arg(&output);
    command.arg("--").arg(program).args(case.arguments);
    command.stdout(std::process::Stdio::null());
    let status = command.status().map_err(|e| format!("{}: {e}; build it first", fxscope.display()))?;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}"));
    }
    let text = std::fs::read_to_string(&output).map_err(|e| format!("{}: {e}", output.display()))?;
    std::fs::remove_file(&output).map_err(|e| format!("{}: {e}", output.display()))?;
    serde_json::from_str(&text).map_err(|e| e.to_string())
}
