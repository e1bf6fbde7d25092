//! Open files in snapshots: what is stored, and how they are reopened.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::rc::Rc;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll};
use rustix::fs::{FileType, OFlags, SeekFrom};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags};
use serde::{Deserialize, Serialize};

use super::contents::{Written, reopen};
use super::processes::place_of;
use super::sockets::{Pair, Pairs, SavedPair};
use super::{SnapshotError, folder};
use crate::fs::files::{Description, Files, OpenFile};
use crate::fs::objects::Object;
use crate::fs::pty::{Pty, Ptys, SavedPty};
use crate::fs::vfs::access::is_stateless_device;
use crate::fs::vfs::handle::Handle;
use crate::fs::vfs::resolve::last_path_of;
use crate::fs::vfs::{Origin, View};
use crate::ipc::channels::Channel;
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
    /// A folder in `/dev/shm`, by its path there.
    SharedFolder(Vec<u8>),
    /// An event counter with this value.
    Counter { value: u64, semaphore: bool },
    /// An `epoll` instance, to which its members are added later.
    Epoll,
    /// An object that the simulator implements: a counter that shows whether it is readable.
    Level,
    /// An end of a pseudoterminal, by its index in [`SavedFiles::ptys`].
    Pty { place: u32, is_master: bool },
    /// A socket of the run's own network, by the index of its pair of host sockets.
    Socket { pair: u32, side: u8 },
}

/// Identifies a named file. The device number is left out: file systems of a network have other ones on each host.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    inode: u64,
    /// Length and time of the last change, for a regular file that no process of the guest can write.
    state: Option<(u64, i64, u64)>,
    /// What is in a regular file that is open for writing.
    written: Option<Written>,
}

/// A pipe between guest processes.
#[derive(Serialize, Deserialize)]
struct SavedPipe {
    /// Its name in `/dev/shm`, if it has one.
    path: Option<Vec<u8>>,
    /// A reader finds that the last writer has closed it. Readers of a named pipe may also be waiting for the first one.
    hung_up: bool,
    capacity: u64,
    /// Data written to it and not yet read.
    bytes: Vec<u8>,
}

/// All open files of a guest.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct SavedFiles {
    descriptions: Vec<SavedFile>,
    /// The lengths of files without a name, whose contents are kept apart.
    pub(super) unnamed: Vec<u64>,
    pipes: Vec<SavedPipe>,
    pub(super) ptys: Vec<SavedPty>,
    pub(super) pairs: Vec<SavedPair>,
}

/// Collects the open files of a guest.
#[derive(Default)]
pub(super) struct Collector {
    pub saved: SavedFiles,
    /// The files without a name, in order, open for reading.
    pub contents: Vec<OwnedFd>,
    /// Whether files that the guest may write are marked with what is in them.
    with_written: bool,
    descriptions: BTreeMap<Description, u32>,
    unnamed: BTreeMap<Identity, u32>,
    pipes: BTreeMap<Identity, u32>,
    ptys: Vec<Rc<Pty>>,
    pub pairs: Pairs,
}

impl What {
    fn mark(&self) -> Option<&Mark> {
        match self {
            What::Named { mark, .. } => Some(mark),
            _ => None,
        }
    }

    /// Returns whether it has a position of its own.
    fn has_position(&self) -> bool {
        matches!(self, What::Named { .. } | What::Unnamed(_) | What::SharedFolder(_))
    }
}

impl Collector {
    /// Returns a collector for a snapshot that another process may restore later. By default, it is for a copy that is made now.
    pub(super) fn for_later() -> Collector {
        Collector { with_written: true, ..Collector::default() }
    }

    /// Returns all open files, when each has been placed.
    pub(super) fn complete(mut self) -> (SavedFiles, Vec<OwnedFd>) {
        let marks = || self.saved.descriptions.iter().filter_map(|file| file.what.mark());
        let written: BTreeSet<u64> = marks().filter(|mark| mark.written.is_some()).map(|mark| mark.inode).collect();
        for file in &mut self.saved.descriptions {
            if let What::Named { mark, .. } = &mut file.what
                && written.contains(&mark.inode)
            {
                // Its other description is checked.
                mark.state = None;
            }
        }
        self.saved.ptys = self.ptys.iter().map(|pty| pty.saved()).collect();
        self.saved.pairs = self.pairs.complete();
        (self.saved, self.contents)
    }

    /// Returns the index of a pseudoterminal that has been placed.
    pub(super) fn pty(&self, pty: &Rc<Pty>) -> Option<u32> {
        let place = self.ptys.iter().position(|other| Rc::ptr_eq(other, pty));
        place.map(|place| place as u32)
    }

    /// Returns the index of a description that has been placed.
    pub(super) fn known(&self, description: Description) -> Option<u32> {
        self.descriptions.get(&description).copied()
    }

    /// Returns the index of an open file's description; `channel`: what is behind it.
    ///
    /// # Errors
    /// When a snapshot cannot store it.
    pub(super) fn place(
        &mut self,
        files: &Files,
        file: &OpenFile,
        channel: Option<&Channel>,
    ) -> Result<u32, SnapshotError> {
        if let Some(&place) = self.descriptions.get(&file.description) {
            return Ok(place);
        }
        let host = file.host.as_fd();
        let flags = rustix::fs::fcntl_getfl(host)?;
        let position = if flags.contains(OFlags::PATH) { None } else { rustix::fs::tell(host).ok() };
        let what = match channel {
            Some(channel) => self.object(files, file, channel, flags)?,
            None => self.what(files, file, flags)?,
        };
        let place = self.saved.descriptions.len() as u32;
        self.saved.descriptions.push(SavedFile { origin: file.origin.clone(), what, flags: flags.bits(), position });
        self.descriptions.insert(file.description, place);
        Ok(place)
    }

    /// Returns what an object is that programs have created.
    fn object(
        &mut self,
        files: &Files,
        file: &OpenFile,
        channel: &Channel,
        flags: OFlags,
    ) -> Result<What, SnapshotError> {
        if let Some(socket) = &channel.socket {
            let (pair, side) = self.pairs.socket(socket, file.host.as_fd())?;
            return Ok(What::Socket { pair, side });
        }
        match &channel.object {
            Object::Host => self.what(files, file, flags),
            Object::Counter { semaphore } => {
                Ok(What::Counter { value: counter_value(file.host.as_fd())?, semaphore: *semaphore })
            }
            Object::Epoll(_) => Ok(What::Epoll),
            Object::Timer(_) | Object::Signals(_) | Object::Process(_) => Ok(What::Level),
            Object::Pty(end) => Ok(What::Pty { place: place_of(&mut self.ptys, &end.pty), is_master: end.is_master }),
            Object::Event(_) => Err(SnapshotError::NotKept { what: "performance events".to_owned() }),
            Object::Messages(_) => Err(SnapshotError::NotKept { what: "POSIX message queues".to_owned() }),
        }
    }

    fn what(&mut self, files: &Files, file: &OpenFile, flags: OFlags) -> Result<What, SnapshotError> {
        let host = file.host.as_fd();
        let stat = rustix::fs::fstat(host)?;
        let identity = (stat.st_dev, stat.st_ino);
        let kind = FileType::from_raw_mode(stat.st_mode);
        let named = last_path_of(host);
        // What the program has opened itself under the name of a stream has a position of its own.
        let own = kind == FileType::RegularFile || named.as_ref().is_some_and(|(path, _)| is_stateless_device(path));
        let stream = if own {
            files.streams.iter().position(|&stream| stream == file.description)
        } else {
            files.inherited.iter().position(|&stream| stream == identity)
        };
        if let Some(stream) = stream {
            return Ok(What::Stream(stream as u8));
        }
        if kind == FileType::RegularFile && file.origin == Origin::Memory {
            return self.unnamed(host, identity);
        }
        let shared = &files.view.policy.shared_memory;
        match (kind, named) {
            (FileType::Directory, Some((path, false))) if shared.has(&path) => {
                let within = shared.folder().and_then(|folder| path.strip_prefix(folder));
                Ok(What::SharedFolder(within.unwrap_or_default().to_vec()))
            }
            (FileType::RegularFile, Some((path, false))) => {
                let written = flags & OFlags::RWMODE != OFlags::RDONLY && !flags.contains(OFlags::PATH);
                let state =
                    (!written).then_some((stat.st_size as u64, stat.st_mtime as i64, stat.st_mtime_nsec as u64));
                let written = (written && self.with_written).then(|| Written::of(host)).transpose()?;
                Ok(What::Named { path, mark: Mark { inode: stat.st_ino, state, written } })
            }
            (FileType::Directory | FileType::CharacterDevice, Some((path, false))) => {
                Ok(What::Named { path, mark: Mark { inode: stat.st_ino, state: None, written: None } })
            }
            (FileType::RegularFile, _) => self.unnamed(host, identity),
            (FileType::Fifo, None | Some((_, true))) => self.pipe(host, identity, None),
            (FileType::Fifo, Some((path, false))) if shared.has(&path) => {
                let within = shared.folder().and_then(|folder| path.strip_prefix(folder));
                self.pipe(host, identity, within.map(<[u8]>::to_vec))
            }
            _ => Err(SnapshotError::NotKept { what: describe(host, kind) }),
        }
    }

    fn unnamed(&mut self, host: BorrowedFd<'_>, identity: Identity) -> Result<What, SnapshotError> {
        Ok(What::Unnamed(self.content(host, identity)?))
    }

    /// Returns the index of a file whose contents are kept apart: one without a name, or in `/dev/shm`.
    ///
    /// # Errors
    /// The host's.
    pub(super) fn content(&mut self, host: BorrowedFd<'_>, identity: Identity) -> Result<u32, SnapshotError> {
        if let Some(&place) = self.unnamed.get(&identity) {
            return Ok(place);
        }
        let readable = reopen(host, OFlags::RDONLY)?;
        let place = self.saved.unnamed.len() as u32;
        self.saved.unnamed.push(rustix::fs::fstat(&readable)?.st_size as u64);
        self.contents.push(readable);
        self.unnamed.insert(identity, place);
        Ok(place)
    }

    /// What is in a pipe is copied without taking it out.
    fn pipe(&mut self, host: BorrowedFd<'_>, identity: Identity, path: Option<Vec<u8>>) -> Result<What, SnapshotError> {
        if let Some(&place) = self.pipes.get(&identity) {
            return Ok(What::Pipe(place));
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
        self.saved.pipes.push(SavedPipe { path, hung_up: hung_up(host)?, capacity: capacity as u64, bytes });
        self.pipes.insert(identity, place);
        Ok(What::Pipe(place))
    }
}

/// Returns the value of an event counter of the host (proc_pid_fdinfo(5)).
fn counter_value(host: BorrowedFd<'_>) -> Result<u64, SnapshotError> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", host.as_raw_fd()))?;
    let value = text.lines().find_map(|line| line.strip_prefix("eventfd-count:"));
    let value = value.and_then(|value| u64::from_str_radix(value.trim(), 16).ok());
    value.ok_or_else(|| SnapshotError::NotKept {
        what: "an event counter whose value the host does not show".to_owned(),
    })
}

/// What an open file is, in words.
fn describe(host: BorrowedFd<'_>, kind: FileType) -> String {
    let link = rustix::fs::readlink(format!("/proc/self/fd/{}", host.as_raw_fd()), Vec::new());
    let name = link.map(|link| link.to_string_lossy().into_owned()).unwrap_or_default();
    match kind {
        FileType::Socket => "a socket of the host's network".to_owned(),
        FileType::Fifo => format!("the FIFO {name}"),
        _ => format!("the open file {name}"),
    }
}

/// The open files of a guest that is being restored.
pub(super) struct Opener {
    open: Vec<OpenFile>,
    /// The descriptions of the standard streams.
    pub streams: [Description; 3],
    /// Files that the guest was writing, and their lengths at the snapshot.
    pub ends: Vec<(OwnedFd, u64)>,
    /// Pairs of host sockets.
    pub pairs: Vec<Pair>,
    /// Pseudoterminals.
    pub ptys: Vec<Rc<Pty>>,
}

impl Opener {
    /// Opens the files of a snapshot; `unnamed` are those whose contents it holds. Changes no other file.
    ///
    /// # Errors
    /// When a named file is missing, is a different one, has changed, or may no longer be opened by the program; the host's.
    pub(super) fn new(
        saved: SavedFiles,
        view: &View,
        stdio: &Stdio,
        unnamed: &[OwnedFd],
        ptys: &mut Ptys,
    ) -> Result<Opener, SnapshotError> {
        let parts = Parts {
            view,
            stdio,
            unnamed,
            pipes: saved.pipes.iter().map(|saved| pipe(saved, view)).collect::<Result<_, _>>()?,
            pairs: saved.pairs.into_iter().map(Pair::new).collect::<Result<_, _>>()?,
            ptys: saved.ptys.into_iter().map(|saved| ptys.restore(saved)).collect::<Result<_, _>>()?,
        };
        let mut streams = [(); 3].map(|()| Description::new());
        let (mut open, mut ends) = (Vec::new(), Vec::new());
        for file in saved.descriptions {
            let flags = OFlags::from_bits_retain(file.flags) & KEPT_FLAGS;
            let host = parts.open(&file.what, flags)?;
            if let Some(written) = file.what.mark().and_then(|mark| mark.written.as_ref()) {
                ends.push((rustix::io::fcntl_dupfd_cloexec(&host, 0)?, written.bytes));
            }
            if let (Some(position), true) = (file.position, file.what.has_position()) {
                rustix::fs::seek(&host, SeekFrom::Start(position))?;
            }
            let file_open = OpenFile::new(host, file.origin);
            if let What::Stream(stream) = file.what {
                streams[usize::from(stream)] = file_open.description;
            }
            open.push(file_open);
        }
        let Parts { pairs, ptys, .. } = parts;
        Ok(Opener { open, streams, ends, pairs, ptys })
    }

    /// Returns a handle of the description with this index.
    ///
    /// # Errors
    /// When it does not exist; the host's.
    pub(super) fn file(&self, place: u32) -> Result<OpenFile, SnapshotError> {
        Ok(self.open.get(place as usize).ok_or(SnapshotError::Damaged)?.try_clone()?)
    }
}

/// What descriptions are opened from.
struct Parts<'a> {
    view: &'a View,
    stdio: &'a Stdio,
    unnamed: &'a [OwnedFd],
    pipes: Vec<(OwnedFd, OwnedFd)>,
    pairs: Vec<Pair>,
    ptys: Vec<Rc<Pty>>,
}

impl Parts<'_> {
    /// Opens a description.
    fn open(&self, what: &What, flags: OFlags) -> Result<OwnedFd, SnapshotError> {
        let damaged = || SnapshotError::Damaged;
        let nonblocking = flags & OFlags::NONBLOCK;
        Ok(match what {
            What::Stream(stream) => {
                let streams = [&self.stdio.input, &self.stdio.output, &self.stdio.error];
                rustix::io::fcntl_dupfd_cloexec(streams.get(usize::from(*stream)).ok_or_else(damaged)?, 0)?
            }
            What::Named { path, mark } => named_file(self.view, path, mark, flags)?,
            What::Unnamed(place) => reopen(self.unnamed.get(*place as usize).ok_or_else(damaged)?.as_fd(), flags)?,
            What::Pipe(place) => {
                let (reader, writer) = self.pipes.get(*place as usize).ok_or_else(damaged)?;
                let end = if flags & OFlags::RWMODE == OFlags::RDONLY { reader } else { writer };
                open_pipe(end.as_fd(), flags)?
            }
            What::SharedFolder(path) => folder::open(self.view, path, flags | OFlags::DIRECTORY)?,
            What::Counter { value, semaphore } => counter(*value, *semaphore, !nonblocking.is_empty())?,
            What::Epoll => epoll::create(epoll::CreateFlags::CLOEXEC)?,
            What::Level => counter(0, false, !nonblocking.is_empty())?,
            What::Pty { place, is_master } => {
                let pty = self.ptys.get(*place as usize).ok_or_else(damaged)?;
                let host = pty.level(*is_master).host()?;
                rustix::fs::fcntl_setfl(&host, OFlags::RDWR | nonblocking)?;
                host
            }
            What::Socket { pair, side } => {
                let pair = self.pairs.get(*pair as usize).ok_or_else(damaged)?;
                let host = rustix::io::fcntl_dupfd_cloexec(pair.end(*side).ok_or_else(damaged)?, 0)?;
                rustix::fs::fcntl_setfl(&host, nonblocking)?;
                host
            }
        })
    }
}

/// Returns an event counter with this value.
fn counter(value: u64, semaphore: bool, nonblocking: bool) -> Result<OwnedFd, Errno> {
    let mut flags = EventfdFlags::CLOEXEC;
    flags.set(EventfdFlags::SEMAPHORE, semaphore);
    flags.set(EventfdFlags::NONBLOCK, nonblocking);
    let counter = rustix::event::eventfd(0, flags)?;
    if value == u64::MAX {
        return Err(Errno::INVAL);
    }
    if value > 0 {
        rustix::io::write(&counter, &value.to_ne_bytes())?;
    }
    Ok(counter)
}

/// Opens an end of a pipe, without waiting for another one.
fn open_pipe(end: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    let host = match reopen(end, flags | OFlags::NONBLOCK) {
        // A writer of a named pipe whose reader is opened later.
        Err(Errno::NXIO) => {
            let _reader = reopen(end, OFlags::RDONLY | OFlags::NONBLOCK)?;
            reopen(end, flags | OFlags::NONBLOCK)?
        }
        other => other?,
    };
    if !flags.contains(OFlags::NONBLOCK) {
        rustix::fs::fcntl_setfl(&host, flags)?;
    }
    Ok(host)
}

/// Returns whether a pipe has lost its last writer, as far as this end shows it.
fn hung_up(host: BorrowedFd<'_>) -> Result<bool, Errno> {
    let mut list = [PollFd::from_borrowed_fd(host, PollFlags::IN)];
    rustix::event::poll(&mut list, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    Ok(list[0].revents().contains(PollFlags::HUP))
}

/// Returns both ends of a pipe with its contents.
fn pipe(saved: &SavedPipe, view: &View) -> Result<(OwnedFd, OwnedFd), SnapshotError> {
    let (reader, writer) = match &saved.path {
        None => rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?,
        Some(path) => {
            // A writer, even for a moment, would be seen by readers that wait for the first one.
            let is_new = saved.bytes.is_empty() && !saved.hung_up;
            let flags = if is_new { OFlags::PATH } else { OFlags::RDWR | OFlags::NONBLOCK };
            let both = folder::open(view, path, flags)?;
            if FileType::from_raw_mode(rustix::fs::fstat(&both)?.st_mode) != FileType::Fifo {
                return Err(SnapshotError::Damaged);
            }
            let second = rustix::io::fcntl_dupfd_cloexec(&both, 0)?;
            if is_new {
                return Ok((second, both));
            }
            (second, both)
        }
    };
    rustix::pipe::fcntl_setpipe_size(&writer, saved.capacity as usize)?;
    let mut rest = &saved.bytes[..];
    while !rest.is_empty() {
        rest = &rest[rustix::io::write(&writer, rest)?..];
    }
    Ok((reader, writer))
}

/// Opens a named file, which must be the one that was open.
fn named_file(view: &View, path: &[u8], mark: &Mark, flags: OFlags) -> Result<OwnedFd, SnapshotError> {
    let policy = &view.policy;
    let refused = |what: String| SnapshotError::File { path: PathBuf::from(OsStr::from_bytes(path)), what };
    let opened = policy.check_open(path, flags).and_then(|()| Handle::new(policy, path)?.open(policy, flags));
    let host = opened.map_err(|error| refused(format!("cannot be opened again: {}", std::io::Error::from(error))))?;
    let stat = rustix::fs::fstat(&host)?;
    if stat.st_ino != mark.inode {
        return Err(refused("is another file than the one that was open".to_owned()));
    }
    let state = (stat.st_size as u64, stat.st_mtime as i64, stat.st_mtime_nsec as u64);
    if mark.state.is_some_and(|before| before != state) {
        return Err(refused("has changed since the snapshot".to_owned()));
    }
    if let Some(written) = &mark.written {
        written.check(host.as_fd(), stat.st_size as u64)?.map_err(|why| refused(why.to_owned()))?;
    }
    Ok(host)
}
