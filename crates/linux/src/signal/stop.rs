//! Stopped processes: `SIGSTOP` and similar signals stop all threads of a process, `SIGCONT` continues them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::number::{SIGCHLD, SIGCONT, SIGHUP, SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
use super::{Origin, SIG_IGN, SigInfo, bit, code, flags, send_to_process};
use crate::kernel::Kernel;
use crate::process::Process;
use crate::sched::wait::Wait;

/// The signals that stop a process by default, as a mask.
const STOPS: u64 = 1 << (SIGSTOP - 1) | 1 << (SIGTSTP - 1) | 1 << (SIGTTIN - 1) | 1 << (SIGTTOU - 1);

/// Whether a process is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The signal that stopped it, if it is stopped.
    pub stopped: Option<u32>,
    /// What its parent has not waited for yet.
    pub news: Option<News>,
    /// Of the leader of a session whose terminal is gone: the group that was in the foreground; 0: none.
    pub lost_foreground: u32,
}

/// What a parent can wait for while its child exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum News {
    /// A signal has stopped it.
    Stopped(u32),
    Continued,
}

impl News {
    /// Returns the status for `wait4`.
    pub(crate) fn status(self) -> u32 {
        match self {
            News::Stopped(signal) => signal << 8 | 0x7f,
            News::Continued => 0xffff,
        }
    }

    /// Returns `si_code` and `si_status` for `SIGCHLD` and `waitid`.
    pub(crate) fn code_and_status(self) -> (i32, i32) {
        match self {
            News::Stopped(signal) => (code::CLD_STOPPED, signal as i32),
            News::Continued => (code::CLD_CONTINUED, SIGCONT as i32),
        }
    }
}

/// Does what the arrival of a signal does to a process even if it is blocked or ignored: `SIGCONT` and `SIGKILL` continue it, and
/// pending signals of the opposite kind are dropped (signal(7)).
pub(crate) fn prepare(k: &mut Kernel<'_>, pid: u32, signal: u32) {
    let opposite = match signal {
        SIGCONT => STOPS,
        _ if STOPS & bit(signal) != 0 => bit(SIGCONT),
        SIGKILL => 0,
        _ => return,
    };
    let continues = opposite != bit(SIGCONT);
    let Some(process) = k.process_of(pid) else { return };
    process.pending.retain(|info| opposite & bit(info.signal) == 0);
    let continued = continues && process.job.stopped.take().is_some();
    if continued {
        process.job.news = (signal == SIGCONT).then_some(News::Continued);
    }
    for thread in k.all_threads_mut().filter(|thread| thread.pid == pid) {
        thread.pending.retain(|info| opposite & bit(info.signal) == 0);
        thread.stopped &= !continues;
    }
    if continued && signal == SIGCONT {
        tell_parent(k, pid, News::Continued);
    }
}

/// Stops the running process, unless the signal comes from a terminal to a process group that nobody could continue.
pub(super) fn stop(k: &mut Kernel<'_>, signal: u32) {
    if signal != SIGSTOP && is_orphaned(k, k.process.group, k.process.session) {
        return;
    }
    let pid = k.process.pid;
    k.process.job.stopped = Some(signal);
    k.process.job.news = Some(News::Stopped(signal));
    for thread in k.all_threads_mut().filter(|thread| thread.pid == pid) {
        thread.stopped = true;
    }
    tell_parent(k, pid, News::Stopped(signal));
}

/// Returns whether no process of a group has a parent in another group of the same session.
pub(crate) fn is_orphaned(k: &Kernel<'_>, group: u32, session: u32) -> bool {
    let mut members = k.all_processes().filter(|process| process.group == group && !process.ended);
    !members.any(|member| {
        k.all_processes().any(|parent| {
            parent.pid == member.ppid && !parent.ended && parent.group != group && parent.session == session
        })
    })
}

/// Sends a signal of the kernel to all processes of a group that have not ended; group 0 has none.
pub(crate) fn send_to_group(k: &mut Kernel<'_>, group: u32, signal: u32) {
    let is_member = |p: &&Process| p.group == group && group != 0 && !p.ended;
    let members: Vec<u32> = k.all_processes().filter(is_member).map(|process| process.pid).collect();
    let origin = Origin::Sender { pid: 0, uid: 0 };
    for pid in members {
        send_to_process(k, pid, SigInfo { signal, code: code::SI_KERNEL, origin });
    }
}

/// Ends or continues stopped processes in those of `groups` that nobody can continue any more, since the running process has ended
/// (`_exit(2)`).
pub(crate) fn hang_up_orphans(k: &mut Kernel<'_>, groups: &BTreeSet<u32>) {
    let session = k.process.session;
    for &group in groups {
        let has_stopped =
            k.all_processes().any(|other| other.group == group && !other.ended && other.job.stopped.is_some());
        if has_stopped && is_orphaned(k, group, session) {
            send_to_group(k, group, SIGHUP);
            send_to_group(k, group, SIGCONT);
        }
    }
}

/// Wakes a parent that waits for its child `pid`, and sends it `SIGCHLD`.
fn tell_parent(k: &mut Kernel<'_>, pid: u32, news: News) {
    let Some(child) = k.process_of(pid) else { return };
    let (parent, uid) = (child.ppid, child.attributes.users.real);
    for thread in k.all_threads_mut().filter(|thread| thread.pid == parent) {
        thread.poked |= thread.waits_for(&Wait::Child { vfork: None });
    }
    let Some(action) = k.process_of(parent).map(|parent| parent.actions[SIGCHLD as usize]) else { return };
    if action.handler == SIG_IGN || action.flags & flags::NOCLDSTOP != 0 {
        return;
    }
    let (code, status) = news.code_and_status();
    send_to_process(k, parent, SigInfo { signal: SIGCHLD, code, origin: Origin::Child { pid, uid, status } });
}
