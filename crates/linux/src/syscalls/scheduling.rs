//! System calls about scheduling: processors, policies, priorities. The model gives each thread the same share of its processor,
//! whatever its policy and priority; programs read back what they have set.

use bytemuck::{Pod, Zeroable};
use rustix::io::Errno;

use super::{Args, Result};
use crate::abi::time::Time;
use crate::attributes::capability;
use crate::kernel::Kernel;
use crate::mm::user;
use crate::sched::cpus::SLICE_NS;
use crate::thread::{Scheduling, Thread};

/// Returns the affinity of the thread with number `tid`, or of the caller for 0.
fn affinity<'a>(k: &'a mut Kernel<'_>, tid: u64) -> std::result::Result<&'a mut Vec<u64>, Errno> {
    if tid == 0 || tid == u64::from(k.thread.tid) {
        return Ok(&mut k.thread.affinity);
    }
    let mut others = k.other_threads.iter_mut();
    others.find(|other| u64::from(other.tid) == tid).map(|other| &mut other.affinity).ok_or(Errno::SRCH)
}

pub(super) fn sched_getaffinity(k: &mut Kernel<'_>, a: &Args) -> Result {
    let mask = affinity(k, a[0])?.clone();
    let bytes = mask.len() * 8;
    if !a[1].is_multiple_of(8) || a[1] < bytes as u64 {
        return Err(Errno::INVAL);
    }
    user::write_bytes(k.mem, a[2], bytemuck::cast_slice(&mask))?;
    Ok(bytes as u64)
}

pub(super) fn sched_setaffinity(k: &mut Kernel<'_>, a: &Args) -> Result {
    let words = affinity(k, a[0])?.len();
    let len = (a[1] as usize).min(words * 8);
    let mut bytes = user::read_bytes(k.mem, a[2], len)?;
    bytes.resize(words * 8, 0);
    let mut wanted = vec![0u64; words];
    bytemuck::cast_slice_mut(&mut wanted).copy_from_slice(&bytes);
    let mut mask = vec![0u64; words];
    for ((mask, wanted), allowed) in mask.iter_mut().zip(&wanted).zip(&k.process.allowed_cpus) {
        *mask = wanted & allowed;
    }
    if mask.iter().all(|&w| w == 0) {
        return Err(Errno::INVAL);
    }
    *affinity(k, a[0])? = mask;
    k.system.leave_core(k.thread);
    k.move_to_allowed_cpu(a[0]);
    k.system.enter_core(k.thread);
    Ok(0)
}

pub(super) fn sched_yield(k: &mut Kernel<'_>, _: &Args) -> Result {
    k.thread.yielded = true;
    Ok(0)
}

/// Policies (sched(7)).
mod policy {
    pub const OTHER: u32 = 0;
    pub const FIFO: u32 = 1;
    pub const RR: u32 = 2;
    pub const BATCH: u32 = 3;
    pub const IDLE: u32 = 5;
    pub const DEADLINE: u32 = 6;
    /// Not a policy: children have the ordinary one.
    pub const RESET_ON_FORK: u32 = 0x4000_0000;
}

/// Returns the thread with the number `tid`, or the caller for 0.
fn thread<'a>(k: &'a mut Kernel<'_>, tid: u64) -> std::result::Result<&'a mut Thread, Errno> {
    let tid = tid as i32;
    if tid < 0 {
        return Err(Errno::INVAL);
    }
    let tid = if tid == 0 { k.thread.tid } else { tid as u32 };
    k.all_threads_mut().find(|thread| thread.tid == tid && !thread.ended).ok_or(Errno::SRCH)
}

pub(super) fn sched_getscheduler(k: &mut Kernel<'_>, a: &Args) -> Result {
    Ok(thread(k, a[0])?.scheduling.policy.into())
}

pub(super) fn sched_getparam(k: &mut Kernel<'_>, a: &Args) -> Result {
    let priority = thread(k, a[0])?.scheduling.priority;
    user::write(k.mem, a[1], priority)?;
    Ok(0)
}

/// Sets policy and priorities of a thread. Real-time policies, and a lower nice value than before, need a privilege.
fn set(k: &mut Kernel<'_>, tid: u64, wanted: Scheduling) -> Result {
    let privileged = k.process.attributes.capabilities.has(capability::SYS_NICE);
    let thread = thread(k, tid)?;
    let real_time = matches!(wanted.policy, policy::FIFO | policy::RR);
    let fits = match wanted.policy {
        policy::OTHER | policy::BATCH | policy::IDLE => wanted.priority == 0,
        policy::FIFO | policy::RR => (1..=99).contains(&wanted.priority),
        _ => false,
    };
    if !fits {
        return Err(Errno::INVAL);
    }
    if !privileged && (real_time || wanted.nice < thread.scheduling.nice) {
        return Err(Errno::PERM);
    }
    thread.scheduling = wanted;
    Ok(0)
}

pub(super) fn sched_setscheduler(k: &mut Kernel<'_>, a: &Args) -> Result {
    let priority: u32 = user::read(k.mem, a[2])?;
    let nice = thread(k, a[0])?.scheduling.nice;
    set(k, a[0], Scheduling { policy: a[1] as u32 & !policy::RESET_ON_FORK, priority, nice })
}

pub(super) fn sched_setparam(k: &mut Kernel<'_>, a: &Args) -> Result {
    let priority: u32 = user::read(k.mem, a[1])?;
    let wanted = Scheduling { priority, ..thread(k, a[0])?.scheduling };
    set(k, a[0], wanted)
}

/// `struct sched_attr` in its first version.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Of deadline scheduling.
    runtime: u64,
    deadline: u64,
    period: u64,
}

pub(super) fn sched_getattr(k: &mut Kernel<'_>, a: &Args) -> Result {
    const SIZE: u32 = size_of::<Attributes>() as u32;
    if a[3] != 0 || a[2] < u64::from(SIZE) || a[2] > k.system.platform.page_bytes {
        return Err(Errno::INVAL);
    }
    let Scheduling { policy, priority, nice } = thread(k, a[0])?.scheduling;
    user::write(k.mem, a[1], Attributes { size: SIZE, policy, nice, priority, ..Attributes::zeroed() })?;
    Ok(0)
}

pub(super) fn sched_setattr(k: &mut Kernel<'_>, a: &Args) -> Result {
    /// `SCHED_FLAG_RESET_ON_FORK`.
    const RESET: u64 = 1;
    if a[2] != 0 {
        return Err(Errno::INVAL);
    }
    let wanted: Attributes = user::read(k.mem, a[1])?;
    if wanted.size != 0 && (wanted.size as usize) < size_of::<Attributes>() {
        return Err(Errno::TOOBIG);
    }
    if wanted.flags & !RESET != 0 || !(-20..=19).contains(&wanted.nice) {
        return Err(Errno::INVAL);
    }
    set(k, a[0], Scheduling { policy: wanted.policy, priority: wanted.priority, nice: wanted.nice })
}

/// `sched_rr_get_interval`: the time slice of a thread that shares its processor; a `SCHED_FIFO` thread has none.
pub(super) fn sched_rr_get_interval(k: &mut Kernel<'_>, a: &Args) -> Result {
    /// Of `SCHED_RR`, as `/proc/sys/kernel/sched_rr_timeslice_ms` says.
    const ROUND_ROBIN_NS: u64 = 100_000_000;
    let ns = match thread(k, a[0])?.scheduling.policy {
        policy::FIFO => 0,
        policy::RR => ROUND_ROBIN_NS,
        _ => SLICE_NS,
    };
    user::write(k.mem, a[1], Time::from_ns(ns))?;
    Ok(0)
}

/// `sched_get_priority_max`: the range of priorities for real-time policies.
pub(super) fn sched_get_priority_max(_: &mut Kernel<'_>, a: &Args) -> Result {
    match a[0] as u32 {
        policy::FIFO | policy::RR => Ok(99),
        policy::OTHER | policy::BATCH | policy::IDLE | policy::DEADLINE => Ok(0),
        _ => Err(Errno::INVAL),
    }
}

pub(super) fn sched_get_priority_min(k: &mut Kernel<'_>, a: &Args) -> Result {
    Ok(sched_get_priority_max(k, a)?.min(1))
}

/// Calls `change` for the threads that `getpriority` and `setpriority` address. All processes of a run have the same user.
///
/// # Errors
/// `ESRCH` when there are none; `EINVAL`.
fn each(
    k: &mut Kernel<'_>,
    which: u64,
    who: u64,
    mut change: impl FnMut(&mut Scheduling),
) -> std::result::Result<(), Errno> {
    const PROCESS: u32 = 0;
    const GROUP: u32 = 1;
    const USER: u32 = 2;
    let who = who as u32;
    let own_group = k.process.group;
    let (own_tid, group) = (k.thread.tid, if who == 0 { own_group } else { who });
    let members: Vec<u32> = k.all_processes().filter(|p| p.group == group).map(|p| p.pid).collect();
    let uid = k.process.attributes.users.real;
    let mut found = false;
    for thread in k.all_threads_mut().filter(|thread| !thread.ended) {
        let wanted = match which as u32 {
            PROCESS => thread.tid == if who == 0 { own_tid } else { who },
            GROUP => members.contains(&thread.pid),
            USER => who == 0 || who == uid,
            _ => return Err(Errno::INVAL),
        };
        if wanted {
            change(&mut thread.scheduling);
            found = true;
        }
    }
    if found { Ok(()) } else { Err(Errno::SRCH) }
}

/// `getpriority`: 20 minus the lowest nice value, as encoded by the system call.
pub(super) fn getpriority(k: &mut Kernel<'_>, a: &Args) -> Result {
    let mut lowest = i32::MAX;
    each(k, a[0], a[1], |scheduling| lowest = lowest.min(scheduling.nice))?;
    Ok((20 - lowest) as u64)
}

pub(super) fn setpriority(k: &mut Kernel<'_>, a: &Args) -> Result {
    let nice = (a[2] as i32).clamp(-20, 19);
    let privileged = k.process.attributes.capabilities.has(capability::SYS_NICE);
    let mut refused = false;
    each(k, a[0], a[1], |scheduling| match privileged || nice >= scheduling.nice {
        true => scheduling.nice = nice,
        false => refused = true,
    })?;
    if refused { Err(Errno::ACCESS) } else { Ok(0) }
}
