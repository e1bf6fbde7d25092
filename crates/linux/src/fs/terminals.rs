//! Processes and the terminal that controls their session (credentials(7), tty_ioctl(4)): who may use it, and who learns that it is gone.

use rustix::io::Errno;

use super::pty::{HungUp, Pty};
use crate::kernel::Kernel;
use crate::sched::wait::{Blocked, Wait};
use crate::signal::number::{SIGCONT, SIGHUP, SIGTTOU};
use crate::signal::stop::{is_orphaned, send_to_group};
use crate::signal::{self, Origin, SIG_IGN, SigInfo, bit, code};

/// Simulated time, in ns, until a call is repeated for which there was no room, or which a process in the background has made.
pub(crate) const AGAIN_NS: u64 = 1_000_000;

/// Returns whether the process may use the terminal now. If it is in the background of the session that the terminal controls, its
/// group gets `signal`, `SIGTTIN` or `SIGTTOU`, and the call is repeated when it continues.
///
/// # Errors
/// `EIO` for a group that nobody could continue, and if the process blocks or ignores `SIGTTIN`. With `SIGTTOU`, it may use the
/// terminal then.
pub(crate) fn may_use(k: &mut Kernel<'_>, pty: &Pty, signal: u32) -> Result<bool, Errno> {
    let (group, session, foreground) = (k.process.group, k.process.session, pty.foreground.get());
    if pty.session.get() != session || foreground == 0 || foreground == group {
        return Ok(true);
    }
    let is_deaf = k.thread.mask & bit(signal) != 0 || k.process.actions[signal as usize].handler == SIG_IGN;
    if is_deaf && signal == SIGTTOU {
        return Ok(true);
    }
    if is_deaf || is_orphaned(k, group, session) {
        return Err(Errno::IO);
    }
    send_to_group(k, group, signal);
    let until_ns = k.system.now_ns.saturating_add(AGAIN_NS);
    k.block(Blocked { restart: true, until_ns, ..Blocked::new(Wait::Files(Vec::new())) });
    Ok(false)
}

/// Sends SIGHUP to the leaders of sessions whose terminals are gone.
pub(crate) fn tell_leaders(k: &mut Kernel<'_>) {
    for HungUp { session, foreground } in k.system.ptys.take_hung_up() {
        let Some(leader) = k.process_of(session).filter(|leader| !leader.ended) else { continue };
        leader.job.lost_foreground = foreground;
        for signal in [SIGHUP, SIGCONT] {
            let origin = Origin::Sender { pid: 0, uid: 0 };
            signal::send_to_process(k, session, SigInfo { signal, code: code::SI_KERNEL, origin });
        }
    }
}

/// The leader of a session gives its terminal up.
pub(crate) fn give_up(k: &mut Kernel<'_>, pty: &Pty) {
    let (_, foreground) = pty.release();
    send_to_group(k, foreground, SIGHUP);
    send_to_group(k, foreground, SIGCONT);
}

/// The running process has ended. If it led a session, the processes in the foreground of its terminal learn of it, also if the
/// terminal is gone.
pub(crate) fn leave(k: &mut Kernel<'_>) {
    tell_leaders(k);
    if k.process.pid != k.process.session {
        return;
    }
    if let Some(pty) = k.system.ptys.of_session(k.process.session) {
        let (_, foreground) = pty.release();
        send_to_group(k, foreground, SIGHUP);
    } else {
        let foreground = k.process.job.lost_foreground;
        send_to_group(k, foreground, SIGHUP);
        send_to_group(k, foreground, SIGCONT);
    }
}
