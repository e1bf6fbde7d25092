//! The files that a program sees, and which of them it may access.
//!
//! A path leads to one of four places: the simulated `/proc`, `/sys` and `/dev` ([`tree`]), the run's private `/dev/shm`
//! ([`shared_memory`]), the sysroot, or the host. [`resolve`] follows it one component at a time, including symbolic links, and
//! returns a host path without any; [`access`] decides whether the program may read or write there. System calls then act on a
//! [`handle`] for exactly that file: the host follows no link on the way.

pub(crate) mod access;
pub(crate) mod commands;
pub(crate) mod handle;
mod libraries;
mod netfs;
mod procfs;
pub(crate) mod resolve;
pub(crate) mod shared_memory;
pub(crate) mod sysfs;
mod sysvfs;
pub(crate) mod tree;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use access::{Access, Policy};
use handle::Handle;
use shared_memory::SharedFolder;
use tree::{Node, Tree};

/// Location of the libraries of the AArch64 cross compilers in Debian and its derivatives.
const CROSS_SYSROOT: &str = "/usr/aarch64-linux-gnu";

/// Returns the default sysroot: the cross compilers', unless the host itself has AArch64 libraries.
#[must_use]
pub fn default_sysroot() -> Option<PathBuf> {
    let cross = Path::new(CROSS_SYSROOT);
    (!cfg!(target_arch = "aarch64") && cross.is_dir()).then(|| cross.to_owned())
}

/// Returns the host path of an absolute path within a sysroot, whose links do not lead out of it; `None` if it does not exist.
#[must_use]
pub fn in_sysroot(sysroot: &Path, path: &Path) -> Option<PathBuf> {
    resolve::inside(sysroot, path.as_os_str().as_bytes())
}

/// The origin of an open file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Origin {
    /// The host, or a pipe or socket.
    Host,
    /// The simulated machine's memory: `memfd_create`, or a file below `/dev/shm`.
    Memory,
    /// The sysroot, which is the root of the program's paths.
    Sysroot,
    /// The simulated `/proc`, `/sys` or `/dev`.
    Simulated(Node),
}

/// How a program's paths resolve to files.
pub(crate) struct View {
    /// The sysroot's real path.
    sysroot: Option<Vec<u8>>,
    pub(crate) policy: Policy,
    pub(crate) tree: Tree,
}

impl View {
    pub(crate) fn new(sysroot: Option<&Path>, access: &Access, shared_folder: Option<Arc<SharedFolder>>) -> View {
        let policy = Policy::new(access, shared_folder);
        View { sysroot: sysroot.map(access::real_path), policy, tree: Tree::default() }
    }

    /// Returns the host path of a file that a program's header names: in the sysroot if it is there.
    ///
    /// # Errors
    /// The host's; `ENOENT` when it is in neither, `EACCES` when it is not a regular file.
    pub(crate) fn find(&self, path: &[u8]) -> std::io::Result<PathBuf> {
        let sysroot = self.sysroot.as_deref().map(|sysroot| OsStr::from_bytes(sysroot).to_owned());
        let inside = sysroot.and_then(|sysroot| resolve::inside(Path::new(&sysroot), path));
        let found = inside.map_or_else(|| std::fs::canonicalize(OsStr::from_bytes(path)), Ok)?;
        let handle = Handle::new(&self.policy, found.as_os_str().as_bytes())?;
        if handle.kind() == FileType::RegularFile { Ok(found) } else { Err(Errno::ACCESS.into()) }
    }

    /// Returns the folders in which absolute paths are looked up, for messages.
    pub(crate) fn searched(&self) -> String {
        match &self.sysroot {
            Some(sysroot) => format!("{}, then the host's own folders", String::from_utf8_lossy(sysroot)),
            None => "the host's own folders".to_owned(),
        }
    }

    /// Returns the program's path for a host path, as seen from a file of this origin.
    pub(crate) fn guest_path(&self, host: Vec<u8>, origin: &Origin) -> Vec<u8> {
        match (origin, &self.sysroot) {
            (Origin::Sysroot, Some(sysroot)) => match host.strip_prefix(&sysroot[..]) {
                Some(b"") => b"/".to_vec(),
                Some(rest) => rest.to_vec(),
                None => host,
            },
            (Origin::Simulated(node), _) => node.path.clone(),
            _ => self.policy.shared_memory.guest_path(host),
        }
    }
}
