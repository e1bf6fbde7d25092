//! Files that are replaced atomically, and located before there is anything to write.
//!
//! The folder is kept open from then on. All later work goes through its handle and not through a path, so that nobody can
//! redirect it in the meantime: a simulated program may write to that folder, too.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::leftovers::{draft_name, remove_dead_drafts};

/// The location of an output file.
#[derive(Debug)]
pub struct OutputFile {
    folder: OwnedFd,
    name: OsString,
    path: PathBuf,
}

/// What exists at an output path.
#[derive(Debug)]
pub enum Found {
    /// Nothing yet, or a writable regular file.
    File(OutputFile),
    /// A folder.
    Folder,
    /// A device, a pipe or a socket.
    Stream,
}

impl OutputFile {
    /// Examines what is at `path`, following symbolic links. Changes nothing.
    ///
    /// # Errors
    /// The host's, when the file could not be written.
    pub fn find(path: &Path) -> io::Result<Found> {
        match std::fs::metadata(path) {
            Ok(data) if data.is_dir() => Ok(Found::Folder),
            Ok(data) if data.is_file() => {
                OpenOptions::new().write(true).open(path)?;
                // A symbolic link stays; the file it points to is replaced.
                OutputFile::at(std::fs::canonicalize(path)?).map(Found::File)
            }
            Ok(_) => Ok(Found::Stream),
            Err(error) if error.kind() == io::ErrorKind::NotFound => OutputFile::at(path.to_owned()).map(Found::File),
            Err(error) => Err(error),
        }
    }

    fn at(path: PathBuf) -> io::Result<OutputFile> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, folder, flags, Mode::empty())?;
        let place = OutputFile { folder, name, path };
        remove_dead_drafts(
            place.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        );
        // Only creating a file shows whether one can be created there.
        Draft::new(&place.folder)?;
        Ok(place)
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the regular file that is there now; `None` if there is none.
    ///
    /// # Errors
    /// The host's; also when there is a symbolic link, a device or a pipe.
    pub fn current(&self) -> io::Result<Option<File>> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            opened => File::from(opened?),
        };
        if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(io::Error::other("is no longer a regular file")) }
    }

    /// Returns whether `file` is the one that is there now.
    ///
    /// # Errors
    /// The host's.
    pub fn is(&self, file: &File) -> io::Result<bool> {
        same(&self.folder, &self.name, file)
    }

    /// Replaces the file atomically by what `write` writes: afterwards it has either the complete new contents or the old ones.
    ///
    /// # Errors
    /// Those of `write`, and the host's.
    pub fn replace(&self, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        let draft = self.written(write)?;
        rustix::fs::renameat(&self.folder, &draft.name, &self.folder, &self.name)?;
        draft.keep();
        Ok(())
    }

    /// Creates the file atomically, if nothing is there yet.
    ///
    /// # Errors
    /// Those of [`OutputFile::replace`]; [`io::ErrorKind::AlreadyExists`] when something is there.
    pub fn create(&self, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        let draft = self.written(write)?;
        match rustix::fs::renameat_with(&self.folder, &draft.name, &self.folder, &self.name, RenameFlags::NOREPLACE) {
            // Some file systems cannot do this in one step.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(&self.folder, &draft.name, &self.folder, &self.name, AtFlags::empty())?;
            }
            renamed => {
                renamed?;
                draft.keep();
            }
        }
        Ok(())
    }

    fn written(&self, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<Draft<'_>> {
        let mut draft = Draft::new(&self.folder)?;
        if let Some(current) = self.current().ok().flatten() {
            draft.file.set_permissions(current.metadata()?.permissions())?;
        }
        write(&mut draft.file)?;
        draft.file.sync_all()?;
        if same(&self.folder, OsStr::new(&draft.name), &draft.file)? {
            Ok(draft)
        } else {
            Err(io::Error::other("another program has replaced what was written"))
        }
    }
}

fn same(folder: &OwnedFd, name: &OsStr, file: &File) -> io::Result<bool> {
    let open = rustix::fs::fstat(file)?;
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (open.st_dev, open.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A new file that is deleted unless it is kept, locked as all drafts of living runs are.
struct Draft<'f> {
    folder: &'f OwnedFd,
    name: String,
    file: File,
    kept: bool,
}

impl Draft<'_> {
    fn new(folder: &OwnedFd) -> io::Result<Draft<'_>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let mut random = [0; 8];
            rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
            let name = draft_name(u64::from_ne_bytes(random));
            let file = match rustix::fs::openat(folder, &name, flags, Mode::from_raw_mode(0o666)) {
                Err(Errno::EXIST) => continue,
                made => File::from(made?),
            };
            // Without locks, no run takes it for stale. With locks, another run may have removed it before this one had the lock.
            if file.lock().is_err() || same(folder, OsStr::new(&name), &file)? {
                return Ok(Draft { folder, name, file, kept: false });
            }
        }
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.kept {
            // Without permission to delete it, it remains.
            let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    fn file(path: &Path) -> OutputFile {
        match OutputFile::find(path).expect("can be written") {
            Found::File(file) => file,
            other => panic!("{other:?}"),
        }
    }

    fn names(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).expect("readable").map(|entry| entry.expect("entry").file_name()).collect()
    }

    #[test]
    fn a_folder_replaced_by_a_link_in_the_meantime_is_still_the_one_written_to() {
        let base = tempfile::tempdir().expect("folder");
        let (here, moved, elsewhere) = (base.path().join("out"), base.path().join("moved"), base.path().join("else"));
        fs::create_dir(&here).expect("folder");
        fs::create_dir(&elsewhere).expect("folder");
        fs::write(elsewhere.join("result"), "intact").expect("file");
        let output = file(&here.join("result"));
        fs::rename(&here, &moved).expect("moved");
        std::os::unix::fs::symlink(&elsewhere, &here).expect("link");
        output.replace(|out| out.write_all(b"new")).expect("written");
        assert_eq!(fs::read_to_string(elsewhere.join("result")).expect("there"), "intact");
        assert_eq!(fs::read_to_string(moved.join("result")).expect("there"), "new");
    }

    #[test]
    fn a_link_in_place_of_the_file_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().expect("folder");
        let (path, victim) = (folder.path().join("result"), folder.path().join("victim"));
        fs::write(&victim, "intact").expect("file");
        let output = file(&path);
        std::os::unix::fs::symlink(&victim, &path).expect("link");
        assert!(output.current().is_err() && output.create(|_| Ok(())).is_err());
        output.replace(|out| out.write_all(b"new")).expect("written");
        assert_eq!(fs::read_to_string(&victim).expect("there"), "intact");
        assert!(fs::symlink_metadata(&path).expect("there").is_file());
    }

    #[test]
    fn a_failed_write_leaves_the_old_contents_and_no_draft() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("result");
        fs::write(&path, "before").expect("file");
        let output = file(&path);
        assert_eq!(names(folder.path()), ["result"]);
        let failed = output.replace(|out| out.write_all(b"half").and(Err(io::ErrorKind::StorageFull.into())));
        assert_eq!(failed.map_err(|e| e.kind()), Err(io::ErrorKind::StorageFull));
        assert_eq!((fs::read_to_string(&path).expect("there").as_str(), names(folder.path()).len()), ("before", 1));
    }

    #[test]
    fn the_target_of_a_link_is_replaced_and_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("folder");
        let (path, link) = (folder.path().join("result"), folder.path().join("link"));
        fs::write(&path, "before").expect("file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("own file");
        std::os::unix::fs::symlink("result", &link).expect("link");
        file(&link).replace(|out| out.write_all(b"after")).expect("written");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(&path).expect("there"), "after");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn folders_and_streams_are_distinguished() {
        assert!(matches!(OutputFile::find(Path::new("/tmp")), Ok(Found::Folder)));
        assert!(matches!(OutputFile::find(Path::new("/dev/null")), Ok(Found::Stream)));
        assert!(OutputFile::find(Path::new("/no/such/folder/file")).is_err());
    }
}
