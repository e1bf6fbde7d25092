//! Runs of scenarios: one in the foreground, or several at a time in the background.

use std::fs::{File, OpenOptions};
use std::sync::{Arc, OnceLock};

use fxscope_linux::Stdio;
use fxscope_machine::Spec;
use fxscope_record::Run;
use fxscope_session::{Control, Prepared, Scenario, Session};
use rayon::prelude::*;

use crate::{Error, Progress};

/// Makes the runs of all laboratories.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    jobs: usize,
    progress: &'a dyn Progress,
}

/// A run made in the background.
pub struct CapturedRun {
    /// Its counts.
    pub run: Run,
    /// Its machine.
    pub spec: Arc<Spec>,
    /// The last line of the captured output; `None` without output.
    pub last_line: Option<String>,
}

/// What is captured of a program in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// Standard output and standard error together.
    OutputAndError,
    /// Standard error; standard output is discarded.
    Error,
}

impl<'a> Runner<'a> {
    /// Returns a runner that makes `jobs` runs of a batch at a time; `None`: as many as the host has cores.
    #[must_use]
    pub fn new(jobs: Option<usize>, progress: &'a dyn Progress) -> Runner<'a> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Runner { jobs: jobs.unwrap_or_else(cores), progress }
    }

    /// Returns the receiver of its progress.
    #[must_use]
    pub fn progress(&self) -> &'a dyn Progress {
        self.progress
    }

    /// Makes a run in the foreground, with these standard streams; `None`: those of this process.
    ///
    /// # Errors
    /// If the program cannot start.
    pub fn run(&self, prepared: Prepared, stdio: Option<Stdio>) -> Result<Run, Error> {
        let run =
            prepared.contained(stdio, |session| simulate(self.progress, session, |session, watch| session.run(watch)));
        Ok(run?)
    }

    /// Calls `each` for all `items`, several at a time, in their order; results are in that order, too. `name` is the name
    /// of an item for [`Progress`].
    ///
    /// # Errors
    /// [`Error::Stopped`] if a stop was requested before all were done, and if the host cannot start threads.
    pub fn batch<T: Sync, R: Send>(
        &self,
        items: &[T],
        name: impl Fn(&T) -> String + Sync,
        each: impl Fn(&T) -> R + Sync,
    ) -> Result<Vec<R>, Error> {
        let pool = self.threads()?;
        self.progress.batch_started(items.len());
        let one = |item: &T| {
            if self.progress.stop_requested() {
                return None;
            }
            let name = name(item);
            self.progress.run_started(&name);
            let result = each(item);
            self.progress.run_ended(&name);
            Some(result)
        };
        // Items are taken one by one, so that no thread is left with a long share of its own.
        let results: Option<Vec<R>> = pool.install(|| items.par_iter().with_max_len(1).map(one).collect());
        self.progress.batch_ended();
        results.filter(|_| !self.progress.stop_requested()).ok_or(Error::Stopped)
    }

    /// Calls `each` as [`Runner::batch`] does, and then `read` with what it has returned, while the next items are under way: no core waits
    /// for results to be read.
    ///
    /// # Errors
    /// As [`Runner::batch`].
    pub fn batch_and_read<T: Sync, M: Send, R: Send + Sync>(
        &self,
        items: &[T],
        name: impl Fn(&T) -> String + Sync,
        each: impl Fn(&T) -> M + Sync,
        read: impl Fn(&T, M) -> R + Sync,
    ) -> Result<Vec<R>, Error> {
        let results: Vec<OnceLock<R>> = items.iter().map(|_| OnceLock::new()).collect();
        let places: Vec<(&T, &OnceLock<R>)> = items.iter().zip(&results).collect();
        let read = &read;
        self.threads()?.in_place_scope(|readers| {
            self.batch(
                &places,
                |(item, _)| name(item),
                |&(item, result)| {
                    let made = each(item);
                    readers.spawn(move |_| {
                        let _ = result.set(read(item, made));
                    });
                },
            )
        })?;
        results.into_iter().map(|result| result.into_inner().ok_or(Error::Stopped)).collect()
    }

    /// Starts as many threads as runs are made at a time.
    fn threads(&self) -> Result<rayon::ThreadPool, Error> {
        Ok(rayon::ThreadPoolBuilder::new().num_threads(self.jobs).build().map_err(|e| e.to_string())?)
    }

    /// Makes a run in the background: without input, its output captured.
    ///
    /// # Errors
    /// If the scenario cannot run.
    pub fn run_captured(&self, scenario: &Scenario, capture: Capture) -> Result<CapturedRun, Error> {
        let prepared = scenario.prepare()?;
        let spec = Arc::clone(prepared.spec());
        let captured = tempfile::NamedTempFile::new().map_err(|e| format!("cannot make a temporary file: {e}"))?;
        let output = match capture {
            Capture::OutputAndError => captured.reopen()?.into(),
            Capture::Error => OpenOptions::new().write(true).open("/dev/null")?.into(),
        };
        let stdio = Stdio { input: File::open("/dev/null")?.into(), output, error: captured.reopen()?.into() };
        let control = |_| if self.progress.stop_requested() { Control::Stop } else { Control::Continue };
        let run = prepared.contained(Some(stdio), |session| session.run(&mut { control }))?;
        let text = std::fs::read_to_string(captured.path()).unwrap_or_default();
        Ok(CapturedRun { run, spec, last_line: text.lines().last().map(str::to_owned) })
    }
}

/// Returns standard streams without input whose output is discarded.
///
/// # Errors
/// If the host has no `/dev/null`.
pub(crate) fn nowhere() -> std::io::Result<Stdio> {
    let nothing = || OpenOptions::new().read(true).write(true).open("/dev/null");
    Ok(Stdio { input: nothing()?.into(), output: nothing()?.into(), error: nothing()?.into() })
}

/// Runs a session in the foreground with `run`, one of the ways to run a [`Session`].
pub fn simulate<R>(
    progress: &dyn Progress,
    mut session: Session,
    run: impl FnOnce(Session, &mut dyn FnMut(fxscope_session::Progress) -> Control) -> R,
) -> R {
    progress.foreground_started(&mut session);
    let mut watch = |how_far: fxscope_session::Progress| {
        progress.foreground_at(&how_far);
        if progress.stop_requested() { Control::Stop } else { Control::Continue }
    };
    let run = run(session, &mut watch);
    progress.foreground_ended();
    run
}
