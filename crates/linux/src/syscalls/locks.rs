//! Locks on files: `flock(2)` and the record locks of `fcntl(2)`.

use bytemuck::{Pod, Zeroable};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use super::{Args, Result};
use crate::fs::attempt::Attempt;
use crate::fs::locks::{Lock, Owner, WantedLock, file_id};
use crate::kernel::Kernel;
use crate::mm::user;
use crate::sched::wait::{Blocked, Wait};

/// `flock`. If the lock is not free, the call is repeated until it is.
pub(super) fn flock(k: &mut Kernel<'_>, a: &Args) -> Result {
    const NONBLOCKING: u64 = 4;
    let operation = match a[1] & !NONBLOCKING {
        1 => FlockOperation::NonBlockingLockShared,
        2 => FlockOperation::NonBlockingLockExclusive,
        8 => FlockOperation::Unlock,
        _ => return Err(Errno::INVAL),
    };
    match rustix::fs::flock(k.process.files.host(a[0] as i32)?, operation) {
        Err(Errno::WOULDBLOCK) if a[1] & NONBLOCKING == 0 => {
            k.try_later(Attempt::Lock { fd: a[0] as i32, operation });
            Ok(0)
        }
        result => result.map(|()| 0),
    }
}

/// `struct flock`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RecordLock {
    kind: i16,
    whence: i16,
    pad: u32,
    start: i64,
    len: i64,
    pid: i32,
    pad2: u32,
}

/// Kinds of locks.
const READ: i16 = 0;
const WRITE: i16 = 1;
const UNLOCK: i16 = 2;

impl RecordLock {
    /// Returns the first and last byte of the range in a file.
    ///
    /// # Errors
    /// `EINVAL` when it begins before the file, or its fields are invalid; `EOVERFLOW` when it ends too far behind it.
    fn range(&self, k: &Kernel<'_>, fd: i32) -> std::result::Result<(u64, u64), Errno> {
        let file = k.process.files.host(fd)?;
        let base = match self.whence {
            0 => 0,
            1 => rustix::fs::tell(file)? as i64,
            2 => rustix::fs::fstat(file)?.st_size as i64,
            _ => return Err(Errno::INVAL),
        };
        let start = base.checked_add(self.start).ok_or(Errno::OVERFLOW)?;
        let (first, last) = match self.len {
            0 => (start, i64::MAX),
            len @ 1.. => (start, start.checked_add(len - 1).ok_or(Errno::OVERFLOW)?),
            len => (start.checked_add(len).ok_or(Errno::INVAL)?, start.wrapping_sub(1)),
        };
        let first = u64::try_from(first).map_err(|_| Errno::INVAL)?;
        // A range without an end includes what is appended later.
        Ok((first, if last == i64::MAX { u64::MAX } else { last as u64 }))
    }
}

/// `F_GETLK`, `F_SETLK` and `F_SETLKW` (5 to 7), and the same for open file descriptions (36 to 38).
pub(super) fn record(k: &mut Kernel<'_>, fd: i32, a: &Args) -> Result {
    let file = k.process.files.open_file(fd)?;
    let mode = rustix::fs::fcntl_getfl(&file.host)?;
    if mode.contains(OFlags::PATH) {
        return Err(Errno::BADF);
    }
    let (id, description) = (file_id(file)?, file.description);
    let mut request: RecordLock = user::read(k.mem, a[2])?;
    let of_description = a[1] >= 36;
    if !(READ..=UNLOCK).contains(&request.kind) || (of_description && request.pid != 0) {
        return Err(Errno::INVAL);
    }
    let (first, last) = request.range(k, fd)?;
    let owner = if of_description { Owner::Description(description) } else { Owner::Process(k.process.pid) };
    let wanted = WantedLock { file: id, lock: Lock { owner, first, last, exclusive: request.kind == WRITE } };
    if matches!(a[1], 5 | 36) {
        report(k, &mut request, &wanted);
        user::write(k.mem, a[2], request)?;
        return Ok(0);
    }
    let access = mode & OFlags::RWMODE;
    let unfit = match request.kind {
        READ => access == OFlags::WRONLY,
        WRITE => access == OFlags::RDONLY,
        _ => false,
    };
    if unfit {
        return Err(Errno::BADF);
    }
    if request.kind == UNLOCK {
        k.set_lock(wanted, false)?;
        return Ok(0);
    }
    match k.system.locks.obstacle(&wanted) {
        None => k.set_lock(wanted, true).map(|()| 0),
        Some(_) if matches!(a[1], 6 | 37) => Err(Errno::AGAIN),
        Some(lock) if !of_description && k.lock_deadlock(k.process.pid, lock.owner) => Err(Errno::DEADLK),
        Some(_) => {
            k.block(Blocked { restart: true, ..Blocked::new(Wait::Lock(wanted)) });
            Ok(0)
        }
    }
}

/// Describes the lock that prevents `wanted`, if there is one.
fn report(k: &Kernel<'_>, request: &mut RecordLock, wanted: &WantedLock) {
    if request.kind == UNLOCK {
        return;
    }
    let Some(lock) = k.system.locks.obstacle(wanted) else {
        request.kind = UNLOCK;
        return;
    };
    request.kind = if lock.exclusive { WRITE } else { READ };
    request.whence = 0;
    request.start = lock.first as i64;
    request.len = if lock.last == u64::MAX { 0 } else { (lock.last - lock.first + 1) as i64 };
    request.pid = match lock.owner {
        Owner::Process(pid) => pid as i32,
        Owner::Description(_) => -1,
    };
}
