//! `/proc/PID/mem` and `/proc/PID/pagemap`: the memory and the pages of a process, at the position of the file.

use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;

use super::Result;
use super::streams::{gather, scatter};
use super::transfer::{CHUNK, Piece};
use crate::fs::vfs::tree::{Kind, process_in, thread};
use crate::kernel::Kernel;

/// Bytes of an entry of `pagemap`.
const ENTRY: u64 = 8;

/// Calls `with` while the address space of the process that an open file belongs to is the active one.
///
/// # Errors
/// `EIO` when the process has ended.
fn in_space<T>(k: &mut Kernel<'_>, fd: i32, with: impl FnOnce(&mut Kernel<'_>) -> T) -> std::result::Result<T, Errno> {
    let path = k.process.files.simulated(fd).map(|node| &node.path[..]).ok_or(Errno::BADF)?;
    let pid = process_in(path).and_then(|id| thread(k, id)).ok_or(Errno::IO)?.pid;
    let space = k.all_processes().find(|process| process.pid == pid).ok_or(Errno::IO)?.space;
    let (own, other) = (k.mem.active(), k.spaces[space].id);
    k.mem.activate(other);
    let result = with(k);
    k.mem.activate(own);
    Ok(result)
}

/// Reads at `offset`, or at the position of the file, which then moves.
pub(super) fn read(k: &mut Kernel<'_>, fd: i32, kind: Kind, pieces: &[Piece], offset: Option<u64>) -> Result {
    let total = pieces.iter().map(|piece| piece.len).sum::<u64>().min(CHUNK as u64);
    let at = start(k, fd, offset, OFlags::WRONLY)?;
    let bytes = match kind {
        Kind::PageMap => pages(k, fd, at, total)?,
        _ => in_space(k, fd, |k| memory(k, at, total))??,
    };
    scatter(k, pieces, 0, &bytes)?;
    advance(k, fd, offset, at, bytes.len() as u64)
}

/// Writes to the memory of a process, whatever the rights of its pages.
pub(super) fn write(k: &mut Kernel<'_>, fd: i32, pieces: &[Piece], offset: Option<u64>) -> Result {
    let at = start(k, fd, offset, OFlags::RDONLY)?;
    let bytes = gather(k, pieces, 0, CHUNK)?;
    let space = in_space(k, fd, |k| {
        // A shared mapping that may not be written belongs to a file that may not be written either.
        let end = at.saturating_add(bytes.len() as u64);
        if k.mem.regions_within(at, end).any(|region| region.shared && !region.prot.write) {
            return Err(Errno::IO);
        }
        k.mem.write_privileged(at, &bytes).map_err(|_| Errno::IO)?;
        Ok(k.mem.active())
    })??;
    let spaces = &*k.spaces;
    let changed = k.other_processes.iter_mut().chain([&mut *k.process]);
    for process in changed.filter(|process| spaces[process.space].id == space) {
        process.code_changed = true;
    }
    advance(k, fd, offset, at, bytes.len() as u64)
}

/// Returns where a transfer starts.
///
/// # Errors
/// `EBADF` when the file is not open for it.
fn start(k: &Kernel<'_>, fd: i32, offset: Option<u64>, unfit: OFlags) -> Result {
    let file = k.process.files.host(fd)?;
    let mode = rustix::fs::fcntl_getfl(file)?;
    if mode.contains(OFlags::PATH) || mode & OFlags::RWMODE == unfit {
        return Err(Errno::BADF);
    }
    offset.map_or_else(|| rustix::fs::tell(file), Ok)
}

/// Moves the position of the file behind `done` bytes at `at`, unless the call has an offset of its own.
fn advance(k: &Kernel<'_>, fd: i32, offset: Option<u64>, at: u64, done: u64) -> Result {
    if offset.is_none() {
        rustix::fs::seek(k.process.files.host(fd)?, SeekFrom::Start(at.saturating_add(done)))?;
    }
    Ok(done)
}

/// Returns memory from `at` on, up to the first byte that cannot be read.
fn memory(k: &mut Kernel<'_>, at: u64, len: u64) -> std::result::Result<Vec<u8>, Errno> {
    let page = k.system.platform.page_bytes;
    let mut bytes = vec![0; len as usize];
    let mut done = 0;
    while done < len {
        let here = at.wrapping_add(done);
        let n = (page - here % page).min(len - done);
        if k.mem.read(here, &mut bytes[done as usize..(done + n) as usize]).is_err() {
            break;
        }
        done += n;
    }
    bytes.truncate(done as usize);
    if done == 0 && len > 0 { Err(Errno::IO) } else { Ok(bytes) }
}

/// Returns the entries of pages (Linux `Documentation/admin-guide/mm/pagemap.rst`): whether each is present, and whether it belongs
/// to a file. Page frames are not shown, as to ordinary users.
fn pages(k: &mut Kernel<'_>, fd: i32, at: u64, len: u64) -> std::result::Result<Vec<u8>, Errno> {
    const PRESENT: u64 = 1 << 63;
    const FILE: u64 = 1 << 61;
    /// One more than the last address of a program.
    const END: u64 = 1 << 48;
    if !at.is_multiple_of(ENTRY) || !len.is_multiple_of(ENTRY) {
        return Err(Errno::INVAL);
    }
    let page = k.system.platform.page_bytes;
    let first = at / ENTRY;
    let count = (len / ENTRY).min((END / page).saturating_sub(first));
    in_space(k, fd, |k| {
        let entry = |number: u64| {
            let address = number * page;
            let of_file = k.mem.region_at(address).is_some_and(|region| !region.segment.is_anonymous());
            match k.mem.physical(address) {
                Some(_) => PRESENT | if of_file { FILE } else { 0 },
                None => 0,
            }
        };
        (first..first + count).flat_map(|number| entry(number).to_le_bytes()).collect()
    })
}
