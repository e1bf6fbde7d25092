//! System calls about time. All of it is simulated time, which the driver advances.

use bytemuck::{Pod, Zeroable};
use rustix::io::Errno;

use super::{Args, Result};
use crate::abi::stack::CLOCK_TICKS;
use crate::abi::time::Time;
use crate::kernel::Kernel;
use crate::mm::user;
use crate::sched::wait::{Blocked, Wait};
use crate::usage::Used;

const TIMER_ABSTIME: u64 = 1;

/// Returns the time on a clock in ns.
fn clock(k: &Kernel<'_>, id: u64) -> std::result::Result<u64, Errno> {
    match id as i32 {
        // REALTIME, REALTIME_COARSE, TAI
        0 | 5 | 11 => Ok(k.system.realtime_ns()),
        // MONOTONIC, MONOTONIC_RAW, MONOTONIC_COARSE, BOOTTIME
        1 | 4 | 6 | 7 => Ok(k.system.monotonic_ns()),
        // PROCESS_CPUTIME_ID, THREAD_CPUTIME_ID
        2 => Ok(k.cpu_ns()),
        3 => Ok(k.thread.cpu_ns + k.system.running_ns()),
        id if id < 0 => cpu_clock(k, id),
        _ => Err(Errno::INVAL),
    }
}

/// Returns the CPU time for a clock from `clock_getcpuclockid` or `pthread_getcpuclockid`: an inverted number above three bits,
/// one of which marks a thread's clock.
fn cpu_clock(k: &Kernel<'_>, id: i32) -> std::result::Result<u64, Errno> {
    const THREAD: i32 = 4;
    let number = !(id >> 3) as u32;
    if id & THREAD == 0 {
        return if number == 0 || number == k.process.pid { Ok(k.cpu_ns()) } else { Err(Errno::INVAL) };
    }
    if number == 0 || number == k.thread.tid {
        return Ok(k.thread.cpu_ns + k.system.running_ns());
    }
    let other = k.other_threads.iter().find(|other| other.tid == number && other.pid == k.process.pid);
    other.map(|other| other.cpu_ns).ok_or(Errno::INVAL)
}

pub(super) fn clock_gettime(k: &mut Kernel<'_>, a: &Args) -> Result {
    let time = Time::from_ns(clock(k, a[0])?);
    user::write(k.mem, a[1], time)?;
    Ok(0)
}

pub(super) fn clock_getres(k: &mut Kernel<'_>, a: &Args) -> Result {
    clock(k, a[0])?;
    let coarse = matches!(a[0], 5 | 6);
    let time = Time::from_ns(if coarse { 1_000_000_000 / CLOCK_TICKS } else { 1 });
    user::write_if(k.mem, a[1], time)?;
    Ok(0)
}

pub(super) fn gettimeofday(k: &mut Kernel<'_>, a: &Args) -> Result {
    let time = Time::from_ns_in_us(clock(k, 0)?);
    user::write_if(k.mem, a[0], time)?;
    // Time zone: minutes west of Greenwich, kind of daylight saving.
    user::write_if(k.mem, a[1], [0u32; 2])?;
    Ok(0)
}

/// Puts the thread to sleep until simulated time `until_ns`; the remaining time after an interruption is written to `remaining`,
/// unless that is 0.
fn sleep(k: &mut Kernel<'_>, until_ns: u64, remaining: u64) -> Result {
    if until_ns > k.system.now_ns {
        k.block(Blocked { until_ns, ..Blocked::new(Wait::Sleep { remaining }) });
    }
    Ok(0)
}

pub(super) fn nanosleep(k: &mut Kernel<'_>, a: &Args) -> Result {
    let time = user::read::<Time>(k.mem, a[0])?.to_ns()?;
    sleep(k, k.system.now_ns.saturating_add(time), a[1])
}

pub(super) fn clock_nanosleep(k: &mut Kernel<'_>, a: &Args) -> Result {
    let now = clock(k, a[0])?;
    let time = user::read::<Time>(k.mem, a[2])?.to_ns()?;
    let absolute = a[1] & TIMER_ABSTIME != 0;
    let duration = if absolute { time.saturating_sub(now) } else { time };
    sleep(k, k.system.now_ns.saturating_add(duration), if absolute { 0 } else { a[3] })
}

pub(super) fn times(k: &mut Kernel<'_>, a: &Args) -> Result {
    let ticks = |ns: u64| ns / (1_000_000_000 / CLOCK_TICKS);
    let user = ticks(k.cpu_ns());
    user::write_if(k.mem, a[0], [user, 0, ticks(k.process.children_cpu_ns), 0])?;
    Ok(ticks(k.system.monotonic_ns()))
}

/// `struct rusage`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Usage {
    user: Time,
    system: Time,
    max_rss_kib: u64,
    /// Integrals of memory, which Linux does not fill in.
    integrals: [u64; 3],
    minor_faults: u64,
    /// Faults that read a file, swaps, blocks, messages and signals: there are none, or Linux does not count them.
    rest: [u64; 7],
    voluntary_switches: u64,
    involuntary_switches: u64,
}

impl Usage {
    /// Returns the usage of processes that ran this long. All time is the user's: the model does not distinguish the kernel's.
    pub(super) fn new(ns: u64, used: &Used) -> Usage {
        Usage {
            user: Time::from_ns_in_us(ns),
            max_rss_kib: used.resident_bytes / 1024,
            minor_faults: used.faults,
            voluntary_switches: used.waits,
            involuntary_switches: used.preemptions,
            ..Usage::zeroed()
        }
    }
}

pub(super) fn getrusage(k: &mut Kernel<'_>, a: &Args) -> Result {
    k.note_touched();
    let used = k.used_by(k.process);
    let usage = match a[0] as i32 {
        // RUSAGE_SELF
        0 => Usage::new(k.cpu_ns(), &used),
        // RUSAGE_THREAD
        1 => {
            let mut of_thread = Used { resident_bytes: used.resident_bytes, ..Used::default() };
            of_thread.add_thread(&k.thread.uses);
            Usage::new(k.thread.cpu_ns + k.system.running_ns(), &of_thread)
        }
        // RUSAGE_CHILDREN
        -1 => Usage::new(k.process.children_cpu_ns, &k.process.children_used),
        _ => return Err(Errno::INVAL),
    };
    user::write(k.mem, a[1], usage)?;
    Ok(0)
}
