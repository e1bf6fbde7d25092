//! Which host files a program may access, and what it was refused.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::handle::Handle;
use super::shared_memory::{SharedFolder, SharedMemory};

/// Devices without state on the host, which every program may use.
const DEVICES: [&[u8]; 3] = [b"/dev/null", b"/dev/zero", b"/dev/full"];

/// The terminal, because the standard streams may be one.
const TERMINAL: &[u8] = b"/dev/tty";

/// Maximum number of folders for which refusals are counted; further ones are counted together.
const MAX_REFUSALS: usize = 20;

/// What a program may access on the host. The simulated `/proc`, `/sys` and `/dev` are always available, and so is a private
/// `/dev/shm`, readable and writable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Folders below which it may read files; `None`: anywhere.
    pub read: Option<Vec<PathBuf>>,
    /// Folders below which it may create, change and delete files. Reading is allowed there, too.
    pub write: Vec<PathBuf>,
    /// Folders that it may not change, even below those. What contains them can neither be moved nor deleted.
    pub protected: Vec<PathBuf>,
    /// Whether it may open network sockets, and sockets that other programs have in the file system.
    pub network: bool,
}

impl Access {
    /// Returns access for reading anywhere and writing below the current directory and `/tmp`, without network.
    #[must_use]
    pub fn standard() -> Access {
        let current = std::env::current_dir().ok();
        let write = current.into_iter().chain(["/tmp".into()]).collect();
        Access { read: None, write, protected: Vec::new(), network: false }
    }

    /// Returns access to nothing but the standard streams.
    #[must_use]
    pub fn sandbox() -> Access {
        Access { read: Some(Vec::new()), write: Vec::new(), protected: Vec::new(), network: false }
    }
}

/// A kind of access that can be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Denied {
    /// Reading a file or listing a folder.
    Read,
    /// Creating, changing or deleting a file.
    Write,
    /// Changing a device, or opening one other than `/dev/null` and the like.
    Device,
    /// A file of procfs, sysfs or another file system that exposes the state of the kernel.
    KernelFile,
    /// Opening a socket.
    Network,
}

/// What a program was refused, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The kind of access.
    pub denied: Denied,
    /// The folder of the file; empty for sockets, and for folders beyond the first twenty.
    pub folder: PathBuf,
    /// Number of calls.
    pub calls: u64,
}

/// Numbers of refused calls by kind and folder.
pub(crate) type Refused = BTreeMap<(Denied, Vec<u8>), u64>;

/// [`Access`] with the folders' real paths, and the refusals so far.
pub(crate) struct Policy {
    read: Option<Vec<Vec<u8>>>,
    write: Vec<Vec<u8>>,
    protected: Vec<Vec<u8>>,
    network: bool,
    pub(crate) shared_memory: SharedMemory,
    /// Device numbers of file systems already found to hold ordinary files.
    file_systems: RefCell<BTreeSet<u64>>,
    refused: RefCell<Refused>,
}

impl Policy {
    /// Creates a policy. `shared_folder` is the location of `/dev/shm`; `None`: a folder created when the program first accesses
    /// it.
    pub(crate) fn new(access: &Access, shared_folder: Option<Arc<SharedFolder>>) -> Policy {
        let real = |folder: &PathBuf| real_path(folder);
        Policy {
            read: access.read.as_ref().map(|folders| folders.iter().map(real).collect()),
            write: access.write.iter().map(real).collect(),
            protected: access.protected.iter().map(real).collect(),
            network: access.network,
            shared_memory: shared_folder.map_or_else(SharedMemory::default, SharedMemory::within),
            file_systems: RefCell::default(),
            refused: RefCell::default(),
        }
    }

    /// Returns what has been refused so far, for a snapshot.
    pub(crate) fn refused(&self) -> Refused {
        self.refused.borrow().clone()
    }

    /// Continues with what was refused before a snapshot.
    pub(crate) fn set_refused(&self, refused: Refused) {
        *self.refused.borrow_mut() = refused;
    }

    /// Checks whether the program may open the host path with these flags.
    ///
    /// # Errors
    /// `EACCES`.
    pub(crate) fn check_open(&self, path: &[u8], flags: OFlags) -> Result<(), Errno> {
        if flags.contains(OFlags::PATH) {
            // Such a descriptor can neither read nor write.
            Ok(())
        } else if writes(flags) {
            self.check(self.may_write(path), Denied::Write, path)
        } else {
            self.check(self.may_read(path), Denied::Read, path)
        }
    }

    /// Returns whether the program may create, rename and delete a path without symbolic links, and change its attributes: it
    /// lies below a writable folder. The folder itself may not be moved or deleted.
    pub(crate) fn may_change(&self, path: &[u8]) -> bool {
        let kept = self.protected.iter().any(|folder| is_within(path, folder) || is_within(folder, path));
        (!kept && self.write.iter().any(|area| path != area && is_within(path, area)))
            || self.shared_memory.has_below(path)
    }

    /// Returns whether the program may open a path for writing.
    pub(crate) fn may_write(&self, path: &[u8]) -> bool {
        self.may_change(path) || self.is_open_device(path)
    }

    /// Returns whether the program may create names in a folder: the folder may be the writable one itself.
    pub(crate) fn may_create_in(&self, folder: &[u8]) -> bool {
        let kept = self.protected.iter().any(|kept| is_within(folder, kept));
        (!kept && self.write.iter().any(|area| is_within(folder, area))) || self.shared_memory.has(folder)
    }

    /// Returns whether a path is that of a device that the program may open.
    pub(crate) fn is_open_device(&self, path: &[u8]) -> bool {
        DEVICES.contains(&path) || (self.read.is_none() && path == TERMINAL)
    }

    pub(crate) fn may_read(&self, path: &[u8]) -> bool {
        let Some(areas) = &self.read else { return true };
        let allowed = areas.iter().chain(&self.write).any(|area| is_within(path, area));
        allowed || self.shared_memory.has(path) || DEVICES.contains(&path)
    }

    /// Returns whether the program may see what is at a path: it lies in a readable folder, or on the way to one.
    pub(crate) fn may_see(&self, path: &[u8]) -> bool {
        let on_the_way = |areas: &[Vec<u8>]| areas.iter().any(|area| is_within(area, path));
        self.may_read(path) || on_the_way(&self.write) || self.read.as_deref().is_some_and(on_the_way)
    }

    /// Returns whether a path lies in a writable folder other than the root.
    pub(crate) fn in_write_area(&self, path: &[u8]) -> bool {
        self.write.iter().any(|area| area.len() > 1 && is_within(path, area))
    }

    /// Passes if `allowed`; otherwise counts the refusal and returns `EACCES`.
    pub(crate) fn check(&self, allowed: bool, denied: Denied, path: &[u8]) -> Result<(), Errno> {
        if allowed { Ok(()) } else { Err(self.refuse(denied, path)) }
    }

    /// Passes if the file system with this device number, on which `path` lies, holds ordinary files.
    pub(crate) fn check_file_system(&self, device: u64, path: &[u8]) -> Result<(), Errno> {
        if !self.file_systems.borrow().contains(&device) {
            Handle::new(self, path)?;
            self.file_systems.borrow_mut().insert(device);
        }
        Ok(())
    }

    /// Returns whether the program may use the host's network.
    pub(crate) fn allows_network(&self) -> bool {
        self.network
    }

    pub(crate) fn check_network(&self) -> Result<(), Errno> {
        self.check(self.network, Denied::Network, b"")
    }

    fn refuse(&self, denied: Denied, path: &[u8]) -> Errno {
        let mut refused = self.refused.borrow_mut();
        let folder = path.iter().rposition(|&b| b == b'/').map_or(&b""[..], |at| &path[..at.max(1)]);
        let key = (denied, folder.to_vec());
        let key = if refused.len() < MAX_REFUSALS || refused.contains_key(&key) { key } else { (denied, Vec::new()) };
        *refused.entry(key).or_default() += 1;
        Errno::ACCESS
    }

    pub(crate) fn refusals(&self) -> Vec<Refusal> {
        let refusal = |(&(denied, ref folder), &calls): (&(Denied, Vec<u8>), &u64)| {
            let folder = PathBuf::from(OsStr::from_bytes(folder));
            Refusal { denied, folder, calls }
        };
        self.refused.borrow().iter().map(refusal).collect()
    }
}

/// Returns whether a file opened with these flags can be written.
pub(crate) fn writes(flags: OFlags) -> bool {
    flags & OFlags::RWMODE != OFlags::RDONLY || flags.contains(OFlags::TRUNC)
}

/// Returns the path without symbolic links; unchanged if nothing is there yet.
pub(crate) fn real_path(path: &Path) -> Vec<u8> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real.as_os_str().as_bytes().to_vec()
}

/// Returns whether a path is that of a device without state on the host.
pub(crate) fn is_stateless_device(path: &[u8]) -> bool {
    DEVICES.contains(&path)
}

/// Returns whether `path` is `folder` or lies below it; both without symbolic links, `.`, `..` and final slash.
pub(crate) fn is_within(path: &[u8], folder: &[u8]) -> bool {
    match path.strip_prefix(folder) {
        Some(rest) => rest.is_empty() || rest.starts_with(b"/") || folder.ends_with(b"/"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(read: Option<&[&str]>, write: &[&str]) -> Policy {
        let list = |folders: &[&str]| folders.iter().map(PathBuf::from).collect();
        Policy::new(&Access { read: read.map(list), write: list(write), ..Access::sandbox() }, None)
    }

    #[test]
    fn writing_is_allowed_only_below_a_writable_folder() {
        let p = policy(None, &["/no/such/a"]);
        assert!(p.may_write(b"/no/such/a/file") && p.may_write(b"/dev/null"));
        for path in [&b"/no/such/a"[..], b"/no/such/ab", b"/no/such", b"/", b"/etc/passwd", b"/dev/sda"] {
            assert!(!p.may_write(path), "{}", path.escape_ascii());
        }
        assert!(p.may_read(b"/etc/passwd"));
    }

    #[test]
    fn a_protected_folder_in_a_writable_one_is_not_changed_and_stays_where_it_is() {
        let access = Access {
            write: vec!["/no/such/a".into()],
            protected: vec!["/no/such/a/b/kept".into()],
            ..Access::standard()
        };
        let p = Policy::new(&access, None);
        assert!(p.may_change(b"/no/such/a/b/other") && p.may_create_in(b"/no/such/a/b"));
        for path in [&b"/no/such/a/b/kept"[..], b"/no/such/a/b/kept/file", b"/no/such/a/b"] {
            assert!(!p.may_change(path), "{}", path.escape_ascii());
        }
        assert!(!p.may_create_in(b"/no/such/a/b/kept") && p.may_read(b"/no/such/a/b/kept/file"));
    }

    #[test]
    fn devices_may_be_opened_but_not_changed() {
        for p in [policy(None, &["/no/such/a"]), policy(Some(&[]), &[])] {
            assert!(p.may_write(b"/dev/null") && !p.may_change(b"/dev/null"));
        }
        assert!(policy(None, &[]).may_write(b"/dev/tty") && !policy(None, &[]).may_change(b"/dev/tty"));
    }

    #[test]
    fn everything_may_be_written_below_the_root() {
        let p = policy(None, &["/"]);
        assert!(p.may_write(b"/etc/passwd") && !p.may_write(b"/"));
        assert!(!p.in_write_area(b"/etc/passwd"), "a sysroot still has precedence");
    }

    #[test]
    fn a_sandbox_shows_allowed_files_and_the_folders_on_the_way() {
        let p = policy(Some(&["/no/lib"]), &[]);
        assert!(p.may_read(b"/no/lib/libc.so") && p.may_see(b"/no") && p.may_see(b"/"));
        assert!(!p.may_read(b"/no") && !p.may_see(b"/no/other") && !p.may_write(b"/dev/tty"));
    }

    #[test]
    fn refusals_are_counted_by_folder_and_their_number_is_bounded() {
        let p = policy(None, &[]);
        for n in 0..30 {
            assert_eq!(p.check(false, Denied::Write, format!("/{n:02}/file").as_bytes()), Err(Errno::ACCESS));
        }
        assert_eq!(p.check(false, Denied::Write, b"/00/other"), Err(Errno::ACCESS));
        let refusals = p.refusals();
        assert_eq!(refusals.len(), MAX_REFUSALS + 1);
        let first = Refusal { denied: Denied::Write, folder: "/00".into(), calls: 2 };
        assert!(refusals.contains(&first));
        assert!(refusals.contains(&Refusal { denied: Denied::Write, folder: PathBuf::new(), calls: 10 }));
    }
}
