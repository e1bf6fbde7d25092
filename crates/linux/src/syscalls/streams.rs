//! Reading and writing what can make a program wait: pipes, sockets, terminals, event counters.
//!
//! No call of the host waits. What is not ready makes the thread wait, and the system call goes on from where it was.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use rustix::event::PollFlags;
use rustix::fs::{FileType, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::{RecvFlags, SendFlags};

use super::Result;
use super::sockets::{self, is_socket};
use super::transfer::{CHUNK, Piece, write_error};
use crate::fs::poll::ready;
use crate::kernel::Kernel;
use crate::mm::user;
use crate::sched::wait::{Blocked, FOR_EVER, Wait};

/// Bytes written at a time: what a pipe that is ready takes without blocking (`PIPE_BUF`).
const PORTION: usize = 4096;

/// Most bytes one call takes from a stream at a time.
const MOST: u64 = CHUNK as u64;

/// Simulated time until a call is made again that the host refuses although it says that the descriptor is ready, in ns.
const AGAIN_NS: u64 = 1_000_000;

/// The position of `preadv2` and `pwritev2` that stands for the file's own.
const CURRENT: u64 = u64::MAX;

type Outcome<T> = std::result::Result<T, Errno>;

/// Whether transfers to and from a descriptor may have to wait.
pub(super) fn is_stream(k: &Kernel<'_>, fd: i32) -> bool {
    let kind = k.process.files.host(fd).and_then(rustix::fs::fstat).map(|s| FileType::from_raw_mode(s.st_mode));
    k.process.files.simulated(fd).is_none()
        && kind.is_ok_and(|kind| !matches!(kind, FileType::RegularFile | FileType::Directory | FileType::BlockDevice))
}

/// Whether the descriptor is ready. If not: `EAGAIN` when the program does not want to wait, or else the wait begins.
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

/// The thread waits for a descriptor that is not ready; `progress` bytes have been moved. `EAGAIN` when the program does not
/// want to wait.
pub(super) fn wait(k: &mut Kernel<'_>, fd: i32, events: PollFlags, progress: u64) -> Outcome<()> {
    if rustix::fs::fcntl_getfl(k.process.files.host(fd)?)?.contains(OFlags::NONBLOCK) {
        return Err(Errno::AGAIN);
    }
    // A local datagram socket is ready to send even when the queue of the one it sends to is full.
    let (interests, until_ns) = match is_ready(k, fd, events)? {
        false => (vec![(fd, events)], FOR_EVER),
        true => (Vec::new(), k.system.now_ns.saturating_add(AGAIN_NS)),
    };
    k.block(Blocked { restart: true, progress, until_ns, ..Blocked::new(Wait::Files(interests)) });
    Ok(())
}

/// Reads what is there into the pieces, waiting until there is something.
pub(super) fn read(k: &mut Kernel<'_>, fd: i32, pieces: &[Piece]) -> Result {
    let total: u64 = pieces.iter().map(|p| p.len).sum();
    k.system.terminal.used(k.process.files.host(fd)?, false);
    if is_socket(k.process.files.host(fd)?) {
        return Ok(sockets::receive(k, fd, pieces, RecvFlags::empty())?.map_or(0, |received| received.bytes));
    }
    check_writable(k, pieces)?;
    if total > 0 && !ready_or_block(k, fd, PollFlags::IN)? {
        return Ok(0);
    }
    let mut buffer = vec![0; total.min(MOST) as usize];
    let got = match read_now(k.process.files.host(fd)?, &mut buffer) {
        // Another reader was faster.
        Err(Errno::AGAIN) => return wait(k, fd, PollFlags::IN, 0).map(|()| 0),
        got => got?,
    };
    k.system.terminal.used(k.process.files.host(fd)?, buffer[..got].ends_with(b"\n"));
    scatter(k, pieces, 0, &buffer[..got])?;
    Ok(got as u64)
}

/// Whether the pieces can be written, looked at first so that nothing is taken out of a stream and lost.
pub(super) fn check_writable(k: &mut Kernel<'_>, pieces: &[Piece]) -> Outcome<()> {
    for piece in pieces {
        let touch = fxscope_guestmem::Touch::Write;
        k.mem.check(piece.addr, piece.len.min(MOST), touch).map_err(|_| Errno::FAULT)?;
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

/// At most `most` bytes of the pieces, from `skip` bytes on.
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

/// Writes the pieces, waiting whenever the other side has to make room.
pub(super) fn write(k: &mut Kernel<'_>, fd: i32, pieces: &[Piece]) -> Result {
    if is_socket(k.process.files.host(fd)?) {
        return sockets::send(k, fd, pieces, SendFlags::empty(), None);
    }
    let total: u64 = pieces.iter().map(|p| p.len).sum();
    let result = deliver(k, fd, total, true, |k, done| {
        let bytes = gather(k, pieces, done, CHUNK)?;
        k.system.terminal.used(k.process.files.host(fd)?, bytes.ends_with(b"\n"));
        write_now(k, fd, &bytes)
    });
    result.map_err(|error| write_error(k, error))
}

/// Moves `total` bytes to a descriptor by calls of `give`, which gets how many have been moved, moves some without waiting and
/// says how many. When there is no room, the thread waits, unless it does not want to (`waits`, `O_NONBLOCK`).
pub(super) fn deliver(
    k: &mut Kernel<'_>,
    fd: i32,
    total: u64,
    waits: bool,
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
            Err(Errno::AGAIN) if waits => wait(k, fd, PollFlags::OUT, done),
            Err(error) => Err(error),
        };
        return match result {
            Ok(()) => Ok(0),
            Err(_) if done > 0 => Ok(done),
            Err(error) => Err(error),
        };
    }
}

/// Writes to a stream what it takes without waiting. `EAGAIN`: nothing.
pub(super) fn write_now(k: &Kernel<'_>, fd: i32, bytes: &[u8]) -> Outcome<usize> {
    let file = k.process.files.host(fd)?;
    if is_socket(file) {
        return rustix::net::send(file, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
    match rustix::io::pwritev2(file, &[IoSlice::new(bytes)], CURRENT, ReadWriteFlags::NOWAIT) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
        result => return result,
    }
    // Files and hosts that do not know the flag: as much as is certain to fit.
    if is_ready(k, fd, PollFlags::OUT)? {
        rustix::io::write(file, &bytes[..bytes.len().min(PORTION)])
    } else {
        Err(Errno::AGAIN)
    }
}

/// Reads from a file that is ready. `EAGAIN`: it is not any more, as far as the host can tell.
fn read_now(file: BorrowedFd<'_>, buffer: &mut [u8]) -> Outcome<usize> {
    match rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], CURRENT, ReadWriteFlags::NOWAIT) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => rustix::io::read(file, buffer),
        result => result,
    }
}
