//! Explains why a file cannot be written.

use std::io;

use rustix::process::{Resource, getrlimit};

/// Returns the maximum size of a file that this process may write, in bytes (`ulimit -f`); `None` without a limit.
#[must_use]
pub fn file_size_limit() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// Describes why a file cannot be written, and what to do.
#[must_use]
pub fn write_error(error: &io::Error) -> String {
    match (error.kind(), file_size_limit()) {
        (io::ErrorKind::FileTooLarge, Some(limit)) => format!(
            "file size limit (ulimit -f) reached: {limit} bytes; nothing was written; raise the limit or write less"
        ),
        _ => format!("cannot be written ({error}); check the path, its permissions and its free space"),
    }
}
