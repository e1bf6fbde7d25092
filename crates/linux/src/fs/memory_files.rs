//! Files in the memory of the simulated machine: those of `memfd_create`, and those below `/dev/shm`.
//!
//! The host stores them, and their bytes count against the memory of the simulated machine, as guest pages do: what does not fit
//! is refused with `ENOSPC`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
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

/// A host file: device and inode.
pub(crate) type Identity = (u64, u64);

/// Returns the identity of an open file.
///
/// # Errors
/// The host's.
pub(crate) fn identity(file: BorrowedFd<'_>) -> Result<Identity, Errno> {
    let stat = rustix::fs::fstat(file)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Calls `change` to write `bytes` bytes at `at`, or at the file's position. It is passed the number of bytes for which there is
/// room, at least one unless `bytes` is 0; files outside the simulated memory always have room for all.
///
/// # Errors
/// `ENOSPC` when there is no room; those of `change`, and the host's.
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

/// Returns the bytes that the host has allocated for a file.
pub(crate) fn allocated(stat: &Stat) -> u64 {
    stat.st_blocks as u64 * STAT_BLOCK
}

/// The size of a file, in bytes.
struct Held {
    /// Its length.
    size: u64,
    /// Bytes allocated for it; less than its length if it has holes.
    allocated: u64,
}

impl Held {
    /// Returns how many of `bytes` bytes from `start` on can certainly be written with `room` more bytes, if the host allocates
    /// pages of `page` bytes. The positions of holes are not examined.
    fn fitting(&self, start: u64, bytes: u64, room: u64, page: u64) -> u64 {
        let room = room / page * page;
        let end = self.size.next_multiple_of(page);
        let holes = end.saturating_sub(self.allocated);
        // All holes are filled, and the file grows by the rest.
        let filled = (end + room).saturating_sub(holes + start);
        // All its pages are new.
        let new = (start / page * page + room).saturating_sub(start);
        bytes.min(filled.max(new))
    }
}

/// Recounts the bytes of files in the simulated memory: system calls open, close, truncate and delete them.
pub(crate) fn recount(k: &mut Kernel<'_>) {
    let mut files = BTreeMap::new();
    let open = k.all_processes().flat_map(|process| process.files.open_files());
    let mapped = k.system.shared_files.iter().map(|shared| &shared.file.open);
    for file in open.chain(mapped).filter(|file| file.origin == Origin::Memory) {
        if let Ok(stat) = rustix::fs::fstat(&file.host) {
            files.insert((stat.st_dev, stat.st_ino), allocated(&stat));
        }
    }
    if let Some(folder) = k.process.files.view.policy.shared_memory.folder() {
        add_named(Path::new(OsStr::from_bytes(folder)), &mut files);
    }
    k.mem.set_elsewhere(files.values().sum());
}

/// Adds the files of a folder and its subfolders.
fn add_named(folder: &Path, files: &mut BTreeMap<Identity, u64>) {
    // If the program may not read a folder, its files still count while they are open.
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
    fn a_file_without_holes_can_be_overwritten_without_room_but_not_grow() {
        assert_eq!(dense(3).fitting(0, 3 * PAGE, 0, PAGE), 3 * PAGE);
        assert_eq!(dense(3).fitting(PAGE, 9 * PAGE, PAGE - 1, PAGE), 2 * PAGE);
        assert_eq!(dense(3).fitting(3 * PAGE, 1, PAGE - 1, PAGE), 0);
    }

    #[test]
    fn a_file_grows_by_the_room_available_and_to_the_end_of_its_last_page() {
        assert_eq!(dense(3).fitting(3 * PAGE, 9 * PAGE, 2 * PAGE, PAGE), 2 * PAGE);
        let begun = Held { size: PAGE + 1, allocated: 2 * PAGE };
        assert_eq!(begun.fitting(PAGE + 1, PAGE, 0, PAGE), PAGE - 1);
    }

    #[test]
    fn filling_holes_takes_room() {
        let sparse = Held { size: 100 * PAGE, allocated: 0 };
        assert_eq!(sparse.fitting(0, 50 * PAGE, 2 * PAGE, PAGE), 2 * PAGE);
        assert_eq!(sparse.fitting(PAGE + 5, 50 * PAGE, 2 * PAGE, PAGE), 2 * PAGE - 5);
        assert_eq!(sparse.fitting(0, 50 * PAGE, 0, PAGE), 0);
    }

    #[test]
    fn a_write_far_beyond_the_end_takes_only_its_own_pages() {
        assert_eq!(dense(1).fitting(1 << 40, PAGE, PAGE, PAGE), PAGE);
    }
}
