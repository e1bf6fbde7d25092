//! System calls on timers.

use bytemuck::{Pod, Zeroable};
use rustix::io::Errno;

use super::{Args, Result};
use crate::abi::time::Time;
use crate::kernel::Kernel;
use crate::mm::user;
use crate::sched::timers::{ALARMS, Counts, Notify, Timer};
use crate::sched::wait::FOR_EVER;
use crate::signal::{self, number::SIGALRM};

/// Maximum number of timers of a process.
const MAX_TIMERS: usize = 1 << 16;

/// `struct itimerspec`, and with microseconds `struct itimerval`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Setting {
    interval: Time,
    value: Time,
}

impl Setting {
    /// Returns the setting of a timer whose clock is `now_ns`.
    pub(super) fn of(timer: &Timer, now_ns: u64) -> Setting {
        Setting { interval: Time::from_ns(timer.interval_ns), value: Time::from_ns(timer.left(now_ns)) }
    }

    /// Returns the time of expiration and the interval in ns.
    ///
    /// # Errors
    /// `EINVAL` for times that do not exist.
    pub(super) fn to_ns(self) -> std::result::Result<(u64, u64), Errno> {
        Ok((self.value.to_ns()?, self.interval.to_ns()?))
    }
}

/// Converts a `timeval` to ns.
fn us_to_ns(time: Time) -> Result {
    Time { fraction: time.fraction.checked_mul(1000).ok_or(Errno::INVAL)?, ..time }.to_ns()
}

/// Arms or disarms a timer.
fn set(k: &mut Kernel<'_>, timer: &mut Timer, at_ns: u64, interval_ns: u64) {
    (timer.at_ns, timer.interval_ns, timer.overrun) = (at_ns, interval_ns, 0);
    // All timers are checked again at once: no thread may sleep past this one.
    k.system.next_event_ns = k.system.now_ns;
}

/// Returns the index of alarm `which` and the current value of its clock.
fn alarm(k: &Kernel<'_>, which: u64) -> std::result::Result<(usize, u64), Errno> {
    let index = usize::try_from(which).ok().filter(|&i| i < ALARMS).ok_or(Errno::INVAL)?;
    Ok((index, k.timer_clock(k.process.timers.alarms[index].counts)))
}

fn alarm_setting(timer: &Timer, now_ns: u64) -> Setting {
    Setting { interval: Time::from_ns_in_us(timer.interval_ns), value: Time::from_ns_in_us(timer.left(now_ns)) }
}

pub(super) fn getitimer(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (index, now_ns) = alarm(k, a[0])?;
    let setting = alarm_setting(&k.process.timers.alarms[index], now_ns);
    user::write(k.mem, a[1], setting)?;
    Ok(0)
}

pub(super) fn setitimer(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (index, now_ns) = alarm(k, a[0])?;
    let old = alarm_setting(&k.process.timers.alarms[index], now_ns);
    let new = if a[1] == 0 { Setting::zeroed() } else { user::read::<Setting>(k.mem, a[1])? };
    let (value, interval) = (us_to_ns(new.value)?, us_to_ns(new.interval)?);
    user::write_if(k.mem, a[2], old)?;
    let mut timer = k.process.timers.alarms[index];
    set(k, &mut timer, if value == 0 { FOR_EVER } else { now_ns.saturating_add(value) }, interval);
    k.process.timers.alarms[index] = timer;
    Ok(0)
}

/// The beginning of `struct sigevent`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Event {
    value: u64,
    signal: i32,
    notify: i32,
    thread: i32,
    pad: u32,
}

fn notification(k: &mut Kernel<'_>, pointer: u64, id: usize) -> std::result::Result<Notify, Errno> {
    const SIGNAL: i32 = 0;
    const NONE: i32 = 1;
    const THREAD_ID: i32 = 4;
    if pointer == 0 {
        return Ok(Notify::Signal { signal: SIGALRM, value: id as u64, thread: None });
    }
    let event: Event = user::read(k.mem, pointer)?;
    let thread = match event.notify {
        NONE => return Ok(Notify::Nothing),
        SIGNAL => None,
        THREAD_ID => Some(event.thread as u32),
        _ => return Err(Errno::INVAL),
    };
    let signal = u32::try_from(event.signal).ok().filter(|n| (1..=signal::LAST).contains(n)).ok_or(Errno::INVAL)?;
    Ok(Notify::Signal { signal, value: event.value, thread })
}

pub(super) fn timer_create(k: &mut Kernel<'_>, a: &Args) -> Result {
    let counts = match a[0] as i32 {
        // REALTIME and TAI; MONOTONIC and BOOTTIME
        0 | 11 => Counts::Time { realtime: true },
        1 | 7 => Counts::Time { realtime: false },
        // PROCESS_CPUTIME_ID, THREAD_CPUTIME_ID
        2 | 3 => Counts::Running,
        _ => return Err(Errno::INVAL),
    };
    let free = k.process.timers.numbered.iter().position(Option::is_none).unwrap_or(k.process.timers.numbered.len());
    if free == MAX_TIMERS {
        return Err(Errno::AGAIN);
    }
    k.afford(1 << 10).map_err(|_| Errno::AGAIN)?;
    let timer = Timer::new(counts, notification(k, a[1], free)?);
    user::write(k.mem, a[2], free as i32)?;
    if free == k.process.timers.numbered.len() {
        k.process.timers.numbered.push(None);
    }
    k.process.timers.numbered[free] = Some(timer);
    Ok(0)
}

/// Returns the timer with this number and the current value of its clock.
fn numbered(k: &Kernel<'_>, id: u64) -> std::result::Result<(usize, Timer, u64), Errno> {
    let index = usize::try_from(id as i32).map_err(|_| Errno::INVAL)?;
    let timer = k.process.timers.numbered.get(index).copied().flatten().ok_or(Errno::INVAL)?;
    Ok((index, timer, k.timer_clock(timer.counts)))
}

pub(super) fn timer_gettime(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (_, timer, now_ns) = numbered(k, a[0])?;
    user::write(k.mem, a[1], Setting::of(&timer, now_ns))?;
    Ok(0)
}

pub(super) fn timer_settime(k: &mut Kernel<'_>, a: &Args) -> Result {
    const ABSTIME: u64 = 1;
    let (index, mut timer, now_ns) = numbered(k, a[0])?;
    let new: Setting = user::read(k.mem, a[2])?;
    let (value, interval) = new.to_ns()?;
    user::write_if(k.mem, a[3], Setting::of(&timer, now_ns))?;
    let at_ns = match value {
        0 => FOR_EVER,
        at if a[1] & ABSTIME != 0 => timer.counts.since_start(at, k.system),
        duration => now_ns.saturating_add(duration),
    };
    set(k, &mut timer, at_ns, interval);
    k.process.timers.numbered[index] = Some(timer);
    Ok(0)
}

pub(super) fn timer_getoverrun(k: &mut Kernel<'_>, a: &Args) -> Result {
    Ok(numbered(k, a[0])?.1.overrun.into())
}

pub(super) fn timer_delete(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (index, ..) = numbered(k, a[0])?;
    k.process.timers.numbered[index] = None;
    Ok(0)
}
