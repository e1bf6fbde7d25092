//! The files that a program sees: a sysroot before the host's.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Where Debian and its relatives keep the libraries that come with the AArch64 cross compilers.
const CROSS_SYSROOT: &str = "/usr/aarch64-linux-gnu";

/// The sysroot to use when none is named: the cross compilers', unless the host itself has AArch64 libraries.
#[must_use]
pub fn default_sysroot() -> Option<PathBuf> {
    let cross = Path::new(CROSS_SYSROOT);
    (!cfg!(target_arch = "aarch64") && cross.is_dir()).then(|| cross.to_owned())
}

/// How a program's paths lead to the host's files.
pub(crate) struct View {
    sysroot: Option<PathBuf>,
}

impl View {
    pub(crate) fn new(sysroot: Option<PathBuf>) -> View {
        View { sysroot }
    }

    /// The host's path for a path of the program: an absolute one leads into the sysroot if it exists there.
    pub(crate) fn host_path(&self, path: Vec<u8>) -> Vec<u8> {
        let Some(sysroot) = self.sysroot.as_ref().filter(|_| path.starts_with(b"/")) else { return path };
        let inside = [sysroot.as_os_str().as_bytes(), &path].concat();
        if rustix::fs::lstat(&inside).is_ok() { inside } else { path }
    }

    /// The folders that absolute paths are looked up in, for messages.
    pub(crate) fn searched(&self) -> String {
        match &self.sysroot {
            Some(sysroot) => format!("{}, then the host's own folders", sysroot.display()),
            None => "the host's own folders".to_owned(),
        }
    }
}
