//! A program's counts, taken from a record.

use fxscope::latency::inputs::{self, Taken};
use fxscope::latency::{Counts, Program, Second, System};
use fxscope::machine::Spec;
use fxscope::record::{ALL, Origin, Run};

use super::super::Failure;
use super::Asked;

/// What predictions are made from.
pub(super) struct Case {
    /// The program, and the part of it that is looked at.
    pub title: String,
    pub taken: Taken,
    pub intervals: Vec<Counts>,
    pub no_intervals: String,
    pub system: System,
    /// Another run of it, with memory that is somewhat slower.
    pub second: Option<Second>,
}

/// Why method 6 is not used when there is nothing else to say.
const NO_SECOND: &str = "there is no second run, with memory of another node (--second)";

impl Case {
    /// The case of a run; `base_ns` is the latency of its memory when that is not the described one, `spec` the machine that it
    /// was simulated on, where that is at hand.
    pub(super) fn of(run: &Run, asked: &Asked, base_ns: Option<f64>, spec: Option<&Spec>) -> Result<Case, Failure> {
        let name = asked.region.as_deref().unwrap_or(ALL);
        let region = run.region(name).ok_or_else(|| {
            let names: Vec<&str> = run.regions.iter().map(|region| region.name.as_str()).collect();
            format!("the run has no region '{name}'; it has {}", names.join(", "))
        })?;
        let taken = inputs::take(run, region, asked.threads)?;
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

    /// The same with another run of the program whose memory is slower by so many nanoseconds.
    pub(super) fn with_second(mut self, run: &Run, asked: &Asked, added_ns: f64) -> Result<Case, Failure> {
        let other = Case::of(run, asked, Some(self.system.base_ns + added_ns), None)?;
        let second = Second::of(&self.taken.counts, other.taken.counts.seconds, added_ns * 1e-9, &self.system);
        let second = second.ok_or("--second: one of the two runs took no time, so that nothing follows from them")?;
        self.second = Some(second);
        Ok(self)
    }

    pub(super) fn program(&self) -> Program<'_> {
        Program {
            counts: &self.taken.counts,
            intervals: &self.intervals,
            no_intervals: &self.no_intervals,
            system: &self.system,
            second: self.second.ok_or(NO_SECOND),
        }
    }
}

/// The machine that a run was made on, as it is described: by the record, or, if that is of an older version, by the machine of
/// its name that comes with fxscope.
fn system(run: &Run, base_ns: Option<f64>, spec: Option<&Spec>) -> Result<System, Failure> {
    let settings = if run.origin == Origin::Simulated { &run.settings[..] } else { &[] };
    let described = match spec {
        Some(spec) => Some(System::of(spec)),
        None => System::recorded(&run.constants).or_else(|| {
            let name = fxscope::machine::names().find(|name| *name == run.machine)?;
            fxscope::machine::load(name, settings).ok().map(|spec| System::of(&spec))
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
