//! The files of a folder with intervals: their names, and how they are written and read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use fxscope_checkpoint::parcel::{self, Label, ParcelError};
use fxscope_sim::{Task, TaskCounts};

use super::SpoolError;

/// The largest file that is read, bytes.
const MOST: u64 = 4 << 30;

/// The file of a run.
pub(super) const RUN: &str = "run";

/// What parcels hold.
const A_RUN: &str = "a run";
const AN_INTERVAL: &str = "an interval";
const COUNTS: &str = "counts of an interval";

/// What a file is of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Interval,
    Claimed,
    Counts,
    Failed,
}

impl Kind {
    const ALL: [(Kind, &str); 4] = [
        (Kind::Interval, "interval-"),
        (Kind::Claimed, "claimed-"),
        (Kind::Counts, "counts-"),
        (Kind::Failed, "failed-"),
    ];

    fn prefix(self) -> &'static str {
        Kind::ALL[self as usize].1
    }

    /// Returns the path of such a file.
    pub(super) fn path(self, folder: &Path, number: usize) -> PathBuf {
        folder.join(format!("{}{number:06}", self.prefix()))
    }

    /// Returns what the file with this name is.
    fn of(name: &str) -> Option<(Kind, usize)> {
        Kind::ALL.iter().find_map(|(kind, prefix)| Some((*kind, name.strip_prefix(prefix)?.parse().ok()?)))
    }
}

/// Returns who writes parcels: only the same one can read them.
fn tool() -> String {
    format!("fxscope {} (format {})", env!("CARGO_PKG_VERSION"), fxscope_sim::snapshot::VERSION)
}

/// Returns an error of the host at a path.
pub(super) fn host(path: &Path) -> impl Fn(io::Error) -> SpoolError {
    move |source| SpoolError::Host { path: path.display().to_string(), source }
}

fn broken(path: &Path) -> impl Fn(ParcelError) -> SpoolError {
    move |why| SpoolError::Parcel { path: path.display().to_string(), why }
}

/// Returns the files of intervals in a folder.
pub(super) fn list(folder: &Path) -> io::Result<BTreeMap<Kind, Vec<usize>>> {
    let mut found: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        if let Some((kind, number)) = entry?.file_name().to_str().and_then(Kind::of) {
            found.entry(kind).or_default().push(number);
        }
    }
    found.values_mut().for_each(|numbers| numbers.sort_unstable());
    Ok(found)
}

/// Removes all files of intervals from a folder, and drafts.
pub(super) fn clear(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let is_ours = |name: &str| Kind::of(name).is_some() || name.starts_with(DRAFT);
    for entry in entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_ours)) {
        let _ = fs::remove_file(entry.path());
    }
}

/// How drafts begin.
const DRAFT: &str = "draft-";

/// Writes a file whole or not at all.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let (draft, mut file) = draft(folder)?;
    let written = file.write_all(bytes).and_then(|()| fs::rename(&draft, path));
    written.inspect_err(|_| _ = fs::remove_file(&draft))
}

/// Makes a new file that no process of any host has.
fn draft(folder: &Path) -> io::Result<(PathBuf, File)> {
    let mut number = std::process::id();
    loop {
        let path = folder.join(format!("{DRAFT}{number}"));
        match File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number = number.wrapping_add(1),
            made => return Ok((path, made?)),
        }
    }
}

/// Reads a file; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, SpoolError> {
    match fxscope_host::read(path, MOST).map_err(io::Error::from) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(host(path)(error)),
    }
}

/// Makes the file of a run, unless there is one.
pub(super) fn create_run(folder: &Path) -> Result<File, SpoolError> {
    let path = folder.join(RUN);
    let label = Label { what: A_RUN.to_owned(), tool: tool(), number: 0, answers: None };
    let bytes = parcel::pack(&label, &[]).map_err(host(&path))?;
    let mut file = File::create_new(&path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => SpoolError::InUse(folder.display().to_string()),
        _ => host(&path)(error),
    })?;
    file.write_all(&bytes).map_err(host(&path))?;
    Ok(file)
}

/// Checks that a run's file is of this version. Returns whether there is one.
pub(super) fn check_run(folder: &Path) -> Result<bool, SpoolError> {
    let path = folder.join(RUN);
    match read(&path)? {
        None => Ok(false),
        Some(bytes) => match parcel::unpack(&bytes, A_RUN, &tool()) {
            Ok(_) => Ok(true),
            // It is being written.
            Err(ParcelError::Damaged(_)) => Ok(false),
            Err(why) => Err(broken(&path)(why)),
        },
    }
}

/// Returns the file of an interval.
pub(super) fn interval_file(task: &Task) -> io::Result<Vec<u8>> {
    let label = Label { what: AN_INTERVAL.to_owned(), tool: tool(), number: task.number() as u64, answers: None };
    parcel::pack(&label, &task.to_bytes().map_err(io::Error::other)?)
}

/// Returns the interval of a file.
pub(super) fn interval_of(path: &Path, file: &[u8]) -> Result<Task, SpoolError> {
    let (_, contents) = parcel::unpack(file, AN_INTERVAL, &tool()).map_err(broken(path))?;
    Task::from_bytes(&contents).map_err(|_| unreadable(path))
}

/// Returns the file with what an interval has counted. `file` is that of the interval.
pub(super) fn counts_file(counts: &TaskCounts, file: &[u8]) -> io::Result<Vec<u8>> {
    let answers = Some(parcel::digest(file));
    let label = Label { what: COUNTS.to_owned(), tool: tool(), number: counts.number() as u64, answers };
    parcel::pack(&label, &counts.to_bytes().map_err(io::Error::other)?)
}

/// Returns what the interval with this digest has counted; `None`: it is that of another one.
pub(super) fn counts_of(path: &Path, file: &[u8], digest: &[u8; 32]) -> Result<Option<TaskCounts>, SpoolError> {
    let (label, contents) = parcel::unpack(file, COUNTS, &tool()).map_err(broken(path))?;
    if label.answers.as_ref() != Some(digest) {
        return Ok(None);
    }
    TaskCounts::from_bytes(&contents).map(Some).map_err(|_| unreadable(path))
}

fn unreadable(path: &Path) -> SpoolError {
    broken(path)(ParcelError::Damaged("it cannot be read"))
}

/// Times the interval of a file, and writes what it has counted to another one, whole or not at all.
///
/// # Errors
/// When the first one is not an interval of this version, or the other one cannot be written.
pub fn time_file(interval: &Path, counts: &Path) -> Result<(), SpoolError> {
    let file = fxscope_host::read(interval, MOST).map_err(|error| host(interval)(error.into()))?;
    let timed = interval_of(interval, &file)?.time();
    counts_file(&timed, &file).and_then(|bytes| write(counts, &bytes)).map_err(host(counts))
}

/// Shows that the process of a file lives.
pub(super) fn beat(file: &File) {
    // Who does not see it takes the process to be dead, and times the interval again.
    let _ = file.set_modified(SystemTime::now());
}

/// What is known of the beats of a file.
#[derive(Debug)]
pub(super) struct Pulse {
    last: Option<SystemTime>,
    since: Instant,
}

impl Pulse {
    pub(super) fn new() -> Pulse {
        Pulse { last: None, since: Instant::now() }
    }

    /// Looks at the file. Returns for how long it has not changed; `None`: it does not exist.
    pub(super) fn look(&mut self, path: &Path) -> Option<std::time::Duration> {
        // Of a file that has been opened, network file systems know the newest state.
        let modified = File::open(path).and_then(|file| file.metadata()?.modified()).ok()?;
        if self.last.replace(modified) != Some(modified) {
            self.since = Instant::now();
        }
        Some(self.since.elapsed())
    }
}
