//! Counts of a real machine, through perf, as runs.

mod latency;
mod perf;
mod report;

use fxscope_import::Machine;
use fxscope_latency::inputs::pmus;
use fxscope_pmu::Pmu;
use fxscope_session::machine_constants;

pub(crate) use latency::identity;
pub use latency::{LatencyCounts, latency_counts};
pub(crate) use perf::{MAX_OUTPUT_BYTES, run_under};
pub use perf::{Recorded, recorded_text};
pub use report::{ReportCounts, report_counts};

use crate::Error;

/// Returns the machine of this name, as importers need it: one of the model, or a processor whose events are known.
///
/// # Errors
/// If there is no such machine.
pub fn machine(name: &str) -> Result<Machine, Error> {
    machine_in_mode(name, None)
}

/// Returns the machine of this name in one of its modes of power, by name; `None`: its usual one.
///
/// # Errors
/// If there is no such machine, or it has no such mode.
pub fn machine_in_mode(name: &str, mode: Option<&str>) -> Result<Machine, Error> {
    let is_built_in = fxscope_machine::names().any(|machine| machine == name);
    if !is_built_in && pmus().iter().any(|pmu| pmu.machines.iter().any(|machine| machine == name)) {
        // Not a machine of the model: events keep perf's names, and time is in nanoseconds.
        let constants = [("timer_hz".to_owned(), 1e9)].into();
        return Ok(Machine { name: name.to_owned(), path: None, pmu: Pmu::default(), constants, power_mode: None });
    }
    let settings: Vec<(String, String)> =
        mode.map(|mode| ("power.mode".to_owned(), mode.to_owned())).into_iter().collect();
    let spec = fxscope_machine::load(name, &settings)?;
    let constants = machine_constants(&spec);
    let power_mode = Some(spec.power.mode.name().to_owned());
    Ok(Machine { name: spec.name, path: spec.path, pmu: spec.pmu, constants, power_mode })
}
