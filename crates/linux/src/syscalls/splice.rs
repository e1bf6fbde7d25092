//! Transfers between a pipe and another file: `splice(2)`, `tee(2)`, `vmsplice(2)`.
//!
//! Between two pipes, and from a pipe to a file, the host moves the bytes; otherwise the simulator copies them. Nothing is taken from
//! a pipe that cannot be delivered.

use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::event::PollFlags;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags};

use super::streams::{is_stream, read_now, wait, write_now};
use super::transfer::{CHUNK, MAX_TRANSFER, offset_at, pieces, read_on, write_error, write_on};
use super::{Args, Result, transfer};
use crate::fs::memory_files::growing;
use crate::fs::poll::ready;
use crate::kernel::Kernel;
use crate::mm::user;

/// `SPLICE_F_NONBLOCK`.
const NONBLOCK: u64 = 2;
/// All flags: move, non-blocking, more, gift. The first and the last two only advise.
const FLAGS: u64 = 0xf;

/// Bytes that a pipe which is ready certainly accepts (`PIPE_BUF`).
const PORTION: usize = 4096;

type Outcome<T> = std::result::Result<T, Errno>;

fn is_pipe(k: &Kernel<'_>, fd: i32) -> Outcome<bool> {
    let stat = rustix::fs::fstat(k.process.files.host(fd)?)?;
    Ok(k.process.files.simulated(fd).is_none() && FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
}

/// Checks that a descriptor can be read, or written.
fn check_mode(k: &Kernel<'_>, fd: i32, unfit: OFlags) -> Outcome<()> {
    let mode = rustix::fs::fcntl_getfl(k.process.files.host(fd)?)?;
    if mode.contains(OFlags::PATH) || mode & OFlags::RWMODE == unfit { Err(Errno::BADF) } else { Ok(()) }
}

fn same_pipe(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> Outcome<bool> {
    let (a, b) = (rustix::fs::fstat(a)?, rustix::fs::fstat(b)?);
    Ok((a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
}

/// Waits until the pipe or other stream `from` has something or, if it has, until there is room in `to`. `EAGAIN` when the call, or
/// the descriptor, is non-blocking.
fn wait_for_either(k: &mut Kernel<'_>, from: i32, to: i32, flags: u64) -> Result {
    if flags & NONBLOCK != 0 {
        return Err(Errno::AGAIN);
    }
    let has_something = !ready(&k.process.files, &[(from, PollFlags::IN)])?[0].is_empty();
    match has_something && is_stream(k, to) {
        true => wait(k, to, PollFlags::OUT, 0)?,
        false => wait(k, from, PollFlags::IN, 0)?,
    }
    Ok(0)
}

pub(super) fn splice(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (from, to, len, flags) = (a[0] as i32, a[2] as i32, a[4].min(MAX_TRANSFER), a[5]);
    if flags & !FLAGS != 0 {
        return Err(Errno::INVAL);
    }
    check_mode(k, from, OFlags::WRONLY)?;
    check_mode(k, to, OFlags::RDONLY)?;
    if k.process.files.object(from).or(k.process.files.object(to)).is_some() {
        return Err(Errno::INVAL);
    }
    let (from_pipe, to_pipe) = (is_pipe(k, from)?, is_pipe(k, to)?);
    if (from_pipe && a[1] != 0) || (to_pipe && a[3] != 0) {
        return Err(Errno::SPIPE);
    }
    if len == 0 {
        return Ok(0);
    }
    let result = match (from_pipe, to_pipe) {
        (true, true) => between_pipes(k, from, to, len, flags),
        (true, false) if is_stream(k, to) => pipe_to_stream(k, from, to, len, flags, a[3]),
        (true, false) => pipe_to_file(k, from, to, len, flags, a[3]),
        (false, true) if is_stream(k, from) => stream_to_pipe(k, from, to, len, flags, a[1]),
        // As `sendfile`, whose first two arguments are in the reverse order.
        (false, true) => {
            let room = !ready(&k.process.files, &[(to, PollFlags::OUT)])?[0].is_empty();
            if flags & NONBLOCK != 0 && !room {
                return Err(Errno::AGAIN);
            }
            transfer::sendfile(k, &[a[2], a[0], a[1], len, 0, 0])
        }
        (false, false) => Err(Errno::INVAL),
    };
    result.map_err(|error| write_error(k, error))
}

fn between_pipes(k: &mut Kernel<'_>, from: i32, to: i32, len: u64, flags: u64) -> Result {
    let (source, target) = (k.process.files.host(from)?, k.process.files.host(to)?);
    if same_pipe(source, target)? {
        return Err(Errno::INVAL);
    }
    match rustix::pipe::splice(source, None, target, None, len as usize, SpliceFlags::NONBLOCK) {
        Err(Errno::AGAIN) => wait_for_either(k, from, to, flags),
        result => result.map(|n| n as u64),
    }
}

fn pipe_to_file(k: &mut Kernel<'_>, from: i32, to: i32, len: u64, flags: u64, pointer: u64) -> Result {
    let mut at = offset_at(k, pointer)?;
    let start = at;
    let (source, file) = (k.process.files.host(from)?, k.process.files.open_file(to)?);
    let place = start.map_or_else(|| rustix::fs::tell(&file.host), Ok)?;
    k.system.shared_files.flush(k.mem, file.host.as_fd())?;
    let result = growing(k.mem, file, start, len, |fitting| {
        rustix::pipe::splice(source, None, &file.host, at.as_mut(), fitting as usize, SpliceFlags::NONBLOCK)
    });
    match result {
        Err(Errno::AGAIN) => wait_for_either(k, from, to, flags),
        Err(error) => Err(error),
        Ok(n) => {
            k.system.shared_files.after_change(k.mem, file.host.as_fd(), place, Some(place + n as u64));
            if let Some(at) = at {
                user::write(k.mem, pointer, at)?;
            }
            Ok(n as u64)
        }
    }
}

/// Copies what is in a pipe without taking it out.
fn peek(pipe: BorrowedFd<'_>, most: usize) -> Outcome<Vec<u8>> {
    let (copy, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let got = rustix::pipe::tee(pipe, &writer, most, SpliceFlags::NONBLOCK)?;
    let mut bytes = vec![0; got];
    let got = if got == 0 { 0 } else { rustix::io::read(&copy, &mut bytes[..])? };
    bytes.truncate(got);
    Ok(bytes)
}

fn pipe_to_stream(k: &mut Kernel<'_>, from: i32, to: i32, len: u64, flags: u64, pointer: u64) -> Result {
    if pointer != 0 {
        return Err(Errno::SPIPE);
    }
    let bytes = match peek(k.process.files.host(from)?, len.min(CHUNK as u64) as usize) {
        Err(Errno::AGAIN) => return wait_for_either(k, from, to, flags),
        bytes => bytes?,
    };
    if bytes.is_empty() {
        return Ok(0);
    }
    k.system.terminal.used(k.process.files.host(to)?, bytes.ends_with(b"\n"));
    let written = match write_now(k, to, &bytes) {
        Err(Errno::AGAIN) => return wait_for_either(k, from, to, flags),
        written => written?,
    };
    let mut taken = vec![0; written];
    let mut rest = &mut taken[..];
    while !rest.is_empty() {
        // The pipe has at least these bytes, and nobody else reads in the meantime.
        let got = read_now(k.process.files.host(from)?, rest)?;
        if got == 0 {
            break;
        }
        rest = &mut rest[got..];
    }
    Ok(written as u64)
}

fn stream_to_pipe(k: &mut Kernel<'_>, from: i32, to: i32, len: u64, flags: u64, pointer: u64) -> Result {
    if pointer != 0 {
        return Err(Errno::SPIPE);
    }
    let poll = ready(&k.process.files, &[(from, PollFlags::IN), (to, PollFlags::OUT)])?;
    if poll.iter().any(|events| events.is_empty()) {
        return wait_for_either(k, from, to, flags);
    }
    let mut bytes = vec![0; len.min(PORTION as u64) as usize];
    let got = match read_now(k.process.files.host(from)?, &mut bytes) {
        Err(Errno::AGAIN) => return wait_for_either(k, from, to, flags),
        got => got?,
    };
    if got > 0 { write_now(k, to, &bytes[..got]).map(|n| n as u64) } else { Ok(0) }
}

pub(super) fn tee(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (from, to, len, flags) = (a[0] as i32, a[1] as i32, a[2].min(MAX_TRANSFER), a[3]);
    if flags & !FLAGS != 0 {
        return Err(Errno::INVAL);
    }
    check_mode(k, from, OFlags::WRONLY)?;
    check_mode(k, to, OFlags::RDONLY)?;
    if !is_pipe(k, from)? || !is_pipe(k, to)? {
        return Err(Errno::INVAL);
    }
    let (source, target) = (k.process.files.host(from)?, k.process.files.host(to)?);
    if same_pipe(source, target)? {
        return Err(Errno::INVAL);
    }
    match rustix::pipe::tee(source, target, len as usize, SpliceFlags::NONBLOCK) {
        Err(Errno::AGAIN) => wait_for_either(k, from, to, flags),
        result => result.map(|n| n as u64),
    }
}

/// `vmsplice`: the pages are copied, as for `readv` and `writev`.
pub(super) fn vmsplice(k: &mut Kernel<'_>, a: &Args) -> Result {
    let fd = a[0] as i32;
    if a[3] & !FLAGS != 0 {
        return Err(Errno::INVAL);
    }
    if !is_pipe(k, fd)? {
        return Err(Errno::BADF);
    }
    let list = pieces(k, a[1], a[2])?;
    let writes = rustix::fs::fcntl_getfl(k.process.files.host(fd)?)? & OFlags::RWMODE != OFlags::RDONLY;
    let events = if writes { PollFlags::OUT } else { PollFlags::IN };
    if a[3] & NONBLOCK != 0 && ready(&k.process.files, &[(fd, events)])?[0].is_empty() {
        return Err(Errno::AGAIN);
    }
    if writes { write_on(k, a[0], &list) } else { read_on(k, a[0], &list) }
}
