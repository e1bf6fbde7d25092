//! System calls about the process itself: its end, identity, limits, processors, vector length.

use rustix::io::Errno;

use super::{Args, Result};
use crate::abi::uname::FIELDS;
use crate::kernel::Kernel;
use crate::mm::user;
use crate::process::Limit;

use crate::fs::umask::Umask;
use crate::thread::{NextVl, Thread};

pub(super) fn getpid(k: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(k.process.pid.into())
}

pub(super) fn getppid(k: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(k.process.ppid.into())
}

pub(super) fn gettid(k: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(u64::from(k.thread.tid))
}

pub(super) fn getuid(_: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(u64::from(rustix::process::getuid().as_raw()))
}

pub(super) fn geteuid(_: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(u64::from(rustix::process::geteuid().as_raw()))
}

pub(super) fn getgid(_: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(u64::from(rustix::process::getgid().as_raw()))
}

pub(super) fn getegid(_: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(u64::from(rustix::process::getegid().as_raw()))
}

/// `getgroups`: no supplementary groups.
pub(super) fn getgroups(_: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(0)
}

/// `rseq`: as on a kernel without it, which C libraries support.
pub(super) fn rseq(_: &mut Kernel<'_>, _: &Args) -> Result {
    Err(Errno::NOSYS)
}

fn resource(number: u64) -> std::result::Result<usize, Errno> {
    usize::try_from(number).ok().filter(|&n| n < Limit::COUNT).ok_or(Errno::INVAL)
}

fn set_limit(k: &mut Kernel<'_>, resource: usize, new: Limit) -> std::result::Result<(), Errno> {
    if new.soft > new.hard {
        return Err(Errno::INVAL);
    }
    if new.hard > k.process.limits[resource].hard {
        return Err(Errno::PERM);
    }
    k.process.limits[resource] = new;
    Ok(())
}

pub(super) fn prlimit64(k: &mut Kernel<'_>, a: &Args) -> Result {
    if a[0] != 0 && a[0] != u64::from(k.process.pid) {
        return Err(Errno::SRCH);
    }
    let resource = resource(a[1])?;
    let old = k.process.limits[resource];
    if a[2] != 0 {
        let new = user::read(k.mem, a[2])?;
        set_limit(k, resource, new)?;
    }
    user::write_if(k.mem, a[3], old)?;
    Ok(0)
}

pub(super) fn getrlimit(k: &mut Kernel<'_>, a: &Args) -> Result {
    let limit = k.process.limits[resource(a[0])?];
    user::write(k.mem, a[1], limit)?;
    Ok(0)
}

pub(super) fn setrlimit(k: &mut Kernel<'_>, a: &Args) -> Result {
    let resource = resource(a[0])?;
    let new = user::read(k.mem, a[1])?;
    set_limit(k, resource, new)?;
    Ok(0)
}

pub(super) fn umask(k: &mut Kernel<'_>, a: &Args) -> Result {
    let old = std::mem::replace(&mut k.process.files.umask, Umask::new(a[0] as u32));
    Ok(old.bits().into())
}

pub(super) fn uname(k: &mut Kernel<'_>, a: &Args) -> Result {
    let mut out = [0u8; 6 * 65];
    for (slot, text) in out.chunks_mut(65).zip(FIELDS) {
        slot[..text.len()].copy_from_slice(text.as_bytes());
    }
    user::write_bytes(k.mem, a[0], &out)?;
    Ok(0)
}

pub(super) fn sysinfo(k: &mut Kernel<'_>, a: &Args) -> Result {
    let total = k.system.platform.memory_bytes;
    let mut words = [0u64; 14];
    words[0] = k.system.monotonic_ns() / 1_000_000_000;
    words[4] = total;
    words[5] = k.mem.room_bytes();
    words[6] = k.mem.elsewhere_bytes();
    // After buffers, total and free swap: `procs` (16 bits), padding, high memory, and the unit.
    words[10] = 1;
    words[13] = 1;
    user::write(k.mem, a[0], words)?;
    Ok(0)
}

pub(super) fn getrandom(k: &mut Kernel<'_>, a: &Args) -> Result {
    if a[2] & !7 != 0 {
        return Err(Errno::INVAL);
    }
    let mut bytes = vec![0; a[1].min(1 << 20) as usize];
    k.process.random.fill(&mut bytes);
    user::write_bytes(k.mem, a[0], &bytes)?;
    Ok(bytes.len() as u64)
}

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

/// Checks that a thread with this number exists; 0 is the caller.
fn check_thread(k: &Kernel<'_>, tid: u64) -> Result {
    let there = tid == 0 || tid == u64::from(k.thread.tid) || k.other_threads.iter().any(|o| u64::from(o.tid) == tid);
    if there { Ok(0) } else { Err(Errno::SRCH) }
}

/// `sched_getscheduler`: every thread has the ordinary policy, 0.
pub(super) fn sched_getscheduler(k: &mut Kernel<'_>, a: &Args) -> Result {
    check_thread(k, a[0])
}

/// `sched_getparam`: with that policy, the priority is 0.
pub(super) fn sched_getparam(k: &mut Kernel<'_>, a: &Args) -> Result {
    check_thread(k, a[0])?;
    user::write(k.mem, a[1], 0u32)?;
    Ok(0)
}

/// `sched_setscheduler`: other policies are not available to ordinary users.
pub(super) fn sched_setscheduler(k: &mut Kernel<'_>, a: &Args) -> Result {
    check_thread(k, a[0])?;
    let priority: u32 = user::read(k.mem, a[2])?;
    match (a[1], priority) {
        (0 | 3 | 5, 0) => Ok(0),
        (1 | 2, 1..=99) => Err(Errno::PERM),
        _ => Err(Errno::INVAL),
    }
}

pub(super) fn sched_setparam(k: &mut Kernel<'_>, a: &Args) -> Result {
    sched_setscheduler(k, &[a[0], 0, a[1], 0, 0, 0])
}

/// `sched_get_priority_max`: the range of priorities for real-time policies.
pub(super) fn sched_get_priority_max(_: &mut Kernel<'_>, a: &Args) -> Result {
    match a[0] {
        1 | 2 => Ok(99),
        0 | 3 | 5 | 6 => Ok(0),
        _ => Err(Errno::INVAL),
    }
}

pub(super) fn sched_get_priority_min(k: &mut Kernel<'_>, a: &Args) -> Result {
    Ok(sched_get_priority_max(k, a)?.min(1))
}

/// `getpriority`: nice 0, as encoded by the system call.
pub(super) fn getpriority(_: &mut Kernel<'_>, a: &Args) -> Result {
    if a[0] <= 2 { Ok(20) } else { Err(Errno::INVAL) }
}

/// `setpriority`: all threads have the same share, whatever their priority.
pub(super) fn setpriority(_: &mut Kernel<'_>, a: &Args) -> Result {
    if a[0] <= 2 { Ok(0) } else { Err(Errno::INVAL) }
}

pub(super) fn getcpu(k: &mut Kernel<'_>, a: &Args) -> Result {
    let cpu = k.thread.cpu_number();
    let node = k.system.platform.cpus.iter().find(|p| p.cpu == cpu).map_or(0, |p| p.node);
    user::write_if(k.mem, a[0], cpu)?;
    user::write_if(k.mem, a[1], node)?;
    Ok(0)
}

/// `membarrier`: no other thread runs at the same time, so there is nothing to wait for. The commands are those of Linux 4.16
/// without registration of cores.
pub(super) fn membarrier(_: &mut Kernel<'_>, a: &Args) -> Result {
    const QUERY: u64 = 0;
    const SUPPORTED: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4;
    match a[0] {
        QUERY => Ok(SUPPORTED),
        command if command.is_power_of_two() && command & SUPPORTED != 0 => Ok(0),
        _ => Err(Errno::INVAL),
    }
}

/// `PR_SVE_VL_INHERIT`.
const SVE_VL_INHERIT: u64 = 1 << 17;

pub(super) fn prctl(k: &mut Kernel<'_>, a: &Args) -> Result {
    const SET_PDEATHSIG: u64 = 1;
    const GET_DUMPABLE: u64 = 3;
    const SET_DUMPABLE: u64 = 4;
    const SET_NAME: u64 = 15;
    const GET_NAME: u64 = 16;
    const SET_NO_NEW_PRIVS: u64 = 38;
    const SVE_SET_VL: u64 = 50;
    const SVE_GET_VL: u64 = 51;
    match a[0] {
        SET_PDEATHSIG | SET_DUMPABLE | SET_NO_NEW_PRIVS => Ok(0),
        GET_DUMPABLE => Ok(1),
        SET_NAME => {
            let name = user::string(k.mem, a[1])?;
            let len = name.len().min(15);
            k.thread.name = [0; 16];
            k.thread.name[..len].copy_from_slice(&name[..len]);
            Ok(0)
        }
        GET_NAME => {
            user::write(k.mem, a[1], k.thread.name)?;
            Ok(0)
        }
        SVE_GET_VL => Ok(vector_length(k.thread, k.thread.cpu.vl)),
        SVE_SET_VL => set_vector_length(k, a[1]),
        _ => Err(Errno::INVAL),
    }
}

/// `PR_SVE_SET_VL`: sets the largest length of the machine that does not exceed the requested one.
fn set_vector_length(k: &mut Kernel<'_>, argument: u64) -> Result {
    /// `PR_SVE_VL_LEN_MASK`.
    const LENGTH: u64 = 0xffff;
    const SET_ON_EXEC: u64 = 1 << 18;
    /// `SVE_VL_MAX`: the maximum vector length that Linux supports, bytes.
    const MAX: u64 = 8192;
    let (wanted, flags) = (argument & LENGTH, argument & !LENGTH);
    if flags & !(SVE_VL_INHERIT | SET_ON_EXEC) != 0 || !(16..=MAX).contains(&wanted) || !wanted.is_multiple_of(16) {
        return Err(Errno::INVAL);
    }
    let possible = [64, 32, 16].into_iter().filter(|&vl| vl <= k.system.platform.vector_bytes);
    let vl = possible.into_iter().find(|&vl| vl as u64 <= wanted).unwrap_or(16);
    k.thread.next_vl = NextVl { inherit: flags & SVE_VL_INHERIT != 0, on_exec: (flags != 0).then_some(vl) };
    if flags & SET_ON_EXEC != 0 {
        return Ok(vector_length(k.thread, vl));
    }
    if vl != k.thread.cpu.vl {
        // The system call has already reduced the registers to the SIMD&FP part.
        k.thread.cpu.vl = vl;
        k.process.code_changed = true;
    }
    Ok(vector_length(k.thread, vl))
}

/// Returns the result of the calls about the vector length for the length `vl`.
fn vector_length(t: &Thread, vl: usize) -> u64 {
    vl as u64 | if t.next_vl.inherit { SVE_VL_INHERIT } else { 0 }
}
