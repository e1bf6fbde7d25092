//! Transfer of bytes between files and the program's memory, and between files.

use std::os::fd::{AsFd as _, BorrowedFd};

use bytemuck::{Pod, Zeroable};
use fxscope_guestmem::Memory;
use fxscope_guestmem::Touch;
use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;

use super::sockets::is_socket;
use super::streams::{self, is_stream};
use super::{Args, Result, mqueue, perf, procmem, pty, signalfd, timerfd};
use crate::fs::files::OpenFile;
use crate::fs::memory_files::growing;
use crate::fs::objects::Object;
use crate::fs::vfs::tree::Kind;
use crate::kernel::Kernel;
use crate::mm::shared_files::SharedFiles;
use crate::mm::user;
use crate::signal::{self, Origin, SigInfo, code, number};

/// Bytes transferred between host and guest at a time.
pub(super) const CHUNK: usize = 1 << 20;

/// Maximum bytes that one call transfers (Linux's `MAX_RW_COUNT` with 64 KiB pages).
pub(super) const MAX_TRANSFER: u64 = 0x7fff_0000;

/// Maximum number of entries of an `iovec` array.
const IOV_MAX: u64 = 1024;

/// One piece of guest memory of a transfer.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Piece {
    pub addr: u64,
    pub len: u64,
}

/// Reads the pieces of an `iovec` array.
pub(super) fn pieces(k: &mut Kernel<'_>, addr: u64, count: u64) -> std::result::Result<Vec<Piece>, Errno> {
    if count > IOV_MAX {
        return Err(Errno::INVAL);
    }
    let mut pieces = Vec::with_capacity(count as usize);
    let mut total = 0u64;
    for i in 0..count {
        let piece: Piece = user::read(k.mem, addr.wrapping_add(16 * i))?;
        if piece.len > i64::MAX as u64 {
            return Err(Errno::INVAL);
        }
        let len = piece.len.min(MAX_TRANSFER - total);
        total += len;
        pieces.push(Piece { len, ..piece });
    }
    Ok(pieces)
}

fn one_piece(addr: u64, len: u64) -> Vec<Piece> {
    vec![Piece { addr, len: len.min(MAX_TRANSFER) }]
}

/// Reads into the pieces in order, at the file's position or at `offset`, until a read returns less than requested.
fn read_pieces(k: &mut Kernel<'_>, fd: u64, pieces: &[Piece], offset: Option<u64>) -> Result {
    match k.process.files.simulated(fd as i32).map(|node| node.kind) {
        Some(Kind::Random) => return read_random(k, pieces),
        Some(kind @ (Kind::Memory | Kind::PageMap)) => return procmem::read(k, fd as i32, kind, pieces, offset),
        _ => {}
    }
    let file = k.process.files.host(fd as i32)?;
    let shared = k.system.shared_files.of(file).is_some();
    let mut done = 0u64;
    let mut buffer = Vec::new();
    for piece in pieces {
        let mut here = 0;
        while here < piece.len {
            let n = (piece.len - here).min(CHUNK as u64);
            // Check first, so that no data read from a pipe are lost.
            if k.mem.check(piece.addr.wrapping_add(here), n, Touch::Write).is_err() {
                return if done > 0 { Ok(done) } else { Err(Errno::FAULT) };
            }
            buffer.resize(n as usize, 0);
            let at = match offset {
                None if shared => Some(rustix::fs::tell(file)?),
                offset => offset.map(|at| at + done),
            };
            let read_at_offset = offset.and(at);
            let got = match read_at(file, &mut buffer, read_at_offset) {
                Err(Errno::INVAL) if direct::is(file) => {
                    let fits = direct::fits(piece.addr.wrapping_add(here), n);
                    direct::read(file, &mut buffer, read_at_offset, fits)
                }
                got => got,
            };
            let got = match got {
                Ok(got) => got,
                Err(_) if done > 0 => return Ok(done),
                Err(e) => return Err(e),
            };
            if let (Some(at), true) = (at, shared) {
                k.system.shared_files.after_read(k.mem, file, at, &mut buffer[..got]);
            }
            user::write_bytes(k.mem, piece.addr.wrapping_add(here), &buffer[..got])?;
            here += got as u64;
            done += got as u64;
            if (got as u64) < n {
                return Ok(done);
            }
        }
    }
    Ok(done)
}

/// Reads from a host file, at its position or at `at`.
fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], at: Option<u64>) -> std::result::Result<usize, Errno> {
    match at {
        None => rustix::io::read(file, buffer),
        Some(at) => rustix::io::pread(file, buffer, at),
    }
}

/// Writes to a host file, at its position or at `at`.
fn write_at(file: BorrowedFd<'_>, bytes: &[u8], at: Option<u64>) -> std::result::Result<usize, Errno> {
    match at {
        None => rustix::io::write(file, bytes),
        Some(at) => rustix::io::pwrite(file, bytes, at),
    }
}

/// Direct transfers (`O_DIRECT`): the host requires aligned buffers, and so does Linux of the program.
mod direct {
    use super::{BorrowedFd, Errno, OFlags, read_at, write_at};

    /// Alignment of the program's addresses and lengths: the usual size of a block of a disk.
    const BLOCK: u64 = 512;

    /// Alignment that every host accepts.
    const PAGE: usize = 4096;

    /// Returns whether a file is open for direct transfers.
    pub(super) fn is(file: BorrowedFd<'_>) -> bool {
        rustix::fs::fcntl_getfl(file).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
    }

    /// Returns whether a piece of the program's memory is aligned.
    pub(super) fn fits(addr: u64, len: u64) -> bool {
        addr.is_multiple_of(BLOCK) && len.is_multiple_of(BLOCK)
    }

    /// Calls `with` with an aligned buffer.
    fn aligned<T>(len: usize, with: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut room = vec![0; len + PAGE];
        let start = room.as_ptr().align_offset(PAGE).min(PAGE);
        with(&mut room[start..start + len])
    }

    /// Repeats a read that the host has refused because of the simulator's buffer.
    ///
    /// # Errors
    /// `EINVAL` unless the program's own memory `fits`; the host's.
    pub(super) fn read(file: BorrowedFd<'_>, buffer: &mut [u8], at: Option<u64>, fits: bool) -> Result<usize, Errno> {
        if !fits {
            return Err(Errno::INVAL);
        }
        aligned(buffer.len(), |room| {
            let got = read_at(file, room, at)?;
            buffer[..got].copy_from_slice(&room[..got]);
            Ok(got)
        })
    }

    /// The same for a write.
    ///
    /// # Errors
    /// As [`read`].
    pub(super) fn write(file: BorrowedFd<'_>, bytes: &[u8], at: Option<u64>, fits: bool) -> Result<usize, Errno> {
        if !fits {
            return Err(Errno::INVAL);
        }
        aligned(bytes.len(), |room| {
            room.copy_from_slice(bytes);
            write_at(file, room, at)
        })
    }
}

/// Fills the pieces with random bytes.
pub(super) fn read_random(k: &mut Kernel<'_>, pieces: &[Piece]) -> Result {
    let mut done = 0;
    for piece in pieces {
        let mut here = 0;
        while here < piece.len {
            let mut bytes = vec![0; (piece.len - here).min(CHUNK as u64) as usize];
            k.process.random.fill(&mut bytes);
            match user::write_bytes(k.mem, piece.addr.wrapping_add(here), &bytes) {
                Err(error) if done == 0 => return Err(error),
                Err(_) => return Ok(done),
                Ok(()) => {}
            }
            here += bytes.len() as u64;
            done += bytes.len() as u64;
        }
    }
    Ok(done)
}

/// Writes the pieces in order, at the file's position or at `offset`. Small transfers are one host call, so that lines written in
/// pieces stay whole.
fn write_pieces(k: &mut Kernel<'_>, fd: u64, pieces: &[Piece], offset: Option<u64>) -> Result {
    if k.process.files.simulated(fd as i32).is_some_and(|node| node.kind == Kind::Memory) {
        return procmem::write(k, fd as i32, pieces, offset);
    }
    let file = k.process.files.open_file(fd as i32)?;
    let fits = pieces.iter().all(|piece| direct::fits(piece.addr, piece.len));
    let mut done = 0u64;
    let mut buffer = Vec::new();
    let mut fault = None;
    for (i, piece) in pieces.iter().enumerate() {
        let mut here = 0;
        loop {
            let n = (piece.len - here).min((CHUNK - buffer.len()) as u64);
            let start = buffer.len();
            buffer.resize(start + n as usize, 0);
            if k.mem.read(piece.addr.wrapping_add(here), &mut buffer[start..]).is_err() {
                buffer.truncate(start);
                fault = Some(Errno::FAULT);
            }
            here += n;
            let last = i + 1 == pieces.len() && here == piece.len;
            if (last || fault.is_some() || buffer.len() == CHUNK) && (!buffer.is_empty() || fault.is_none()) {
                match write_chunk(k.mem, &k.system.shared_files, file, &buffer, offset.map(|at| at + done), fits) {
                    Ok(n) => {
                        done += n as u64;
                        if n < buffer.len() {
                            return Ok(done);
                        }
                    }
                    Err(_) if done > 0 => return Ok(done),
                    Err(e) => return Err(write_error(k, e)),
                }
                buffer.clear();
            }
            if let Some(error) = fault {
                return if done > 0 { Ok(done) } else { Err(error) };
            }
            if here == piece.len {
                break;
            }
        }
    }
    Ok(done)
}

/// Returns the error of a write or of extending a file. A write to a pipe without readers also sends a signal, and so does one
/// beyond the limit of the file size (setrlimit(2), `RLIMIT_FSIZE`).
pub(super) fn write_error(k: &mut Kernel<'_>, error: Errno) -> Errno {
    let signal = match error {
        Errno::PIPE => number::SIGPIPE,
        Errno::FBIG if fxscope_host::file_size_limit().is_some() => number::SIGXFSZ,
        _ => return error,
    };
    let origin = Origin::Sender { pid: k.process.pid, uid: k.process.attributes.users.real };
    signal::send(&k.process.actions, k.thread, SigInfo { signal, code: code::SI_USER, origin });
    error
}

fn write_chunk(
    mem: &mut Memory,
    shared: &SharedFiles,
    file: &OpenFile,
    bytes: &[u8],
    offset: Option<u64>,
    fits: bool,
) -> std::result::Result<usize, Errno> {
    let written = growing(mem, file, offset, bytes.len() as u64, |fitting| {
        let (host, bytes) = (file.host.as_fd(), &bytes[..fitting as usize]);
        match write_at(host, bytes, offset) {
            Err(Errno::INVAL) if direct::is(host) => direct::write(host, bytes, offset, fits),
            result => result,
        }
    })?;
    shared.after_write(mem, file.host.as_fd(), offset, &bytes[..written])?;
    Ok(written)
}

/// Converts a file offset; negative ones are `EINVAL`.
fn offset(value: u64) -> std::result::Result<Option<u64>, Errno> {
    if (value as i64) < 0 { Err(Errno::INVAL) } else { Ok(Some(value)) }
}

/// Reads at the file's position; waits for a stream.
pub(super) fn read_on(k: &mut Kernel<'_>, fd: u64, pieces: &[Piece]) -> Result {
    match k.process.files.object(fd as i32) {
        Some(Object::Timer(_)) => return timerfd::read(k, fd as i32, pieces),
        Some(Object::Signals(signals)) => {
            let mask = signals.mask.get();
            return signalfd::read(k, fd as i32, mask, pieces);
        }
        Some(Object::Process(_)) => return Err(Errno::INVAL),
        Some(Object::Pty(_)) => return pty::read(k, fd as i32, pieces),
        Some(Object::Event(event)) => {
            let event = event.clone();
            return perf::read(k, &event, pieces);
        }
        Some(Object::Messages(open)) => {
            let line = mqueue::status(&open.queue);
            let len = line.len().min(pieces.iter().map(|piece| piece.len).sum::<u64>() as usize);
            streams::scatter(k, pieces, 0, &line.as_bytes()[..len])?;
            return Ok(len as u64);
        }
        Some(Object::Host | Object::Counter { .. } | Object::Epoll(_)) | None => {}
    }
    if is_stream(k, fd as i32) { streams::read(k, fd as i32, pieces) } else { read_pieces(k, fd, pieces, None) }
}

/// Writes at the file's position; waits for a stream.
pub(super) fn write_on(k: &mut Kernel<'_>, fd: u64, pieces: &[Piece]) -> Result {
    match k.process.files.object(fd as i32) {
        Some(Object::Pty(_)) => return pty::write(k, fd as i32, pieces),
        Some(Object::Timer(_) | Object::Signals(_) | Object::Process(_) | Object::Event(_) | Object::Messages(_)) => {
            return Err(Errno::INVAL);
        }
        Some(Object::Host | Object::Counter { .. } | Object::Epoll(_)) | None => {}
    }
    if is_stream(k, fd as i32) { streams::write(k, fd as i32, pieces) } else { write_pieces(k, fd, pieces, None) }
}

/// Counts a call that reads, and what it has read.
fn has_read(k: &mut Kernel<'_>, result: Result) -> Result {
    // A call that waits is counted when it is repeated.
    if k.thread.blocked.is_some() {
        return result;
    }
    let transfers = &mut k.process.attributes.transfers;
    transfers.reads += 1;
    transfers.read_bytes += result.unwrap_or(0);
    result
}

/// Counts a call that writes, and what it has written.
fn has_written(k: &mut Kernel<'_>, result: Result) -> Result {
    if k.thread.blocked.is_some() {
        return result;
    }
    let transfers = &mut k.process.attributes.transfers;
    transfers.writes += 1;
    transfers.written_bytes += result.unwrap_or(0);
    result
}

pub(super) fn read(k: &mut Kernel<'_>, a: &Args) -> Result {
    let result = read_on(k, a[0], &one_piece(a[1], a[2]));
    has_read(k, result)
}

pub(super) fn write(k: &mut Kernel<'_>, a: &Args) -> Result {
    let result = write_on(k, a[0], &one_piece(a[1], a[2]));
    has_written(k, result)
}

pub(super) fn pread64(k: &mut Kernel<'_>, a: &Args) -> Result {
    let result = read_pieces(k, a[0], &one_piece(a[1], a[2]), offset(a[3])?);
    has_read(k, result)
}

pub(super) fn pwrite64(k: &mut Kernel<'_>, a: &Args) -> Result {
    let result = write_pieces(k, a[0], &one_piece(a[1], a[2]), offset(a[3])?);
    has_written(k, result)
}

pub(super) fn readv(k: &mut Kernel<'_>, a: &Args) -> Result {
    let pieces = pieces(k, a[1], a[2])?;
    let result = read_on(k, a[0], &pieces);
    has_read(k, result)
}

pub(super) fn writev(k: &mut Kernel<'_>, a: &Args) -> Result {
    let pieces = pieces(k, a[1], a[2])?;
    let result = write_on(k, a[0], &pieces);
    has_written(k, result)
}

pub(super) fn preadv(k: &mut Kernel<'_>, a: &Args) -> Result {
    let pieces = pieces(k, a[1], a[2])?;
    let result = read_pieces(k, a[0], &pieces, offset(a[3])?);
    has_read(k, result)
}

pub(super) fn pwritev(k: &mut Kernel<'_>, a: &Args) -> Result {
    let pieces = pieces(k, a[1], a[2])?;
    let result = write_pieces(k, a[0], &pieces, offset(a[3])?);
    has_written(k, result)
}

/// `preadv2` and `pwritev2` without flags; offset -1 is the file's position.
fn plain_offset(a: &Args) -> std::result::Result<Option<u64>, Errno> {
    match (a[5], a[3]) {
        (0, u64::MAX) => Ok(None),
        (0, at) => offset(at),
        _ => Err(Errno::OPNOTSUPP),
    }
}

pub(super) fn preadv2(k: &mut Kernel<'_>, a: &Args) -> Result {
    let pieces = pieces(k, a[1], a[2])?;
    let result = match plain_offset(a)? {
        None => read_on(k, a[0], &pieces),
        offset => read_pieces(k, a[0], &pieces, offset),
    };
    has_read(k, result)
}

pub(super) fn pwritev2(k: &mut Kernel<'_>, a: &Args) -> Result {
    let pieces = pieces(k, a[1], a[2])?;
    let result = match plain_offset(a)? {
        None => write_on(k, a[0], &pieces),
        offset => write_pieces(k, a[0], &pieces, offset),
    };
    has_written(k, result)
}

/// Reads the offset at which a call continues, if it has one.
pub(super) fn offset_at(k: &mut Kernel<'_>, addr: u64) -> std::result::Result<Option<u64>, Errno> {
    if addr == 0 { Ok(None) } else { offset(user::read(k.mem, addr)?) }
}

pub(super) fn sendfile(k: &mut Kernel<'_>, a: &Args) -> Result {
    if is_stream(k, a[0] as i32) {
        return send_to_stream(k, a);
    }
    let mut at = offset_at(k, a[2])?;
    let (to, from) = (k.process.files.open_file(a[0] as i32)?, k.process.files.host(a[1] as i32)?);
    k.system.terminal.used(to.host.as_fd(), false);
    k.system.shared_files.flush(k.mem, from)?;
    k.system.shared_files.flush(k.mem, to.host.as_fd())?;
    let done = growing(k.mem, to, None, a[3].min(MAX_TRANSFER), |fitting| {
        rustix::fs::sendfile(&to.host, from, at.as_mut(), fitting as usize)
    })?;
    if let Ok(end) = rustix::fs::tell(&to.host) {
        let start = end.saturating_sub(done as u64);
        k.system.shared_files.after_change(k.mem, to.host.as_fd(), start, Some(end));
    }
    if let Some(at) = at {
        user::write(k.mem, a[2], at)?;
    }
    Ok(done as u64)
}

/// `sendfile` to a pipe, which gets what it has room for, or to a socket, which gets everything. The read position advances by
/// what is sent.
fn send_to_stream(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (to, from, total) = (a[0] as i32, a[1] as i32, a[3].min(MAX_TRANSFER));
    k.process.files.host(from)?;
    if is_stream(k, from) {
        return Err(Errno::INVAL);
    }
    offset_at(k, a[2])?;
    let least = if is_socket(k.process.files.host(to)?) { total } else { total.min(1) };
    let result = streams::deliver(k, to, least, true, |k, done| {
        let at = match offset_at(k, a[2])? {
            Some(at) => at,
            None => rustix::fs::tell(k.process.files.host(from)?)?,
        };
        let mut bytes = vec![0; (total - done).min(CHUNK as u64) as usize];
        let got = rustix::io::pread(k.process.files.host(from)?, &mut bytes[..], at)?;
        k.system.shared_files.after_read(k.mem, k.process.files.host(from)?, at, &mut bytes[..got]);
        if got == 0 {
            return Ok(0);
        }
        k.system.terminal.used(k.process.files.host(to)?, bytes[..got].ends_with(b"\n"));
        let sent = streams::write_now(k, to, &bytes[..got])?;
        match a[2] {
            0 => rustix::fs::seek(k.process.files.host(from)?, SeekFrom::Start(at + sent as u64)).map(|_| ())?,
            pointer => user::write(k.mem, pointer, at + sent as u64)?,
        }
        Ok(sent)
    });
    result.map_err(|error| write_error(k, error))
}

pub(super) fn copy_file_range(k: &mut Kernel<'_>, a: &Args) -> Result {
    if a[5] != 0 {
        return Err(Errno::INVAL);
    }
    let (mut from_at, mut to_at) = (offset_at(k, a[1])?, offset_at(k, a[3])?);
    let (from, to) = (k.process.files.host(a[0] as i32)?, k.process.files.open_file(a[2] as i32)?);
    k.system.shared_files.flush(k.mem, from)?;
    k.system.shared_files.flush(k.mem, to.host.as_fd())?;
    let done = growing(k.mem, to, to_at, a[4].min(MAX_TRANSFER), |fitting| {
        rustix::fs::copy_file_range(from, from_at.as_mut(), &to.host, to_at.as_mut(), fitting as usize)
    })?;
    if let Ok(end) = to_at.map_or_else(|| rustix::fs::tell(&to.host), Ok) {
        let start = end.saturating_sub(done as u64);
        k.system.shared_files.after_change(k.mem, to.host.as_fd(), start, Some(end));
    }
    for (addr, at) in [(a[1], from_at), (a[3], to_at)] {
        if let Some(at) = at {
            user::write(k.mem, addr, at)?;
        }
    }
    Ok(done as u64)
}
