//! Open files in snapshots: what is stored, and how they are reopened.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::fs::{FileType, OFlags, SeekFrom};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags};
use serde::{Deserialize, Serialize};

use super::SnapshotError;
use super::contents::{Written, reopen};
use crate::fs::files::{Description, Files, OpenFile};
use crate::fs::vfs::access::is_stateless_device;
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
}

impl What {
    fn mark(&self) -> Option<&Mark> {
        match self {
            What::Named { mark, .. } => Some(mark),
            _ => None,
        }
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
        (self.saved, self.contents)
    }

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
        let what = self.what(files, file, flags)?;
        let place = self.saved.descriptions.len() as u32;
        self.saved.descriptions.push(SavedFile { origin: file.origin.clone(), what, flags: flags.bits(), position });
        self.descriptions.insert(file.description, place);
        Ok(place)
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
        match (kind, named) {
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
            (FileType::Fifo, None) => self.pipe(host, identity),
            _ => Err(SnapshotError::NotKept { what: describe(host, kind) }),
        }
    }

    /// Adds a file without a name.
    fn unnamed(&mut self, host: BorrowedFd<'_>, identity: Identity) -> Result<What, SnapshotError> {
        if let Some(&place) = self.unnamed.get(&identity) {
            return Ok(What::Unnamed(place));
        }
        let readable = reopen(host, OFlags::RDONLY)?;
        let place = self.saved.unnamed.len() as u32;
        self.saved.unnamed.push(rustix::fs::fstat(&readable)?.st_size as u64);
        self.contents.push(readable);
        self.unnamed.insert(identity, place);
        Ok(What::Unnamed(place))
    }

    /// What is in a pipe is copied without taking it out.
    fn pipe(&mut self, host: BorrowedFd<'_>, identity: Identity) -> Result<What, SnapshotError> {
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
        self.saved.pipes.push(SavedPipe { capacity: capacity as u64, bytes });
        self.pipes.insert(identity, place);
        Ok(What::Pipe(place))
    }
}

/// What an open file is, in words.
fn describe(host: BorrowedFd<'_>, kind: FileType) -> String {
    let link = rustix::fs::readlink(format!("/proc/self/fd/{}", host.as_raw_fd()), Vec::new());
    let name = link.map(|link| link.to_string_lossy().into_owned()).unwrap_or_default();
    match kind {
        FileType::Socket => "a socket".to_owned(),
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
}

impl Opener {
    /// Opens the files of a snapshot; `unnamed` are those without a name. Changes no file.
    ///
    /// # Errors
    /// When a named file is missing, is a different one, has changed, or may no longer be opened by the program; the host's.
    pub(super) fn new(
        saved: SavedFiles,
        view: &View,
        stdio: &Stdio,
        unnamed: &[OwnedFd],
    ) -> Result<Opener, SnapshotError> {
        let pipes = saved.pipes.iter().map(pipe).collect::<Result<Vec<_>, _>>()?;
        let mut streams = [(); 3].map(|()| Description::new());
        let (mut open, mut ends) = (Vec::new(), Vec::new());
        for file in saved.descriptions {
            let flags = OFlags::from_bits_retain(file.flags) & KEPT_FLAGS;
            let damaged = || SnapshotError::Damaged;
            let host = match &file.what {
                What::Stream(stream) => {
                    let streams = [&stdio.input, &stdio.output, &stdio.error];
                    rustix::io::fcntl_dupfd_cloexec(streams.get(usize::from(*stream)).ok_or_else(damaged)?, 0)?
                }
                What::Named { path, mark } => {
                    let host = named_file(view, path, mark, flags)?;
                    if let Some(written) = &mark.written {
                        ends.push((rustix::io::fcntl_dupfd_cloexec(&host, 0)?, written.bytes));
                    }
                    host
                }
                What::Unnamed(place) => reopen(unnamed.get(*place as usize).ok_or_else(damaged)?.as_fd(), flags)?,
                What::Pipe(place) => {
                    let (reader, writer) = pipes.get(*place as usize).ok_or_else(damaged)?;
                    let end = if flags & OFlags::RWMODE == OFlags::RDONLY { reader } else { writer };
                    reopen(end.as_fd(), flags)?
                }
            };
            if let (Some(position), false) = (file.position, matches!(file.what, What::Stream(_))) {
                rustix::fs::seek(&host, SeekFrom::Start(position))?;
            }
            let file_open = OpenFile::new(host, file.origin);
            if let What::Stream(stream) = file.what {
                streams[usize::from(stream)] = file_open.description;
            }
            open.push(file_open);
        }
        Ok(Opener { open, streams, ends })
    }

    /// Returns a handle of the description with this index.
    ///
    /// # Errors
    /// When it does not exist; the host's.
    pub(super) fn file(&self, place: u32) -> Result<OpenFile, SnapshotError> {
        Ok(self.open.get(place as usize).ok_or(SnapshotError::Damaged)?.try_clone()?)
    }
}

fn pipe(saved: &SavedPipe) -> Result<(OwnedFd, OwnedFd), SnapshotError> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
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
