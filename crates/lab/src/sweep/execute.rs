//! The runs of a sweep: made once, kept in its folder, failures too.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use fxscope_host::Helper;
use fxscope_machine::settings::integer;
use fxscope_record::{Finish, Run};
use serde::{Deserialize, Serialize};

use super::command::{Digests, Words};
use super::counted::Counted;
use super::design::Point;
use super::plan::Plan;
use crate::cache::{load, store};
use crate::{Cache, Error, Runner};

/// The folder of the records, in that of the sweep.
const RECORDS: &str = "records";

/// Where a sweep is made and kept.
#[derive(Clone, Debug)]
pub struct Place {
    /// The `fxscope` executable.
    pub simulator: PathBuf,
    /// The folder that relative paths of the plan begin in.
    pub plan: PathBuf,
    /// The folder of the results.
    pub results: PathBuf,
}

impl Place {
    /// Returns where the sweep of the plan in a file is made and kept: by this process's own executable, in the folder `results` or, if that
    /// is not given, one that is named like the plan.
    ///
    /// # Errors
    /// If the folder needs a name, or the executable is not known.
    pub fn of(plan: &Path, results: Option<&Path>) -> Result<Place, Error> {
        let simulator = std::env::current_exe().map_err(|e| format!("cannot find the executable of fxscope: {e}"))?;
        let results = match results {
            Some(folder) => folder.to_owned(),
            None if plan.extension().is_some() => plan.with_extension(""),
            None => return Err(format!("{}: name the folder of the results with --output", plan.display()).into()),
        };
        Ok(Place { simulator, plan: Plan::folder(plan), results })
    }
}

/// A run of a sweep.
#[derive(Clone, Debug)]
pub struct Made {
    /// The value of each factor.
    pub point: Point,
    /// Its command line.
    pub words: Words,
    /// Its record, in the folder of the results; not there if the run failed.
    pub record: PathBuf,
    /// What it counted, or why there are no counts.
    pub outcome: Result<Counted, String>,
}

/// Why a run has no counts, as its file has it.
#[derive(Serialize, Deserialize)]
struct Failed {
    message: String,
}

/// A run that may have been made before.
struct Task<'a> {
    point: &'a Point,
    words: Words,
    record: PathBuf,
}

/// The process of a run, which has ended.
struct Ended {
    helper: Helper,
    status: ExitStatus,
}

/// A run that the plan wants.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The value of each factor.
    pub point: Point,
    /// Its command line.
    pub words: Words,
    /// Its record, in the folder of the results.
    pub record: PathBuf,
    /// Whether its counts, or why there are none, are kept already.
    pub is_kept: bool,
}

/// Returns the runs of a plan. Changes nothing.
///
/// # Errors
/// If the plan's design is wrong, or a file that a run needs cannot be read.
pub fn wanted(plan: &Plan, place: &Place) -> Result<Vec<Wanted>, Error> {
    let points = plan.points()?;
    let cache = Cache::new(None, &place.simulator)?;
    let wanted = |task: Task<'_>| {
        let is_kept = task.kept(false).is_some();
        Wanted { point: task.point.clone(), record: task.name_of_record(), words: task.words, is_kept }
    };
    Ok(tasks(plan, place, &points, &cache)?.into_iter().map(wanted).collect())
}

/// Returns the runs for the points of a plan's design.
fn tasks<'a>(plan: &Plan, place: &Place, points: &'a [Point], cache: &Cache) -> Result<Vec<Task<'a>>, Error> {
    let digests = Digests::default();
    let task = |point: &'a Point| {
        let words = plan.run.words(point)?;
        let name = cache.name(&words.key(&place.plan, &digests)?) + ".fxr";
        Ok(Task { point, words, record: place.results.join(RECORDS).join(name) })
    };
    points.iter().map(task).collect()
}

/// Makes the runs of a plan that are not in its folder yet. `again`: also those that failed before.
///
/// # Errors
/// [`Error::Stopped`], if the plan's design is wrong, and if the folder cannot be written. A run that fails is a result.
pub(super) fn execute(plan: &Plan, place: &Place, again: bool, runner: Runner<'_>) -> Result<Vec<Made>, Error> {
    let points = plan.points()?;
    create_records(place)?;
    let cache = Cache::new(None, &place.simulator)?;
    let tasks = tasks(plan, place, &points, &cache)?;
    let mut outcomes: Vec<_> = tasks.iter().map(|task| task.kept(again)).collect();
    let open: Vec<&Task> =
        tasks.iter().zip(&outcomes).filter(|(_, kept)| kept.is_none()).map(|(task, _)| task).collect();
    let kept = tasks.len() - open.len();
    if kept > 0 {
        let what = if open.is_empty() { "nothing is left to run" } else { "the others run now" };
        runner.progress().message(&format!("{kept} of {} runs were made before; {what}", tasks.len()));
    }
    let stopped = || runner.progress().stop_requested();
    let run = |task: &&Task<'_>| task.run(place, &stopped);
    let read = |task: &&Task<'_>, ended: Result<Ended, Error>| task.outcome(ended?);
    let mut made = runner.batch_and_read(&open, |task| task.name(), run, read)?.into_iter();
    for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_none()) {
        *outcome = made.next().transpose()?;
    }
    let results = tasks.into_iter().zip(outcomes.into_iter().flatten());
    Ok(results.map(|(task, outcome)| task.with(outcome)).collect())
}

/// Makes the run of a plan whose record has this name, for a host that has the plan in the folder `elsewhere`: a worker of a cluster
/// does, which has files that the plan names by relative paths in a folder of its own. Only the record, or why there is none, is written.
///
/// # Errors
/// [`Error::Stopped`], if the plan has no such run, and if the folder cannot be written. A run that fails is a result.
pub(super) fn execute_one(
    plan: &Plan,
    place: &Place,
    record: &str,
    elsewhere: &Path,
    runner: Runner<'_>,
) -> Result<Result<(), String>, Error> {
    let points = plan.points()?;
    create_records(place)?;
    let cache = Cache::new(None, &place.simulator)?;
    let mut tasks = tasks(plan, place, &points, &cache)?.into_iter();
    let task = tasks.find(|task| task.record.file_name().is_some_and(|name| name == record)).ok_or_else(|| {
        format!(
            "{record}: the plan has no run with this record here; --dry-run --format json lists them. Another version of fxscope, or other \
             files, give a record another name"
        )
    })?;
    let ended = task.run(place, &|| runner.progress().stop_requested())?;
    if let Err(message) = task.outcome(ended)? {
        return Ok(Err(message));
    }
    task.tell_of(&place.plan, elsewhere)?;
    Ok(Ok(()))
}

/// Creates the folder of the records.
fn create_records(place: &Place) -> Result<(), Error> {
    let records = place.results.join(RECORDS);
    std::fs::create_dir_all(&records).map_err(|e| {
        format!("{}: cannot be created ({e}); name another folder with --output", records.display()).into()
    })
}

impl Task<'_> {
    /// Returns its name for people: the value of each factor.
    fn name(&self) -> String {
        self.point.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }

    /// Returns its record's path in the folder of the results.
    fn name_of_record(&self) -> PathBuf {
        Path::new(RECORDS).join(self.record.file_name().unwrap_or_default())
    }

    /// Returns the file that says why it failed.
    fn failure(&self) -> PathBuf {
        self.record.with_extension("failed.json")
    }

    /// Returns what was kept of it: counts of a record whose code has not changed since, or a failure. The record of a run that
    /// failed is there, too, for those who want to look at it.
    fn kept(&self, again: bool) -> Option<Result<Counted, String>> {
        if let Some(Failed { message }) = load(&self.failure()).filter(|_| !again) {
            return Some(Err(message));
        }
        let run = last_run(&self.record).ok().filter(|run| has_counts(run) && is_current(run))?;
        Some(Ok(Counted::of(&run)))
    }

    /// Makes the run.
    fn run(&self, place: &Place, stopped: &dyn Fn() -> bool) -> Result<Ended, Error> {
        for old in [&self.record, &self.failure()] {
            if old.exists() {
                std::fs::remove_file(old)?;
            }
        }
        let mut helper = self.start(place)?;
        let status = helper.wait_unless(stopped)?.ok_or(Error::Stopped)?;
        if stopped() { Err(Error::Stopped) } else { Ok(Ended { helper, status }) }
    }

    /// Returns what it has counted, or why there are no counts. A failure that would come again is kept.
    fn outcome(&self, Ended { mut helper, status }: Ended) -> Result<Result<Counted, String>, Error> {
        let run = last_run(&self.record);
        let Err(message) = judged(status, run.as_ref().ok(), || helper.last_words()) else {
            return Ok(run.map(|run| Counted::of(&run)));
        };
        // A signal from outside, such as that of a host without memory, says nothing about the next time.
        if status.signal().is_none() {
            store(&self.failure(), &Failed { message: message.clone() })?;
        }
        Ok(Err(message))
    }

    /// Starts the run in a process of its own: one that needs too much memory ends alone, and its variables are the plan's.
    fn start(&self, place: &Place) -> Result<Helper, Error> {
        let absolute = |path: &Path| std::path::absolute(path);
        let mut command = Command::new(absolute(&place.simulator)?);
        command.args(["run", "--quiet", "-o"]).arg(absolute(&self.record)?);
        command.args(&self.words.options).arg("--").args(&self.words.command);
        command.env_clear().current_dir(&place.plan).stdin(Stdio::null()).stdout(Stdio::null());
        Helper::start_apart(command).map_err(|e| format!("{}: {e}", place.simulator.display()).into())
    }

    /// Has the record name the program and the inputs, if the plan names them by relative paths, as if the plan were in another folder.
    fn tell_of(&self, folder: &Path, elsewhere: &Path) -> Result<(), Error> {
        let named = self.words.inputs.iter().map(PathBuf::as_path).chain([Path::new(&self.words.command[0])]);
        let moved = named.filter(|file| file.is_relative()).map(|file| {
            let here = std::fs::canonicalize(folder.join(file))?;
            Ok((here, cleaned(&elsewhere.join(file))))
        });
        let moved = moved.collect::<std::io::Result<BTreeMap<PathBuf, PathBuf>>>()?;
        let mut runs = fxscope_record::load(&self.record).map_err(|e| e.to_string())?;
        for file in runs.iter_mut().flat_map(|run| &mut run.files) {
            if let Some(there) = moved.get(Path::new(&file.path)) {
                file.path = there.to_string_lossy().into_owned();
            }
        }
        std::fs::remove_file(&self.record)?;
        Ok(fxscope_record::append_all(&self.record, &runs).map_err(|e| e.to_string())?)
    }

    fn with(self, outcome: Result<Counted, String>) -> Made {
        Made { point: self.point.clone(), record: self.name_of_record(), words: self.words, outcome }
    }
}

/// Returns an absolute path without `.` and `..`, of a file that need not exist on this host.
fn cleaned(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                cleaned.pop();
            }
            part => cleaned.push(part),
        }
    }
    cleaned
}

/// Returns the run of a record.
fn last_run(record: &Path) -> Result<Run, String> {
    let runs = fxscope_record::load(record).map_err(|e| e.to_string())?;
    runs.into_iter().next_back().ok_or_else(|| format!("{}: it has no run", record.display()))
}

/// Returns whether all files with code of a run are as they were.
fn is_current(run: &Run) -> bool {
    let is_same = |file: &fxscope_record::CodeFile| {
        let found = std::fs::File::open(&file.path).and_then(fxscope_record::digest_of);
        file.digest.is_empty()
            || !Path::new(&file.path).is_absolute()
            || found.is_ok_and(|digest| digest == file.digest)
    };
    run.files.iter().all(is_same)
}

/// Returns whether a run ended as it should.
fn has_counts(run: &Run) -> bool {
    matches!(run.finish, Finish::Exited(0) | Finish::Limit)
}

/// Returns why a run does not count, if so. Only then is it asked for what the program has `said`: that may wait for the last of it.
fn judged(status: ExitStatus, run: Option<&Run>, said: impl FnOnce() -> String) -> Result<(), String> {
    match run {
        Some(run) if has_counts(run) => Ok(()),
        Some(Run { finish: Finish::Exited(code), .. }) => {
            let said = said();
            let last = said.lines().rfind(|line| !line.is_empty()).map_or_else(String::new, |line| format!(": {line}"));
            Err(format!("the program ended with exit status {code}{last}"))
        }
        _ => Err(reason(&said()).unwrap_or_else(|| format!("fxscope run ended with {status}"))),
    }
}

/// Returns what fxscope says, or its reader of the command line.
fn reason(said: &str) -> Option<String> {
    let found = |line: &str| line.strip_prefix("fxscope: ").or_else(|| line.strip_prefix("error: ")).map(str::to_owned);
    said.lines().rev().find_map(found)
}

/// Returns how many runs of a plan are made at a time: as many as `wanted`, or as the host has cores. If no more fit the host's free memory,
/// there are fewer, and a sentence says so.
#[must_use]
pub fn jobs(plan: &Plan, wanted: Option<usize>) -> (usize, Option<String>) {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = wanted.unwrap_or_else(cores);
    let free = fxscope_hostinfo::memory::available(Path::new("/"));
    let Some((each, free)) = plan.memory().and_then(|text| integer(&text)).zip(free) else { return (wanted, None) };
    let jobs = jobs_within(wanted, each, free);
    let fewer = (jobs < wanted).then(|| {
        format!("{jobs} runs at a time: no more fit the host's free memory if each takes what the plan allows it")
    });
    (jobs, fewer)
}

/// Returns how many of `jobs` runs fit the host's free memory at a time if each may take `each` bytes.
#[must_use]
pub fn jobs_within(jobs: usize, each: u64, free: u64) -> usize {
    let fit = usize::try_from(free / each.max(1)).unwrap_or(usize::MAX);
    jobs.min(fit.max(1))
}
