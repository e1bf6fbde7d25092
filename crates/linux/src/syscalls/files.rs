//! System calls on files and directories: reading, writing, opening. What describes files is in `stat.rs`.

use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use bytemuck::{Pod, Zeroable};
use rustix::fs::{AtFlags, Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use super::{Args, Result, guest};
use crate::files::AT_FDCWD;
use crate::kernel::{Kernel, Limit};
use crate::signal::{self, Origin, SigInfo, code, number};
use crate::thread::Thread;

/// Bytes moved between host and guest at a time.
const CHUNK: usize = 1 << 20;

/// Most bytes one call transfers (Linux's `MAX_RW_COUNT` with 64 KiB pages).
const MAX_TRANSFER: u64 = 0x7fff_0000;

/// Most entries of an `iovec` array.
const IOV_MAX: u64 = 1024;

/// Flags of `openat` that differ between hosts and arm64: arm64's bit, and the host's flag.
const OPEN_FLAGS: [(u32, OFlags); 14] = [
    (0o100, OFlags::CREATE),
    (0o200, OFlags::EXCL),
    (0o400, OFlags::NOCTTY),
    (0o1000, OFlags::TRUNC),
    (0o2000, OFlags::APPEND),
    (0o4000, OFlags::NONBLOCK),
    (0o10000, OFlags::DSYNC),
    (0o40000, OFlags::DIRECTORY),
    (0o100_000, OFlags::NOFOLLOW),
    (0o200_000, OFlags::DIRECT),
    (0o1_000_000, OFlags::NOATIME),
    (0o4_010_000, OFlags::SYNC),
    (0o10_000_000, OFlags::PATH),
    (0o20_040_000, OFlags::TMPFILE),
];
const O_CLOEXEC: u32 = 0o2_000_000;

fn open_flags(guest: u32) -> std::result::Result<OFlags, Errno> {
    let mut flags = match guest & 3 {
        0 => OFlags::RDONLY,
        1 => OFlags::WRONLY,
        2 => OFlags::RDWR,
        _ => return Err(Errno::INVAL),
    };
    for (bit, host) in OPEN_FLAGS {
        if guest & bit == bit {
            flags |= host;
        }
    }
    Ok(flags | OFlags::CLOEXEC)
}

fn guest_open_flags(host: OFlags) -> u64 {
    let mut flags = host.bits() & 3;
    for (bit, flag) in OPEN_FLAGS {
        if host.contains(flag) {
            flags |= bit;
        }
    }
    u64::from(flags)
}

/// Flags of the `…at` calls that exist here; an unknown one is `EINVAL`.
pub(super) fn at_flags(bits: u64) -> std::result::Result<AtFlags, Errno> {
    let mut flags = AtFlags::empty();
    for (bit, flag) in [
        (0x100, AtFlags::SYMLINK_NOFOLLOW),
        (0x200, AtFlags::REMOVEDIR), // also AT_EACCESS
        (0x400, AtFlags::SYMLINK_FOLLOW),
        (0x800, AtFlags::NO_AUTOMOUNT),
        (0x1000, AtFlags::EMPTY_PATH),
    ] {
        if bits & bit != 0 {
            flags |= flag;
        }
    }
    // AT_STATX_SYNC_TYPE is a hint.
    if bits & !(0x1f00 | 0x6000) != 0 { Err(Errno::INVAL) } else { Ok(flags) }
}

/// The path of a call; `/proc/self/exe` is the program.
pub(super) fn path(kernel: &mut Kernel, addr: u64) -> std::result::Result<Vec<u8>, Errno> {
    let path = guest::string(&mut kernel.mem, addr)?;
    if path == b"/proc/self/exe" { Ok(kernel.files.program.clone()) } else { Ok(kernel.files.view.host_path(path)) }
}

fn limit(kernel: &Kernel) -> u64 {
    kernel.limits[Limit::FILES].soft
}

pub(super) fn openat(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let (flags, mode) = (a[2] as u32, Mode::from_raw_mode(a[3] as u32 & 0o7777));
    let name = path(k, a[1])?;
    let host = rustix::fs::openat(k.files.directory(a[0] as i32)?, name, open_flags(flags)?, mode)?;
    let limit = limit(k);
    Ok(k.files.insert(host, flags & O_CLOEXEC != 0, 0, limit)? as u64)
}

pub(super) fn close(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    k.files.close(a[0] as i32)?;
    Ok(0)
}

pub(super) fn close_range(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    const CLOEXEC: u64 = 4;
    if a[0] > a[1] || a[2] & !(CLOEXEC | 2) != 0 {
        return Err(Errno::INVAL);
    }
    let first = i32::try_from(a[0]).unwrap_or(i32::MAX);
    let end = k.files.end().min(i32::try_from(a[1]).unwrap_or(i32::MAX).saturating_add(1));
    for fd in first..end {
        // Numbers that are not open are skipped.
        let _ = if a[2] & CLOEXEC != 0 { k.files.set_close_on_exec(fd, true) } else { k.files.close(fd) };
    }
    Ok(0)
}

/// One piece of guest memory of a transfer.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Piece {
    addr: u64,
    len: u64,
}

/// The pieces of an `iovec` array.
fn pieces(kernel: &mut Kernel, addr: u64, count: u64) -> std::result::Result<Vec<Piece>, Errno> {
    if count > IOV_MAX {
        return Err(Errno::INVAL);
    }
    let mut pieces = Vec::with_capacity(count as usize);
    let mut total = 0u64;
    for i in 0..count {
        let piece: Piece = guest::read(&mut kernel.mem, addr.wrapping_add(16 * i))?;
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

/// Reads into the pieces in order, at the file's position or at `offset`, until one comes up short.
fn read_pieces(k: &mut Kernel, fd: u64, pieces: &[Piece], offset: Option<u64>) -> Result {
    let file = k.files.host(fd as i32)?;
    let mut done = 0u64;
    let mut buffer = Vec::new();
    for piece in pieces {
        let mut here = 0;
        while here < piece.len {
            let n = (piece.len - here).min(CHUNK as u64);
            // Look first, so that nothing is taken out of a pipe and lost.
            if k.mem.check(piece.addr.wrapping_add(here), n, fxscope_aarch64::memory::Touch::Write).is_err() {
                return if done > 0 { Ok(done) } else { Err(Errno::FAULT) };
            }
            buffer.resize(n as usize, 0);
            let got = match offset {
                None => rustix::io::read(file, &mut buffer[..]),
                Some(at) => rustix::io::pread(file, &mut buffer[..], at + done),
            };
            let got = match got {
                Ok(got) => got,
                Err(_) if done > 0 => return Ok(done),
                Err(e) => return Err(e),
            };
            guest::write_bytes(&mut k.mem, piece.addr.wrapping_add(here), &buffer[..got])?;
            here += got as u64;
            done += got as u64;
            if (got as u64) < n {
                return Ok(done);
            }
        }
    }
    Ok(done)
}

/// Writes the pieces in order, at the file's position or at `offset`. Small transfers are one host call, so
/// that lines written in pieces come out whole.
fn write_pieces(k: &mut Kernel, t: &mut Thread, fd: u64, pieces: &[Piece], offset: Option<u64>) -> Result {
    let file = k.files.host(fd as i32)?;
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
                match write_chunk(file, &buffer, offset.map(|at| at + done)) {
                    Ok(n) => {
                        done += n as u64;
                        if n < buffer.len() {
                            return Ok(done);
                        }
                    }
                    Err(_) if done > 0 => return Ok(done),
                    Err(e) => {
                        if e == Errno::PIPE {
                            let origin = Origin::Sender { pid: 0, uid: 0 };
                            signal::send(k, t, SigInfo { signal: number::SIGPIPE, code: code::SI_USER, origin });
                        }
                        return Err(e);
                    }
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

fn write_chunk(file: BorrowedFd<'_>, bytes: &[u8], offset: Option<u64>) -> std::result::Result<usize, Errno> {
    match offset {
        None => rustix::io::write(file, bytes),
        Some(at) => rustix::io::pwrite(file, bytes, at),
    }
}

/// A file offset; negative ones are `EINVAL`.
fn offset(value: u64) -> std::result::Result<Option<u64>, Errno> {
    if (value as i64) < 0 { Err(Errno::INVAL) } else { Ok(Some(value)) }
}

pub(super) fn read(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    read_pieces(k, a[0], &one_piece(a[1], a[2]), None)
}

pub(super) fn write(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    write_pieces(k, t, a[0], &one_piece(a[1], a[2]), None)
}

pub(super) fn pread64(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    read_pieces(k, a[0], &one_piece(a[1], a[2]), offset(a[3])?)
}

pub(super) fn pwrite64(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    write_pieces(k, t, a[0], &one_piece(a[1], a[2]), offset(a[3])?)
}

pub(super) fn readv(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let pieces = pieces(k, a[1], a[2])?;
    read_pieces(k, a[0], &pieces, None)
}

pub(super) fn writev(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    let pieces = pieces(k, a[1], a[2])?;
    write_pieces(k, t, a[0], &pieces, None)
}

pub(super) fn preadv(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let pieces = pieces(k, a[1], a[2])?;
    read_pieces(k, a[0], &pieces, offset(a[3])?)
}

pub(super) fn pwritev(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    let pieces = pieces(k, a[1], a[2])?;
    write_pieces(k, t, a[0], &pieces, offset(a[3])?)
}

pub(super) fn lseek(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let at = a[1] as i64;
    let to = match a[2] {
        0 => SeekFrom::Start(u64::try_from(at).map_err(|_| Errno::INVAL)?),
        1 => SeekFrom::Current(at),
        2 => SeekFrom::End(at),
        3 => SeekFrom::Data(u64::try_from(at).map_err(|_| Errno::NXIO)?),
        4 => SeekFrom::Hole(u64::try_from(at).map_err(|_| Errno::NXIO)?),
        _ => return Err(Errno::INVAL),
    };
    rustix::fs::seek(k.files.host(a[0] as i32)?, to)
}

pub(super) fn ftruncate(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let len = u64::try_from(a[1] as i64).map_err(|_| Errno::INVAL)?;
    rustix::fs::ftruncate(k.files.host(a[0] as i32)?, len)?;
    Ok(0)
}

pub(super) fn truncate(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let len = u64::try_from(a[1] as i64).map_err(|_| Errno::INVAL)?;
    let name = path(k, a[0])?;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(k.files.directory(AT_FDCWD)?, name, flags, Mode::empty())?;
    rustix::fs::ftruncate(file, len)?;
    Ok(0)
}

pub(super) fn fsync(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    rustix::fs::fsync(k.files.host(a[0] as i32)?)?;
    Ok(0)
}

pub(super) fn fdatasync(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    rustix::fs::fdatasync(k.files.host(a[0] as i32)?)?;
    Ok(0)
}

/// `fadvise64`: advice may be ignored.
pub(super) fn fadvise64(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    k.files.host(a[0] as i32)?;
    Ok(0)
}

pub(super) fn dup(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let limit = limit(k);
    Ok(k.files.duplicate(a[0] as i32, false, 0, limit)? as u64)
}

pub(super) fn dup3(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let flags = a[2] as u32;
    if a[0] as i32 == a[1] as i32 || flags & !O_CLOEXEC != 0 {
        return Err(Errno::INVAL);
    }
    let limit = limit(k);
    Ok(k.files.duplicate_to(a[0] as i32, a[1] as i32, flags & O_CLOEXEC != 0, limit)? as u64)
}

pub(super) fn pipe2(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let flags = a[1] as u32;
    let mut host = rustix::pipe::PipeFlags::CLOEXEC;
    if flags & 0o4000 != 0 {
        host |= rustix::pipe::PipeFlags::NONBLOCK;
    }
    let (reader, writer) = rustix::pipe::pipe_with(host)?;
    let (limit, close_on_exec) = (limit(k), flags & O_CLOEXEC != 0);
    let reader = k.files.insert(reader, close_on_exec, 0, limit)?;
    let writer = k.files.insert(writer, close_on_exec, 0, limit)?;
    guest::write(&mut k.mem, a[0], [reader, writer])?;
    Ok(0)
}

pub(super) fn fcntl(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    const SETTABLE: OFlags = OFlags::APPEND.union(OFlags::NONBLOCK).union(OFlags::DIRECT).union(OFlags::NOATIME);
    let fd = a[0] as i32;
    let limit = limit(k);
    match a[1] {
        // F_DUPFD and F_DUPFD_CLOEXEC
        0 => Ok(k.files.duplicate(fd, false, a[2] as i32, limit)? as u64),
        1030 => Ok(k.files.duplicate(fd, true, a[2] as i32, limit)? as u64),
        // F_GETFD and F_SETFD
        1 => Ok(u64::from(k.files.close_on_exec(fd)?)),
        2 => k.files.set_close_on_exec(fd, a[2] & 1 != 0).map(|()| 0),
        // F_GETFL and F_SETFL
        3 => Ok(guest_open_flags(rustix::fs::fcntl_getfl(k.files.host(fd)?)?)),
        4 => {
            let file = k.files.host(fd)?;
            let kept = rustix::fs::fcntl_getfl(file)? - SETTABLE;
            rustix::fs::fcntl_setfl(file, kept | (open_flags(a[2] as u32 & !3)? & SETTABLE))?;
            Ok(0)
        }
        _ => {
            k.files.host(fd)?;
            Err(Errno::INVAL)
        }
    }
}

/// `getdents64`: the host's entries in arm64's layout (the same on every 64-bit Linux).
pub(super) fn getdents64(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let room = (a[2] as u32 as usize).min(CHUNK);
    let mut buffer = vec![MaybeUninit::uninit(); room];
    let mut out = Vec::with_capacity(room);
    let mut directory = RawDir::new(k.files.host(a[0] as i32)?, &mut buffer);
    while let Some(entry) = directory.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes_with_nul();
        let len = (19 + name.len()).next_multiple_of(8);
        out.extend_from_slice(&entry.ino().to_le_bytes());
        out.extend_from_slice(&entry.next_entry_cookie().to_le_bytes());
        out.extend_from_slice(&(len as u16).to_le_bytes());
        out.push(directory_type(entry.file_type()));
        out.extend_from_slice(name);
        out.resize(out.len().next_multiple_of(8), 0);
        // One host call fills the buffer; the next would read on.
        if directory.is_buffer_empty() {
            break;
        }
    }
    guest::write_bytes(&mut k.mem, a[1], &out)?;
    Ok(out.len() as u64)
}

/// `DT_…`: the type bits of the mode, shifted down.
fn directory_type(kind: rustix::fs::FileType) -> u8 {
    (kind.as_raw_mode() >> 12) as u8
}

pub(super) fn getcwd(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::ffi::OsStrExt as _;
    let link = format!("/proc/self/fd/{}", k.files.directory(AT_FDCWD)?.as_raw_fd());
    let path = std::fs::read_link(link).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
    let mut path = path.as_os_str().as_bytes().to_owned();
    path.push(0);
    if path.len() as u64 > a[1] {
        return Err(Errno::RANGE);
    }
    guest::write_bytes(&mut k.mem, a[0], &path)?;
    Ok(path.len() as u64)
}

pub(super) fn chdir(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let name = path(k, a[0])?;
    k.files.change_directory(&name)?;
    Ok(0)
}

pub(super) fn fchdir(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    k.files.change_directory_to(a[0] as i32)?;
    Ok(0)
}

pub(super) fn unlinkat(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let name = path(k, a[1])?;
    rustix::fs::unlinkat(k.files.directory(a[0] as i32)?, name, at_flags(a[2])?)?;
    Ok(0)
}

pub(super) fn mkdirat(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let name = path(k, a[1])?;
    rustix::fs::mkdirat(k.files.directory(a[0] as i32)?, name, Mode::from_raw_mode(a[2] as u32 & 0o7777))?;
    Ok(0)
}

pub(super) fn renameat(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    renameat2(k, t, &[a[0], a[1], a[2], a[3], 0, 0])
}

pub(super) fn renameat2(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let flags = rustix::fs::RenameFlags::from_bits(a[4] as u32).ok_or(Errno::INVAL)?;
    let (old, new) = (path(k, a[1])?, path(k, a[3])?);
    let (old_dir, new_dir) = (k.files.directory(a[0] as i32)?, k.files.directory(a[2] as i32)?);
    rustix::fs::renameat_with(old_dir, old, new_dir, new, flags)?;
    Ok(0)
}

pub(super) fn linkat(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let (old, new) = (path(k, a[1])?, path(k, a[3])?);
    let (old_dir, new_dir) = (k.files.directory(a[0] as i32)?, k.files.directory(a[2] as i32)?);
    rustix::fs::linkat(old_dir, old, new_dir, new, at_flags(a[4])?)?;
    Ok(0)
}

pub(super) fn symlinkat(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let (target, name) = (guest::string(&mut k.mem, a[0])?, path(k, a[2])?);
    rustix::fs::symlinkat(target, k.files.directory(a[1] as i32)?, name)?;
    Ok(0)
}
