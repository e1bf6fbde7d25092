//! Runs of prebuilt kernels with the release build of `fxscope`.

use std::path::Path;
use std::process::Command;

use crate::root;

/// Counts of a kernel's measured region.
pub struct Counts {
    /// Cycles of the region.
    pub cycles: f64,
    /// Simulated seconds of the region.
    pub seconds: f64,
    events: serde_json::Value,
}

impl Counts {
    /// Returns the count of an event.
    ///
    /// # Errors
    /// If the run has no such event.
    pub fn event(&self, name: &str) -> Result<f64, String> {
        self.events[name].as_f64().ok_or_else(|| format!("the run has no {name}"))
    }
}

/// Runs `kernels/prebuilt/PROGRAM.elf` with its arguments and with options of `fxscope run`, each list separated by blanks,
/// and returns the counts of its last region.
///
/// # Errors
/// If the kernel cannot be run, fails, or counts nothing.
pub fn count(fxscope: &Path, program: &str, arguments: &str, options: &str) -> Result<Counts, String> {
    let output = std::env::temp_dir().join(format!("fxscope-kernel-{}.json", std::process::id()));
    let mut command = Command::new(fxscope);
    command.args(["run", "--quiet", "--json"]).arg(&output);
    command.args(options.split_whitespace()).arg("--").arg(root().join(format!("kernels/prebuilt/{program}.elf")));
    command.args(arguments.split_whitespace()).stdout(std::process::Stdio::null());
    let status = command.status().map_err(|e| format!("{}: {e}; build it first", fxscope.display()))?;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}"));
    }
    let text = std::fs::read_to_string(&output).map_err(|e| format!("{}: {e}", output.display()))?;
    std::fs::remove_file(&output).map_err(|e| format!("{}: {e}", output.display()))?;
    let mut json: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let of_run = |key: &str| json["simulated"][key].as_f64().ok_or(format!("the run has no {key}"));
    let period = of_run("seconds")? / of_run("cycles")?;
    let region = json["regions"].as_array_mut().and_then(|regions| regions.last_mut());
    let events = region.map(|r| r["events"].take()).ok_or("the run has no region")?;
    let cycles = events["CPU_CYCLES"].as_f64().ok_or("the run has no CPU_CYCLES")?;
    Ok(Counts { cycles, seconds: cycles * period, events })
}
