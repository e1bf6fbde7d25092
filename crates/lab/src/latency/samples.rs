//! Simulations of a program with several memory latencies, on all of the host's cores, with a cache of their counts.

use fxscope_latency::check::Sample;
use fxscope_latency::{Counts, SecondRun, System};
use fxscope_record::Finish;
use fxscope_session::{RemoteNode, Scenario};

use super::{Case, PredictOptions};
use crate::tasks::{Task, unknown};
use crate::{Cache, Capture, Error, Runner};

/// A program to be checked.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// Whether coefficients may be fitted to it.
    pub fit: bool,
    /// Its scenario with normal memory.
    pub scenario: Scenario,
    /// What to predict.
    pub options: PredictOptions,
    /// Length of the intervals of its normal run, nanoseconds.
    pub interval_ns: u64,
    /// Exit status with which the program says that it cannot run with these arguments.
    pub refuses: Option<i32>,
}

/// Why there is no sample of a subject.
#[derive(Clone, Debug)]
pub enum NoSample {
    /// The program says that it cannot run with these arguments, and why.
    Refused(String),
    /// It could not be simulated.
    Failed(String),
}

impl From<String> for NoSample {
    fn from(why: String) -> NoSample {
        NoSample::Failed(why)
    }
}

impl NoSample {
    fn why(self) -> String {
        let (NoSample::Refused(why) | NoSample::Failed(why)) = self;
        why
    }

    /// Adds the trial in which it happened.
    fn with(self, what: &str) -> NoSample {
        match self {
            NoSample::Failed(why) => NoSample::Failed(format!("{what}: {why}")),
            refused @ NoSample::Refused(_) => refused,
        }
    }
}

impl From<Error> for NoSample {
    fn from(error: Error) -> NoSample {
        NoSample::Failed(error.to_string())
    }
}

impl From<NoSample> for Error {
    fn from(why: NoSample) -> Error {
        Error::Request(why.why())
    }
}

/// Runs simulations.
pub(super) struct Simulations<'a> {
    pub runner: Runner<'a>,
    pub cache: &'a Cache,
}

/// The counts of a run.
#[derive(serde::Deserialize, serde::Serialize)]
struct Measured {
    counts: Counts,
    intervals: Vec<Counts>,
    no_intervals: String,
}

/// The memory of a trial.
#[derive(Clone, Copy, PartialEq)]
enum Memory {
    /// The machine's own.
    Normal,
    /// That of this node, remote from the program's cores, for methods that use a second run.
    Remote(u32),
    /// Memory of this latency, nanoseconds.
    Slower(f64),
}

/// Result of a trial.
type Outcome = (Memory, Result<Measured, NoSample>);

/// A simulation of a subject.
struct Trial<'a> {
    subject: &'a Subject,
    system: &'a System,
    memory: Memory,
}

impl Simulations<'_> {
    /// Returns the samples of subjects, in their order, or the reason why there is none.
    pub fn samples(&self, subjects: &[Subject]) -> Result<Vec<Result<Sample, NoSample>>, Error> {
        let systems = systems(subjects);
        let trials = trials(subjects, &systems);
        let name = |(_, trial): &(usize, Trial<'_>)| trial.subject.name.clone();
        let each = |(i, trial): &(usize, Trial<'_>)| (*i, trial.memory, self.measured(trial));
        let measured = self.runner.batch(&trials, name, each)?;

        let mut of_subject: Vec<Vec<Outcome>> = subjects.iter().map(|_| Vec::new()).collect();
        for (i, memory, result) in measured {
            of_subject[i].push((memory, result));
        }
        let parts = subjects.iter().zip(systems).zip(of_subject);
        Ok(parts.map(|((subject, system), measured)| sample(subject, system?, measured)).collect())
    }

    /// Returns the simulations of subjects. Those whose program cannot be read are not among them.
    pub fn tasks(&self, subjects: &[Subject]) -> Vec<Task> {
        let systems = systems(subjects);
        let trials = trials(subjects, &systems);
        trials.iter().filter_map(|(_, trial)| Some(Task::of(trial.name(), &trial.key().ok()?, self.cache))).collect()
    }

    /// Makes the simulation with this result ([`Simulations::tasks`]) and caches it. Returns why it failed, if so.
    pub fn make_task(&self, subjects: &[Subject], result: &str) -> Result<Option<String>, Error> {
        let systems = systems(subjects);
        let trials = trials(subjects, &systems);
        let has_it = |trial: &&Trial<'_>| trial.key().is_ok_and(|key| self.cache.result(&key).0 == result);
        let trial = trials.iter().map(|(_, trial)| trial).find(has_it).ok_or_else(|| unknown(result))?;
        Ok(self.measured(trial).err().map(NoSample::why))
    }

    /// Returns the counts of a trial, from the cache or from a run.
    fn measured(&self, trial: &Trial<'_>) -> Result<Measured, NoSample> {
        self.cache.get_or(|| trial.key(), || trial.measure(self.runner))
    }
}

/// Returns the machines that subjects normally run on, or why one cannot be loaded.
fn systems(subjects: &[Subject]) -> Vec<Result<System, String>> {
    subjects.iter().map(Subject::system).collect()
}

/// Returns the simulations of subjects, each with the place of its subject.
fn trials<'a>(subjects: &'a [Subject], systems: &'a [Result<System, String>]) -> Vec<(usize, Trial<'a>)> {
    let of = |(place, (subject, system)): (usize, (&'a Subject, &'a Result<System, String>))| {
        let system = system.as_ref().ok()?;
        let slower = subject.options.latencies().into_iter().filter(|&ns| ns >= system.base_ns);
        let second = subject.remote(system).ok().map(|other| Memory::Remote(other.node));
        let memories = std::iter::once(Memory::Normal).chain(second).chain(slower.map(Memory::Slower));
        Some(memories.map(move |memory| (place, Trial { subject, system, memory })))
    };
    subjects.iter().zip(systems).enumerate().filter_map(of).flatten().collect()
}

impl Subject {
    /// Returns the machine that it normally runs on.
    fn system(&self) -> Result<System, String> {
        let spec = self.scenario.spec().map_err(|e| e.to_string())?;
        Ok(System::of(&spec))
    }

    /// Returns the node whose memory a second run uses, or why there is none.
    fn remote(&self, system: &System) -> Result<RemoteNode, String> {
        system.remote_memory_tells()?;
        self.scenario.farthest_node().map_err(|e| e.to_string())
    }
}

impl Trial<'_> {
    /// Returns its name for people.
    fn name(&self) -> String {
        match self.memory {
            Memory::Normal => self.subject.name.clone(),
            Memory::Remote(node) => format!("{}, memory of node {node}", self.subject.name),
            Memory::Slower(ns) => format!("{}, memory of {ns} ns", self.subject.name),
        }
    }

    fn scenario(&self) -> Scenario {
        let scenario = self.subject.scenario.clone();
        match self.memory {
            Memory::Normal => {
                scenario.with_intervals(Some(self.subject.interval_ns), self.subject.options.region.as_deref())
            }
            Memory::Remote(node) => scenario.with_memory_of(node),
            // The latency asked for includes what the description adds.
            Memory::Slower(ns) => scenario.with_added_ns(self.system.added_ns + ns - self.system.base_ns),
        }
    }

    /// Returns everything that the result depends on.
    fn key(&self) -> Result<Vec<Vec<u8>>, NoSample> {
        let scenario = self.scenario();
        let identity = scenario.spec().and_then(|spec| scenario.identity(&spec)).map_err(Error::from)?;
        let key = format!("{:?}", (&self.subject.options.region, self.subject.options.threads));
        Ok(vec![b"latency".to_vec(), identity.bytes().to_vec(), key.into_bytes()])
    }

    fn measure(&self, runner: Runner<'_>) -> Result<Measured, NoSample> {
        let made = runner.run_captured(&self.scenario(), Capture::Error)?;
        ended(&made.run.finish, made.last_line.as_deref(), self.subject.refuses)?;
        let case = Case::of(&made.run, &self.subject.options, None, Some(&made.spec))?;
        let Case { taken, intervals, no_intervals, .. } = case;
        Ok(Measured { counts: taken.counts, intervals, no_intervals })
    }
}

/// Fails if a run did not end normally: its time has no meaning.
pub(super) fn ended(finish: &Finish, last_line: Option<&str>, refuses: Option<i32>) -> Result<(), NoSample> {
    if *finish == Finish::Exited(0) {
        return Ok(());
    }
    let last = last_line.unwrap_or("it said nothing");
    if refuses.is_some_and(|status| *finish == Finish::Exited(status)) {
        return Err(NoSample::Refused(last.to_owned()));
    }
    let how = match finish {
        Finish::Exited(status) => format!("ended with status {status}"),
        Finish::Killed { message, .. } => format!("was {message}"),
        Finish::Failed(message) | Finish::NoProgress(message) => format!("cannot continue: {message}"),
        Finish::Limit | Finish::Stopped | Finish::Unknown => "did not end".to_owned(),
    };
    Err(format!("the program {how}: {last}").into())
}

/// Combines the trials of a subject to a sample.
fn sample(subject: &Subject, system: System, measured: Vec<Outcome>) -> Result<Sample, NoSample> {
    let mut normal = None;
    let mut remote = Err("it was not made".to_owned());
    let mut seconds = Vec::new();
    for (memory, result) in measured {
        match memory {
            Memory::Normal => normal = Some(result?),
            // Optional: predictions work without it.
            Memory::Remote(node) => {
                remote = result.map_err(|e| format!("with memory of node {node}: {}", e.why()));
            }
            Memory::Slower(ns) => {
                seconds.push((ns, result.map_err(|e| e.with(&format!("with {ns} ns")))?.counts.seconds))
            }
        }
    }
    let Measured { counts, intervals, no_intervals } =
        normal.ok_or_else(|| "its normal run was not made".to_owned())?;
    let second = subject.remote(&system).and_then(|other| {
        let second = SecondRun::of(&counts, remote?.counts.seconds, other.added_ns * 1e-9, &system);
        second.ok_or_else(|| "one of the two runs took no time".to_owned())
    });
    let second = second.map_err(|why| format!("there is no second run: {why}"));
    let simulated = seconds.into_iter().map(|(ns, seconds)| (ns, seconds / counts.seconds)).collect();
    Ok(Sample {
        name: subject.name.clone(),
        fit: subject.fit,
        counts,
        intervals,
        no_intervals,
        system,
        second,
        simulated,
    })
}
