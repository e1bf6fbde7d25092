//! Resolves a program's path to a file: one component at a time, following symbolic links itself, so that neither links nor `..`
//! can bypass the checks.

use std::cell::Cell;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::access::Denied;
use super::handle::Handle;
use super::tree::{self, Kind, Tree};
use super::{Origin, View};
use crate::fs::files::DIRECTORY;
use crate::kernel::Kernel;

/// Maximum number of symbolic links in one path, as under Linux.
const MAX_LINKS: u32 = 40;

/// Maximum number of symbolic links followed for one path in all attempts: each absolute link is looked up in two trees, so the
/// attempts could double with every link.
const MAX_LINKS_IN_ALL: u32 = 1000;

/// Maximum length of a component's name in bytes.
const NAME_MAX: usize = 255;

/// A host file, or the location of one that does not exist yet.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Absolute host path without symbolic links, except the last component if it is not followed.
    pub path: Vec<u8>,
    /// Type of the existing file.
    pub kind: Option<FileType>,
    /// [`Origin::Host`] or [`Origin::Sysroot`].
    pub origin: Origin,
}

/// Where a path leads.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// To a file of the host or the sysroot.
    Host(Place),
    /// To a simulated file.
    Simulated(tree::Node),
    /// To an open file, through `/proc/self/fd`.
    Descriptor(i32),
    /// To an open file of another process, through `/proc/PID/fd`.
    DescriptorOf(u32, i32),
}

/// Whether a symbolic link as the last component is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// It is followed.
    Follow,
    /// It is not followed.
    Keep,
}

/// Resolves `path`; a relative one starts from the directory `dir` (a descriptor or `AT_FDCWD`).
///
/// # Errors
/// As under Linux; `EACCES` for what the program may not see. A missing last component is not an error.
pub(crate) fn resolve(k: &Kernel<'_>, dir: i32, path: &[u8], last: Last) -> Result<Target, Errno> {
    if let Some(node) = Tree::replacement(path).filter(|_| !k.process.files.view.policy.allows_network()) {
        return Ok(Target::Simulated(node));
    }
    let found = look_up(k, dir, path, last);
    if !missing(&found) {
        return found;
    }
    Tree::stand_in(path).map_or(found, |node| Ok(Target::Simulated(node)))
}

/// Returns whether a file tree has nothing visible at a path. `EACCES`: in a sandbox that shows only one of two trees.
fn missing(found: &Result<Target, Errno>) -> bool {
    matches!(found, Ok(Target::Host(Place { kind: None, .. })) | Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS))
}

fn look_up(k: &Kernel<'_>, dir: i32, path: &[u8], last: Last) -> Result<Target, Errno> {
    let walk = Walk { k, last, followed: Cell::new(0) };
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    if path.starts_with(b"/") {
        return walk.absolute(path, 0);
    }
    let (base, origin) = k.process.files.directory_path(dir)?;
    match origin {
        Origin::Host | Origin::Memory => walk.within(&Root::HOST, base, path, 0),
        Origin::Sysroot | Origin::Simulated(_) => walk.absolute(&[&base, &b"/"[..], path].concat(), 0),
    }
}

/// The tree of host files in which a path is resolved.
struct Root<'a> {
    /// Prefix of each path.
    prefix: &'a [u8],
    origin: Origin,
}

impl Root<'_> {
    const HOST: Root<'static> = Root { prefix: b"", origin: Origin::Host };
}

/// What a component refers to.
enum Found {
    Missing,
    Directory,
    Link(Vec<u8>),
    /// Simulated files, and everything else.
    Other(FileType),
    Descriptor(i32),
    DescriptorOf(u32, i32),
}

struct Walk<'a> {
    k: &'a Kernel<'a>,
    last: Last,
    /// Symbolic links followed so far.
    followed: Cell<u32>,
}

impl Walk<'_> {
    fn view(&self) -> &View {
        &self.k.process.files.view
    }

    /// Resolves an absolute path: first in the sysroot, then on the host; in reverse order in writable folders, which are the
    /// host's.
    fn absolute(&self, path: &[u8], links: u32) -> Result<Target, Errno> {
        let sysroot = self.view().sysroot.as_deref().map(|prefix| Root { prefix, origin: Origin::Sysroot });
        let Some(sysroot) = sysroot else { return self.within(&Root::HOST, Vec::new(), path, links) };
        let host_first = self.view().policy.in_write_area(path);
        let (first, second) = if host_first { (Root::HOST, sysroot) } else { (sysroot, Root::HOST) };
        let found = self.within(&first, Vec::new(), path, links);
        if !missing(&found) {
            return found;
        }
        let other = self.within(&second, Vec::new(), path, links);
        // New files are created on the host.
        if host_first && missing(&other) { found } else { other }
    }

    /// Follows `path` from the folder `at` within one tree.
    fn within(&self, root: &Root<'_>, mut at: Vec<u8>, path: &[u8], mut links: u32) -> Result<Target, Errno> {
        let mut todo = components(path);
        let mut directory_wanted = path.ends_with(b"/") || path.ends_with(b"/.");
        if at == b"/" {
            at.clear();
        }
        while let Some(name) = todo.pop() {
            if name == b".." {
                at.truncate(at.iter().rposition(|&b| b == b'/').unwrap_or(0));
                continue;
            }
            if name.len() > NAME_MAX {
                return Err(Errno::NAMETOOLONG);
            }
            let here = [&at, &b"/"[..], &name].concat();
            let is_last = todo.is_empty();
            match self.look(root, &here)? {
                Found::Missing if is_last && !tree::is_simulated(&here) => return Ok(self.place(root, here, None)),
                Found::Missing => return Err(Errno::NOENT),
                Found::Directory => at = here,
                Found::Link(_) if is_last && self.last == Last::Keep && !directory_wanted => {
                    return Ok(self.target(root, here, FileType::Symlink));
                }
                Found::Link(target) => {
                    links += 1;
                    self.followed.set(self.followed.get() + 1);
                    if links > MAX_LINKS || self.followed.get() > MAX_LINKS_IN_ALL {
                        return Err(Errno::LOOP);
                    }
                    directory_wanted |= is_last && target.ends_with(b"/");
                    if target.starts_with(b"/") {
                        let rest = todo.iter().rev().flat_map(|name| [&b"/"[..], name].concat());
                        let mut whole: Vec<u8> = target.into_iter().chain(rest).collect();
                        if directory_wanted {
                            whole.push(b'/');
                        }
                        return self.absolute(&whole, links);
                    }
                    todo.extend(components(&target));
                }
                _ if !is_last || directory_wanted => return Err(Errno::NOTDIR),
                Found::Descriptor(fd) => return Ok(Target::Descriptor(fd)),
                Found::DescriptorOf(pid, fd) => return Ok(Target::DescriptorOf(pid, fd)),
                Found::Other(kind) => return Ok(self.target(root, here, kind)),
            }
        }
        if at.is_empty() {
            at.push(b'/');
        }
        Ok(self.target(root, at, FileType::Directory))
    }

    fn target(&self, root: &Root<'_>, at: Vec<u8>, kind: FileType) -> Target {
        match self.view().tree.node(self.k, &at) {
            Some(node) => Target::Simulated(node),
            None => self.place(root, at, Some(kind)),
        }
    }

    fn place(&self, root: &Root<'_>, at: Vec<u8>, kind: Option<FileType>) -> Target {
        let path = if at == b"/" && !root.prefix.is_empty() { root.prefix.to_vec() } else { self.host_path(root, &at) };
        Target::Host(Place { path, kind, origin: root.origin.clone() })
    }

    /// Returns the host path of `here` in a tree.
    fn host_path(&self, root: &Root<'_>, here: &[u8]) -> Vec<u8> {
        match root.origin {
            Origin::Host | Origin::Memory => self.view().policy.shared_memory.host_path(here.to_vec()),
            _ => [root.prefix, here].concat(),
        }
    }

    /// Looks up `here`, a program path whose components except the last are known to be folders.
    fn look(&self, root: &Root<'_>, here: &[u8]) -> Result<Found, Errno> {
        if let Some(node) = self.view().tree.node(self.k, here) {
            return Ok(match node.kind {
                Kind::Directory => Found::Directory,
                Kind::Descriptor(fd) if self.last == Last::Follow => Found::Descriptor(fd),
                Kind::DescriptorOf(pid, fd) if self.last == Last::Follow => Found::DescriptorOf(pid, fd),
                Kind::Link | Kind::Descriptor(_) | Kind::DescriptorOf(..) => {
                    Found::Link(self.view().tree.link(self.k, &node))
                }
                Kind::File
                | Kind::Memory
                | Kind::PageMap
                | Kind::Random
                | Kind::HardwareBarrier
                | Kind::Ptmx
                | Kind::Terminal(_)
                | Kind::Command
                | Kind::Substitute => Found::Other(FileType::RegularFile),
            });
        }
        if tree::is_simulated(here) {
            return Ok(Found::Missing);
        }
        if tree::is_device(here) && root.origin == Origin::Sysroot {
            return Ok(Found::Missing);
        }
        let host = self.host_path(root, here);
        let policy = &self.view().policy;
        policy.check(policy.may_see(&host), Denied::Read, &host)?;
        match rustix::fs::lstat(&host) {
            Ok(stat) => {
                policy.check_file_system(stat.st_dev, &host)?;
                Ok(match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Directory => Found::Directory,
                    FileType::Symlink => Found::Link(Handle::new(policy, &host)?.read_link()?),
                    other => Found::Other(other),
                })
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(Found::Missing),
            Err(error) => Err(error),
        }
    }
}

/// Returns the names in a path, the last one first, without empty ones and dots.
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|&b| b == b'/').filter(|c| !c.is_empty() && *c != b".").rev().map(<[u8]>::to_vec).collect()
}

/// Returns the host path of `path` within `sysroot`, whose links do not lead out of it. `None` if it does not exist. On hosts
/// without `openat2`, links lead where they lead on the host.
pub(crate) fn inside(sysroot: &Path, path: &[u8]) -> Option<PathBuf> {
    let folder = rustix::fs::openat(CWD, sysroot, DIRECTORY, Mode::empty()).ok()?;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = match rustix::fs::openat2(&folder, path, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
        Err(Errno::NOSYS | Errno::PERM) => {
            let relative = path.iter().position(|&b| b != b'/').map_or(&b""[..], |at| &path[at..]);
            rustix::fs::openat(&folder, relative, flags, Mode::empty())
        }
        result => result,
    };
    Some(PathBuf::from(OsStr::from_bytes(&path_of(file.ok()?.as_fd())?)))
}

/// Returns the current path of an open host file. `None`: it has no path (any more).
pub(crate) fn path_of(file: BorrowedFd<'_>) -> Option<Vec<u8>> {
    last_path_of(file).and_then(|(path, deleted)| (!deleted).then_some(path))
}

/// Returns the path of an open host file, or its last path if it has been deleted, and whether it has. `None`: it never had a
/// path.
pub(crate) fn last_path_of(file: BorrowedFd<'_>) -> Option<(Vec<u8>, bool)> {
    const DELETED: &[u8] = b" (deleted)";
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new()).ok()?.into_bytes();
    if !path.starts_with(b"/") || path.starts_with(b"/memfd:") {
        return None;
    }
    match path.strip_suffix(DELETED) {
        // An existing file may have such a name, too.
        Some(name) if rustix::fs::fstat(file).is_ok_and(|stat| stat.st_nlink == 0) => Some((name.to_vec(), true)),
        _ => Some((path, false)),
    }
}
