//! Files that cannot be written.

use std::io;

use rustix::process::{Resource, getrlimit};

/// The largest size that this process may give a file, bytes (`ulimit -f`); `None` without a limit.
#[must_use]
pub fn file_size_limit() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// What is wrong with a file that cannot be written, and what to do.
#[must_use]
pub fn write_error(error: &io::Error) -> String {
    match (error.kind(), file_size_limit()) {
        (io::ErrorKind::FileTooLarge, Some(limit)) => format!(
            "file size limit (ulimit -f) reached, which is {limit} bytes, and nothing was written; raise it, or write less"
        ),
        _ => format!("cannot be written ({error}); check the path, its permissions and the free space there"),
    }
}
