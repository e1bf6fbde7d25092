//! Which of a program's data may live in a memory tier, and at which loss of time.
//!
//! One run with all data in fast memory says what each object reads and writes, and when. The loss of any set of objects follows
//! from that ([`fxscope_latency::methods::tier`]); simulations with the objects in the tier check it.

mod objects;
mod sets;
mod show;

use fxscope_latency::System;
use fxscope_latency::methods::tier::Tier;
use fxscope_machine::Spec;
use fxscope_machine::spec::MemoryTier;
use fxscope_record::Run;
use fxscope_session::{DataSeries, PlaceOption, Scenario};

use super::samples::ended;
use super::{Case, PredictOptions};
use crate::runner::{nowhere, simulate};
use crate::{Cache, Capture, Error, Progress, Runner};

pub use objects::TierObject;
pub use sets::TierSet;

/// Options of the advice.
#[derive(Clone, Debug)]
pub struct AdviseOptions {
    /// The tier, by name; `None`: the machine's first.
    pub tier: Option<String>,
    /// Losses of time that are accepted, as shares of the time: a set of objects for each.
    pub losses: Vec<f64>,
    /// Length of the intervals in which traffic is counted, ns.
    pub interval_ns: u64,
    /// Simulate the sets, and the objects one by one.
    pub check: bool,
    /// Runs at a time; `None`: as many as the host has cores.
    pub jobs: Option<usize>,
    /// Cache of the times of these runs.
    pub cache: Cache,
}

/// Most objects that are simulated one by one, the largest.
const CHECKED: usize = 8;

/// Which data may live in the tier.
#[derive(Clone, Debug)]
pub struct TierAdvice {
    /// The command.
    command: String,
    machine: String,
    /// The tier.
    pub tier: MemoryTier,
    /// Seconds of the run with all data in fast memory.
    pub seconds: f64,
    /// The program's data, the largest first.
    pub objects: Vec<TierObject>,
    /// The sets: one for each loss, then all that can be placed.
    pub sets: Vec<TierSet>,
    /// Bytes and predicted loss when objects move one after the other, those with the least loss per byte first.
    pub steps: Vec<(u64, f64)>,
    /// Simulations that failed, and why.
    pub failed: Vec<String>,
}

/// Finds which data of the program of `scenario` may live in a memory tier of its machine. Output of the program is discarded; it has no
/// input.
///
/// # Errors
/// If the program is sampled, the machine has no such tier, options already place the program's memory, or the program cannot run or does not end well.
pub fn advise(scenario: &Scenario, options: &AdviseOptions, progress: &dyn Progress) -> Result<TierAdvice, Error> {
    scenario.refuse_sampling("latency advise")?;
    let spec = scenario.spec()?;
    let tier = chosen(&spec, options.tier.as_deref())?;
    if scenario.placement.places_memory() {
        return Err("options already place the program's memory (--membind, --interleave, --place, --fast-memory); leave them out, so that \
                    the program begins with all data in fast memory"
            .into());
    }
    let (run, series) = observed(scenario, options.interval_ns, progress)?;
    let case = Case::of(&run, &PredictOptions::default(), None, Some(&spec))?;
    if case.intervals.is_empty() {
        return Err(case.no_intervals.into());
    }
    let system = System::of(&spec);
    let limits = Tier {
        added: (tier.latency_ns as f64 - system.base_ns).max(0.0) * 1e-9,
        read: tier.read_bytes_per_second as f64,
        write: tier.write_bytes_per_second as f64,
        total: tier.total_bytes_per_second as f64,
    };
    let mut objects = objects::objects(&run, &series, &spec);
    let model = sets::Model::new(&case.intervals, &series, &objects, limits, system);
    for (place, object) in objects.iter_mut().enumerate().filter(|(_, object)| object.place.is_ok()) {
        object.loss = Some(model.loss(&[place]));
    }
    let mut advice = TierAdvice {
        command: run.command.join(" "),
        machine: run.machine.clone(),
        seconds: case.taken.counts.seconds,
        sets: sets::sets(&model, &objects, &options.losses),
        steps: sets::steps(&model, &objects),
        tier,
        objects,
        failed: Vec::new(),
    };
    if options.check {
        advice.check(scenario, options, progress)?;
    }
    Ok(advice)
}

/// Returns the tier of a machine that is named, or its first.
fn chosen(spec: &Spec, name: Option<&str>) -> Result<MemoryTier, Error> {
    let tiers = spec.memory_tiers.tiers();
    let names: Vec<_> = tiers.iter().map(|tier| tier.name.clone()).collect();
    let found = tiers.into_iter().find(|tier| name.is_none_or(|name| tier.name == name));
    found.ok_or_else(|| match name {
        Some(name) if !names.is_empty() => {
            format!("--tier {name}: the machine's tiers are {}", names.join(", ")).into()
        }
        _ => "the machine has no memory tier; add one, such as --memory-tier cxl:250ns,32GB/s".into(),
    })
}

/// Runs the program with all data in fast memory.
fn observed(scenario: &Scenario, interval_ns: u64, progress: &dyn Progress) -> Result<(Run, DataSeries), Error> {
    let scenario = scenario.clone().with_intervals(Some(interval_ns), None);
    let (run, series) = scenario.prepare()?.contained(Some(nowhere()?), |session| {
        simulate(progress, session, |session, watch| session.run_with_data_series(watch))
    })?;
    if progress.stop_requested() {
        return Err(Error::Stopped);
    }
    ended(&run.finish, None, None)?;
    Ok((run, series))
}

impl TierAdvice {
    /// Simulates the sets and the largest objects one by one.
    fn check(&mut self, scenario: &Scenario, options: &AdviseOptions, progress: &dyn Progress) -> Result<(), Error> {
        let placed = (0..self.objects.len()).filter(|&place| self.objects[place].place.is_ok());
        let mut trials: Vec<Vec<usize>> = placed.take(CHECKED).map(|place| vec![place]).collect();
        trials.extend(self.sets.iter().map(|set| set.members.clone()));
        trials.retain(|members| !members.is_empty());
        trials.sort_unstable();
        trials.dedup();
        let runner = Runner::new(options.jobs, progress);
        let name = |members: &Vec<usize>| self.named(members);
        let each = |members: &Vec<usize>| self.simulated(scenario, members, options, runner);
        let results = runner.batch(&trials, name, each)?;
        for (members, result) in trials.iter().zip(results) {
            let loss = match result {
                Ok(seconds) => seconds / self.seconds - 1.0,
                Err(why) => {
                    let failure = format!("{}: {why}", self.named(members));
                    self.failed.push(failure);
                    continue;
                }
            };
            self.sets.iter_mut().filter(|set| set.members == *members).for_each(|set| set.simulated = Some(loss));
            if let [place] = members[..] {
                self.objects[place].simulated = Some(loss);
            }
        }
        Ok(())
    }

    /// Returns the seconds of a run with some objects in the tier.
    fn simulated(
        &self,
        scenario: &Scenario,
        members: &[usize],
        options: &AdviseOptions,
        runner: Runner<'_>,
    ) -> Result<f64, Error> {
        let mut scenario = scenario.clone();
        let places = members.iter().filter_map(|&place| self.objects[place].place.as_ref().ok());
        let parsed = places.map(|name| PlaceOption::parse(&format!("{name}={}", self.tier.name)));
        scenario.placement.places = parsed.collect::<Result<_, _>>()?;
        let key = || -> Result<Vec<Vec<u8>>, Error> {
            let identity = scenario.spec().and_then(|spec| scenario.identity(&spec))?;
            Ok(vec![b"tier".to_vec(), identity.bytes().to_vec()])
        };
        options.cache.get_or(key, || {
            let made = runner.run_captured(&scenario, Capture::Error)?;
            ended(&made.run.finish, made.last_line.as_deref(), None)?;
            Ok(Case::of(&made.run, &PredictOptions::default(), None, Some(&made.spec))?.taken.counts.seconds)
        })
    }

    /// Returns the names of some objects.
    fn named(&self, members: &[usize]) -> String {
        let names: Vec<_> = members.iter().map(|&place| self.objects[place].title.as_str()).collect();
        names.join(", ")
    }
}
