//! `/dev/shm`: memory of the simulated machine.
//!
//! Each run has a folder of the host's for it, which is empty at first and gone afterwards; that of a run that was killed is
//! removed when the next one starts. Programs name their objects there by process numbers, which are the same in every run: in a
//! folder in common runs would find what others have left.

use std::cell::{Cell, OnceCell};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Once};

use fxscope_host::{PrivateFolder, private_folder_in, remove_dead_folders};
use rustix::io::Errno;

use super::access::is_within;

/// Where the program sees it.
pub(crate) const PLACE: &[u8] = b"/dev/shm";

/// What the folders of runs are called, and what they lie in where the host has room there.
const PREFIX: &str = "fxscope-shm-";
const PARENT: &str = "/dev/shm";

/// A folder of the host's that holds the `/dev/shm` of one run, empty at first. It is removed with this value.
pub struct SharedFolder(PrivateFolder);

impl SharedFolder {
    /// Makes one; `None`: the host has no room for it. The first one of this process removes the folders of runs that were
    /// killed.
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

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// The folder of a run, made when the program first looks there unless it was made before.
#[derive(Default)]
pub(crate) struct SharedMemory {
    folder: OnceCell<Option<Arc<SharedFolder>>>,
    /// Names made since they were counted last, and those that there were then: never less than there are.
    names: Cell<u64>,
}

impl SharedMemory {
    /// In this folder.
    pub(super) fn within(folder: Arc<SharedFolder>) -> SharedMemory {
        SharedMemory { folder: OnceCell::from(Some(folder)), names: Cell::new(0) }
    }

    /// The host's path for a path of the program: that itself, but for what is in `/dev/shm`, and there too where the host
    /// has no room for a folder.
    pub(super) fn host_path(&self, path: Vec<u8>) -> Vec<u8> {
        if !is_within(&path, PLACE) {
            return path;
        }
        match self.folder.get_or_init(|| SharedFolder::make().map(Arc::new)) {
            Some(folder) => [folder.path().as_os_str().as_bytes(), &path[PLACE.len()..]].concat(),
            None => path,
        }
    }

    /// The program's path for a path of the host.
    pub(super) fn guest_path(&self, path: Vec<u8>) -> Vec<u8> {
        match self.folder().and_then(|folder| path.strip_prefix(folder)) {
            Some(rest) => [PLACE, rest].concat(),
            None => path,
        }
    }

    /// Whether a path of the host is the folder or lies below it.
    pub(crate) fn has(&self, path: &[u8]) -> bool {
        self.folder().is_some_and(|folder| is_within(path, folder))
    }

    /// Whether a path of the host lies below the folder.
    pub(super) fn has_below(&self, path: &[u8]) -> bool {
        self.has(path) && self.folder() != Some(path)
    }

    /// How many names there are, at most.
    pub(crate) fn names(&self) -> u64 {
        self.names.get()
    }

    /// A name is about to be made at a path of the host. There may be `most` of them.
    ///
    /// # Errors
    /// `ENOSPC` when there are as many already.
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

    /// The host's path of the folder, once it has been made.
    pub(crate) fn folder(&self) -> Option<&[u8]> {
        Some(self.folder.get()?.as_ref()?.path().as_os_str().as_bytes())
    }
}

/// The names in a folder and in those below it.
fn count_names(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        1 + if is_folder { count_names(&entry.path()) } else { 0 }
    };
    entries.map(of).sum()
}

/// In the host's memory, or where its temporary files are.
fn make() -> Option<PrivateFolder> {
    let made = private_folder_in(Path::new(PARENT), PREFIX);
    let made = made.or_else(|_| private_folder_in(&std::env::temp_dir(), PREFIX)).ok()?;
    // Links on the way have been followed once for all.
    let real = made.path().canonicalize().ok()?;
    (real == made.path()).then_some(made)
}
