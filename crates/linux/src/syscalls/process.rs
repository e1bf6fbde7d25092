//! System calls about the process itself: its numbers, limits, and the machine that it runs on.

use rustix::io::Errno;

use super::transfer::{Piece, read_random};
use super::{Args, Result};
use crate::abi::uname::FIELDS;
use crate::fs::umask::Umask;
use crate::kernel::Kernel;
use crate::mm::user;
use crate::process::Limit;

pub(super) fn getpid(k: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(k.process.pid.into())
}

pub(super) fn getppid(k: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(k.process.ppid.into())
}

pub(super) fn gettid(k: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(u64::from(k.thread.tid))
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
    read_random(k, &[Piece { addr: a[0], len: a[1].min(i32::MAX as u64) }])
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
