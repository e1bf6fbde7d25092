//! `/dev/shm`: memory of the simulated machine.
//!
//! Each run has a folder of the host's for it, which is empty at first and gone afterwards; that of a run that was killed is
//! removed when the next one starts. Programs name their objects there by process numbers, which are the same in every run: in a
//! folder in common runs would find what others have left.

use std::cell::OnceCell;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Once;

use fxscope_host::{PrivateFolder, private_folder_in, remove_dead_folders};

use super::access::is_within;

/// Where the program sees it.
pub(crate) const PLACE: &[u8] = b"/dev/shm";

/// What the folders of runs are called, and what they lie in where the host has room there.
const PREFIX: &str = "fxscope-shm-";
const PARENT: &str = "/dev/shm";

/// The folder of a run, made when the program first looks there.
pub(crate) struct SharedMemory {
    folder: OnceCell<Option<PrivateFolder>>,
}

impl SharedMemory {
    /// That of a new run. The first one of this process removes the folders of runs that were killed.
    pub(super) fn new() -> SharedMemory {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| {
            for parent in [Path::new(PARENT), &std::env::temp_dir()] {
                remove_dead_folders(parent, PREFIX);
            }
        });
        SharedMemory { folder: OnceCell::new() }
    }

    /// The host's path for a path of the program: that itself, but for what is in `/dev/shm`, and there too where the host
    /// has no room for a folder.
    pub(super) fn host_path(&self, path: Vec<u8>) -> Vec<u8> {
        if !is_within(&path, PLACE) {
            return path;
        }
        match self.folder.get_or_init(make) {
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

    /// The host's path of the folder, once it has been made.
    pub(crate) fn folder(&self) -> Option<&[u8]> {
        Some(self.folder.get()?.as_ref()?.path().as_os_str().as_bytes())
    }
}

/// In the host's memory, or where its temporary files are.
fn make() -> Option<PrivateFolder> {
    let made = private_folder_in(Path::new(PARENT), PREFIX);
    let made = made.or_else(|_| private_folder_in(&std::env::temp_dir(), PREFIX)).ok()?;
    // Links on the way have been followed once for all.
    let real = made.path().canonicalize().ok()?;
    (real == made.path()).then_some(made)
}
