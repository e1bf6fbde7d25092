//! System calls on signals.

use fxscope_aarch64::Cpu;
use rustix::io::Errno;

use super::{Args, Result};
use crate::abi::time::Time;
use crate::kernel::Kernel;
use crate::mm::user;
use crate::sched::wait::{Blocked, FOR_EVER, Wait};
use crate::signal::stop;
use crate::signal::{self, Action, AltStack, Origin, SigInfo, UNBLOCKABLE, code, frame, number};

/// Returns a signal's number; `EINVAL` if there is no such signal.
pub(super) fn signal_number(argument: u64) -> std::result::Result<u32, Errno> {
    match argument as u32 {
        n if n <= signal::LAST => Ok(n),
        _ => Err(Errno::INVAL),
    }
}

/// Signal sets are 8 bytes.
fn check_set_size(bytes: u64) -> std::result::Result<(), Errno> {
    if bytes == 8 { Ok(()) } else { Err(Errno::INVAL) }
}

pub(super) fn rt_sigaction(k: &mut Kernel<'_>, a: &Args) -> Result {
    check_set_size(a[3])?;
    let n = signal_number(a[0])?;
    if n == 0 || (a[1] != 0 && UNBLOCKABLE & signal::bit(n) != 0) {
        return Err(Errno::INVAL);
    }
    let old = k.process.actions[n as usize];
    if a[1] != 0 {
        let action: Action = user::read(k.mem, a[1])?;
        k.process.actions[n as usize] = Action { mask: action.mask & !UNBLOCKABLE, ..action };
        if action.handler == signal::SIG_IGN {
            let others = k.other_threads.iter_mut().filter(|other| other.pid == k.process.pid);
            let threads = others.chain([&mut *k.thread]).map(|thread| &mut thread.pending);
            for pending in threads.chain([&mut k.process.pending]) {
                pending.retain(|p| p.signal != n);
            }
        }
    }
    user::write_if(k.mem, a[2], old)?;
    Ok(0)
}

pub(super) fn rt_sigprocmask(k: &mut Kernel<'_>, a: &Args) -> Result {
    check_set_size(a[3])?;
    let old = k.thread.mask;
    if a[1] != 0 {
        let set: u64 = user::read(k.mem, a[1])?;
        let new = match a[0] {
            0 => old | set,
            1 => old & !set,
            2 => set,
            _ => return Err(Errno::INVAL),
        };
        k.thread.mask = new & !UNBLOCKABLE;
    }
    user::write_if(k.mem, a[2], old)?;
    Ok(0)
}

pub(super) fn rt_sigpending(k: &mut Kernel<'_>, a: &Args) -> Result {
    let set = k.thread.pending.iter().chain(&k.process.pending).fold(0, |set, p| set | signal::bit(p.signal));
    user::write(k.mem, a[0], set & k.thread.mask)?;
    Ok(0)
}

pub(super) fn rt_sigsuspend(k: &mut Kernel<'_>, a: &Args) -> Result {
    check_set_size(a[1])?;
    let mask = user::read::<u64>(k.mem, a[0])? & !UNBLOCKABLE;
    k.thread.mask_after_suspend = Some(std::mem::replace(&mut k.thread.mask, mask));
    k.block(Blocked::new(Wait::Signal(0)));
    Ok(0)
}

/// `rt_sigtimedwait`: takes a signal of the set, which the caller usually blocks.
pub(super) fn rt_sigtimedwait(k: &mut Kernel<'_>, a: &Args) -> Result {
    check_set_size(a[3])?;
    let set = user::read::<u64>(k.mem, a[0])? & !UNBLOCKABLE;
    let limit = match a[2] {
        0 => FOR_EVER,
        pointer => k.system.now_ns.saturating_add(user::read::<Time>(k.mem, pointer)?.to_ns()?),
    };
    if let Some(info) = signal::take(k, set) {
        if a[1] != 0 {
            user::write_bytes(k.mem, a[1], &info.to_bytes())?;
        }
        return Ok(info.signal.into());
    }
    let until_ns = k.thread.time_limit(limit);
    if until_ns <= k.system.now_ns {
        return Err(Errno::AGAIN);
    }
    k.block(Blocked { until_ns, ..Blocked::new(Wait::Signal(set)) });
    Ok(0)
}

/// `rt_sigreturn`: the result is the x0 of the interrupted code.
pub(super) fn rt_sigreturn(k: &mut Kernel<'_>, _: &Args) -> Result {
    if frame::pop(k.mem, k.thread).is_none() {
        let sp = k.thread.cpu.x(Cpu::SP);
        signal::force(k, SigInfo::fault(number::SIGSEGV, code::SI_KERNEL, sp));
    }
    Ok(k.thread.cpu.x(0))
}

pub(super) fn sigaltstack(k: &mut Kernel<'_>, a: &Args) -> Result {
    let on_it = k.thread.alt_stack.holds(k.thread.cpu.x(Cpu::SP));
    let old =
        AltStack { flags: k.thread.alt_stack.flags | if on_it { AltStack::ONSTACK } else { 0 }, ..k.thread.alt_stack };
    if a[0] != 0 {
        let new: AltStack = user::read(k.mem, a[0])?;
        if on_it {
            return Err(Errno::PERM);
        }
        k.thread.alt_stack = match new.flags {
            AltStack::DISABLED => AltStack::NONE,
            0 | AltStack::ONSTACK if new.bytes < frame::MIN_SIGNAL_STACK => return Err(Errno::NOMEM),
            0 | AltStack::ONSTACK => AltStack { flags: 0, ..new },
            _ => return Err(Errno::INVAL),
        };
    }
    user::write_if(k.mem, a[1], old)?;
    Ok(0)
}

/// Returns signal `n` as sent by the running process; `None` for 0, which only checks whether the receiver exists.
pub(super) fn sent(k: &Kernel<'_>, n: u32, code: i32) -> Option<SigInfo> {
    let origin = Origin::Sender { pid: k.process.pid, uid: k.process.attributes.users.real };
    (n != 0).then_some(SigInfo { signal: n, code, origin })
}

/// Returns the processes that a call to `kill` addresses.
fn receivers(k: &Kernel<'_>, target: i32) -> Vec<u32> {
    let own = &*k.process;
    let chosen = k.all_processes().filter(|p| match target {
        -1 => p.pid != own.pid,
        0 => p.group == own.group,
        pid @ 1.. => p.pid == pid as u32,
        group => p.group == group.unsigned_abs(),
    });
    let mut pids: Vec<u32> = chosen.map(|p| p.pid).collect();
    // A zombie exists, but a signal has no effect on it.
    pids.extend(k.system.zombies.iter().map(|z| z.pid).filter(|&pid| target > 0 && pid == target as u32));
    pids
}

pub(super) fn send_to_processes(k: &mut Kernel<'_>, target: i32, info: Option<SigInfo>) -> Result {
    let pids = receivers(k, target);
    if pids.is_empty() {
        return Err(Errno::SRCH);
    }
    if let Some(info) = info {
        for pid in pids {
            signal::send_to_process(k, pid, info);
        }
    }
    Ok(0)
}

pub(super) fn kill(k: &mut Kernel<'_>, a: &Args) -> Result {
    let info = sent(k, signal_number(a[1])?, code::SI_USER);
    send_to_processes(k, a[0] as i32, info)
}

/// Sends a signal to the thread `tid` of the running process.
fn send_to_thread(k: &mut Kernel<'_>, tid: u64, info: Option<SigInfo>) -> Result {
    if let Some(info) = info.filter(|_| k.threads().any(|thread| u64::from(thread.tid) == tid)) {
        stop::prepare(k, k.process.pid, info.signal);
    }
    let Kernel { process, thread, other_threads, .. } = k;
    let all = std::iter::once(&mut **thread).chain(other_threads.iter_mut());
    let mut own = all.filter(|thread| thread.pid == process.pid);
    let receiver = own.find(|thread| u64::from(thread.tid) == tid).ok_or(Errno::SRCH)?;
    if let Some(info) = info {
        signal::send(&process.actions, receiver, info);
    }
    Ok(0)
}

/// Returns the signal to the process `receiver` that a `siginfo_t` of the program describes. Programs may not pretend to be the
/// kernel, except to themselves.
pub(super) fn queued(
    k: &mut Kernel<'_>,
    number: u64,
    pointer: u64,
    receiver: u32,
) -> std::result::Result<Option<SigInfo>, Errno> {
    let signal = signal_number(number)?;
    let [_, _, code, _, pid, uid, low, high]: [u32; 8] = user::read(k.mem, pointer)?;
    let code = code as i32;
    if (code >= 0 || code == code::SI_TKILL) && receiver != k.process.pid {
        return Err(Errno::PERM);
    }
    let origin = Origin::Queued { pid, uid, value: u64::from(low) | u64::from(high) << 32 };
    Ok((signal != 0).then_some(SigInfo { signal, code, origin }))
}

pub(super) fn rt_sigqueueinfo(k: &mut Kernel<'_>, a: &Args) -> Result {
    let info = queued(k, a[1], a[2], a[0] as u32)?;
    k.check_signals()?;
    if (a[0] as i32) < 1 {
        return Err(Errno::SRCH);
    }
    send_to_processes(k, a[0] as i32, info)
}

pub(super) fn rt_tgsigqueueinfo(k: &mut Kernel<'_>, a: &Args) -> Result {
    let info = queued(k, a[2], a[3], a[0] as u32)?;
    k.check_signals()?;
    if a[0] == u64::from(k.process.pid) { send_to_thread(k, a[1], info) } else { Err(Errno::SRCH) }
}

pub(super) fn tkill(k: &mut Kernel<'_>, a: &Args) -> Result {
    let info = sent(k, signal_number(a[1])?, code::SI_TKILL);
    send_to_thread(k, a[0], info)
}

pub(super) fn tgkill(k: &mut Kernel<'_>, a: &Args) -> Result {
    let info = sent(k, signal_number(a[2])?, code::SI_TKILL);
    if a[0] == u64::from(k.process.pid) { send_to_thread(k, a[1], info) } else { Err(Errno::SRCH) }
}
