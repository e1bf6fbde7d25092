//! System calls on child processes, groups and sessions.

use rustix::io::Errno;

use super::time::Usage;
use super::{Args, Result, pidfd};
use crate::kernel::Kernel;
use crate::mm::user;
use crate::process::Process;
use crate::processes::Zombie;
use crate::sched::wait::{Blocked, Wait};
use crate::signal::stop::News;
use crate::signal::{Origin, SigInfo, number::SIGCHLD};
use crate::usage::Used;

const WNOHANG: u64 = 1;
/// `WSTOPPED`, which is `WUNTRACED`.
const WSTOPPED: u64 = 2;
const WEXITED: u64 = 4;
const WCONTINUED: u64 = 8;
const WNOWAIT: u64 = 0x100_0000;
/// Options about threads and clones of other kinds, of which there are none here.
const OTHER_KINDS: u64 = 0xe000_0000;

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

/// What there is to say about a child.
#[derive(Clone, Copy)]
enum Event {
    /// It has ended; its index among the zombies.
    Ended(usize),
    /// The child has stopped or continued.
    News(u32, News),
}

/// Returns an event of a kind in `options`, if there is one.
///
/// # Errors
/// `ECHILD` when no such child exists.
fn event(k: &Kernel<'_>, which: Which, options: u64) -> std::result::Result<Option<Event>, Errno> {
    let ended = k.system.zombies.iter().position(|z| z.ppid == k.process.pid && which.has(z.pid, z.group));
    if let Some(index) = ended.filter(|_| options & WEXITED != 0) {
        return Ok(Some(Event::Ended(index)));
    }
    let children =
        || k.other_processes.iter().filter(|p| p.ppid == k.process.pid && which.has(p.pid, p.group) && !p.ended);
    if ended.is_none() && children().next().is_none() {
        return Err(Errno::CHILD);
    }
    let news = children().filter_map(|child| Some((child.pid, child.job.news?)));
    let mut wanted = news.filter(|(_, news)| match news {
        News::Stopped(_) => options & WSTOPPED != 0,
        News::Continued => options & WCONTINUED != 0,
    });
    Ok(wanted.next().map(|(pid, news)| Event::News(pid, news)))
}

/// A parent has waited for this.
fn take_news(k: &mut Kernel<'_>, pid: u32) {
    if let Some(child) = k.process_of(pid) {
        child.job.news = None;
    }
}

/// Waits for a child to end.
fn wait(k: &mut Kernel<'_>) -> Result {
    k.block(Blocked { restart: true, ..Blocked::new(Wait::Child { vfork: None }) });
    Ok(0)
}

/// Removes a zombie and adds what it has used to that of its parent's children.
fn reap(k: &mut Kernel<'_>, index: usize) -> Zombie {
    let zombie = k.system.zombies.remove(index);
    k.process.children_cpu_ns += zombie.cpu_ns;
    k.process.children_used.add(&zombie.used);
    zombie
}

fn usage(zombie: &Zombie) -> Usage {
    Usage::new(zombie.cpu_ns, &zombie.used)
}

pub(super) fn wait4(k: &mut Kernel<'_>, a: &Args) -> Result {
    let which = match a[0] as i32 {
        -1 => Which::Any,
        0 => Which::Group(k.process.group),
        i32::MIN => return Err(Errno::SRCH),
        pid @ 1.. => Which::Process(pid as u32),
        group => Which::Group(group.unsigned_abs()),
    };
    let options = u64::from(a[2] as u32);
    if options & !(WNOHANG | WSTOPPED | WCONTINUED | OTHER_KINDS) != 0 {
        return Err(Errno::INVAL);
    }
    let Some(event) = event(k, which, options | WEXITED)? else {
        return if options & WNOHANG != 0 { Ok(0) } else { wait(k) };
    };
    let (pid, status, usage) = match event {
        Event::Ended(index) => {
            let zombie = reap(k, index);
            (zombie.pid, zombie.end.status(), usage(&zombie))
        }
        Event::News(pid, news) => {
            take_news(k, pid);
            (pid, news.status(), child_usage(k, pid))
        }
    };
    user::write_if(k.mem, a[1], status)?;
    user::write_if(k.mem, a[3], usage)?;
    Ok(pid.into())
}

/// Returns the usage of a child that has not ended.
fn child_usage(k: &Kernel<'_>, pid: u32) -> Usage {
    let child = k.all_processes().find(|process| process.pid == pid && !process.ended);
    child.map_or(Usage::new(0, &Used::default()), |child| {
        let mut used = k.used_by(child);
        used.add(&child.children_used);
        Usage::new(child.cpu_ns + child.children_cpu_ns, &used)
    })
}

pub(super) fn waitid(k: &mut Kernel<'_>, a: &Args) -> Result {
    let which = match (a[0] as u32, a[1] as u32) {
        (0, _) => Which::Any,
        (1, pid) => Which::Process(pid),
        (2, 0) => Which::Group(k.process.group),
        (2, group) => Which::Group(group),
        // P_PIDFD
        (3, fd) => Which::Process(pidfd::process(k, fd.into())?),
        _ => return Err(Errno::INVAL),
    };
    let options = u64::from(a[3] as u32);
    let kinds = WEXITED | WSTOPPED | WCONTINUED;
    if options & kinds == 0 || options & !(kinds | WNOHANG | WNOWAIT | OTHER_KINDS) != 0 {
        return Err(Errno::INVAL);
    }
    let Some(event) = event(k, which, options)? else {
        if options & WNOHANG == 0 {
            return wait(k);
        }
        if a[2] != 0 {
            user::write_bytes(k.mem, a[2], &[0; 128])?;
        }
        return Ok(0);
    };
    let (pid, uid, (code, status), usage) = match event {
        Event::Ended(index) => {
            let zombie = &k.system.zombies[index];
            (zombie.pid, zombie.uid, zombie.end.code_and_status(), usage(zombie))
        }
        Event::News(pid, news) => {
            let uid = k.process_of(pid).map_or(0, |child| child.attributes.users.real);
            (pid, uid, news.code_and_status(), child_usage(k, pid))
        }
    };
    if options & WNOWAIT == 0 {
        match event {
            Event::Ended(index) => drop(reap(k, index)),
            Event::News(pid, _) => take_news(k, pid),
        }
    }
    if a[2] != 0 {
        let info = SigInfo { signal: SIGCHLD, code, origin: Origin::Child { pid, uid, status } };
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

/// `setpgid`: of the process itself, or of a child that has not executed a program.
pub(super) fn setpgid(k: &mut Kernel<'_>, a: &Args) -> Result {
    let group = u32::try_from(a[1] as i32).map_err(|_| Errno::INVAL)?;
    let (own, session) = (k.process.pid, k.process.session);
    let process = named(k, a[0])?;
    let pid = process.pid;
    if pid != own {
        if process.ppid != own {
            return Err(Errno::SRCH);
        }
        if process.session != session {
            return Err(Errno::PERM);
        }
        if process.attributes.executed {
            return Err(Errno::ACCESS);
        }
    }
    if process.session == pid {
        return Err(Errno::PERM);
    }
    let group = if group == 0 { pid } else { group };
    if group != pid && !k.all_processes().any(|other| other.group == group && other.session == session) {
        return Err(Errno::PERM);
    }
    named(k, u64::from(pid))?.group = group;
    Ok(0)
}

pub(super) fn setsid(k: &mut Kernel<'_>, _: &Args) -> Result {
    let pid = k.process.pid;
    if k.all_processes().any(|process| process.group == pid) {
        return Err(Errno::PERM);
    }
    (k.process.group, k.process.session) = (pid, pid);
    Ok(pid.into())
}
