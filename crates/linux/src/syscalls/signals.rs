//! System calls on signals.

use fxscope_aarch64::Cpu;
use rustix::io::Errno;

use super::{Args, Result, guest};
use crate::kernel::Kernel;
use crate::process::PID;
use crate::signal::{self, Action, AltStack, Origin, SigInfo, UNBLOCKABLE, code, frame, number};
use crate::thread::Thread;

/// A signal's number; `EINVAL` when there is none such.
fn signal_number(argument: u64) -> std::result::Result<u32, Errno> {
    match argument as u32 {
        n if n <= signal::LAST => Ok(n),
        _ => Err(Errno::INVAL),
    }
}

/// Signal sets are 8 bytes.
fn check_set_size(bytes: u64) -> std::result::Result<(), Errno> {
    if bytes == 8 { Ok(()) } else { Err(Errno::INVAL) }
}

pub(super) fn rt_sigaction(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    check_set_size(a[3])?;
    let n = signal_number(a[0])?;
    if n == 0 || (a[1] != 0 && UNBLOCKABLE & signal::bit(n) != 0) {
        return Err(Errno::INVAL);
    }
    let old = k.actions[n as usize];
    if a[1] != 0 {
        let action: Action = guest::read(&mut k.mem, a[1])?;
        k.actions[n as usize] = Action { mask: action.mask & !UNBLOCKABLE, ..action };
        if action.handler == signal::SIG_IGN {
            t.pending.retain(|p| p.signal != n);
        }
    }
    guest::write_if(&mut k.mem, a[2], old)?;
    Ok(0)
}

pub(super) fn rt_sigprocmask(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    check_set_size(a[3])?;
    let old = t.mask;
    if a[1] != 0 {
        let set: u64 = guest::read(&mut k.mem, a[1])?;
        let new = match a[0] {
            0 => old | set,
            1 => old & !set,
            2 => set,
            _ => return Err(Errno::INVAL),
        };
        t.mask = new & !UNBLOCKABLE;
    }
    guest::write_if(&mut k.mem, a[2], old)?;
    Ok(0)
}

pub(super) fn rt_sigpending(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    let set = t.pending.iter().fold(0, |set, p| set | signal::bit(p.signal));
    guest::write(&mut k.mem, a[0], set & t.mask)?;
    Ok(0)
}

pub(super) fn rt_sigsuspend(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    check_set_size(a[1])?;
    let mask = guest::read::<u64>(&mut k.mem, a[0])? & !UNBLOCKABLE;
    if t.pending.iter().all(|p| mask & signal::bit(p.signal) != 0) {
        k.deadlock(t.cpu.pc, "a signal that nobody can send".to_owned());
    }
    t.mask_after_suspend = Some(std::mem::replace(&mut t.mask, mask));
    Err(Errno::INTR)
}

/// The result is what the interrupted code had in x0.
pub(super) fn rt_sigreturn(k: &mut Kernel, t: &mut Thread, _: &Args) -> Result {
    if frame::pop(&mut k.mem, t).is_none() {
        let sp = t.cpu.x(Cpu::SP);
        signal::force(k, t, SigInfo::fault(number::SIGSEGV, code::SI_KERNEL, sp));
    }
    Ok(t.cpu.x(0))
}

pub(super) fn sigaltstack(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    let on_it = t.alt_stack.holds(t.cpu.x(Cpu::SP));
    let old = AltStack { flags: t.alt_stack.flags | if on_it { AltStack::ONSTACK } else { 0 }, ..t.alt_stack };
    if a[0] != 0 {
        let new: AltStack = guest::read(&mut k.mem, a[0])?;
        if on_it {
            return Err(Errno::PERM);
        }
        t.alt_stack = match new.flags {
            AltStack::DISABLED => AltStack::NONE,
            0 | AltStack::ONSTACK if new.bytes < frame::MIN_SIGNAL_STACK => return Err(Errno::NOMEM),
            0 | AltStack::ONSTACK => AltStack { flags: 0, ..new },
            _ => return Err(Errno::INVAL),
        };
    }
    guest::write_if(&mut k.mem, a[1], old)?;
    Ok(0)
}

/// Sends signal `n` (or, for 0, nothing) to the only process there is.
fn send(k: &Kernel, t: &mut Thread, n: u32, code: i32) {
    if n != 0 {
        let origin = Origin::Sender { pid: PID, uid: rustix::process::getuid().as_raw() };
        signal::send(k, t, SigInfo { signal: n, code, origin });
    }
}

pub(super) fn kill(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    let n = signal_number(a[1])?;
    match a[0] as i32 {
        // The process, its group, or everything it may signal.
        pid if pid == PID as i32 || pid == 0 || pid == -(PID as i32) => send(k, t, n, code::SI_USER),
        _ => return Err(Errno::SRCH),
    }
    Ok(0)
}

pub(super) fn tkill(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    let n = signal_number(a[1])?;
    if a[0] != u64::from(t.tid) {
        return Err(Errno::SRCH);
    }
    send(k, t, n, code::SI_TKILL);
    Ok(0)
}

pub(super) fn tgkill(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    if a[0] != u64::from(PID) {
        return Err(Errno::SRCH);
    }
    tkill(k, t, &[a[1], a[2], 0, 0, 0, 0])
}
