//! A program's counts, taken from a record.

use fxscope_latency::inputs::{self, RegionCounts};
use fxscope_latency::{Counts, Prediction, Program, SecondRun, System};
use fxscope_linux::Stdio;
use fxscope_machine::Spec;
use fxscope_record::{ALL, Finish, Origin, Run};
use fxscope_session::Scenario;

use super::PredictOptions;
use crate::{Error, Progress, Runner};

/// The counts of a run, and everything else that predictions need.
#[derive(Clone, Debug)]
pub struct Case {
    /// The program and its region.
    pub title: String,
    /// The counts of its events.
    pub taken: RegionCounts,
    /// The same by intervals of time.
    pub intervals: Vec<Counts>,
    /// Why there are no intervals; empty if there are.
    pub no_intervals: String,
    /// The machine.
    pub system: System,
    /// Another run of it, with somewhat slower memory.
    pub second: Option<SecondRun>,
}

/// Why method 6 is not used, if there is no other reason.
const NO_SECOND: &str = "there is no second run, with memory of another node (--second)";

/// Runs a program in the foreground and counts what predictions need, by intervals of `interval_ns` nanoseconds of a region if one is named.
/// `progress` receives a message about an end that the prediction does not cover. `stdio` are the program's standard streams; `None`: those of this
/// process.
///
/// # Errors
/// If the program is sampled, cannot start or cannot continue.
pub fn simulated(
    scenario: Scenario,
    interval_ns: u64,
    region: Option<&str>,
    stdio: Option<Stdio>,
    progress: &dyn Progress,
) -> Result<Run, Error> {
    scenario.refuse_sampling("latency predict")?;
    let scenario = scenario.with_intervals(Some(interval_ns), region);
    let run = Runner::new(None, progress).run(scenario.prepare()?, stdio)?;
    match &run.finish {
        Finish::Exited(0) => {}
        Finish::Exited(status) => progress.message(&format!("the program ended with status {status}")),
        Finish::Killed { message, .. } => progress.message(&format!("the program was {message}")),
        Finish::Limit | Finish::Stopped | Finish::Unknown => {
            progress.message("the program did not end; the prediction covers the part that ran");
        }
        Finish::Failed(_) | Finish::NoProgress(_) => {}
    }
    match run.finish.failure() {
        Some(why) => Err(why.into()),
        None => Ok(run),
    }
}

impl Case {
    /// Builds the case of a run; `base_ns` is the latency of its memory if it is not the described one, `spec` the machine
    /// that it was simulated on, if available.
    ///
    /// # Errors
    /// If the run does not have the region or the counts, or the latency of its memory is not known.
    pub fn of(run: &Run, options: &PredictOptions, base_ns: Option<f64>, spec: Option<&Spec>) -> Result<Case, Error> {
        let name = options.region.as_deref().unwrap_or(ALL);
        let region = run.region(name).ok_or_else(|| {
            let names: Vec<&str> = run.regions.iter().map(|region| region.name.as_str()).collect();
            format!("the run has no region '{name}'; it has {}", names.join(", "))
        })?;
        let taken = inputs::take(run, region, options.threads).map_err(|e| e.to_string())?;
        let system = system(run, base_ns, spec)?;
        let (intervals, no_intervals) = match inputs::series(run, name, taken.counts.threads) {
            Ok(intervals) => (intervals, String::new()),
            Err(why) => (Vec::new(), why),
        };
        let program = if run.command.is_empty() { "the program".to_owned() } else { run.command.join(" ") };
        let part = if name == ALL { String::new() } else { format!(", region {name}") };
        let title = format!("Slower memory: {program}{part} on {}", run.machine);
        Ok(Case { title, taken, intervals, no_intervals, system, second: None })
    }

    /// Adds another run of the program, whose memory has a latency of `ns` nanoseconds.
    ///
    /// # Errors
    /// If that memory is not slower, or the two runs cannot be compared.
    pub fn with_second(mut self, run: &Run, options: &PredictOptions, ns: f64) -> Result<Case, Error> {
        let base = self.system.base_ns;
        let added_ns = ns - base;
        if added_ns <= 0.0 {
            return Err(format!(
                "--second-ns {ns}: the first run's memory takes {base} ns; the second's must be slower"
            )
            .into());
        }
        let other = Case::of(run, options, Some(self.system.base_ns + added_ns), None)?;
        let second = SecondRun::of(&self.taken.counts, other.taken.counts.seconds, added_ns * 1e-9, &self.system);
        let second = second.ok_or("--second: one of the two runs took no time, so they cannot be compared")?;
        self.second = Some(second);
        Ok(self)
    }

    /// Returns the input of the methods.
    #[must_use]
    pub fn program(&self) -> Program<'_> {
        Program {
            counts: &self.taken.counts,
            intervals: &self.intervals,
            no_intervals: &self.no_intervals,
            system: &self.system,
            second: self.second.ok_or(NO_SECOND),
        }
    }
    /// Predicts slowdowns by every method that the counts allow.
    #[must_use]
    pub fn predict(self, options: &PredictOptions) -> Forecast {
        let prediction = fxscope_latency::predict(&self.program(), &options.latencies());
        Forecast { case: self, prediction }
    }
}

/// A prediction for a program.
pub struct Forecast {
    /// Its input.
    pub case: Case,
    /// The prediction.
    pub prediction: Prediction,
}

/// Returns the machine of a run: as the record describes it, or, for records of an older version, the built-in machine of
/// that name.
fn system(run: &Run, base_ns: Option<f64>, spec: Option<&Spec>) -> Result<System, Error> {
    let settings = if run.origin == Origin::Simulated { &run.settings[..] } else { &[] };
    let described = match spec {
        Some(spec) => Some(System::of(spec)),
        None => System::recorded(&run.constants).or_else(|| {
            let name = fxscope_machine::names().find(|name| *name == run.machine)?;
            fxscope_machine::load(name, settings).ok().map(|spec| System::of(&spec))
        }),
    };
    match (described, base_ns) {
        (Some(system), Some(base_ns)) => Ok(system.with_latency(base_ns)),
        (Some(system), None) => Ok(system),
        (None, Some(base_ns)) => Ok(System::of_latency(base_ns)),
        (None, None) => Err(format!(
            "the latency of the memory of '{}' is not known: give it with --base-ns NS (tools that measure it are Intel Memory Latency \
             Checker and lmbench's lat_mem_rd)",
            run.machine
        )
        .into()),
    }
}
