//! Descriptors of processes: `pidfd_open(2)`, `pidfd_send_signal(2)`, `pidfd_getfd(2)`.

use rustix::io::Errno;

use super::files::limit;
use super::poll::{CLOEXEC, NONBLOCK};
use super::signals::{queued, send_to_processes, sent, signal_number};
use super::timerfd::insert;
use super::{Args, Result};
use crate::fs::objects::{Level, Object, ProcessFile};
use crate::kernel::Kernel;
use crate::signal::code;

/// Returns a new descriptor for the process `pid`, which may have ended. `flags` may have `O_NONBLOCK`.
pub(super) fn open(k: &mut Kernel<'_>, pid: u32, ended: bool, flags: u64) -> Result {
    let level = Level::new(flags & NONBLOCK != 0)?;
    if ended {
        level.raise();
    }
    insert(k, Object::Process(ProcessFile { level, pid }), CLOEXEC)
}

pub(super) fn pidfd_open(k: &mut Kernel<'_>, a: &Args) -> Result {
    let pid = u32::try_from(a[0] as i32).ok().filter(|&pid| pid > 0).ok_or(Errno::INVAL)?;
    if a[1] & !NONBLOCK != 0 {
        return Err(Errno::INVAL);
    }
    let ended = k.system.zombies.iter().any(|zombie| zombie.pid == pid);
    if !ended && k.process_of(pid).is_none() {
        let is_thread = k.all_threads().any(|thread| thread.tid == pid);
        return Err(if is_thread { Errno::INVAL } else { Errno::SRCH });
    }
    open(k, pid, ended, a[1])
}

/// Returns the process of a descriptor.
///
/// # Errors
/// `EBADF` for other descriptors.
pub(super) fn process(k: &Kernel<'_>, fd: u64) -> std::result::Result<u32, Errno> {
    match k.process.files.object(fd as i32) {
        Some(Object::Process(process)) => Ok(process.pid),
        _ => Err(Errno::BADF),
    }
}

pub(super) fn pidfd_send_signal(k: &mut Kernel<'_>, a: &Args) -> Result {
    if a[3] != 0 {
        return Err(Errno::INVAL);
    }
    let (pid, signal) = (process(k, a[0])?, signal_number(a[1])?);
    let info = match a[2] {
        0 => sent(k, signal, code::SI_USER),
        pointer => queued(k, a[1], pointer, pid)?,
    };
    send_to_processes(k, pid as i32, info)
}

pub(super) fn pidfd_getfd(k: &mut Kernel<'_>, a: &Args) -> Result {
    if a[2] != 0 {
        return Err(Errno::INVAL);
    }
    let (pid, fd, limit) = (process(k, a[0])?, a[1] as i32, limit(k));
    if pid == k.process.pid {
        return Ok(k.process.files.duplicate(fd, true, 0, limit)? as u64);
    }
    let other = k.other_processes.iter().find(|other| other.pid == pid && !other.ended).ok_or(Errno::SRCH)?;
    Ok(k.process.files.duplicate_from(&other.files, fd, limit)? as u64)
}
