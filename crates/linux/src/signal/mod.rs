//! Signals: numbers, dispositions, pending signals, and delivery to handlers.

pub mod frame;
pub(crate) mod stop;

use fxscope_guestmem::{MemFault, PAGE, Touch};
use serde::{Deserialize, Serialize};

use crate::budget::PENDING_SIGNALS;
use crate::disasm;
use crate::end::{End, Killed, OutOfMemory, Refused};
use crate::kernel::Kernel;
use crate::process::Process;
use crate::thread::Thread;

/// Signal numbers of arm64 Linux.
pub mod number {
    #![allow(missing_docs)] // the names are the documentation
    pub const SIGHUP: u32 = 1;
    pub const SIGINT: u32 = 2;
    pub const SIGQUIT: u32 = 3;
    pub const SIGILL: u32 = 4;
    pub const SIGTRAP: u32 = 5;
    pub const SIGABRT: u32 = 6;
    pub const SIGBUS: u32 = 7;
    pub const SIGKILL: u32 = 9;
    pub const SIGSEGV: u32 = 11;
    pub const SIGPIPE: u32 = 13;
    pub const SIGALRM: u32 = 14;
    pub const SIGCHLD: u32 = 17;
    pub const SIGCONT: u32 = 18;
    pub const SIGSTOP: u32 = 19;
    pub const SIGTSTP: u32 = 20;
    pub const SIGTTIN: u32 = 21;
    pub const SIGTTOU: u32 = 22;
    pub const SIGURG: u32 = 23;
    pub const SIGXFSZ: u32 = 25;
    pub const SIGVTALRM: u32 = 26;
    pub const SIGPROF: u32 = 27;
    pub const SIGWINCH: u32 = 28;
}
use number::*;

/// The lowest real-time signal; real-time signals are queued.
const FIRST_REALTIME: u32 = 32;

/// Highest signal number.
pub const LAST: u32 = 64;

const NAMES: [&str; 32] = [
    "",
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// Returns the name of a signal, such as `SIGSEGV`.
#[must_use]
pub fn name(signal: u32) -> String {
    match NAMES.get(signal as usize) {
        Some(name) if !name.is_empty() => (*name).to_owned(),
        _ => format!("signal {signal}"),
    }
}

/// Returns the bit of a signal in a mask.
#[must_use]
pub fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// Signals that can be neither blocked nor handled.
pub const UNBLOCKABLE: u64 = 1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1);

/// Default disposition.
pub const SIG_DFL: u64 = 0;
/// Disposition: ignored.
pub const SIG_IGN: u64 = 1;

/// Flags of `rt_sigaction`.
pub mod flags {
    #![allow(missing_docs)] // the names are the documentation
    pub const SIGINFO: u64 = 4;
    pub const RESTORER: u64 = 0x0400_0000;
    pub const NOCLDSTOP: u64 = 1;
    pub const NOCLDWAIT: u64 = 2;
    pub const ONSTACK: u64 = 0x0800_0000;
    pub const RESTART: u64 = 0x1000_0000;
    pub const NODEFER: u64 = 0x4000_0000;
    pub const RESETHAND: u64 = 0x8000_0000;
}

/// The disposition of a signal that a program has set (the kernel's `struct sigaction`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct Action {
    /// Address of the handler, [`SIG_DFL`] or [`SIG_IGN`].
    pub handler: u64,
    /// See [`flags`].
    pub flags: u64,
    /// Return code, used when the flags say so.
    pub restorer: u64,
    /// Signals blocked while the handler runs.
    pub mask: u64,
}

/// `si_code` values.
pub mod code {
    #![allow(missing_docs)] // the names are the documentation
    pub const SI_USER: i32 = 0;
    pub const SI_TIMER: i32 = -2;
    pub const SI_MESGQ: i32 = -3;
    pub const SI_TKILL: i32 = -6;
    pub const SI_KERNEL: i32 = 0x80;
    pub const CLD_EXITED: i32 = 1;
    pub const CLD_KILLED: i32 = 2;
    pub const CLD_STOPPED: i32 = 5;
    pub const CLD_CONTINUED: i32 = 6;
    pub const ILL_ILLOPC: i32 = 1;
    pub const TRAP_BRKPT: i32 = 1;
    pub const BUS_ADRALN: i32 = 1;
    pub const BUS_ADRERR: i32 = 2;
    pub const SEGV_MAPERR: i32 = 1;
    pub const SEGV_ACCERR: i32 = 2;
}

/// Fields of `ESR_EL1` (Arm ARM D17.2.37).
mod class {
    /// Exception class: instruction abort from EL0.
    pub const FETCH: u64 = 0x20;
    /// Exception class: misaligned PC.
    pub const PC: u64 = 0x22;
    /// Exception class: data abort from EL0.
    pub const DATA: u64 = 0x24;
    /// The instruction has 32 bits.
    pub const LONG: u64 = 1 << 25;
}

/// The origin of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// An instruction: the address concerned, and the exception syndrome for memory faults.
    Fault {
        /// Address that could not be accessed, or that of the instruction.
        address: u64,
        /// `ESR_EL1` as reported by Linux; 0 if it is not reported.
        syndrome: u64,
    },
    /// `kill`, `tgkill`, or the kernel on the program's behalf.
    Sender {
        /// Process that sent it.
        pid: u32,
        /// Its user.
        uid: u32,
    },
    /// `sigqueue`, with a value for the handler.
    Queued {
        /// Process that sent it.
        pid: u32,
        /// Its user.
        uid: u32,
        /// `si_value`.
        value: u64,
    },
    /// A child that has ended.
    Child {
        /// The child.
        pid: u32,
        /// Its user.
        uid: u32,
        /// Its exit status, or the signal that ended it.
        status: i32,
    },
}

/// A signal to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigInfo {
    /// The signal's number.
    pub signal: u32,
    /// `si_code`.
    pub code: i32,
    /// Its origin.
    pub origin: Origin,
}

impl SigInfo {
    /// Returns a signal caused by the instruction at (or concerning) `address`.
    #[must_use]
    pub fn fault(signal: u32, code: i32, address: u64) -> SigInfo {
        SigInfo { signal, code, origin: Origin::Fault { address, syndrome: 0 } }
    }

    /// Returns the signal for a memory access that the address space does not allow.
    #[must_use]
    pub fn memory_fault(fault: MemFault) -> SigInfo {
        let (signal, code) = match fault {
            MemFault { out_of_memory: true, .. } | MemFault { beyond_end: true, .. } => (SIGBUS, code::BUS_ADRERR),
            MemFault { mapped: true, .. } => (SIGSEGV, code::SEGV_ACCERR),
            _ => (SIGSEGV, code::SEGV_MAPERR),
        };
        // Status: a permission or translation fault at level 3.
        let status = if fault.mapped { 0x0f } else { 0x07 };
        let write = u64::from(fault.touch == Touch::Write) << 6;
        let class = if fault.touch == Touch::Fetch { class::FETCH } else { class::DATA };
        let syndrome = class << 26 | class::LONG | write | status;
        SigInfo { signal, code, origin: Origin::Fault { address: fault.addr, syndrome } }
    }

    /// Returns the signal for a misaligned access, or a jump to a misaligned address.
    #[must_use]
    pub fn misaligned(address: u64, pc: u64) -> SigInfo {
        let syndrome = if address == pc { class::PC << 26 } else { class::DATA << 26 | 0x21 } | class::LONG;
        SigInfo { signal: SIGBUS, code: code::BUS_ADRALN, origin: Origin::Fault { address, syndrome } }
    }

    /// Returns the `siginfo_t` for a handler.
    pub(crate) fn to_bytes(self) -> [u8; 128] {
        let mut bytes = [0; 128];
        bytes[0..4].copy_from_slice(&self.signal.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.code.to_le_bytes());
        match self.origin {
            Origin::Fault { address, .. } => bytes[16..24].copy_from_slice(&address.to_le_bytes()),
            Origin::Sender { pid, uid } => {
                bytes[16..20].copy_from_slice(&pid.to_le_bytes());
                bytes[20..24].copy_from_slice(&uid.to_le_bytes());
            }
            Origin::Child { pid, uid, status } => {
                bytes[16..20].copy_from_slice(&pid.to_le_bytes());
                bytes[20..24].copy_from_slice(&uid.to_le_bytes());
                bytes[24..28].copy_from_slice(&status.to_le_bytes());
            }
            Origin::Queued { pid, uid, value } => {
                bytes[16..20].copy_from_slice(&pid.to_le_bytes());
                bytes[20..24].copy_from_slice(&uid.to_le_bytes());
                bytes[24..32].copy_from_slice(&value.to_le_bytes());
            }
        }
        bytes
    }
}

/// An alternate signal stack (`stack_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct AltStack {
    /// Lowest address.
    pub start: u64,
    /// `SS_DISABLE` or 0.
    pub flags: i32,
    pub(crate) pad: u32,
    /// Bytes.
    pub bytes: u64,
}

impl AltStack {
    /// `SS_ONSTACK`.
    pub const ONSTACK: i32 = 1;
    /// `SS_DISABLE`.
    pub const DISABLED: i32 = 2;
    /// No alternate stack.
    pub const NONE: AltStack = AltStack { start: 0, flags: AltStack::DISABLED, pad: 0, bytes: 0 };

    /// Returns whether the stack pointer is on it.
    #[must_use]
    pub fn holds(&self, sp: u64) -> bool {
        self.flags & AltStack::DISABLED == 0 && sp > self.start && sp - self.start <= self.bytes
    }
}

/// Makes `info` pending for a thread of a process with these `actions`, as `tgkill` and similar calls do.
pub(crate) fn send(actions: &[Action], thread: &mut Thread, info: SigInfo) {
    if thread.mask & bit(info.signal) == 0 && ignores(actions, info.signal) {
        return;
    }
    queue(thread, info);
}

/// Makes `info` pending for the thread, even if it is ignored: that is checked on delivery.
pub(crate) fn queue(thread: &mut Thread, info: SigInfo) {
    if add(&mut thread.pending, info) && thread.wants(info.signal) {
        thread.poked = true;
    }
}

/// Makes `info` pending for the process `pid`, as `kill` does: a thread that does not block it will take it. Returns whether the
/// process exists.
pub(crate) fn send_to_process(k: &mut Kernel<'_>, pid: u32, info: SigInfo) -> bool {
    stop::prepare(k, pid, info.signal);
    let process = match pid == k.process.pid {
        true => Some(&mut *k.process),
        false => k.other_processes.iter_mut().find(|other| other.pid == pid),
    };
    let Some(Process { actions, pending, .. }) = process else { return false };
    let all = std::iter::once(&mut *k.thread).chain(k.other_threads.iter_mut());
    let threads: Vec<&mut Thread> = all.filter(|thread| thread.pid == pid).collect();
    // A blocked signal is kept: its disposition may have changed when it is unblocked.
    let blocked = threads.iter().any(|t| t.mask & bit(info.signal) != 0);
    if (!blocked && ignores(actions, info.signal)) || !add(pending, info) {
        return true;
    }
    // If several threads can take it, the first of the process does.
    if let Some(taker) = threads.into_iter().filter(|t| t.wants(info.signal)).min_by_key(|t| t.tid) {
        taker.poked = true;
    }
    true
}

/// Adds to a list of pending signals; `false` for a standard signal that is already pending, which is not queued again. Real-time
/// signals are.
fn add(pending: &mut Vec<SigInfo>, info: SigInfo) -> bool {
    // `kill` does not fail when the queue is full; then one of each signal is kept.
    let queues = info.signal >= FIRST_REALTIME && (pending.len() as u64) < PENDING_SIGNALS;
    if !queues && pending.iter().any(|p| p.signal == info.signal) {
        return false;
    }
    pending.push(info);
    true
}

/// Returns whether an arriving signal is dropped.
fn ignores(actions: &[Action], signal: u32) -> bool {
    match actions[signal as usize].handler {
        SIG_IGN => true,
        SIG_DFL => default_is_ignore(signal),
        _ => false,
    }
}

/// Delivers a signal that the current instruction caused, even if it is blocked or ignored.
pub(crate) fn force(k: &mut Kernel<'_>, info: SigInfo) {
    let action = &mut k.process.actions[info.signal as usize];
    if k.thread.mask & bit(info.signal) != 0 || action.handler == SIG_IGN {
        action.handler = SIG_DFL;
        k.thread.mask &= !bit(info.signal);
    }
    deliver(k, info);
}

/// Takes the pending signal with the lowest number in `allowed`: the thread's own before the process's.
pub(crate) fn take(k: &mut Kernel<'_>, allowed: u64) -> Option<SigInfo> {
    [&mut k.thread.pending, &mut k.process.pending].into_iter().find_map(|list| {
        let open = list.iter().enumerate().filter(|(_, p)| allowed & bit(p.signal) != 0);
        let (at, _) = open.min_by_key(|(_, p)| p.signal)?;
        Some(list.remove(at))
    })
}

/// Delivers pending signals that are not blocked.
pub(crate) fn deliver_pending(k: &mut Kernel<'_>) {
    while k.process.end.is_none() && !k.thread.stopped {
        let Some(info) = take(k, !k.thread.mask) else { break };
        deliver(k, info);
    }
    // The mask of `rt_sigsuspend` applies only until a signal arrives.
    if k.thread.blocked.is_none()
        && let Some(mask) = k.thread.mask_after_suspend.take()
    {
        k.thread.mask = mask;
    }
}

fn deliver(k: &mut Kernel<'_>, info: SigInfo) {
    let action = k.process.actions[info.signal as usize];
    match action.handler {
        SIG_IGN => return,
        SIG_DFL => {
            match info.signal {
                SIGSTOP | SIGTSTP | SIGTTIN | SIGTTOU => stop::stop(k, info.signal),
                signal if default_is_ignore(signal) => {}
                _ => kill(k, info),
            }
            return;
        }
        _ => {}
    }
    if action.flags & flags::RESETHAND != 0 {
        k.process.actions[info.signal as usize].handler = SIG_DFL;
    }
    k.interrupt_call(action.flags);
    k.note_fault(&info);
    let saved = k.thread.mask_after_suspend.take().unwrap_or(k.thread.mask);
    if frame::push(k.mem, k.thread, &info, &action, saved).is_err() {
        // No room for the frame: the kernel ends the program with SIGSEGV.
        let address = k.thread.cpu.x(fxscope_aarch64::Cpu::SP);
        kill(k, SigInfo::fault(SIGSEGV, code::SI_KERNEL, address));
        return;
    }
    k.thread.mask = saved | action.mask & !UNBLOCKABLE;
    if action.flags & flags::NODEFER == 0 {
        k.thread.mask |= bit(info.signal);
    }
}

fn kill(k: &mut Kernel<'_>, info: SigInfo) {
    let fault = k.fault_behind(&info);
    let address = match info.origin {
        Origin::Fault { address, .. } => Some(address),
        Origin::Sender { .. } | Origin::Queued { .. } | Origin::Child { .. } => fault.map(|fault| fault.address),
    };
    let pc = fault.map_or(k.thread.cpu.pc, |fault| fault.registers.pc);
    let memory = &*k.mem;
    // Otherwise a mapped file ends before the address.
    let no_memory = info.signal == SIGBUS && info.code == code::BUS_ADRERR && memory.room_bytes() < PAGE;
    let out_of_memory = no_memory.then(|| OutOfMemory {
        limit: memory.limit_bytes(),
        pages: memory.backed_bytes(),
        files: memory.elsewhere_bytes(),
    });
    let word = address.filter(|_| info.signal == SIGILL).and_then(|_| k.mem.fetch(pc).ok());
    let end = End::Killed(Killed {
        signal: info.signal,
        pc,
        function: k.process.function_at(pc),
        address,
        out_of_memory,
        refused: word.map(|word| Refused { word, disassembly: disasm::disassemble(word, pc) }),
    });
    k.note_killed(&info, &end);
    k.process.end = Some(end);
}

/// Returns whether a signal is ignored by default.
fn default_is_ignore(signal: u32) -> bool {
    matches!(signal, SIGCHLD | SIGCONT | SIGURG | SIGWINCH)
}
