//! `/dev/shm`: memory of the simulated machine.
//!
//! Each run has a private host folder for it, initially empty and deleted afterwards; the next run deletes the folder of a killed
//! one. Programs name their objects there by process numbers, which are the same in every run: in a shared folder, runs would
//! find each other's leftovers.

use std::cell::{Cell, OnceCell};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Once};

use fxscope_host::{PrivateFolder, private_folder_in, remove_dead_folders};
use rustix::io::Errno;

use super::access::is_within;

/// Its path for the program.
pub(crate) const PLACE: &[u8] = b"/dev/shm";

/// Prefix of the folders' names, and their parent folder if the host has room there.
const PREFIX: &str = "fxscope-shm-";
const PARENT: &str = "/dev/shm";

/// A host folder with the `/dev/shm` of one run, initially empty. It is deleted when dropped.
pub struct SharedFolder(PrivateFolder);

impl SharedFolder {
    /// Creates one; `None` if the host has no room for it. The first call in a process deletes the folders of killed runs.
    #[must_use]
    pub fn make() -> Option<SharedFolder> {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| {
            for parent in [Path::new(PARENT), &std::env::temp_dir()] {
                remove_dead_folders(parent, PREFIX);
            }
        });
        make().map(SharedFolder)
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// The folder of a run, created when the program first accesses it unless it already exists.
#[derive(Default)]
pub(crate) struct SharedMemory {
    folder: OnceCell<Option<Arc<SharedFolder>>>,
    /// Upper bound of the number of names: those at the last count plus those created since.
    names: Cell<u64>,
}

impl SharedMemory {
    /// Returns shared memory in this folder.
    pub(super) fn within(folder: Arc<SharedFolder>) -> SharedMemory {
        SharedMemory { folder: OnceCell::from(Some(folder)), names: Cell::new(0) }
    }

    /// Returns the host path for a program path: unchanged, except below `/dev/shm` if the run has a folder for it.
    pub(super) fn host_path(&self, path: Vec<u8>) -> Vec<u8> {
        if !is_within(&path, PLACE) {
            return path;
        }
        match self.folder.get_or_init(|| SharedFolder::make().map(Arc::new)) {
            Some(folder) => [folder.path().as_os_str().as_bytes(), &path[PLACE.len()..]].concat(),
            None => path,
        }
    }

    /// Returns the program path for a host path.
    pub(super) fn guest_path(&self, path: Vec<u8>) -> Vec<u8> {
        match self.folder().and_then(|folder| path.strip_prefix(folder)) {
            Some(rest) => [PLACE, rest].concat(),
            None => path,
        }
    }

    /// Returns whether a host path is the folder or lies below it.
    pub(crate) fn has(&self, path: &[u8]) -> bool {
        self.folder().is_some_and(|folder| is_within(path, folder))
    }

    /// Returns whether a host path lies below the folder.
    pub(super) fn has_below(&self, path: &[u8]) -> bool {
        self.has(path) && self.folder() != Some(path)
    }

    /// Sets the bound of the number of names to what it was.
    pub(crate) fn restore_names(&self, names: u64) {
        self.names.set(names);
    }

    /// Returns an upper bound of the number of names.
    pub(crate) fn names(&self) -> u64 {
        self.names.get()
    }

    /// Accounts for a name about to be created at a host path. At most `most` are allowed.
    ///
    /// # Errors
    /// `ENOSPC` when that many exist.
    pub(crate) fn add_name(&self, path: &[u8], most: u64) -> Result<(), Errno> {
        if !self.has_below(path) {
            return Ok(());
        }
        if self.names.get() >= most {
            self.names.set(self.folder().map_or(0, |folder| count_names(Path::new(OsStr::from_bytes(folder)))));
        }
        if self.names.get() >= most {
            return Err(Errno::NOSPC);
        }
        self.names.set(self.names.get() + 1);
        Ok(())
    }

    /// Returns the host path of the folder, if it has been created.
    pub(crate) fn folder(&self) -> Option<&[u8]> {
        Some(self.folder.get()?.as_ref()?.path().as_os_str().as_bytes())
    }
}

/// Counts the names in a folder and its subfolders.
fn count_names(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        1 + if is_folder { count_names(&entry.path()) } else { 0 }
    };
    entries.map(of).sum()
}

/// Creates a folder in the host's memory, or among its temporary files.
fn make() -> Option<PrivateFolder> {
    let made = private_folder_in(Path::new(PARENT), PREFIX);
    let made = made.or_else(|_| private_folder_in(&std::env::temp_dir(), PREFIX)).ok()?;
    // Resolve links once.
    let real = made.path().canonicalize().ok()?;
    (real == made.path()).then_some(made)
}
