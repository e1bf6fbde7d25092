//! The files of a folder, by names relative to it, and written so that a name always stands for a whole file.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::Error;

/// The name of the file that says how the run was started, and of that which says that it has ended.
pub(crate) const RUN: &str = "run";
pub(crate) const ENDED: &str = "ended";
/// What names of files that are not whole yet end with.
const PART: &str = ".part";
const SNAPSHOT: &str = ".snapshot";
const PAGES: &str = ".pages";

/// The most bytes of a file that is read into memory.
const MOST: u64 = 4 << 30;

/// What a file of the folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Run,
    Ended,
    Snapshot(u64),
    Pages(u64),
    /// It was being written by a process that was killed.
    Part,
    Foreign,
}

impl Kind {
    pub(crate) fn of(name: &str) -> Kind {
        let number = |suffix: &str| {
            let digits = name.strip_suffix(suffix)?;
            let plain = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten()
        };
        match (name, number(SNAPSHOT), number(PAGES)) {
            (RUN, ..) => Kind::Run,
            (ENDED, ..) => Kind::Ended,
            (_, Some(number), _) => Kind::Snapshot(number),
            (_, _, Some(number)) => Kind::Pages(number),
            _ if name.ends_with(PART) => Kind::Part,
            _ => Kind::Foreign,
        }
    }
}

pub(crate) fn snapshot_name(number: u64) -> String {
    format!("{number:06}{SNAPSHOT}")
}

pub(crate) fn pages_name(number: u64) -> String {
    format!("{number:06}{PAGES}")
}

/// An open folder.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: Arc<OwnedFd>,
    path: PathBuf,
}

impl Store {
    /// Opens a folder.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn open(path: &Path) -> Result<Store, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
            Ok(folder) => Ok(Store { folder: Arc::new(folder), path: path.to_owned() }),
            Err(error) => Err(Error::Host { path: path.display().to_string(), source: error.into() }),
        }
    }

    /// Returns the folder's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file, for messages.
    pub(crate) fn path_of(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    /// Returns the host's error of a file as one of the folder.
    pub(crate) fn failed(&self, name: &str) -> impl Fn(io::Error) -> Error {
        let path = self.path_of(name);
        move |source| Error::Host { path: path.clone(), source }
    }

    /// Locks the folder for this process. Returns `false` if another has it. File systems without locks count as free.
    pub(crate) fn lock(&self) -> bool {
        !matches!(
            rustix::fs::flock(&*self.folder, rustix::fs::FlockOperation::NonBlockingLockExclusive),
            Err(Errno::WOULDBLOCK)
        )
    }

    /// Returns the names of all files that are UTF-8; others are [`Kind::Foreign`] anyway and shown with replacements.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&*self.folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Opens a regular file for reading.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&*self.folder, name, flags, Mode::empty())?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        if kind == FileType::RegularFile { Ok(file.into()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Reads a file.
    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if self.file(name)?.take(MOST).read_to_end(&mut bytes)? as u64 == MOST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes)
    }

    /// Returns whether there is something of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&*self.folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Begins a file that gets its name with [`Draft::keep`].
    pub(crate) fn draft(&self, name: &str) -> io::Result<Draft> {
        let part = format!("{name}{PART}");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&*self.folder, &part, flags, Mode::from_raw_mode(0o666))?;
        Ok(Draft { store: self.clone(), file: file.into(), name: name.to_owned(), part, kept: false })
    }

    /// Creates a file, or replaces it; afterwards it is on the disk.
    pub(crate) fn write(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        let mut draft = self.draft(name)?;
        draft.file.write_all(contents)?;
        draft.keep()?;
        self.sync()
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&*self.folder, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Waits until the names of the folder are on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(&*self.folder) {
            // File systems that cannot do this for a folder write its names themselves.
            Err(Errno::INVAL) => Ok(()),
            synced => Ok(synced?),
        }
    }
}

/// A file without its name. It is removed when it is dropped before it has been kept.
pub(crate) struct Draft {
    store: Store,
    pub file: File,
    name: String,
    part: String,
    kept: bool,
}

impl Draft {
    /// Waits until the contents are on the disk, and gives the file its name.
    pub(crate) fn keep(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        rustix::fs::renameat(&*self.store.folder, &self.part, &*self.store.folder, &self.name)?;
        self.kept = true;
        Ok(())
    }
}

impl io::Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be removed now is removed by the next run that uses the folder.
            let _ = self.store.remove(&self.part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_files_are() {
        let named = ["run", "ended", "000012.snapshot", "1000000.pages", "000012.pages.part", "12.pages", "notes"];
        let kinds = [Kind::Run, Kind::Ended, Kind::Snapshot(12), Kind::Pages(1_000_000), Kind::Part, Kind::Foreign];
        assert_eq!(named.map(Kind::of)[..6], kinds);
        assert_eq!((Kind::of("notes"), Kind::of(&snapshot_name(7))), (Kind::Foreign, Kind::Snapshot(7)));
    }

    #[test]
    fn a_draft_that_is_not_kept_leaves_what_was_there() {
        let folder = tempfile::tempdir().expect("folder");
        let store = Store::open(folder.path()).expect("there");
        store.write("run", b"first").expect("written");
        store.draft("run").expect("begun").file.write_all(b"half").expect("written");
        assert_eq!(
            (store.read("run").expect("there"), store.names().expect("listed")),
            (b"first".to_vec(), vec!["run".to_owned()])
        );
    }
}
