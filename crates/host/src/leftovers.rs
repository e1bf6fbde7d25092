//! Temporary files and folders that outlive a run only when it is killed, and are removed by the next one.
//!
//! Each is locked (`flock`) as long as its run lives; the system gives the lock back whatever ends the run. One whose lock is
//! free is dead. Between making one and locking it another run may take it for dead: then it is made again.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use tempfile::{Builder, TempDir};

/// What drafts are called: beside the file whose place they are to take.
const DRAFT: (&str, &str) = (".fxscope-", ".tmp");
/// Tries to make one that nobody takes for dead.
const TRIES: usize = 100;

/// The name of a draft.
pub(crate) fn draft_name(number: u64) -> String {
    format!("{}{number:016x}{}", DRAFT.0, DRAFT.1)
}

/// Removes drafts in `folder` of runs of this user that were killed.
pub(crate) fn remove_dead_drafts(folder: &Path) {
    remove_dead(folder, &is_draft);
}

fn is_draft(name: &str) -> bool {
    name.starts_with(DRAFT.0) && name.ends_with(DRAFT.1)
}

/// A folder of this run alone, removed when it is dropped.
#[derive(Debug)]
pub struct PrivateFolder {
    folder: TempDir,
    /// Its lock.
    _held: File,
}

impl PrivateFolder {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Makes an empty folder in `parent` whose name begins with `prefix`.
///
/// # Errors
/// When it cannot be made.
pub fn private_folder_in(parent: &Path, prefix: &str) -> io::Result<PrivateFolder> {
    for _ in 0..TRIES {
        let folder = Builder::new().prefix(prefix).tempdir_in(parent)?;
        // Another run may take it for dead before it is locked.
        let Ok(held) = File::open(folder.path()) else { continue };
        if hold(&held, folder.path())? {
            return Ok(PrivateFolder { folder, _held: held });
        }
    }
    Err(io::Error::other("other runs remove it as soon as it is made"))
}

/// Removes the folders of this user in `parent` whose names begin with `prefix` and that no run holds any more.
pub fn remove_dead_folders(parent: &Path, prefix: &str) {
    remove_dead(parent, &|name| name.starts_with(prefix));
}

/// Locks a file or folder. Whether it is still what its path names.
fn hold(file: &File, path: &Path) -> io::Result<bool> {
    // Where there are no locks, as in some network file systems, nobody takes it for dead.
    if file.lock().is_err() {
        return Ok(true);
    }
    Ok(is_same(&file.metadata()?, path))
}

/// Whether `path` names this file.
fn is_same(metadata: &Metadata, path: &Path) -> bool {
    let named = fs::symlink_metadata(path);
    named.is_ok_and(|named| (named.dev(), named.ino()) == (metadata.dev(), metadata.ino()))
}

/// Removes what nobody holds in `folder`, of this user and with a name that `is_ours`.
fn remove_dead(folder: &Path, is_ours: &dyn Fn(&str) -> bool) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_ours));
    for path in named.map(|entry| entry.path()) {
        let Some((_held, metadata)) = dead(&path) else { continue };
        // What cannot be removed, as files of another user in it, stays.
        let _ = if metadata.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
}

/// A file or folder of this user that nobody holds, locked now.
fn dead(path: &Path) -> Option<(File, Metadata)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    let own = metadata.uid() == rustix::process::geteuid().as_raw() && (metadata.is_dir() || metadata.is_file());
    (own && file.try_lock().is_ok() && is_same(&metadata, path)).then_some((file, metadata))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::output::{Found, OutputFile};

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("readable").flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn folders_that_nobody_holds_are_removed_and_those_of_living_runs_stay() {
        let parent = tempfile::tempdir().expect("a folder");
        let alive = private_folder_in(parent.path(), "fxscope-shm-").expect("made");
        fs::write(alive.path().join("object"), "x").expect("written");
        let dead = parent.path().join("fxscope-shm-dead");
        fs::create_dir_all(dead.join("deep")).expect("made");
        fs::write(dead.join("deep/object"), "x").expect("written");
        fs::create_dir(parent.path().join("another")).expect("made");
        let elsewhere = tempfile::tempdir().expect("a folder");
        fs::write(elsewhere.path().join("kept"), "x").expect("written");
        std::os::unix::fs::symlink(elsewhere.path(), parent.path().join("fxscope-shm-link")).expect("made");
        remove_dead_folders(parent.path(), "fxscope-shm-");
        let alive_name = alive.path().file_name().expect("a name").to_string_lossy().into_owned();
        let mut expected = vec!["another".to_owned(), "fxscope-shm-link".to_owned(), alive_name];
        expected.sort();
        assert_eq!(names(parent.path()), expected);
        assert_eq!(names(elsewhere.path()), ["kept"]);
        drop(alive);
        assert_eq!(names(parent.path()), ["another", "fxscope-shm-link"]);
    }

    fn output(path: &Path) -> OutputFile {
        match OutputFile::find(path).expect("can be written") {
            Found::File(file) => file,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn drafts_that_nobody_holds_are_removed_when_the_next_output_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in [".fxscope-dead.tmp", "kept.tmp", ".fxscope-x.txt"] {
            fs::write(folder.path().join(name), "x").expect("written");
        }
        fs::create_dir(folder.path().join(".fxscope-database.tmp")).expect("made");
        fs::write(folder.path().join(".fxscope-database.tmp/draft-journal"), "x").expect("written");
        let written = output(&folder.path().join("record")).replace(|out| {
            output(&folder.path().join("other"));
            assert_eq!(names(folder.path()).len(), 3, "the draft of a living run stays");
            out.write_all(b"whole")
        });
        written.expect("written");
        assert_eq!(names(folder.path()), [".fxscope-x.txt", "kept.tmp", "record"]);
    }

    #[test]
    fn runs_that_start_at_once_never_lose_a_folder_or_an_output_to_each_other() {
        let parent = tempfile::tempdir().expect("a folder");
        let run = || {
            for _ in 0..100 {
                remove_dead_folders(parent.path(), "run-");
                let folder = private_folder_in(parent.path(), "run-").expect("made");
                fs::write(folder.path().join("object"), "x").expect("the folder is there");
                output(&parent.path().join("result")).replace(|out| out.write_all(b"whole")).expect("written");
                assert!(folder.path().join("object").exists());
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(run))));
        assert_eq!(names(parent.path()), ["result"]);
    }
}
