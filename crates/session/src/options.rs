//! Options of a simulation.

use std::path::PathBuf;

use fxscope_calendar::Cycle;
use fxscope_linux::ClockSource;
use fxscope_sampling::{Plan, Precision};
use fxscope_sim::part::PartPlan;
use fxscope_sim::{Follow, Mode, QUANTUM, SpinLoops};
use serde::{Deserialize, Serialize};

/// The simulated time after which a run without progress ends ([`fxscope_sim::NoProgress`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoProgressLimit {
    /// [`fxscope_sim::default_limit_ns`] of the mode.
    #[default]
    Default,
    /// This many nanoseconds.
    After(u64),
    /// It does not end.
    Never,
}

impl NoProgressLimit {
    /// Parses a length of simulated time, as [`interval_ns`] does, or `never`.
    ///
    /// # Errors
    /// If it is neither; the message says how to write it.
    pub fn parse(text: &str) -> Result<NoProgressLimit, String> {
        match text {
            "never" => Ok(NoProgressLimit::Never),
            _ => interval_ns(text).map(NoProgressLimit::After).map_err(|why| format!("{why}, or never")),
        }
    }

    fn is_default(&self) -> bool {
        *self == NoProgressLimit::Default
    }

    /// Returns the limit in ns in a mode; `None`: there is none.
    pub(crate) fn ns(self, mode: Mode) -> Option<u64> {
        match self {
            NoProgressLimit::Default => Some(fxscope_sim::default_limit_ns(mode)),
            NoProgressLimit::After(ns) => Some(ns),
            NoProgressLimit::Never => None,
        }
    }
}

/// What executes the program's code. Results and counts are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineChoice {
    /// The translator, if it is built in: in sampled runs and, after as many instructions as short programs have, which would take
    /// longer with it, in functional mode and outside of a part that is timed. Otherwise the interpreter.
    #[default]
    Auto,
    /// Frequently executed code is translated into the host's instructions from the beginning, if the translator is built in.
    Translator,
    /// Instructions are interpreted one after the other.
    Interpreter,
}

impl EngineChoice {
    fn is_default(&self) -> bool {
        *self == EngineChoice::Auto
    }
}

fn is_default(precision: &Precision) -> bool {
    *precision == Precision::default()
}

/// Options of a simulation that are independent of program and machine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// The full model, or results and instruction counts only.
    pub mode: Mode,
    /// What executes the program's code.
    #[serde(skip_serializing_if = "EngineChoice::is_default")]
    pub engine: EngineChoice,
    /// Which of the program's processes are timed and counted.
    pub follow: Follow,
    /// The source of the time that the program reads.
    pub clock: ClockSource,
    /// Cycles that a core may run ahead of the slowest core.
    pub quantum: Cycle,
    /// Host threads that simulate the cores; each takes the cores of whole CMGs.
    pub host_threads: usize,
    /// How spin loops are simulated. They are always simulated exactly with the host's clock and with an instruction
    /// limit.
    pub spin: SpinLoops,
    /// Stop after about this many instructions.
    pub max_instructions: Option<u64>,
    /// When a run without progress ends.
    #[serde(skip_serializing_if = "NoProgressLimit::is_default")]
    pub no_progress: NoProgressLimit,
    /// Also count by intervals of this many nanoseconds of simulated time, in timing mode; 0 means `None`.
    pub interval_ns: Option<u64>,
    /// Sample call stacks at intervals of this many nanoseconds of simulated time, in timing mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_ns: Option<u64>,
    /// Attribute misses to data objects, in timing mode.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub data: bool,
    /// Count by intervals only what happens in this region.
    pub interval_region: Option<String>,
    /// Time windows of the program only, and estimate its counts from them, in timing mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<Plan>,
    /// How accurately time must be known in a sampled run, and the confidence of the intervals in its report.
    #[serde(skip_serializing_if = "is_default")]
    pub precision: Precision,
    /// The part of the run that is timed, or sampled, in timing mode; `None`: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<PartPlan>,
    /// Time intervals of the run, of one thread, on this many host threads ([`crate::Session::run_in_jobs`]); `None`: all of it in one piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<usize>,
    /// Initial value of `IMP_PF_STREAM_DETECT_CTRL_EL0`: hardware prefetch as set by `hwpfctl`.
    pub stream_detect: u64,
    /// The folder in which the program's absolute paths are looked up first; `None`: [`fxscope_linux::default_sysroot`].
    pub sysroot: Option<PathBuf>,
}

impl Default for RunOptions {
    /// Full timing of all processes on one host thread, with simulated clocks.
    fn default() -> RunOptions {
        RunOptions {
            mode: Mode::Timing,
            engine: EngineChoice::Auto,
            follow: Follow::All,
            clock: ClockSource::Simulated,
            quantum: QUANTUM,
            host_threads: 1,
            spin: SpinLoops::Fast,
            max_instructions: None,
            no_progress: NoProgressLimit::Default,
            interval_ns: None,
            stack_ns: None,
            data: false,
            interval_region: None,
            sample: None,
            precision: Precision::default(),
            part: None,
            jobs: None,
            stream_detect: 0,
            sysroot: None,
        }
    }
}

/// Parses a length of simulated time, such as `100us` or `0.5ms`, from a microsecond to an hour. Returns ns.
///
/// # Errors
/// If it is none; the message says how to write it.
pub fn interval_ns(text: &str) -> Result<u64, String> {
    let wrong = || "write it as a number and a unit: 100us, 0.5ms, 2s".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let ns_per_unit = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(wrong()),
    };
    let ns = (number.parse::<f64>().map_err(|_| wrong())? * ns_per_unit).round();
    if (1e3..=3.6e12).contains(&ns) {
        Ok(ns as u64)
    } else {
        Err("an interval takes between 1us and 3600s of simulated time".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_simulated_time_have_a_unit_and_bounds() {
        assert_eq!(
            ["100us", "0.5ms", "2s", "3600s"].map(interval_ns),
            [100_000, 500_000, 2_000_000_000, 3_600_000_000_000].map(Ok)
        );
        for wrong in ["", "5", "ms", "1.2.3ms", "999ns", "3601s", "1min"] {
            assert!(interval_ns(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_run_without_progress_ends_after_a_time_or_never() {
        assert_eq!(NoProgressLimit::parse("never"), Ok(NoProgressLimit::Never));
        assert_eq!(NoProgressLimit::parse("500ms"), Ok(NoProgressLimit::After(500_000_000)));
        assert!(NoProgressLimit::parse("soon").is_err_and(|why| why.ends_with("or never")));
    }
}
