//! `/dev/shm` in snapshots: its folders, files and other names. What is in its files is kept as that of files without a name.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{Metadata, Permissions};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::SnapshotError;
use super::contents::unnamed_file;
use super::files::Collector;
use crate::fs::vfs::View;
use crate::net::socket::Identity;

/// A name in `/dev/shm`.
#[derive(Serialize, Deserialize)]
pub(super) struct Entry {
    /// Its path there.
    path: Vec<u8>,
    kind: Kind,
    /// Its rights.
    mode: u32,
    /// Time of the last change in s and ns since 1970.
    modified: (i64, i64),
}

/// What a name is for.
#[derive(Serialize, Deserialize)]
enum Kind {
    Folder,
    /// A file, by the index of its contents.
    File(u32),
    /// A symbolic link with this text.
    Link(Vec<u8>),
    Fifo,
    /// The name of a local socket.
    Socket(Identity),
}

/// Returns the names in `/dev/shm`, each behind its folder.
///
/// # Errors
/// For files that cannot be read; the host's.
pub(super) fn entries(view: &View, files: &mut Collector) -> Result<Vec<Entry>, SnapshotError> {
    let Some(folder) = view.policy.shared_memory.folder() else { return Ok(Vec::new()) };
    let root = Path::new(OsStr::from_bytes(folder));
    let (mut all, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(within) = folders.pop() {
        let mut names = std::fs::read_dir(root.join(&within))?.collect::<io::Result<Vec<_>>>()?;
        names.sort_by_key(std::fs::DirEntry::file_name);
        for name in names {
            let (path, data) = (within.join(name.file_name()), name.metadata()?);
            all.push(Entry {
                kind: kind(&root.join(&path), &data, files)?,
                path: path.as_os_str().as_bytes().to_vec(),
                mode: data.mode() & 0o7777,
                modified: (data.mtime(), data.mtime_nsec()),
            });
            if data.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(all)
}

fn kind(path: &Path, data: &Metadata, files: &mut Collector) -> Result<Kind, SnapshotError> {
    let identity = (data.dev(), data.ino());
    let kind = data.file_type();
    if kind.is_dir() {
        return Ok(Kind::Folder);
    }
    if kind.is_symlink() {
        return Ok(Kind::Link(std::fs::read_link(path)?.as_os_str().as_bytes().to_vec()));
    }
    if kind.is_fifo() {
        return Ok(Kind::Fifo);
    }
    if kind.is_socket() {
        return Ok(Kind::Socket(identity));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        SnapshotError::NotKept { what: format!("the file {name} in /dev/shm: {}", io::Error::from(error)) }
    })?;
    Ok(Kind::File(files.content(file.as_fd(), identity)?))
}

/// Creates the files whose contents a snapshot holds, of these lengths, with zeros in them, and all names of `/dev/shm` in the folder
/// `root`, which is empty. Returns the files, and the names of sockets with what they were before.
///
/// # Errors
/// When the snapshot is damaged; the host's.
pub(super) fn create(
    entries: &[Entry],
    lengths: &[u64],
    root: Option<&Path>,
) -> Result<(Vec<OwnedFd>, BTreeMap<Identity, Identity>), SnapshotError> {
    let mut named: BTreeMap<u32, OwnedFd> = BTreeMap::new();
    let mut sockets = BTreeMap::new();
    // While there are no links, no path leads out of the folder.
    for entry in entries.iter().filter(|entry| !matches!(entry.kind, Kind::Link(_))) {
        let path = entry.path_in(root)?;
        match &entry.kind {
            Kind::Folder => rustix::fs::mkdir(&path, Mode::RWXU)?,
            Kind::File(place) => match named.get(place) {
                Some(known) => link(known, &path)?,
                None => {
                    let length = *lengths.get(*place as usize).ok_or(SnapshotError::Damaged)?;
                    named.insert(*place, file(&path, length)?);
                }
            },
            Kind::Fifo => node(&path, FileType::Fifo)?,
            Kind::Socket(before) => {
                node(&path, FileType::Socket)?;
                let stat = rustix::fs::lstat(&path)?;
                sockets.insert(*before, (stat.st_dev, stat.st_ino));
            }
            Kind::Link(_) => {}
        }
    }
    for entry in entries {
        if let Kind::Link(text) = &entry.kind {
            rustix::fs::symlink(OsStr::from_bytes(text), entry.path_in(root)?)?;
        }
    }
    let take = |(place, &length): (u32, &u64)| named.remove(&place).map_or_else(|| unnamed_file(length), Ok);
    let files = (0..).zip(lengths).map(take).collect::<Result<_, _>>()?;
    Ok((files, sockets))
}

fn file(path: &Path, length: u64) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::ftruncate(&file, length)?;
    Ok(file)
}

/// Gives a file a further name.
fn link(file: &OwnedFd, path: &Path) -> Result<(), Errno> {
    use std::os::fd::AsRawFd as _;
    let handle = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, handle, CWD, path, AtFlags::SYMLINK_FOLLOW)
}

fn node(path: &Path, kind: FileType) -> Result<(), Errno> {
    rustix::fs::mknodat(CWD, path, kind, Mode::RUSR | Mode::WUSR, 0)
}

/// Gives all names their rights and times, once their contents are there and they have been opened.
///
/// # Errors
/// When the snapshot is damaged; the host's.
pub(super) fn complete(entries: &[Entry], root: Option<&Path>) -> Result<(), SnapshotError> {
    // What is in a folder changes its time, and its rights may forbid that.
    for entry in entries.iter().rev() {
        let path = entry.path_in(root)?;
        if !matches!(entry.kind, Kind::Link(_)) {
            std::fs::set_permissions(&path, Permissions::from_mode(entry.mode & 0o7777))?;
        }
        let (tv_sec, tv_nsec) = entry.modified;
        let time = Timespec { tv_sec, tv_nsec };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

/// Opens a folder or a named pipe in `/dev/shm`.
///
/// # Errors
/// When the snapshot is damaged; the host's.
pub(super) fn open(view: &View, path: &[u8], flags: OFlags) -> Result<OwnedFd, SnapshotError> {
    let folder = view.policy.shared_memory.folder().ok_or(SnapshotError::Damaged)?;
    let rest = path.strip_prefix(b"/").unwrap_or(path);
    let path = within(Path::new(OsStr::from_bytes(folder)), rest)?;
    Ok(rustix::fs::open(path, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

impl Entry {
    fn path_in(&self, root: Option<&Path>) -> Result<PathBuf, SnapshotError> {
        if self.path.is_empty() {
            return Err(SnapshotError::Damaged);
        }
        within(root.ok_or(SnapshotError::Damaged)?, &self.path)
    }
}

/// Returns a path below a folder.
///
/// # Errors
/// When it leads elsewhere.
fn within(root: &Path, path: &[u8]) -> Result<PathBuf, SnapshotError> {
    let path = Path::new(OsStr::from_bytes(path));
    let below = path.components().all(|part| matches!(part, Component::Normal(_)));
    if below { Ok(root.join(path)) } else { Err(SnapshotError::Damaged) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_their_folder() {
        let root = Path::new("/shm");
        assert_eq!(within(root, b"a/b").expect("below"), Path::new("/shm/a/b"));
        assert_eq!(within(root, b"").expect("the folder itself"), Path::new("/shm/"));
        for path in [&b"/etc"[..], b"..", b"a/../../b"] {
            assert!(within(root, path).is_err());
        }
    }
}
