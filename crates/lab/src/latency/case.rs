//! A program's counts, taken from a record.

use fxscope_latency::inputs::{self, Taken};
use fxscope_latency::{Counts, Prediction, Program, Second, System};
use fxscope_machine::Spec;
use fxscope_record::{ALL, Origin, Run};

use super::Question;
use crate::Error;

/// The counts of a run, and all else that predictions are made from.
#[derive(Clone, Debug)]
pub struct Case {
    /// The program, and the part of it that is looked at.
    pub title: String,
    /// What its events say.
    pub taken: Taken,
    /// The same by intervals of time.
    pub intervals: Vec<Counts>,
    /// Why there are no intervals; empty when there are.
    pub no_intervals: String,
    /// The machine.
    pub system: System,
    /// Another run of it, with memory that is somewhat slower.
    pub second: Option<Second>,
}

/// Why method 6 is not used when there is nothing else to say.
const NO_SECOND: &str = "there is no second run, with memory of another node (--second)";

impl Case {
    /// The case of a run; `base_ns` is the latency of its memory when that is not the described one, `spec` the machine that it
    /// was simulated on, where that is at hand.
    ///
    /// # Errors
    /// When the run has not the region or the counts, or the latency of its memory is not known.
    pub fn of(run: &Run, asked: &Question, base_ns: Option<f64>, spec: Option<&Spec>) -> Result<Case, Error> {
        let name = asked.region.as_deref().unwrap_or(ALL);
        let region = run.region(name).ok_or_else(|| {
            let names: Vec<&str> = run.regions.iter().map(|region| region.name.as_str()).collect();
            format!("the run has no region '{name}'; it has {}", names.join(", "))
        })?;
        let taken = inputs::take(run, region, asked.threads).map_err(|e| e.to_string())?;
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

    /// The same with another run of the program, whose memory is slower by `added_ns` nanoseconds.
    ///
    /// # Errors
    /// When nothing follows from the two runs.
    pub fn with_second(mut self, run: &Run, asked: &Question, added_ns: f64) -> Result<Case, Error> {
        let other = Case::of(run, asked, Some(self.system.base_ns + added_ns), None)?;
        let second = Second::of(&self.taken.counts, other.taken.counts.seconds, added_ns * 1e-9, &self.system);
        let second = second.ok_or("--second: one of the two runs took no time, so that nothing follows from them")?;
        self.second = Some(second);
        Ok(self)
    }

    /// What methods predict from.
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
    pub fn predict(self, asked: &Question) -> Forecast {
        let prediction = fxscope_latency::predict(&self.program(), &asked.latencies());
        Forecast { case: self, prediction }
    }
}

/// What is predicted of a program.
pub struct Forecast {
    /// What it is predicted from.
    pub case: Case,
    /// The prediction.
    pub prediction: Prediction,
}

/// The machine that a run was made on, as it is described: by the record, or, if that is of an older version, by the machine of
/// its name that comes with fxscope.
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
