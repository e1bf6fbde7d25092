//! System calls about time. All of it is simulated time, which the driver advances.

use bytemuck::{Pod, Zeroable};
use rustix::io::Errno;

use super::{Args, Result, guest};
use crate::kernel::Kernel;
use crate::stack::CLOCK_TICKS;
use crate::thread::Thread;

const TIMER_ABSTIME: u64 = 1;

/// The time on a clock in ns.
fn clock(k: &Kernel, id: u64) -> std::result::Result<u64, Errno> {
    match id as i32 {
        // REALTIME, REALTIME_COARSE, TAI
        0 | 5 | 11 => Ok(k.start_unix_ns.saturating_add(k.now_ns)),
        // MONOTONIC, MONOTONIC_RAW, MONOTONIC_COARSE, BOOTTIME
        1 | 4 | 6 | 7 => Ok(k.now_ns),
        // PROCESS_CPUTIME_ID, THREAD_CPUTIME_ID, and the ids that `clock_getcpuclockid` makes
        2 | 3 => Ok(k.cpu_ns()),
        id if id < 0 => Ok(k.cpu_ns()),
        _ => Err(Errno::INVAL),
    }
}

pub(super) fn clock_gettime(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let time = guest::Time::from_ns(clock(k, a[0])?);
    guest::write(&mut k.mem, a[1], time)?;
    Ok(0)
}

pub(super) fn clock_getres(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    clock(k, a[0])?;
    let coarse = matches!(a[0], 5 | 6);
    let time = guest::Time::from_ns(if coarse { 1_000_000_000 / CLOCK_TICKS } else { 1 });
    guest::write_if(&mut k.mem, a[1], time)?;
    Ok(0)
}

pub(super) fn gettimeofday(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let time = guest::Time::from_ns_in_us(clock(k, 0)?);
    guest::write_if(&mut k.mem, a[0], time)?;
    // Time zone: minutes west of Greenwich, kind of daylight saving.
    guest::write_if(&mut k.mem, a[1], [0u32; 2])?;
    Ok(0)
}

/// Puts the thread to sleep until simulated time `until_ns`. The system call returns at once with what it
/// returns after the sleep; the thread goes on when the driver has moved the clock.
pub(super) fn sleep_until(k: &mut Kernel, t: &mut Thread, until_ns: u64) {
    if until_ns > k.now_ns {
        k.slept_ns += until_ns - k.now_ns;
        t.sleep_until = Some(until_ns);
    }
}

pub(super) fn nanosleep(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    let time = guest::read::<guest::Time>(&mut k.mem, a[0])?.to_ns()?;
    sleep_until(k, t, k.now_ns.saturating_add(time));
    Ok(0)
}

pub(super) fn clock_nanosleep(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    let now = clock(k, a[0])?;
    let time = guest::read::<guest::Time>(&mut k.mem, a[2])?.to_ns()?;
    let sleep = if a[1] & TIMER_ABSTIME != 0 { time.saturating_sub(now) } else { time };
    sleep_until(k, t, k.now_ns.saturating_add(sleep));
    Ok(0)
}

pub(super) fn times(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let ticks = |ns: u64| ns / (1_000_000_000 / CLOCK_TICKS);
    let user = ticks(k.cpu_ns());
    guest::write_if(&mut k.mem, a[0], [user, 0, 0, 0])?;
    Ok(ticks(k.now_ns))
}

/// `struct rusage`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Usage {
    user: guest::Time,
    system: guest::Time,
    max_rss_kib: u64,
    /// Faults, swaps, blocks, messages, signals, switches: not counted.
    rest: [u64; 13],
}

pub(super) fn getrusage(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let mut usage = Usage::zeroed();
    match a[0] as i32 {
        // RUSAGE_SELF, RUSAGE_THREAD
        0 | 1 => {
            usage.user = guest::Time::from_ns_in_us(k.cpu_ns());
            usage.max_rss_kib = k.mem.backed_bytes() / 1024;
        }
        // RUSAGE_CHILDREN: there are none.
        -1 => {}
        _ => return Err(Errno::INVAL),
    }
    guest::write(&mut k.mem, a[1], usage)?;
    Ok(0)
}
