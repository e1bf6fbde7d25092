//! Open files in snapshots: what is stored, and how they are reopened.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll};
use rustix::fs::{FileType, FlockOperation, MemfdFlags, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags};
use serde::{Deserialize, Serialize};

use super::SnapshotError;
use crate::fs::files::{Description, Files, OpenFile};
use crate::fs::vfs::handle::Handle;
use crate::fs::vfs::resolve::last_path_of;
use crate::fs::vfs::{Origin, View};
use crate::setup::Stdio;

/// Device and inode number.
type Identity = (u64, u64);

/// Flags of a description that are set again when it is reopened.
const KEPT_FLAGS: OFlags = OFlags::RWMODE
    .union(OFlags::APPEND)
    .union(OFlags::NONBLOCK)
    .union(OFlags::DSYNC)
    .union(OFlags::SYNC)
    .union(OFlags::DIRECT)
    .union(OFlags::PATH)
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOATIME);

/// An open file description.
#[derive(Serialize, Deserialize)]
struct SavedFile {
    origin: Origin,
    what: What,
    /// The host's open flags.
    flags: u32,
    /// The position, for files that have one.
    position: Option<u64>,
    /// The lock that it holds (`flock`): `Some(true)` for an exclusive one.
    lock: Option<bool>,
}

/// What a description refers to.
#[derive(Clone, Serialize, Deserialize)]
enum What {
    /// A standard stream: 0 to 2.
    Stream(u8),
    /// A host file or folder with a name.
    Named { path: Vec<u8>, mark: Mark },
    /// A file without a name, by its index in [`SavedFiles::unnamed`].
    Unnamed(u32),
    /// An end of a pipe, by its index in [`SavedFiles::pipes`].
    Pipe(u32),
    /// An end of a FIFO: its name, its contents by their place among [`SavedFiles::pipes`], and whether a reader
    /// sees that the last writer has closed it.
    Fifo { path: Vec<u8>, mark: Mark, pipe: u32, hung_up: bool },
    /// An event counter.
    Event { count: u64, semaphore: bool },
    /// An `epoll` instance ([`SavedFiles::sets`]).
    Epoll,
}

/// A descriptor that an `epoll` instance watches.
#[derive(Serialize, Deserialize)]
pub(super) struct Watched {
    /// The process and its descriptor.
    pub pid: u32,
    pub fd: i32,
    events: u32,
    data: u64,
}

/// Identifies a named file. The program's own changes do not matter: for files that it may write, only the identity is compared.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    identity: Identity,
    /// Length and time of the last change, for a regular file that is open only for reading.
    state: Option<(u64, i64, u64)>,
}

/// A pipe between guest processes.
#[derive(Serialize, Deserialize)]
struct SavedPipe {
    capacity: u64,
    /// Data written to it and not yet read.
    bytes: Vec<u8>,
}

/// All open files of a guest.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct SavedFiles {
    descriptions: Vec<SavedFile>,
    unnamed: Vec<Vec<u8>>,
    pipes: Vec<SavedPipe>,
    /// The description of each `epoll` instance, and what it watches.
    pub sets: Vec<(u32, Vec<Watched>)>,
}

/// Collects the open files of a guest.
#[derive(Default)]
pub(super) struct Collector {
    pub saved: SavedFiles,
    descriptions: BTreeMap<Description, u32>,
    unnamed: BTreeMap<Identity, u32>,
    pipes: BTreeMap<Identity, u32>,
    /// The description of each `epoll` instance, and what it watches: host descriptor, events, data.
    sets: Vec<(u32, Vec<(i32, u32, u64)>)>,
}

impl Collector {
    /// Returns the index of an open file's description.
    ///
    /// # Errors
    /// When a snapshot cannot store it.
    pub(super) fn place(&mut self, files: &Files, file: &OpenFile) -> Result<u32, SnapshotError> {
        if let Some(&place) = self.descriptions.get(&file.description) {
            return Ok(place);
        }
        let host = file.host.as_fd();
        let flags = rustix::fs::fcntl_getfl(host)?;
        let position = if flags.contains(OFlags::PATH) { None } else { rustix::fs::tell(host).ok() };
        let information = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", host.as_raw_fd()))?;
        let lock = lock_of(&information, host)?;
        let place = self.saved.descriptions.len() as u32;
        let what = self.what(files, file, flags, place, &information)?;
        let (origin, flags) = (file.origin.clone(), flags.bits());
        self.saved.descriptions.push(SavedFile { origin, what, flags, position, lock });
        self.descriptions.insert(file.description, place);
        Ok(place)
    }

    fn what(
        &mut self,
        files: &Files,
        file: &OpenFile,
        flags: OFlags,
        place: u32,
        information: &str,
    ) -> Result<What, SnapshotError> {
        let host = file.host.as_fd();
        let stat = rustix::fs::fstat(host)?;
        let identity = (stat.st_dev, stat.st_ino);
        if let Some(stream) = files.inherited.iter().position(|&stream| stream == identity) {
            return Ok(What::Stream(stream as u8));
        }
        let kind = FileType::from_raw_mode(stat.st_mode);
        let link = link_of(host);
        match link.as_str() {
            "anon_inode:[eventfd]" => return event(information),
            "anon_inode:[eventpoll]" => return self.epoll(place, information),
            _ => {}
        }
        match (kind, last_path_of(host)) {
            (FileType::RegularFile | FileType::Directory | FileType::CharacterDevice, Some((path, false))) => {
                let unchanging = kind == FileType::RegularFile && flags & OFlags::RWMODE == OFlags::RDONLY;
                let state =
                    unchanging.then_some((stat.st_size as u64, stat.st_mtime as i64, stat.st_mtime_nsec as u64));
                Ok(What::Named { path, mark: Mark { identity, state } })
            }
            (FileType::RegularFile, _) => self.unnamed(host, identity),
            (FileType::Fifo, None) => Ok(What::Pipe(self.pipe(host, identity)?)),
            (FileType::Fifo, Some((path, false))) => {
                let mark = Mark { identity, state: None };
                if flags.contains(OFlags::PATH) {
                    return Ok(What::Named { path, mark });
                }
                let pipe = self.pipe(host, identity)?;
                Ok(What::Fifo { path, mark, pipe, hung_up: is_hung_up(host)? })
            }
            _ => Err(SnapshotError::NotKept { what: describe(&link, kind) }),
        }
    }

    /// Adds a file without a name, with its contents.
    fn unnamed(&mut self, host: BorrowedFd<'_>, identity: Identity) -> Result<What, SnapshotError> {
        if let Some(&place) = self.unnamed.get(&identity) {
            return Ok(What::Unnamed(place));
        }
        let readable = reopen(host, OFlags::RDONLY)?;
        let mut contents = Vec::new();
        std::io::Read::read_to_end(&mut std::fs::File::from(readable), &mut contents)?;
        let place = self.saved.unnamed.len() as u32;
        self.saved.unnamed.push(contents);
        self.unnamed.insert(identity, place);
        Ok(What::Unnamed(place))
    }

    /// What is in a pipe is copied without taking it out.
    fn pipe(&mut self, host: BorrowedFd<'_>, identity: Identity) -> Result<u32, SnapshotError> {
        if let Some(&place) = self.pipes.get(&identity) {
            return Ok(place);
        }
        let capacity = rustix::pipe::fcntl_getpipe_size(host)?;
        let reader = reopen(host, OFlags::RDONLY | OFlags::NONBLOCK)?;
        let (copy, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        rustix::pipe::fcntl_setpipe_size(&writer, capacity)?;
        let mut bytes = Vec::new();
        match rustix::pipe::tee(&reader, &writer, capacity, SpliceFlags::NONBLOCK) {
            Ok(_) => {
                drop(writer);
                std::io::Read::read_to_end(&mut std::fs::File::from(copy), &mut bytes)?;
            }
            Err(Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        let place = self.saved.pipes.len() as u32;
        self.saved.pipes.push(SavedPipe { capacity: capacity as u64, bytes });
        self.pipes.insert(identity, place);
        Ok(place)
    }

    /// Notes what an `epoll` instance watches by host descriptors; [`Collector::finish`] finds the descriptors of processes.
    fn epoll(&mut self, place: u32, information: &str) -> Result<What, SnapshotError> {
        let watched = information.lines().filter(|line| line.starts_with("tfd:")).map(watched_of);
        self.sets.push((place, watched.collect::<Option<_>>().ok_or_else(unknown_information)?));
        Ok(What::Epoll)
    }

    /// Returns the open files. `descriptor` maps a host descriptor to a process and its descriptor.
    ///
    /// # Errors
    /// When an `epoll` instance cannot be kept.
    pub(super) fn finish(self, descriptor: impl Fn(i32) -> Option<(u32, i32)>) -> Result<SavedFiles, SnapshotError> {
        const EDGE_TRIGGERED: u32 = 1 << 31;
        let not_kept = |what: &str| SnapshotError::NotKept { what: what.to_owned() };
        let mut saved = self.saved;
        for (place, watched) in self.sets {
            let mut set = Vec::new();
            for (host, events, data) in watched {
                if events & EDGE_TRIGGERED != 0 {
                    return Err(not_kept("an edge-triggered descriptor of an epoll instance"));
                }
                let found = descriptor(host);
                let (pid, fd) = found.ok_or_else(|| not_kept("an epoll instance that watches a closed descriptor"))?;
                set.push(Watched { pid, fd, events, data });
            }
            saved.sets.push((place, set));
        }
        Ok(saved)
    }
}

fn unknown_information() -> SnapshotError {
    SnapshotError::NotKept { what: "an open file that the host's kernel does not describe".to_owned() }
}

/// Returns the value of a line of `/proc/self/fdinfo`.
fn value<'a>(information: &'a str, name: &str) -> Option<&'a str> {
    information.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Returns whether an open file holds a lock: `Some(true)` for an exclusive one.
fn lock_of(information: &str, host: BorrowedFd<'_>) -> Result<Option<bool>, SnapshotError> {
    let Some(lock) = value(information, "lock:") else { return Ok(None) };
    match (lock.contains("FLOCK"), lock.contains("WRITE")) {
        (true, exclusive) => Ok(Some(exclusive)),
        (false, _) => Err(SnapshotError::NotKept { what: format!("a record lock of {}", link_of(host)) }),
    }
}

fn event(information: &str) -> Result<What, SnapshotError> {
    let count = value(information, "eventfd-count:").and_then(|count| u64::from_str_radix(count, 16).ok());
    let semaphore = value(information, "eventfd-semaphore:").map(|semaphore| semaphore != "0");
    let (count, semaphore) = count.zip(semaphore).ok_or_else(unknown_information)?;
    Ok(What::Event { count, semaphore })
}

/// Parses a line about an `epoll` instance: host descriptor, events and data.
fn watched_of(line: &str) -> Option<(i32, u32, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1).copied());
    let events = u32::from_str_radix(after("events:")?, 16).ok()?;
    Some((after("tfd:")?.parse().ok()?, events, u64::from_str_radix(after("data:")?, 16).ok()?))
}

/// Returns whether a reader of a FIFO sees that the last writer has closed it.
fn is_hung_up(fifo: BorrowedFd<'_>) -> Result<bool, Errno> {
    let mut list = [PollFd::from_borrowed_fd(fifo, PollFlags::IN)];
    rustix::event::poll(&mut list, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    Ok(list[0].revents().contains(PollFlags::HUP))
}

/// Returns the host's name of an open file.
fn link_of(host: BorrowedFd<'_>) -> String {
    let link = rustix::fs::readlink(format!("/proc/self/fd/{}", host.as_raw_fd()), Vec::new());
    link.map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What an open file is, in words.
fn describe(link: &str, kind: FileType) -> String {
    match kind {
        FileType::Socket => "a socket".to_owned(),
        FileType::Fifo => format!("the FIFO {link}"),
        _ => format!("the open file {link}"),
    }
}

/// Reopens the file of a host descriptor with a new description.
fn reopen(host: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::open(format!("/proc/self/fd/{}", host.as_raw_fd()), flags | OFlags::CLOEXEC, Mode::empty())
}

/// The open files of a guest that is being restored.
pub(super) struct Opener(Vec<OpenFile>);

impl Opener {
    /// Opens the files of a snapshot.
    ///
    /// # Errors
    /// When a named file is missing, is a different one, has changed, or may no longer be opened by the program; the host's.
    pub(super) fn new(saved: SavedFiles, view: &View, stdio: &Stdio) -> Result<Opener, SnapshotError> {
        let unnamed = saved.unnamed.iter().map(|contents| unnamed_file(contents)).collect::<Result<Vec<_>, _>>()?;
        let pipes = saved.pipes.iter().map(pipe).collect::<Result<Vec<_>, _>>()?;
        let fifos = fifos(&saved, view)?;
        let mut open = Vec::new();
        for file in saved.descriptions {
            let flags = OFlags::from_bits_retain(file.flags) & KEPT_FLAGS;
            let damaged = || SnapshotError::Damaged;
            let host = match &file.what {
                What::Stream(stream) => {
                    let streams = [&stdio.input, &stdio.output, &stdio.error];
                    rustix::io::fcntl_dupfd_cloexec(streams.get(usize::from(*stream)).ok_or_else(damaged)?, 0)?
                }
                What::Named { path, mark } => named_file(view, path, mark, flags)?,
                What::Unnamed(place) => reopen(unnamed.get(*place as usize).ok_or_else(damaged)?.as_fd(), flags)?,
                What::Pipe(place) => {
                    let (reader, writer) = pipes.get(*place as usize).ok_or_else(damaged)?;
                    let end = if flags & OFlags::RWMODE == OFlags::RDONLY { reader } else { writer };
                    reopen(end.as_fd(), flags)?
                }
                What::Fifo { pipe, hung_up, .. } => {
                    let fifo = fifos.get(pipe).ok_or_else(damaged)?.as_fd();
                    let end = reopen(fifo, flags | OFlags::NONBLOCK)?;
                    if *hung_up {
                        drop(reopen(fifo, OFlags::WRONLY | OFlags::NONBLOCK)?);
                    }
                    rustix::fs::fcntl_setfl(&end, flags)?;
                    end
                }
                What::Event { count, semaphore } => event_counter(*count, *semaphore, flags)?,
                What::Epoll => epoll::create(epoll::CreateFlags::CLOEXEC)?,
            };
            if let Some(exclusive) = file.lock {
                lock(&host, exclusive, &file.what)?;
            }
            if let (Some(position), false) = (file.position, matches!(file.what, What::Stream(_))) {
                rustix::fs::seek(&host, SeekFrom::Start(position))?;
            }
            open.push(OpenFile::new(host, file.origin));
        }
        Ok(Opener(open))
    }

    /// Returns a handle of the description with this index.
    ///
    /// # Errors
    /// When it does not exist; the host's.
    pub(super) fn file(&self, place: u32) -> Result<OpenFile, SnapshotError> {
        Ok(self.0.get(place as usize).ok_or(SnapshotError::Damaged)?.try_clone()?)
    }
}

impl Watched {
    /// Adds a descriptor to the `epoll` instance `set`.
    ///
    /// # Errors
    /// The host's.
    pub(super) fn add(&self, set: BorrowedFd<'_>, file: BorrowedFd<'_>) -> Result<(), Errno> {
        let (data, events) = (epoll::EventData::new_u64(self.data), epoll::EventFlags::from_bits_retain(self.events));
        epoll::add(set, file, data, events)
    }
}

/// The FIFOs of a snapshot with their contents, by their place among its pipes: open for both, so that neither end waits.
fn fifos(saved: &SavedFiles, view: &View) -> Result<BTreeMap<u32, OwnedFd>, SnapshotError> {
    let mut fifos = BTreeMap::new();
    for file in &saved.descriptions {
        let What::Fifo { path, mark, pipe, .. } = &file.what else { continue };
        if fifos.contains_key(pipe) {
            continue;
        }
        let contents = saved.pipes.get(*pipe as usize).ok_or(SnapshotError::Damaged)?;
        let fifo = named_file(view, path, mark, OFlags::RDWR | OFlags::NONBLOCK)?;
        contents.fill(&fifo)?;
        fifos.insert(*pipe, fifo);
    }
    Ok(fifos)
}

fn event_counter(count: u64, semaphore: bool, flags: OFlags) -> Result<OwnedFd, SnapshotError> {
    let mut kind = EventfdFlags::CLOEXEC;
    kind.set(EventfdFlags::SEMAPHORE, semaphore);
    // A count that no counter can have is refused, not waited for.
    let counter = rustix::event::eventfd(0, kind | EventfdFlags::NONBLOCK)?;
    if count > 0 {
        rustix::io::write(&counter, &count.to_ne_bytes())?;
    }
    rustix::fs::fcntl_setfl(&counter, flags & OFlags::NONBLOCK)?;
    Ok(counter)
}

/// Takes the lock that a file had.
fn lock(host: &OwnedFd, exclusive: bool, what: &What) -> Result<(), SnapshotError> {
    let operation =
        if exclusive { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::NonBlockingLockShared };
    match (rustix::fs::flock(host, operation), what) {
        (Err(Errno::AGAIN), What::Named { path, .. }) => {
            let path = PathBuf::from(OsStr::from_bytes(path));
            Err(SnapshotError::File { path, what: "is locked by another program".to_owned() })
        }
        (result, _) => Ok(result?),
    }
}

fn unnamed_file(contents: &[u8]) -> Result<OwnedFd, SnapshotError> {
    let mut file = std::fs::File::from(rustix::fs::memfd_create("restored", MemfdFlags::CLOEXEC)?);
    file.write_all(contents)?;
    Ok(file.into())
}

fn pipe(saved: &SavedPipe) -> Result<(OwnedFd, OwnedFd), SnapshotError> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    saved.fill(&writer)?;
    Ok((reader, writer))
}

impl SavedPipe {
    /// Writes the contents into a new pipe that is open for writing without blocking.
    fn fill(&self, writer: &OwnedFd) -> Result<(), SnapshotError> {
        rustix::pipe::fcntl_setpipe_size(writer, self.capacity as usize)?;
        let mut rest = &self.bytes[..];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(writer, rest)?..];
        }
        Ok(())
    }
}

/// Opens a named file, which must be the one that was open.
fn named_file(view: &View, path: &[u8], mark: &Mark, flags: OFlags) -> Result<OwnedFd, SnapshotError> {
    let policy = &view.policy;
    let refused = |what: String| SnapshotError::File { path: PathBuf::from(OsStr::from_bytes(path)), what };
    let opened = policy.check_open(path, flags).and_then(|()| Handle::new(policy, path)?.open(policy, flags));
    let host = opened.map_err(|error| refused(format!("cannot be opened again: {}", std::io::Error::from(error))))?;
    let stat = rustix::fs::fstat(&host)?;
    if (stat.st_dev, stat.st_ino) != mark.identity {
        return Err(refused("is another file than the one that was open".to_owned()));
    }
    let state = (stat.st_size as u64, stat.st_mtime as i64, stat.st_mtime_nsec as u64);
    if mark.state.is_some_and(|before| before != state) {
        return Err(refused("has changed since the snapshot".to_owned()));
    }
    Ok(host)
}
