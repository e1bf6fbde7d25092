//! Temporary files and folders of runs that were killed. The next run removes them.
//!
//! A run holds a lock (`flock`) on each of its own. The kernel releases the lock however the run ends, so one that is not locked
//! is stale. Between its creation and its lock, another run may take it for stale and remove it: then it is created again.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use tempfile::{Builder, TempDir};

/// Prefix and suffix of drafts, which are created next to the file that they will replace.
const DRAFT: (&str, &str) = (".fxscope-", ".tmp");
/// Attempts to create one that no other run removes.
const TRIES: usize = 100;

/// Returns the name of a draft.
pub(crate) fn draft_name(number: u64) -> String {
    format!("{}{number:016x}{}", DRAFT.0, DRAFT.1)
}

/// Removes drafts in `folder` that killed runs of this user left.
pub(crate) fn remove_dead_drafts(folder: &Path) {
    remove_dead(folder, &is_draft);
}

fn is_draft(name: &str) -> bool {
    name.starts_with(DRAFT.0) && name.ends_with(DRAFT.1)
}

/// A folder that only this run uses, removed when dropped.
#[derive(Debug)]
pub struct PrivateFolder {
    folder: TempDir,
    /// Its lock.
    _held: File,
}

impl PrivateFolder {
    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Creates an empty folder in `parent` whose name begins with `prefix`.
///
/// # Errors
/// When it cannot be created.
pub fn private_folder_in(parent: &Path, prefix: &str) -> io::Result<PrivateFolder> {
    for _ in 0..TRIES {
        let folder = Builder::new().prefix(prefix).tempdir_in(parent)?;
        // Before it is locked, another run may take it for stale.
        let Ok(held) = File::open(folder.path()) else { continue };
        if hold(&held, folder.path())? {
            return Ok(PrivateFolder { folder, _held: held });
        }
    }
    Err(io::Error::other("other runs remove it as soon as it is created"))
}

/// Removes this user's folders in `parent` whose names begin with `prefix` and that no run has locked.
pub fn remove_dead_folders(parent: &Path, prefix: &str) {
    remove_dead(parent, &|name| name.starts_with(prefix));
}

/// Locks a file or folder. Returns whether its path still names it.
fn hold(file: &File, path: &Path) -> io::Result<bool> {
    // File systems without locks, such as some network file systems: no run takes it for stale.
    if file.lock().is_err() {
        return Ok(true);
    }
    Ok(is_same(&file.metadata()?, path))
}

/// Returns whether `path` names this file.
fn is_same(metadata: &Metadata, path: &Path) -> bool {
    let named = fs::symlink_metadata(path);
    named.is_ok_and(|named| (named.dev(), named.ino()) == (metadata.dev(), metadata.ino()))
}

/// Removes what no run has locked in `folder`, if it belongs to this user and its name `is_ours`.
fn remove_dead(folder: &Path, is_ours: &dyn Fn(&str) -> bool) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_ours));
    for path in named.map(|entry| entry.path()) {
        let Some((_held, metadata)) = dead(&path) else { continue };
        // What cannot be removed, such as files of another user, remains.
        let _ = if metadata.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
}

/// Opens and locks a stale file or folder of this user.
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
    fn stale_folders_are_removed_and_those_of_living_runs_stay() {
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
    fn stale_drafts_are_removed_when_the_next_output_is_found() {
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
    fn runs_that_start_at_the_same_time_never_remove_each_others_folders_or_outputs() {
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
