//! Reading and writing what can make a program wait: pipes, sockets, terminals, event counters.

use rustix::event::PollFlags;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::transfer::{Piece, write_error};
use super::{Result, guest};
use crate::descriptors::ready;
use crate::kernel::Kernel;
use crate::thread::Thread;
use crate::wait::{Blocked, Wait};

/// Bytes written at a time: what a pipe that is ready takes without blocking (`PIPE_BUF`).
const PORTION: usize = 4096;

/// Most bytes one call takes from or gives to a stream at a time.
const MOST: u64 = 1 << 20;

/// Whether transfers to and from a descriptor may have to wait.
pub(super) fn is_stream(k: &Kernel, fd: i32) -> bool {
    let kind = k.files.host(fd).and_then(rustix::fs::fstat).map(|s| FileType::from_raw_mode(s.st_mode));
    k.files.simulated(fd).is_none()
        && kind.is_ok_and(|kind| !matches!(kind, FileType::RegularFile | FileType::Directory | FileType::BlockDevice))
}

/// Whether the descriptor is ready. If not: `EAGAIN` when the program does not want to wait, or else the wait begins.
pub(super) fn ready_or_block(
    k: &mut Kernel,
    t: &mut Thread,
    fd: i32,
    events: PollFlags,
    progress: u64,
) -> std::result::Result<bool, Errno> {
    if ready(&k.files, &[(fd, events)])?.iter().any(|revents| !revents.is_empty()) {
        return Ok(true);
    }
    if rustix::fs::fcntl_getfl(k.files.host(fd)?)?.contains(OFlags::NONBLOCK) {
        return Err(Errno::AGAIN);
    }
    let wait = Wait::Files(vec![(fd, events)]);
    t.block(k, Blocked { restart: true, progress, ..Blocked::new(wait) });
    Ok(false)
}

/// Reads what is there into the pieces, waiting until there is something.
pub(super) fn read(k: &mut Kernel, t: &mut Thread, fd: i32, pieces: &[Piece]) -> Result {
    let total: u64 = pieces.iter().map(|p| p.len).sum();
    // Looked at first, so that nothing is taken out and lost.
    for piece in pieces {
        let touch = fxscope_aarch64::memory::Touch::Write;
        k.mem.check(piece.addr, piece.len.min(MOST), touch).map_err(|_| Errno::FAULT)?;
    }
    k.system.terminal.used(k.files.host(fd)?, false);
    if total > 0 && !ready_or_block(k, t, fd, PollFlags::IN, 0)? {
        return Ok(0);
    }
    let mut buffer = vec![0; total.min(MOST) as usize];
    let got = rustix::io::read(k.files.host(fd)?, &mut buffer[..])?;
    k.system.terminal.used(k.files.host(fd)?, buffer[..got].ends_with(b"\n"));
    let mut rest = &buffer[..got];
    for piece in pieces {
        let (here, later) = rest.split_at(rest.len().min(piece.len as usize));
        guest::write_bytes(&mut k.mem, piece.addr, here)?;
        rest = later;
    }
    Ok(got as u64)
}

/// Writes the pieces, waiting whenever the other side has to make room.
pub(super) fn write(k: &mut Kernel, t: &mut Thread, fd: i32, pieces: &[Piece]) -> Result {
    let mut buffer = Vec::new();
    for piece in pieces {
        let len = piece.len.min(MOST - buffer.len() as u64) as usize;
        buffer.extend(guest::read_bytes(&mut k.mem, piece.addr, len)?);
    }
    let mut done = t.resumed.map_or(0, |r| r.progress) as usize;
    while done < buffer.len() || buffer.is_empty() {
        match ready_or_block(k, t, fd, PollFlags::OUT, done as u64) {
            Ok(true) => {}
            Ok(false) => return Ok(0),
            Err(_) if done > 0 => return Ok(done as u64),
            Err(error) => return Err(error),
        }
        let end = buffer.len().min(done + PORTION);
        k.system.terminal.used(k.files.host(fd)?, buffer[..end].ends_with(b"\n"));
        match rustix::io::write(k.files.host(fd)?, &buffer[done..end]) {
            Ok(n) => done += n,
            Err(_) if done > 0 => break,
            Err(error) => return Err(write_error(k, t, error)),
        }
        if buffer.is_empty() {
            break;
        }
    }
    Ok(done as u64)
}
