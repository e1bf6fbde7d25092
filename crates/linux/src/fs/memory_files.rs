//! Files in the memory of the simulated machine: those of `memfd_create`, and those below `/dev/shm`.
//!
//! The host keeps them, and their bytes count against the memory that the simulated machine has, as guest pages do:
//! what does not fit is refused with `ENOSPC`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use fxscope_guestmem::Memory;
use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;

use crate::fs::files::OpenFile;
use crate::fs::vfs::Origin;
use crate::kernel::Kernel;

/// Unit of `st_blocks` in bytes.
const STAT_BLOCK: u64 = 512;

/// A file of the host: device and inode.
type Identity = (u64, u64);

/// Lets `change` write `bytes` bytes at `at`, or at the file's position. It gets the number of bytes that there is room
/// for, of at least one if any are to be written; files elsewhere than in the simulated memory have room for all.
///
/// # Errors
/// `ENOSPC` when there is room for none; those of `change`, and the host's.
pub(crate) fn growing<T>(
    mem: &mut Memory,
    file: &OpenFile,
    at: Option<u64>,
    bytes: u64,
    change: impl FnOnce(u64) -> Result<T, Errno>,
) -> Result<T, Errno> {
    if file.origin != Origin::Memory {
        return change(bytes);
    }
    let before = rustix::fs::fstat(&file.host)?;
    let start = match at {
        _ if rustix::fs::fcntl_getfl(&file.host)?.contains(OFlags::APPEND) => before.st_size as u64,
        Some(at) => at,
        None => rustix::fs::tell(&file.host)?,
    };
    let held = Held { size: before.st_size as u64, allocated: allocated(&before) };
    let fitting = held.fitting(start, bytes, mem.room_bytes(), before.st_blksize as u64);
    if fitting == 0 && bytes > 0 {
        return Err(Errno::NOSPC);
    }
    let result = change(fitting);
    let after = allocated(&rustix::fs::fstat(&file.host)?);
    mem.set_elsewhere((mem.elsewhere_bytes() + after).saturating_sub(held.allocated));
    result
}

fn allocated(stat: &Stat) -> u64 {
    stat.st_blocks as u64 * STAT_BLOCK
}

/// What a file holds, in bytes.
struct Held {
    /// Its length.
    size: u64,
    /// What is allocated for it; less than its length when it has holes.
    allocated: u64,
}

impl Held {
    /// How many of `bytes` bytes from `start` on can be written for certain with `room` bytes more, where the host allocates
    /// pages of `page` bytes. Where the holes are is not looked at.
    fn fitting(&self, start: u64, bytes: u64, room: u64, page: u64) -> u64 {
        let room = room / page * page;
        let end = self.size.next_multiple_of(page);
        let holes = end.saturating_sub(self.allocated);
        // All holes are filled, and the file grows by the rest.
        let filled = (end + room).saturating_sub(holes + start);
        // Every page of it is new.
        let new = (start / page * page + room).saturating_sub(start);
        bytes.min(filled.max(new))
    }
}

/// Counts again what files in the simulated memory hold: system calls open and close, shorten and delete them.
pub(crate) fn recount(k: &mut Kernel<'_>) {
    let mut files = BTreeMap::new();
    for (open, mapped) in k.processes_files() {
        let in_memory = |file: &&OpenFile| file.origin == Origin::Memory;
        for file in open.open_files().chain(mapped.written_back_to()).filter(in_memory) {
            if let Ok(stat) = rustix::fs::fstat(&file.host) {
                files.insert((stat.st_dev, stat.st_ino), allocated(&stat));
            }
        }
    }
    if let Some(folder) = k.process.files.view.policy.shared_memory.folder() {
        add_named(Path::new(OsStr::from_bytes(folder)), &mut files);
    }
    k.mem.set_elsewhere(files.values().sum());
}

/// Adds the files of a folder and of those in it.
fn add_named(folder: &Path, files: &mut BTreeMap<Identity, u64>) {
    // A folder that the program may not read holds what it held open.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(data) if data.is_dir() => add_named(&entry.path(), files),
            Ok(data) if data.is_file() => {
                files.insert((data.dev(), data.ino()), data.blocks() * STAT_BLOCK);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Held;

    const PAGE: u64 = 4096;

    fn dense(pages: u64) -> Held {
        Held { size: pages * PAGE, allocated: pages * PAGE }
    }

    #[test]
    fn a_file_without_holes_can_be_written_again_without_room_but_not_grow() {
        assert_eq!(dense(3).fitting(0, 3 * PAGE, 0, PAGE), 3 * PAGE);
        assert_eq!(dense(3).fitting(PAGE, 9 * PAGE, PAGE - 1, PAGE), 2 * PAGE);
        assert_eq!(dense(3).fitting(3 * PAGE, 1, PAGE - 1, PAGE), 0);
    }

    #[test]
    fn a_file_grows_by_the_room_there_is_and_to_the_end_of_its_last_page() {
        assert_eq!(dense(3).fitting(3 * PAGE, 9 * PAGE, 2 * PAGE, PAGE), 2 * PAGE);
        let begun = Held { size: PAGE + 1, allocated: 2 * PAGE };
        assert_eq!(begun.fitting(PAGE + 1, PAGE, 0, PAGE), PAGE - 1);
    }

    #[test]
    fn holes_take_room_of_their_own() {
        let sparse = Held { size: 100 * PAGE, allocated: 0 };
        assert_eq!(sparse.fitting(0, 50 * PAGE, 2 * PAGE, PAGE), 2 * PAGE);
        assert_eq!(sparse.fitting(PAGE + 5, 50 * PAGE, 2 * PAGE, PAGE), 2 * PAGE - 5);
        assert_eq!(sparse.fitting(0, 50 * PAGE, 0, PAGE), 0);
    }

    #[test]
    fn what_is_far_behind_the_end_takes_only_its_own_pages() {
        assert_eq!(dense(1).fitting(1 << 40, PAGE, PAGE, PAGE), PAGE);
    }
}
