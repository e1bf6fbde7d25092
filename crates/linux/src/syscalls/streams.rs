//! Reading and writing descriptors on which a program may wait: pipes, sockets, terminals, event counters.
//!
//! No host call blocks. If a descriptor is not ready, the thread waits, and the system call then continues where it stopped.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use rustix::event::PollFlags;
use rustix::fs::{FileType, OFlags};
use rustix::io::{Errno, ReadWriteFlags};

use super::Result;
use super::sockets::{self, is_socket};
use super::transfer::{CHUNK, Piece, write_error};
use crate::fs::poll::ready;
use crate::kernel::Kernel;
use crate::mm::user;
use crate::sched::wait::{Blocked, FOR_EVER, Wait};

/// Bytes written at a time: what a ready pipe accepts without blocking (`PIPE_BUF`).
const PORTION: usize = 4096;

/// Maximum bytes that one call takes from a stream at a time.
const MAX_READ: u64 = CHUNK as u64;

/// Simulated time, in ns, until a call is repeated that the host refuses although it reports the descriptor as ready.
const AGAIN_NS: u64 = 1_000_000;

/// The offset of `preadv2` and `pwritev2` that selects the file's own position.
const CURRENT: u64 = u64::MAX;

type Outcome<T> = std::result::Result<T, Errno>;

/// Returns whether transfers to and from a descriptor may have to wait.
pub(super) fn is_stream(k: &Kernel<'_>, fd: i32) -> bool {
    let kind = k.process.files.host(fd).and_then(rustix::fs::fstat).map(|s| FileType::from_raw_mode(s.st_mode));
    k.process.files.simulated(fd).is_none()
        && kind.is_ok_and(|kind| !matches!(kind, FileType::RegularFile | FileType::Directory | FileType::BlockDevice))
}

/// Returns whether the descriptor is ready. If not: `EAGAIN` for a non-blocking descriptor; otherwise the thread blocks.
pub(super) fn ready_or_block(k: &mut Kernel<'_>, fd: i32, events: PollFlags) -> Outcome<bool> {
    if is_ready(k, fd, events)? {
        return Ok(true);
    }
    wait(k, fd, events, 0)?;
    Ok(false)
}

fn is_ready(k: &Kernel<'_>, fd: i32, events: PollFlags) -> Outcome<bool> {
    Ok(ready(&k.process.files, &[(fd, events)])?.iter().any(|revents| !revents.is_empty()))
}

/// Blocks the thread on a descriptor that is not ready; `progress` bytes have been transferred. `EAGAIN` for a non-blocking
/// descriptor.
pub(super) fn wait(k: &mut Kernel<'_>, fd: i32, events: PollFlags, progress: u64) -> Outcome<()> {
    wait_within(k, fd, events, progress, None)
}

/// As [`wait`]; `EAGAIN` after `limit_ns` ns.
pub(super) fn wait_within(
    k: &mut Kernel<'_>,
    fd: i32,
    events: PollFlags,
    progress: u64,
    limit_ns: Option<u64>,
) -> Outcome<()> {
    if rustix::fs::fcntl_getfl(k.process.files.host(fd)?)?.contains(OFlags::NONBLOCK) {
        return Err(Errno::AGAIN);
    }
    // A local datagram socket is ready to send even if the receiver's queue is full.
    let (interests, until_ns) = match is_ready(k, fd, events)? {
        false => {
            let limit = limit_ns.map_or(FOR_EVER, |ns| k.system.now_ns.saturating_add(ns));
            let until_ns = if limit_ns.is_some() { k.thread.time_limit(limit) } else { limit };
            (vec![(fd, events)], until_ns)
        }
        true => (Vec::new(), k.system.now_ns.saturating_add(AGAIN_NS)),
    };
    if until_ns <= k.system.now_ns {
        return Err(Errno::AGAIN);
    }
    k.block(Blocked { restart: true, progress, until_ns, ..Blocked::new(Wait::Files(interests)) });
    Ok(())
}

/// Blocks the thread for a while, because the host cannot report when the call may succeed.
pub(super) fn later(k: &mut Kernel<'_>) {
    let until_ns = k.system.now_ns.saturating_add(AGAIN_NS);
    k.block(Blocked { restart: true, until_ns, ..Blocked::new(Wait::Files(Vec::new())) });
}

/// Reads what is available into the pieces, waiting until there is something.
pub(super) fn read(k: &mut Kernel<'_>, fd: i32, pieces: &[Piece]) -> Result {
    let total: u64 = pieces.iter().map(|p| p.len).sum();
    k.system.terminal.used(k.process.files.host(fd)?, false);
    if is_socket(k.process.files.host(fd)?) {
        return sockets::read(k, fd, pieces);
    }
    check_writable(k, pieces)?;
    if total > 0 && !ready_or_block(k, fd, PollFlags::IN)? {
        return Ok(0);
    }
    let mut buffer = vec![0; total.min(MAX_READ) as usize];
    let got = match read_now(k.process.files.host(fd)?, &mut buffer) {
        // Another reader was faster.
        Err(Errno::AGAIN) => return wait(k, fd, PollFlags::IN, 0).map(|()| 0),
        got => got?,
    };
    k.system.terminal.used(k.process.files.host(fd)?, buffer[..got].ends_with(b"\n"));
    scatter(k, pieces, 0, &buffer[..got])?;
    Ok(got as u64)
}

/// Checks that the pieces can be written before anything is read from a stream, so that no data are lost.
pub(super) fn check_writable(k: &mut Kernel<'_>, pieces: &[Piece]) -> Outcome<()> {
    for piece in pieces {
        let touch = fxscope_guestmem::Touch::Write;
        k.mem.check(piece.addr, piece.len.min(MAX_READ), touch).map_err(|_| Errno::FAULT)?;
    }
    Ok(())
}

/// Writes bytes into the pieces, from `skip` bytes on.
pub(super) fn scatter(k: &mut Kernel<'_>, pieces: &[Piece], mut skip: u64, mut bytes: &[u8]) -> Outcome<()> {
    for piece in pieces {
        let before = skip.min(piece.len);
        skip -= before;
        let (here, later) = bytes.split_at(bytes.len().min((piece.len - before) as usize));
        user::write_bytes(k.mem, piece.addr.wrapping_add(before), here)?;
        bytes = later;
    }
    Ok(())
}

/// Reads at most `most` bytes of the pieces, from `skip` bytes on.
pub(super) fn gather(k: &mut Kernel<'_>, pieces: &[Piece], mut skip: u64, most: usize) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    for piece in pieces {
        let before = skip.min(piece.len);
        skip -= before;
        let len = (piece.len - before).min((most - bytes.len()) as u64) as usize;
        bytes.extend(user::read_bytes(k.mem, piece.addr.wrapping_add(before), len)?);
    }
    Ok(bytes)
}

/// Writes the pieces, waiting whenever there is no room.
pub(super) fn write(k: &mut Kernel<'_>, fd: i32, pieces: &[Piece]) -> Result {
    if is_socket(k.process.files.host(fd)?) {
        return sockets::write(k, fd, pieces);
    }
    let total: u64 = pieces.iter().map(|p| p.len).sum();
    let result = deliver(k, fd, total, true, |k, done| {
        let bytes = gather(k, pieces, done, CHUNK)?;
        k.system.terminal.used(k.process.files.host(fd)?, bytes.ends_with(b"\n"));
        write_now(k, fd, &bytes)
    });
    result.map_err(|error| write_error(k, error))
}

/// Moves `total` bytes to a descriptor by calls of `give`, which is passed the number of bytes moved so far, moves some without
/// blocking and returns their number. If there is no room, the thread waits, unless it is non-blocking (`waits`, `O_NONBLOCK`).
pub(super) fn deliver(
    k: &mut Kernel<'_>,
    fd: i32,
    total: u64,
    waits: bool,
    give: impl FnMut(&mut Kernel<'_>, u64) -> Outcome<usize>,
) -> Result {
    deliver_until(k, fd, total, waits, None, give)
}

/// As [`deliver`], waiting for at most `limit_ns` ns.
pub(super) fn deliver_until(
    k: &mut Kernel<'_>,
    fd: i32,
    total: u64,
    waits: bool,
    limit_ns: Option<u64>,
    mut give: impl FnMut(&mut Kernel<'_>, u64) -> Outcome<usize>,
) -> Result {
    let mut done = k.thread.resumed.map_or(0, |r| r.progress);
    loop {
        let result = match give(k, done) {
            Ok(n) => {
                done += n as u64;
                if done >= total || n == 0 {
                    return Ok(done);
                }
                continue;
            }
            Err(Errno::AGAIN) if waits => wait_within(k, fd, PollFlags::OUT, done, limit_ns),
            Err(error) => Err(error),
        };
        return match result {
            Ok(()) => Ok(0),
            Err(_) if done > 0 => Ok(done),
            Err(error) => Err(error),
        };
    }
}

/// Writes to a stream what it accepts without blocking. `EAGAIN`: nothing.
pub(super) fn write_now(k: &mut Kernel<'_>, fd: i32, bytes: &[u8]) -> Outcome<usize> {
    if is_socket(k.process.files.host(fd)?) {
        return sockets::send_now(k, fd, bytes);
    }
    let file = k.process.files.host(fd)?;
    match rustix::io::pwritev2(file, &[IoSlice::new(bytes)], CURRENT, ReadWriteFlags::NOWAIT) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
        result => return result,
    }
    // Files, and hosts that do not support the flag: as much as certainly fits.
    if is_ready(k, fd, PollFlags::OUT)? {
        rustix::io::write(file, &bytes[..bytes.len().min(PORTION)])
    } else {
        Err(Errno::AGAIN)
    }
}

/// Reads from a ready file. `EAGAIN`: it is not ready any more, as far as the host can tell.
pub(super) fn read_now(file: BorrowedFd<'_>, buffer: &mut [u8]) -> Outcome<usize> {
    match rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], CURRENT, ReadWriteFlags::NOWAIT) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => rustix::io::read(file, buffer),
        result => result,
    }
}
