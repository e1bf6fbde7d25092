//! System calls on child processes, groups and sessions.

use rustix::io::Errno;

use super::time::Usage;
use super::{Args, Result, pidfd};
use crate::kernel::Kernel;
use crate::mm::user;
use crate::process::Process;
use crate::processes::Zombie;
use crate::sched::wait::{Blocked, Wait};
use crate::signal::{Origin, SigInfo, number::SIGCHLD};

const WNOHANG: u64 = 1;
const WEXITED: u64 = 4;
const WNOWAIT: u64 = 0x100_0000;

/// Which children a call refers to.
#[derive(Clone, Copy)]
enum Which {
    Any,
    Process(u32),
    Group(u32),
}

impl Which {
    fn has(self, pid: u32, group: u32) -> bool {
        match self {
            Which::Any => true,
            Which::Process(wanted) => pid == wanted,
            Which::Group(wanted) => group == wanted,
        }
    }
}

/// Returns the index among the zombies of a child that has ended, if there is one.
///
/// # Errors
/// `ECHILD` when no such child exists.
fn ended_child(k: &Kernel<'_>, which: Which) -> std::result::Result<Option<usize>, Errno> {
    let found = k.system.zombies.iter().position(|z| z.ppid == k.process.pid && which.has(z.pid, z.group));
    let mut others = k.other_processes.iter();
    if found.is_none() && !others.any(|p| p.ppid == k.process.pid && which.has(p.pid, p.group)) {
        return Err(Errno::CHILD);
    }
    Ok(found)
}

/// Waits for a child to end.
fn wait(k: &mut Kernel<'_>) -> Result {
    k.block(Blocked { restart: true, ..Blocked::new(Wait::Child { vfork: None }) });
    Ok(0)
}

/// Removes a zombie and adds its time to that of its parent's children.
fn reap(k: &mut Kernel<'_>, index: usize) -> Zombie {
    let zombie = k.system.zombies.remove(index);
    k.process.children_cpu_ns += zombie.cpu_ns;
    zombie
}

fn usage(zombie: &Zombie) -> Usage {
    Usage::of_time(zombie.cpu_ns)
}

pub(super) fn wait4(k: &mut Kernel<'_>, a: &Args) -> Result {
    let which = match a[0] as i32 {
        -1 => Which::Any,
        0 => Which::Group(k.process.group),
        pid @ 1.. => Which::Process(pid as u32),
        group => Which::Group(group.unsigned_abs()),
    };
    let Some(index) = ended_child(k, which)? else {
        return if a[2] & WNOHANG != 0 { Ok(0) } else { wait(k) };
    };
    let zombie = reap(k, index);
    user::write_if(k.mem, a[1], zombie.end.status())?;
    user::write_if(k.mem, a[3], usage(&zombie))?;
    Ok(zombie.pid.into())
}

pub(super) fn waitid(k: &mut Kernel<'_>, a: &Args) -> Result {
    let which = match (a[0], a[1] as u32) {
        (0, _) => Which::Any,
        (1, pid) => Which::Process(pid),
        (2, 0) => Which::Group(k.process.group),
        (2, group) => Which::Group(group),
        // P_PIDFD
        (3, fd) => Which::Process(pidfd::process(k, fd.into())?),
        _ => return Err(Errno::INVAL),
    };
    if a[3] & WEXITED == 0 {
        return Err(Errno::INVAL);
    }
    let Some(index) = ended_child(k, which)? else {
        if a[3] & WNOHANG == 0 {
            return wait(k);
        }
        if a[2] != 0 {
            user::write_bytes(k.mem, a[2], &[0; 128])?;
        }
        return Ok(0);
    };
    let zombie = &k.system.zombies[index];
    let (code, status) = zombie.end.code_and_status();
    let origin = Origin::Child { pid: zombie.pid, uid: rustix::process::getuid().as_raw(), status };
    let (info, usage) = (SigInfo { signal: SIGCHLD, code, origin }, usage(zombie));
    if a[3] & WNOWAIT == 0 {
        reap(k, index);
    }
    if a[2] != 0 {
        user::write_bytes(k.mem, a[2], &info.to_bytes())?;
    }
    user::write_if(k.mem, a[4], usage)?;
    Ok(0)
}

/// Returns the process `pid`, or the running one for 0.
fn named<'a>(k: &'a mut Kernel<'_>, pid: u64) -> std::result::Result<&'a mut Process, Errno> {
    let pid = if pid as u32 == 0 { k.process.pid } else { pid as u32 };
    k.process_of(pid).ok_or(Errno::SRCH)
}

pub(super) fn getpgid(k: &mut Kernel<'_>, a: &Args) -> Result {
    Ok(named(k, a[0])?.group.into())
}

pub(super) fn getsid(k: &mut Kernel<'_>, a: &Args) -> Result {
    Ok(named(k, a[0])?.session.into())
}

pub(super) fn setpgid(k: &mut Kernel<'_>, a: &Args) -> Result {
    let group = u32::try_from(a[1] as i32).map_err(|_| Errno::INVAL)?;
    let process = named(k, a[0])?;
    if process.session == process.pid {
        return Err(Errno::PERM);
    }
    process.group = if group == 0 { process.pid } else { group };
    Ok(0)
}

pub(super) fn setsid(k: &mut Kernel<'_>, _: &Args) -> Result {
    if k.process.group == k.process.pid {
        return Err(Errno::PERM);
    }
    (k.process.group, k.process.session) = (k.process.pid, k.process.pid);
    Ok(k.process.pid.into())
}
