//! The program's standard streams across snapshots: those that are files continue where they were.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use fxscope_linux::Stdio;
use serde::{Deserialize, Serialize};

/// A regular file that is a standard stream, as it was at a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StreamFile {
    path: PathBuf,
    inode: u64,
    bytes: u64,
    /// When it was last changed: seconds since 1970, and ns.
    changed: (i64, i64),
    /// Where the next byte is read or written.
    position: u64,
}

impl StreamFile {
    /// Returns what a stream is now; `None`: no regular file with a name.
    fn of(stream: &OwnedFd) -> Option<StreamFile> {
        let mut file = File::from(stream.try_clone().ok()?);
        let about = file.metadata().ok().filter(|about| about.is_file() && about.nlink() > 0)?;
        let link =
            rustix::fs::readlink(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file)), Vec::new());
        let path = PathBuf::from(link.ok()?.into_string().ok()?);
        let position = file.stream_position().ok()?;
        let changed = (about.mtime(), about.mtime_nsec());
        Some(StreamFile { path, inode: about.ino(), bytes: about.len(), changed, position })
    }

    /// Opens the file, of which nothing may have changed, at its position.
    fn reopened(&self) -> Result<OwnedFd, String> {
        let why =
            |what: String| format!("standard input was {}, which {what}; put it back as it was", self.path.display());
        let mut file = File::open(&self.path).map_err(|error| why(format!("cannot be opened ({error})")))?;
        let about = file.metadata().map_err(|error| why(error.to_string()))?;
        if (about.ino(), about.len(), (about.mtime(), about.mtime_nsec())) != (self.inode, self.bytes, self.changed) {
            return Err(why("has changed since the snapshot".to_owned()));
        }
        file.seek(SeekFrom::Start(self.position)).map_err(|error| why(error.to_string()))?;
        Ok(file.into())
    }

    /// If `stream` is this file, cuts off what was written after the snapshot, and continues at the position then.
    fn continue_in(&self, stream: &OwnedFd) -> io::Result<()> {
        let mut file = File::from(stream.try_clone()?);
        let about = file.metadata()?;
        if !about.is_file() || about.ino() != self.inode || about.len() < self.bytes {
            return Ok(());
        }
        if about.len() > self.bytes {
            file.set_len(self.bytes)?;
        }
        file.seek(SeekFrom::Start(self.position)).map(drop)
    }
}

/// The standard streams at a snapshot: 0 to 2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StreamFiles([Option<StreamFile>; 3]);

impl StreamFiles {
    pub(super) fn of(stdio: &Stdio) -> StreamFiles {
        StreamFiles([&stdio.input, &stdio.output, &stdio.error].map(StreamFile::of))
    }

    /// Returns standard input at its place, if it was a file.
    ///
    /// # Errors
    /// When the file is not what it was.
    pub(super) fn input(&self) -> Result<Option<OwnedFd>, String> {
        self.0[0].as_ref().map(StreamFile::reopened).transpose()
    }

    /// Continues the outputs that are the files they were.
    ///
    /// # Errors
    /// The host's.
    pub(super) fn continue_outputs(&self, stdio: &Stdio) -> io::Result<()> {
        let outputs = self.0[1..].iter().zip([&stdio.output, &stdio.error]);
        outputs
            .filter_map(|(file, stream)| Some((file.as_ref()?, stream)))
            .try_for_each(|(file, stream)| file.continue_in(stream))
    }

    /// Returns the path of standard output, if it is a file.
    pub(super) fn output(&self) -> Option<&PathBuf> {
        self.0[1].as_ref().map(|file| &file.path)
    }
}

/// Returns a second handle of standard streams.
pub(crate) fn duplicate(stdio: &Stdio) -> io::Result<Stdio> {
    Ok(Stdio { input: stdio.input.try_clone()?, output: stdio.output.try_clone()?, error: stdio.error.try_clone()? })
}
