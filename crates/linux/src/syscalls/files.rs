//! System calls on open files and their descriptors. Data transfer is in `transfer.rs`, names in `paths.rs`, descriptions of
//! files in `stat.rs`.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{FallocateFlags, FileType, MemfdFlags, Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use super::transfer::{CHUNK, write_error};
use super::{Args, Result, fifo, locks, pty};
pub(super) use crate::abi::open::O_CLOEXEC;
use crate::abi::open::{guest_open_flags, open_flags};
use crate::fs::files::{Files, OpenFile};
use crate::fs::locks::{FileId, file_id};
use crate::kernel::Kernel;
use crate::mm::user;
use crate::process::Limit;

use crate::fs::memory_files::growing;
use crate::fs::vfs::Origin;
use crate::fs::vfs::access::{Denied, writes};
use crate::fs::vfs::handle::{self, Handle};
use crate::fs::vfs::resolve::{self, Last, Place, Target, resolve};
use crate::fs::vfs::tree::{Kind, Node};

pub(super) fn limit(k: &Kernel<'_>) -> u64 {
    k.process.limits[Limit::FILES].soft
}

pub(super) fn openat(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (flags, mode) = (a[2] as u32, Mode::from_raw_mode(a[3] as u32 & 0o7777));
    let name = user::string(k.mem, a[1])?;
    if let Some(terminal) = open_terminal(k, a[0] as i32, &name, open_flags(flags)?, flags & O_CLOEXEC != 0) {
        return terminal;
    }
    let Some(file) = fifo::open(k, a[0] as i32, &name, open_flags(flags)?, mode)? else { return Ok(0) };
    if open_flags(flags)?.contains(OFlags::TRUNC) {
        k.system.shared_files.after_resize(k.mem, file.host.as_fd())?;
    }
    let (channel, limit) = (k.opened_channel(&file)?, limit(k));
    Ok(k.process.files.insert_channel(file, channel, flags & O_CLOEXEC != 0, limit)? as u64)
}

/// Opens a pseudoterminal. `None`: the path leads to something else, or is opened only as a place.
fn open_terminal(k: &mut Kernel<'_>, dir: i32, name: &[u8], flags: OFlags, close_on_exec: bool) -> Option<Result> {
    const TERMINAL: &[u8] = b"/dev/tty";
    // Most paths are elsewhere and need not be resolved twice.
    if flags.intersects(OFlags::PATH | OFlags::DIRECTORY) || !(name.starts_with(b"/dev") || name.starts_with(b"/proc"))
    {
        return None;
    }
    let flags = if close_on_exec { flags } else { flags - OFlags::CLOEXEC };
    if name == TERMINAL {
        return pty::open_controlling(k, flags);
    }
    match resolve(k, dir, name, Last::Follow) {
        Ok(Target::Simulated(node)) if matches!(node.kind, Kind::Ptmx | Kind::Terminal(_)) => {
            Some(pty::open(k, node, flags))
        }
        Ok(Target::Descriptor(fd)) => match k.process.files.simulated(fd)?.clone() {
            node @ Node { kind: Kind::Ptmx | Kind::Terminal(_), .. } => Some(pty::open(k, node, flags)),
            _ => None,
        },
        _ => None,
    }
}

/// Opens a path of the program.
///
/// # Errors
/// As for `open`; `EACCES` for what the program may not do.
pub(super) fn open(
    k: &Kernel<'_>,
    dir: i32,
    name: &[u8],
    flags: OFlags,
    mode: Mode,
) -> std::result::Result<OpenFile, Errno> {
    let exclusive = flags.contains(OFlags::CREATE | OFlags::EXCL);
    let last = if exclusive || flags.contains(OFlags::NOFOLLOW) { Last::Keep } else { Last::Follow };
    match resolve(k, dir, name, last)? {
        Target::Host(Place { kind: Some(_), .. }) | Target::Simulated(_) if exclusive => Err(Errno::EXIST),
        Target::Host(place) => open_host(k, place, flags, mode),
        Target::Simulated(node) => open_simulated(k, node, flags),
        Target::Descriptor(fd) => reopen(k, &k.process.files, fd, flags),
        Target::DescriptorOf(pid, fd) => reopen(k, k.open_files_of(pid)?, fd, flags),
    }
}

/// Accounts for a name about to be created at a host path. `/dev/shm` may have as many as `tmpfs` allows: one for every other
/// page of memory.
///
/// # Errors
/// `ENOSPC`.
pub(super) fn add_name(k: &Kernel<'_>, path: &[u8]) -> std::result::Result<(), Errno> {
    let most = k.system.platform.memory_bytes / k.system.platform.page_bytes / 2;
    k.process.files.view.policy.shared_memory.add_name(path, most)
}

fn open_host(k: &Kernel<'_>, place: Place, flags: OFlags, mode: Mode) -> std::result::Result<OpenFile, Errno> {
    let (policy, path) = (&k.process.files.view.policy, &place.path);
    let (direct, flags) = (flags.contains(OFlags::DIRECT), flags - OFlags::DIRECT);
    let unnamed = flags.contains(OFlags::TMPFILE);
    match place.kind {
        None if !flags.contains(OFlags::CREATE) => return Err(Errno::NOENT),
        Some(FileType::Symlink) if !flags.contains(OFlags::PATH) => return Err(Errno::LOOP),
        Some(FileType::Directory) if writes(flags) && !unnamed && !flags.contains(OFlags::PATH) => {
            return Err(Errno::ISDIR);
        }
        _ => {}
    }
    let host = if unnamed {
        let inside = [path, &b"/file"[..]].concat();
        policy.check(policy.may_change(&inside), Denied::Write, &inside)?;
        k.process.files.umask.making(|| handle::create_unnamed(policy, path, flags, mode))?
    } else if place.kind.is_none() {
        policy.check(policy.may_change(path), Denied::Write, path)?;
        add_name(k, path)?;
        match k.process.files.umask.making(|| handle::create(policy, path, flags, mode)) {
            // Another program has created it in the meantime.
            Err(Errno::EXIST) if !flags.contains(OFlags::EXCL) => Handle::new(policy, path)?.open(policy, flags)?,
            made => made?,
        }
    } else {
        policy.check_open(path, flags)?;
        Handle::new(policy, path)?.open(policy, flags)?
    };
    if direct && !flags.contains(OFlags::PATH) {
        // Where the host's file system has no direct transfers, they are ordinary ones.
        let _ = rustix::fs::fcntl_setfl(&host, rustix::fs::fcntl_getfl(&host)? | OFlags::DIRECT);
    }
    opened(k, host, path, place.origin)
}

/// Returns an open host file, which is at `path`.
fn opened(k: &Kernel<'_>, host: OwnedFd, path: &[u8], origin: Origin) -> std::result::Result<OpenFile, Errno> {
    let in_memory = k.process.files.view.policy.shared_memory.has(path)
        && FileType::from_raw_mode(rustix::fs::fstat(&host)?.st_mode).is_file();
    Ok(OpenFile::new(host, if in_memory { Origin::Memory } else { origin }))
}

/// Opens a simulated file: a separate file with its current contents.
pub(super) fn open_simulated(k: &Kernel<'_>, node: Node, flags: OFlags) -> std::result::Result<OpenFile, Errno> {
    let only_path = flags.contains(OFlags::PATH);
    match node.kind {
        Kind::Link | Kind::Descriptor(_) | Kind::DescriptorOf(..) if !only_path => return Err(Errno::LOOP),
        // Only `openat` opens them.
        Kind::Ptmx | Kind::Terminal(_) if !only_path => return Err(Errno::NXIO),
        Kind::Directory if writes(flags) => return Err(Errno::ISDIR),
        Kind::File | Kind::PageMap | Kind::Command | Kind::Substitute if writes(flags) => return Err(Errno::ACCESS),
        Kind::File
        | Kind::Memory
        | Kind::PageMap
        | Kind::Random
        | Kind::HardwareBarrier
        | Kind::Ptmx
        | Kind::Terminal(_)
        | Kind::Command
        | Kind::Substitute
            if flags.contains(OFlags::DIRECTORY) =>
        {
            return Err(Errno::NOTDIR);
        }
        _ => {}
    }
    let tree = &k.process.files.view.tree;
    let content = match node.kind {
        _ if only_path => Vec::new(),
        Kind::File | Kind::Substitute => tree.content(k, &node),
        Kind::Directory => directory_entries(k, &node),
        Kind::Memory
        | Kind::PageMap
        | Kind::Link
        | Kind::Random
        | Kind::HardwareBarrier
        | Kind::Ptmx
        | Kind::Terminal(_)
        | Kind::Descriptor(_)
        | Kind::DescriptorOf(..)
        | Kind::Command => Vec::new(),
    };
    let access = if node.kind == Kind::Memory { flags & OFlags::RWMODE } else { OFlags::RDONLY };
    Ok(OpenFile::new(text_file(&content, access)?, Origin::Simulated(node)))
}

/// Creates a host file with these contents, for reading or for `access`.
fn text_file(content: &[u8], access: OFlags) -> std::result::Result<OwnedFd, Errno> {
    let file = rustix::fs::memfd_create("simulated", MemfdFlags::CLOEXEC)?;
    let mut rest = content;
    while !rest.is_empty() {
        rest = &rest[rustix::io::write(&file, rest)?..];
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::open(path, access | OFlags::CLOEXEC, Mode::empty())
}

/// Reopens an open file of a process: a host file like any other, one in the simulated memory through its descriptor, and another one without a
/// path by duplicating its descriptor.
fn reopen(k: &Kernel<'_>, files: &Files, fd: i32, flags: OFlags) -> std::result::Result<OpenFile, Errno> {
    let file = files.open_file(fd)?;
    if let Origin::Simulated(node) = &file.origin {
        return open_simulated(k, node.clone(), flags);
    }
    if files.object(fd).is_some() {
        return Err(Errno::NXIO);
    }
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file.host)?.st_mode);
    match resolve::path_of(file.host.as_fd()) {
        Some(path) if kind.is_file() || kind.is_dir() => {
            let policy = &k.process.files.view.policy;
            if kind.is_dir() && writes(flags) && !flags.contains(OFlags::PATH) {
                return Err(Errno::ISDIR);
            }
            policy.check_open(&path, flags)?;
            let host = Handle::of(policy, file.host.as_fd(), path.clone())?.open(policy, flags)?;
            opened(k, host, &path, file.origin.clone())
        }
        None if file.origin == Origin::Memory => {
            let link = format!("/proc/self/fd/{}", file.host.as_raw_fd());
            let host = rustix::fs::open(link, flags | OFlags::CLOEXEC, Mode::empty())?;
            Ok(OpenFile::new(host, Origin::Memory))
        }
        _ => {
            let (has, wanted) = (rustix::fs::fcntl_getfl(&file.host)? & OFlags::RWMODE, flags & OFlags::RWMODE);
            if has == OFlags::RDWR || has == wanted { files.second(fd) } else { Err(Errno::ACCESS) }
        }
    }
}

pub(super) fn close(k: &mut Kernel<'_>, a: &Args) -> Result {
    k.close_descriptor(a[0] as i32)?;
    Ok(0)
}

pub(super) fn close_range(k: &mut Kernel<'_>, a: &Args) -> Result {
    const CLOEXEC: u64 = 4;
    if a[0] > a[1] || a[2] & !(CLOEXEC | 2) != 0 {
        return Err(Errno::INVAL);
    }
    let first = i32::try_from(a[0]).unwrap_or(i32::MAX);
    let end = k.process.files.end().min(i32::try_from(a[1]).unwrap_or(i32::MAX).saturating_add(1));
    for fd in first..end {
        // Numbers that are not open are skipped.
        let _ = if a[2] & CLOEXEC != 0 { k.process.files.set_close_on_exec(fd, true) } else { k.close_descriptor(fd) };
    }
    Ok(0)
}

pub(super) fn lseek(k: &mut Kernel<'_>, a: &Args) -> Result {
    let at = a[1] as i64;
    let to = match a[2] {
        0 => SeekFrom::Start(u64::try_from(at).map_err(|_| Errno::INVAL)?),
        1 => SeekFrom::Current(at),
        2 => SeekFrom::End(at),
        3 => SeekFrom::Data(u64::try_from(at).map_err(|_| Errno::NXIO)?),
        4 => SeekFrom::Hole(u64::try_from(at).map_err(|_| Errno::NXIO)?),
        _ => return Err(Errno::INVAL),
    };
    let file = k.process.files.host(a[0] as i32)?;
    if matches!(to, SeekFrom::Data(_) | SeekFrom::Hole(_)) {
        k.system.shared_files.flush(k.mem, file)?;
    }
    rustix::fs::seek(file, to)
}

pub(super) fn ftruncate(k: &mut Kernel<'_>, a: &Args) -> Result {
    let len = u64::try_from(a[1] as i64).map_err(|_| Errno::INVAL)?;
    rustix::fs::ftruncate(k.process.files.host(a[0] as i32)?, len).map_err(|e| write_error(k, e))?;
    k.system.shared_files.after_resize(k.mem, k.process.files.host(a[0] as i32)?)?;
    Ok(0)
}

pub(super) fn fallocate(k: &mut Kernel<'_>, a: &Args) -> Result {
    let mode = FallocateFlags::from_bits(a[1] as u32).ok_or(Errno::OPNOTSUPP)?;
    let (offset, len) = (a[2] as i64, a[3] as i64);
    if offset < 0 || len <= 0 {
        return Err(Errno::INVAL);
    }
    let (file, offset, len) = (k.process.files.open_file(a[0] as i32)?, offset as u64, len as u64);
    let (frees, only_allocates) = (mode.contains(FallocateFlags::PUNCH_HOLE), FallocateFlags::KEEP_SIZE.contains(mode));
    if !only_allocates {
        k.system.shared_files.flush(k.mem, file.host.as_fd())?;
    }
    if frees {
        rustix::fs::fallocate(&file.host, mode, offset, len)?;
    } else {
        let allocated = growing(k.mem, file, Some(offset), len, |fitting| match fitting == len {
            true => rustix::fs::fallocate(&file.host, mode, offset, len),
            false => Err(Errno::NOSPC),
        });
        allocated.map_err(|e| write_error(k, e))?;
    }
    if !only_allocates {
        // Other operations move what is behind the range.
        let end = frees.then(|| offset.saturating_add(len));
        k.system.shared_files.after_change(k.mem, k.process.files.host(a[0] as i32)?, offset, end);
    }
    Ok(0)
}

pub(super) fn memfd_create(k: &mut Kernel<'_>, a: &Args) -> Result {
    let name = user::string(k.mem, a[0])?;
    let flags = MemfdFlags::from_bits(a[1] as u32).ok_or(Errno::INVAL)?;
    let host = rustix::fs::memfd_create(name, flags | MemfdFlags::CLOEXEC)?;
    let (limit, close_on_exec) = (limit(k), flags.contains(MemfdFlags::CLOEXEC));
    Ok(k.process.files.insert(OpenFile::new(host, Origin::Memory), close_on_exec, 0, limit)? as u64)
}

/// `sync_file_range` and `readahead`: advice about when to transfer data.
pub(super) fn advice(k: &mut Kernel<'_>, a: &Args) -> Result {
    k.process.files.host(a[0] as i32)?;
    Ok(0)
}

/// `sync`: other data that a program has written are already on the host.
pub(super) fn sync(k: &mut Kernel<'_>, _: &Args) -> Result {
    k.flush_host_files();
    Ok(0)
}

pub(super) fn fsync(k: &mut Kernel<'_>, a: &Args) -> Result {
    let file = k.process.files.host(a[0] as i32)?;
    k.system.shared_files.sync(k.mem, file)?;
    rustix::fs::fsync(file)?;
    Ok(0)
}

pub(super) fn fdatasync(k: &mut Kernel<'_>, a: &Args) -> Result {
    let file = k.process.files.host(a[0] as i32)?;
    k.system.shared_files.sync(k.mem, file)?;
    rustix::fs::fdatasync(file)?;
    Ok(0)
}

pub(super) fn dup(k: &mut Kernel<'_>, a: &Args) -> Result {
    let limit = limit(k);
    Ok(k.process.files.duplicate(a[0] as i32, false, 0, limit)? as u64)
}

pub(super) fn dup3(k: &mut Kernel<'_>, a: &Args) -> Result {
    let flags = a[2] as u32;
    if a[0] as i32 == a[1] as i32 || flags & !O_CLOEXEC != 0 {
        return Err(Errno::INVAL);
    }
    let (limit, replaced) = (limit(k), closed_by(k, a[1] as i32));
    let fd = k.process.files.duplicate_to(a[0] as i32, a[1] as i32, flags & O_CLOEXEC != 0, limit)?;
    k.release_locks(replaced.as_slice(), None);
    Ok(fd as u64)
}

/// Returns the file of a descriptor that is about to be replaced, if there are locks that end with it.
fn closed_by(k: &Kernel<'_>, fd: i32) -> Option<FileId> {
    let file = k.process.files.open_file(fd).ok().filter(|_| !k.system.locks.is_empty())?;
    file_id(file).ok()
}

pub(super) fn pipe2(k: &mut Kernel<'_>, a: &Args) -> Result {
    let flags = a[1] as u32;
    let mut host = rustix::pipe::PipeFlags::CLOEXEC;
    if flags & 0o4000 != 0 {
        host |= rustix::pipe::PipeFlags::NONBLOCK;
    }
    let (reader, writer) = rustix::pipe::pipe_with(host)?;
    let bytes = Files::capacity(reader.as_fd());
    let channel = k.new_channel(reader.as_fd(), bytes, true).map_err(|_| Errno::NFILE)?;
    let (limit, close_on_exec) = (limit(k), flags & O_CLOEXEC != 0);
    let pipe = |host| OpenFile::new(host, Origin::Host);
    let reader = k.process.files.insert_channel(pipe(reader), Some(channel.clone()), close_on_exec, limit)?;
    let writer = match k.process.files.insert_channel(pipe(writer), Some(channel), close_on_exec, limit) {
        Ok(writer) => writer,
        Err(error) => {
            k.process.files.close(reader)?;
            return Err(error);
        }
    };
    user::write(k.mem, a[0], [reader, writer])?;
    Ok(0)
}

pub(super) fn fcntl(k: &mut Kernel<'_>, a: &Args) -> Result {
    const SETTABLE: OFlags = OFlags::APPEND.union(OFlags::NONBLOCK).union(OFlags::DIRECT).union(OFlags::NOATIME);
    let fd = a[0] as i32;
    let limit = limit(k);
    match a[1] {
        // F_DUPFD and F_DUPFD_CLOEXEC
        0 => Ok(k.process.files.duplicate(fd, false, a[2] as i32, limit)? as u64),
        1030 => Ok(k.process.files.duplicate(fd, true, a[2] as i32, limit)? as u64),
        // F_GETFD and F_SETFD
        1 => Ok(u64::from(k.process.files.close_on_exec(fd)?)),
        2 => k.process.files.set_close_on_exec(fd, a[2] & 1 != 0).map(|()| 0),
        // F_GETFL and F_SETFL
        3 => Ok(guest_open_flags(rustix::fs::fcntl_getfl(k.process.files.host(fd)?)?)),
        4 => {
            let file = k.process.files.host(fd)?;
            let kept = rustix::fs::fcntl_getfl(file)? - SETTABLE;
            rustix::fs::fcntl_setfl(file, kept | (open_flags(a[2] as u32 & !3)? & SETTABLE))?;
            Ok(0)
        }
        // F_GETLK, F_SETLK, F_SETLKW, and the same for open files
        5..=7 | 36..=38 => locks::record(k, fd, a),
        // F_GETPIPE_SZ and F_SETPIPE_SZ
        1032 => Ok(rustix::pipe::fcntl_getpipe_size(k.process.files.host(fd)?)? as u64),
        1031 => set_pipe_size(k, fd, a[2]),
        _ => {
            k.process.files.host(fd)?;
            Err(Errno::INVAL)
        }
    }
}

/// `F_SETPIPE_SZ`.
fn set_pipe_size(k: &mut Kernel<'_>, fd: i32, bytes: u64) -> Result {
    let bytes = u64::from(bytes as u32);
    k.afford(bytes)?;
    let now = rustix::pipe::fcntl_setpipe_size(k.process.files.host(fd)?, bytes as usize)? as u64;
    if let Some(channel) = k.process.files.channel(fd) {
        channel.charge.set(now);
    }
    Ok(now)
}

/// Appends one record of `getdents64` (`struct linux_dirent64`).
fn push_entry(out: &mut Vec<u8>, inode: u64, cookie: i64, kind: FileType, name: &[u8]) {
    let len = (20 + name.len()).next_multiple_of(8);
    let end = out.len() + len;
    out.extend_from_slice(&inode.to_le_bytes());
    out.extend_from_slice(&cookie.to_le_bytes());
    out.extend_from_slice(&(len as u16).to_le_bytes());
    // `DT_…`: the type bits of the mode, shifted down; 0 if the file system does not report it.
    out.push(if kind == FileType::Unknown { 0 } else { (kind.as_raw_mode() >> 12) as u8 });
    out.extend_from_slice(name);
    out.resize(end, 0);
}

/// Returns the records of a simulated folder. The cookie of each is the offset after it, so that the file that holds them can be
/// read and positioned like the folder itself.
fn directory_entries(k: &Kernel<'_>, node: &Node) -> Vec<u8> {
    let mut out = Vec::new();
    let dots = [&b"."[..], b".."].map(|name| (name.to_vec(), FileType::Directory, node.inode()));
    let named = k.process.files.view.tree.list(k, node);
    for (name, kind, inode) in dots.into_iter().chain(named) {
        let end = out.len() + (20 + name.len()).next_multiple_of(8);
        push_entry(&mut out, inode, end as i64, kind, &name);
    }
    out
}

/// `getdents64`: entries in arm64's layout, which is the same on every 64-bit Linux.
pub(super) fn getdents64(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (fd, room) = (a[0] as i32, (a[2] as u32 as usize).min(CHUNK));
    let out = match k.process.files.simulated(fd) {
        Some(node) if node.kind != Kind::Directory => return Err(Errno::NOTDIR),
        Some(_) => simulated_entries(k.process.files.host(fd)?, room)?,
        None => host_entries(k.process.files.host(fd)?, room)?,
    };
    user::write_bytes(k.mem, a[1], &out)?;
    Ok(out.len() as u64)
}

/// Reads as many whole records as fit into `room` bytes, from the file's position on.
fn simulated_entries(file: BorrowedFd<'_>, room: usize) -> std::result::Result<Vec<u8>, Errno> {
    let start = rustix::fs::tell(file)?;
    let mut bytes = vec![0; room];
    let got = rustix::io::pread(file, &mut bytes[..], start)?;
    let mut end = 0;
    while let Some(len) = bytes[..got].get(end + 16..end + 18) {
        let next = end + usize::from(u16::from_le_bytes([len[0], len[1]]));
        if next > got {
            break;
        }
        end = next;
    }
    if end == 0 && got > 0 {
        return Err(Errno::INVAL);
    }
    rustix::fs::seek(file, SeekFrom::Start(start + end as u64))?;
    bytes.truncate(end);
    Ok(bytes)
}

fn host_entries(file: BorrowedFd<'_>, room: usize) -> std::result::Result<Vec<u8>, Errno> {
    let mut buffer = vec![MaybeUninit::uninit(); room];
    let mut out = Vec::with_capacity(room);
    let mut directory = RawDir::new(file, &mut buffer);
    while let Some(entry) = directory.next() {
        let entry = entry?;
        push_entry(
            &mut out,
            entry.ino(),
            entry.next_entry_cookie() as i64,
            entry.file_type(),
            entry.file_name().to_bytes(),
        );
        // One host call fills the buffer; the next would read more.
        if directory.is_buffer_empty() {
            break;
        }
    }
    Ok(out)
}
