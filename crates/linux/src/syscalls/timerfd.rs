//! Timers with descriptors: `timerfd_create(2)`. Their time is simulated time.

use std::cell::Cell;

use rustix::event::PollFlags;
use rustix::io::Errno;

use super::files::limit;
use super::poll::{CLOEXEC, NONBLOCK};
use super::timers::Setting;
use super::transfer::Piece;
use super::{Args, Result, streams};
use crate::budget;
use crate::fs::files::OpenFile;
use crate::fs::objects::{Level, Object, TimerFile};
use crate::fs::vfs::Origin;
use crate::kernel::Kernel;
use crate::mm::user;
use crate::sched::timers::{Counts, Notify, Timer};
use crate::sched::wait::FOR_EVER;

/// Inserts the first descriptor of a new object. `flags` may have `O_CLOEXEC`.
pub(super) fn insert(k: &mut Kernel<'_>, object: Object, flags: u64) -> Result {
    insert_as(k, object, flags, budget::EVENT)
}

/// The same for an object that costs `bytes` bytes.
pub(super) fn insert_as(k: &mut Kernel<'_>, object: Object, flags: u64, bytes: u64) -> Result {
    let (host, channel) = k.new_object(object, bytes)?;
    let (file, limit) = (OpenFile::new(host, Origin::Host), limit(k));
    Ok(k.process.files.insert_channel(file, Some(channel), flags & CLOEXEC != 0, limit)? as u64)
}

pub(super) fn timerfd_create(k: &mut Kernel<'_>, a: &Args) -> Result {
    if a[1] & !(CLOEXEC | NONBLOCK) != 0 {
        return Err(Errno::INVAL);
    }
    let realtime = match a[0] as i32 {
        // REALTIME; MONOTONIC and BOOTTIME
        0 => true,
        1 | 7 => false,
        // REALTIME_ALARM and BOOTTIME_ALARM wake a machine that sleeps, which only its administrator may.
        id @ (8 | 9) if rustix::process::geteuid().is_root() => id == 8,
        8 | 9 => return Err(Errno::PERM),
        _ => return Err(Errno::INVAL),
    };
    let timer = TimerFile {
        level: Level::new(a[1] & NONBLOCK != 0)?,
        timer: Cell::new(Timer::new(Counts::Time { realtime }, Notify::Nothing)),
        expirations: Cell::new(0),
    };
    insert(k, Object::Timer(timer), a[1])
}

/// Calls `with` for the timer of a descriptor, after it has expired if it is due.
///
/// # Errors
/// `EBADF`; `EINVAL` for other descriptors.
fn with_timer<T>(k: &Kernel<'_>, fd: u64, with: impl FnOnce(&TimerFile) -> T) -> std::result::Result<T, Errno> {
    k.process.files.host(fd as i32)?;
    match k.process.files.object(fd as i32) {
        Some(Object::Timer(timer)) => {
            timer.tick(k.system.now_ns);
            Ok(with(timer))
        }
        _ => Err(Errno::INVAL),
    }
}

fn setting(timer: &TimerFile, now_ns: u64) -> Setting {
    Setting::of(&timer.timer.get(), now_ns)
}

pub(super) fn timerfd_gettime(k: &mut Kernel<'_>, a: &Args) -> Result {
    let now_ns = k.system.now_ns;
    let setting = with_timer(k, a[0], |timer| setting(timer, now_ns))?;
    user::write(k.mem, a[1], setting)?;
    Ok(0)
}

pub(super) fn timerfd_settime(k: &mut Kernel<'_>, a: &Args) -> Result {
    const ABSTIME: u64 = 1;
    /// The clock of the simulated machine is never set.
    const CANCEL_ON_SET: u64 = 2;
    let new: Setting = user::read(k.mem, a[2])?;
    let (value, interval_ns) = new.to_ns()?;
    if a[1] & !(ABSTIME | CANCEL_ON_SET) != 0 {
        return Err(Errno::INVAL);
    }
    let system = &*k.system;
    let now_ns = system.now_ns;
    let old = with_timer(k, a[0], |file| {
        let old = setting(file, now_ns);
        let mut timer = file.timer.get();
        (timer.interval_ns, timer.overrun) = (interval_ns, 0);
        timer.at_ns = match value {
            0 => FOR_EVER,
            at if a[1] & ABSTIME != 0 => timer.counts.since_start(at, system),
            duration => now_ns.saturating_add(duration),
        };
        file.timer.set(timer);
        file.expirations.set(0);
        file.level.lower();
        // A time that has passed expires it at once.
        file.tick(now_ns);
        old
    })?;
    // All timers are checked again at once: no thread may sleep past this one.
    k.system.next_event_ns = now_ns;
    user::write_if(k.mem, a[3], old)?;
    Ok(0)
}

/// Reads the number of expirations, waiting until there is one.
pub(super) fn read(k: &mut Kernel<'_>, fd: i32, pieces: &[Piece]) -> Result {
    if pieces.iter().map(|piece| piece.len).sum::<u64>() < 8 {
        return Err(Errno::INVAL);
    }
    streams::check_writable(k, pieces)?;
    let expirations = with_timer(k, fd as u64, |timer| {
        timer.level.lower();
        timer.expirations.replace(0)
    })?;
    if expirations == 0 {
        return streams::wait(k, fd, PollFlags::IN, 0).map(|()| 0);
    }
    streams::scatter(k, pieces, 0, &expirations.to_ne_bytes())?;
    Ok(8)
}
