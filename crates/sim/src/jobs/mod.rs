//! Runs whose intervals are timed at the same time, by several host threads.
//!
//! The program is executed once. Meanwhile its core is only followed: caches, translations, prefetch streams and branch predictors change as
//! if blocks were timed, and its clock, which the program reads, advances by a cycle for each instruction. At the beginning of each
//! interval the machine is copied. What the core then does is recorded ([`records`]); afterwards, another thread of the host does it again on the
//! copy, with timing ([`task`]): a thread of this process, or another process ([`Timers`]). Counts are added in the order of intervals ([`merged`]), and nothing that they say goes back
//! to the core that is followed. So results do not depend on how many host threads there are.

mod block_trace;
mod merged;
mod recording;
mod records;
mod task;
mod workers;

use fxscope_aarch64::Engine;

pub(crate) use merged::Merged;
use recording::Recording;
pub(crate) use records::{Change, Mark, Records};
pub use task::{Task, TaskCounts, Unreadable};
use workers::Workers;

use crate::machine::Machine;
use crate::run::{Control, Finish, Mode, Options, Outcome, Progress, Simulation};
use crate::timing::{Driver, Timing};

/// How a run is timed in intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jobs {
    /// Host threads, at least one; one of them also executes the program. Results do not depend on it.
    pub threads: usize,
    /// Instructions of an interval. It ends with the block in which they have been executed, or soon after its records fill
    /// [`Jobs::RECORDS`].
    pub interval: u64,
}

impl Jobs {
    /// Instructions of an interval, unless others are wanted. Shorter ones would spend more time on copies of the machine, longer ones more
    /// memory on records.
    pub const INTERVAL: u64 = 10_000_000;

    /// Bytes of records after which an interval ends early: those of code with short blocks and many accesses.
    pub const RECORDS: usize = 128 << 20;

    /// Returns `threads` host threads that time intervals of the usual length.
    #[must_use]
    pub fn new(threads: usize) -> Jobs {
        Jobs { threads, interval: Jobs::INTERVAL }
    }
}

/// Why a program cannot be timed in intervals: found while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It has several threads or processes.
    #[error("the program has started a thread or a process, and intervals are timed of one thread only")]
    Starts,
    /// Its thread has moved to another CPU.
    #[error("the program's thread has moved to another CPU, and intervals are timed on one core only")]
    Moves,
    /// It reads performance events.
    #[error("the program reads performance events, which are counted only after it has been executed")]
    Events,
    /// It calls MPI.
    #[error("the program calls MPI, whose calls are timed while it is executed")]
    Mpi,
}

/// Why a run has not been timed in intervals.
#[derive(Debug, thiserror::Error)]
pub enum JobsError {
    /// The program does not allow it.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The run's options do not allow it.
    #[error(
        "intervals are timed in timing mode, of runs that time everything on one host thread, without counts or stacks by time"
    )]
    Options,
    /// Intervals cannot be timed where they were to be: why.
    #[error("{0}")]
    Timers(String),
    /// The host cannot start the threads.
    #[error("the host cannot start the threads: {0}")]
    Host(#[from] std::io::Error),
}

/// What has intervals timed, in any order. What they count does not depend on it.
pub trait Timers {
    /// Has an interval timed. Returns what it counted if the calling thread has timed it.
    ///
    /// # Errors
    /// When intervals cannot be timed any more: why.
    fn give(&mut self, task: Task) -> Result<Option<TaskCounts>, String>;

    /// Returns what an interval has counted, if there is one that has not been returned. Does not wait.
    ///
    /// # Errors
    /// As [`Timers::give`].
    fn done(&mut self) -> Result<Option<TaskCounts>, String>;

    /// No more intervals are given: waits for one that has not been returned, and helps with those that nobody has begun with. `None`: all
    /// have been returned.
    ///
    /// # Errors
    /// As [`Timers::give`].
    fn rest(&mut self) -> Result<Option<TaskCounts>, String>;
}

/// Returns whether a run with these options can be timed in intervals.
fn allow(options: &Options) -> bool {
    let by_time = options.interval_ns.or(options.stack_ns).is_some();
    let is_whole = options.part.is_none() && options.sample.is_none() && !by_time;
    options.mode == Mode::Timing && is_whole && options.host_threads.is_none()
}

impl<E: Engine> Simulation<E> {
    /// Runs to the end as [`Simulation::run`] does, and times intervals of the run at the same time, each on a copy of the machine. The program
    /// has one thread. Nothing may have run.
    ///
    /// # Errors
    /// When the options or the program do not allow that. The program may have run for some time then.
    pub fn run_in_jobs(
        &mut self,
        jobs: &Jobs,
        watch: &mut dyn FnMut(Progress) -> Control,
    ) -> Result<Outcome, JobsError> {
        std::thread::scope(|scope| {
            let mut workers = Workers::start(scope, jobs.threads.max(1) - 1)?;
            self.run_with_timers(jobs.interval, &mut workers, watch)
        })
    }

    /// Does the same with intervals of this many instructions, which `timers` has timed.
    ///
    /// # Errors
    /// Those of [`Simulation::run_in_jobs`], and those of `timers`.
    pub fn run_with_timers(
        &mut self,
        interval: u64,
        timers: &mut dyn Timers,
        watch: &mut dyn FnMut(Progress) -> Control,
    ) -> Result<Outcome, JobsError> {
        if !allow(&self.options) {
            return Err(JobsError::Options);
        }
        let mut merged = Merged::default();
        self.arrive(&mut merged);
        let mut number = 0;
        let finish = loop {
            let (task, finish) = self.record_interval(number, interval, watch)?;
            if let Some(counts) = timers.give(task).map_err(JobsError::Timers)? {
                self.add(&mut merged, counts);
            }
            while let Some(counts) = timers.done().map_err(JobsError::Timers)? {
                self.add(&mut merged, counts);
            }
            if let Some(finish) = finish {
                break finish;
            }
            number += 1;
        };
        while let Some(counts) = timers.rest().map_err(JobsError::Timers)? {
            self.add(&mut merged, counts);
        }
        Ok(self.conclude_with(finish, Some(&merged)))
    }

    /// The program's thread arrives on its core.
    fn arrive(&mut self, merged: &mut Merged) {
        if let Some(mut driver) = self.driver(u64::MAX) {
            merged.cpu = driver.arrive();
        }
    }

    /// Executes and records interval number `number`. Returns it, and why the run is over if it is.
    fn record_interval(
        &mut self,
        number: usize,
        instructions: u64,
        watch: &mut dyn FnMut(Progress) -> Control,
    ) -> Result<(Task, Option<Finish>), JobsError> {
        let end = self.guest.instructions().saturating_add(instructions);
        let mut driver = self.driver(end).ok_or(JobsError::Options)?;
        let machine = driver.timing.begin_to_record();
        let finish = driver.run(watch, &mut Recording);
        let records = driver.timing.machine.core_mut().records.take().map(|records| *records).unwrap_or_default();
        if let Some(unfit) = records.unfit {
            return Err(unfit.into());
        }
        let system_call = self.options.spec.assumptions.system_call;
        Ok((Task { number, machine, records, system_call, is_last: finish.is_some() }, finish))
    }

    fn add(&mut self, merged: &mut Merged, mut counts: TaskCounts) {
        let Some(timing) = &mut self.timing else { return };
        counts.share_tables(&mut timing.known.tables);
        merged.add(counts, &mut self.regions, |cycle| timing.machine.core().ns_at(cycle));
    }
}

impl Timing {
    /// What the core does is recorded from now on. Returns a copy of the machine.
    fn begin_to_record(&mut self) -> Machine {
        let machine = self.machine.clone();
        self.machine.core_mut().records = Some(Box::default());
        machine
    }
}

impl<E: Engine> Driver<'_, E> {
    /// The first thread arrives on its core, which runs next. Returns its CPU, as the machine numbers it.
    fn arrive(&mut self) -> u32 {
        self.follow_cpus();
        if let Some(quantum) = self.next_quantum() {
            self.enter(quantum.index);
        }
        self.guest.cpu_number()
    }

    /// Notes it if the thread has started others.
    pub(crate) fn note_others(&mut self) {
        if self.guest.has_started_others() {
            self.is_unfit(Unfit::Starts);
        }
    }

    /// Notes why the run cannot be timed in intervals, if it is recorded for that.
    #[cold]
    pub(crate) fn is_unfit(&mut self, why: Unfit) {
        if let Some(records) = &mut self.timing.machine.core_mut().records {
            records.unfit.get_or_insert(why);
        }
    }

    /// Returns whether no more is recorded: there is enough, or the run does not fit.
    pub(crate) fn recording_is_over(&self) -> bool {
        let is_over = |records: &Records| records.unfit.is_some() || records.bytes() > Jobs::RECORDS;
        self.timing.machine.core().records.as_deref().is_some_and(is_over)
    }

    /// A region begins or ends. Returns whether that is only recorded.
    pub(crate) fn records_mark(&mut self, mark: impl FnOnce() -> Mark) -> bool {
        let records = self.timing.machine.core_mut().records.as_mut();
        records.map(|records| records.change(Change::Mark(Box::new(mark())))).is_some()
    }
}

/// Takes the first `count` elements off a list.
#[inline(always)]
fn first_of<'a, T>(list: &mut &'a [T], count: usize) -> &'a [T] {
    let (first, rest) = list.split_at(count);
    *list = rest;
    first
}
